"""`gramian fit` without a model that is described searches; with one it is one fit."""

from __future__ import annotations

import csv
import functools
import itertools
import json
import re
import shlex

import numpy as np
import pyarrow.parquet as pq
import pytest
from clock import wait_until

from gramian import KernelModel, KernelRidgeCV, load
from gramian.callbacks import Progress
from gramian.cli.commands.tune import command
from gramian.cli.options.options import FitOptions
from gramian.cli.outputs import progress
from gramian.kernels import Laplacian
from gramian.search import Member, Recipe, Search

CONTROL = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]|\r")

FEW = 2e5
"""Kernel evaluations after which a search of some dozen rows ends."""


@pytest.fixture
def search(report, tmp_path):
    """Return a function that searches a table, for its report; the model is y.model."""

    def run(data, *more):
        out = tmp_path / "y.model"
        return report("fit", data, "--target", "y", "--budget", FEW, *more, "--out", out)

    return run


@pytest.mark.parametrize("name", ["tune", "fit"])
def test_a_checkpoint_keeps_the_trials(name, report, gramian, train, tmp_path):
    def run(*more):
        files = ("--checkpoint", tmp_path / "c", "--out", tmp_path / "y.model")
        return (name, train, "--target", "y", "--budget", FEW, *more, *files)

    first = report(*run())
    again = report(*run())
    timed = ("seconds", "gains")
    assert {k: first[k] for k in first if k not in timed} == {
        k: again[k] for k in again if k not in timed
    }
    failed = gramian(*run("--seed", 1))
    assert failed.code != 0
    assert "checkpoint of another problem" in failed.err


@pytest.mark.slow
def test_which_it_was_is_said(report, search, train, tmp_path):
    said = search(train)
    assert (said["method"], said["stop_reason"]) == ("search", "searched")
    assert said["trials"] > 5
    free = report("fit", train, "--target", "y", "--out", tmp_path / "free.model")
    assert said["kernel_evaluations"] < 0.7 * free["kernel_evaluations"]
    assert (said["budget"], free["budget"]) == ("200000.0", "auto")
    assert sum(member["weight"] for member in said["members"]) == pytest.approx(1)
    assert said["chosen_by"]["rows"] == 61
    assert said["chosen_by"]["rmse"] < 0.5 * said["chosen_by"]["rmse_of_mean"]
    assert said["chosen_by"]["rmse_of_mean"] == pytest.approx(30, rel=0.5)
    assert "columns" not in said
    one = report(
        "fit", train, "--target", "y", "--landmarks", 9, "--tol", 1e-6, "--out", tmp_path / "z"
    )
    assert (one["method"], one["asked_for_by"]) == ("one fit", ["--landmarks", "--tol"])


@pytest.mark.parametrize(
    "option",
    [
        ("--kernel", "gaussian"),
        ("--lengthscale", "median"),
        ("--penalty", "1e-6"),
        ("--standardize", "true"),
        ("--solver", "auto"),
        ("--max-iter", 100),
        ("--time-limit", 60),
        ("--early-stopping",),
        ("--checkpoint", "{}/y.ckpt"),
    ],
)
def test_each_of_them_asks_for_one_fit_be_it_with_its_default(report, train, tmp_path, option):
    words = [str(word).replace("{}", str(tmp_path)) for word in option]
    said = report("fit", train, "--target", "y", *words, "--out", tmp_path / "y.model")
    assert said["asked_for_by"] == [words[0]]


@pytest.mark.slow
def test_rows_of_validation_are_not_looked_at(search, report, save, fresh, tmp_path):
    data = save()
    said = search(data, "--validation", fresh)
    coef = [part.coef for part in load(tmp_path / "y.model").model_.parts]
    found = report("evaluate", tmp_path / "y.model", fresh)
    assert said["validation"]["rows"] == 17
    assert said["validation"]["rmse"] == pytest.approx(found["rmse"], rel=1e-9)
    search(data)
    alone = [part.coef for part in load(tmp_path / "y.model").model_.parts]
    assert all(bool((one == two).all()) for one, two in zip(coef, alone, strict=True))
    part = search(data, "--validation", 0.2, "--metric", "mae")
    assert (part["rows"], part["chosen_by"]["rows"]) == (49, 49)
    assert part["validation"].keys() == {"rows", "mae", "mae_of_mean"}


@pytest.mark.parametrize("name", ["fit", "tune"])
def test_the_optimism_of_a_search_is_stated(name, gramian, report, train, fresh, tmp_path):
    run = (name, train, "--target", "y", "--budget", FEW, "--out", tmp_path / "y.model")
    printed = gramian(*run)
    assert "optimistic" in printed.out
    assert "--validation FRACTION or FILE" in printed.out
    trained = report("info", tmp_path / "y.model")["trained"]
    assert "--validation FRACTION or FILE" in trained["chosen_by"]["remark"]
    measured = report(*run, "--validation", fresh)["chosen_by"]["remark"]
    assert "validation has the error on rows that affect no choice" in measured


def test_classes(search, report, save, tmp_path):
    x = np.linspace(-1, 1, 61)
    label = np.array(["low", "mid", "high"])[np.digitize(x, [-0.3, 0.3])]
    data = save(a=x, y=label)
    said = search(data)
    assert said["task"] == "classification"
    assert said["chosen_by"]["error"] < 0.3
    assert said["chosen_by"]["error_of_majority"] == pytest.approx(40 / 61, abs=0.03)
    assert report("evaluate", tmp_path / "y.model", data)["error"] < 0.3


def test_the_share_of_wrong_labels_is_that_of_held_out_rows(gramian, save, tmp_path):
    y = np.where(np.random.default_rng(0).random(61) < 0.2, "rare", "usual")
    options = ("--target", "y", "--budget", FEW, "--out", tmp_path / "y.model", "--json")
    done = gramian("fit", save(y=y), *options)
    assert "nothing was learned" in done.err
    said = json.loads(done.out)["chosen_by"]
    assert said["error_of_majority"] == pytest.approx(float((y == "rare").mean()))
    assert said["error"] >= 0.5 * said["error_of_majority"]  # there is nothing to learn


def test_the_model_is_described_evaluated_and_applied(gramian, search, report, train, tmp_path):
    model, out = tmp_path / "y.model", tmp_path / "p.npy"
    said = search(train)
    about = report("info", model)
    assert about["trained"]["members"] == said["members"]
    assert about["trained"]["method"] == "search"
    assert report("evaluate", model, train)["r2"] > 0.8
    assert report("predict", model, train, "--out", out)["rows"] == 61
    shown = gramian("info", model).out
    assert re.search(r"^trained members\n  weight +kernel +inputs", shown, re.M)
    assert "{" not in shown


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_the_history_has_a_row_per_trial(search, train, tmp_path, kind):
    path = tmp_path / f"h.{kind}"
    said = search(train, "--history", path)
    text = path.read_text("utf-8")
    rows = json.loads(text) if kind == "json" else list(csv.DictReader(text.splitlines()))
    assert len(rows) == said["trials"] + len(said["members"])
    assert rows[0]["step"] == "screen"
    assert min(float(row["rmse"]) for row in rows if row.get("rmse")) == pytest.approx(
        said["chosen_by"]["rmse"], rel=0.05
    )


@pytest.mark.slow
def test_plan(report, gramian, train):
    said = report("plan", train, "--target", "y")
    assert (said["method"], said["searched_rows"], said["held_out"]) == ("search", 61, 61)
    assert said["seconds"] > 0
    few = report("plan", train, "--target", "y", "--budget", 1e5)
    assert few["kernel_evaluations"] == pytest.approx(1e5)
    assert few["limited"]
    assert few["plan"].endswith(" s, the budget")
    assert report("plan", train, "--target", "y", "--kernel", "gaussian")["solver"] == "direct"


# --- while it works ------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch):
    """Print a line every few milliseconds, and let each trial wait for one."""
    said: list[str] = []
    write = progress._write_line
    often = functools.partial(progress.command_progress, every_seconds=0.01)
    monkeypatch.setattr("gramian.cli.commands.search.command_progress", often)
    monkeypatch.setattr(progress, "_write_line", lambda line: (write(line), said.append(line)))
    steps = Search.steps

    def slowly(self):
        for trial in steps(self):
            yield trial
            count = len(said)
            wait_until(lambda count=count: len(said) >= count + 2)

    monkeypatch.setattr(Search, "steps", slowly)


@pytest.mark.usefixtures("slow")
@pytest.mark.slow
def test_a_piped_search_says_what_it_tries_and_gains(gramian, train, tmp_path):
    options = ("--target", "y", "--budget", FEW, "--json", "--out", tmp_path / "y.model")
    lines = gramian("fit", train, *options).err.splitlines()
    assert any("screening kernels and inputs, trial 1: " in line for line in lines)
    last = [line for line in lines if "fitting all rows" in line][-1]
    assert " inputs" in last
    assert "error " in last
    assert "; screen 0." in last
    assert " % less), fit 0." in last
    assert last.endswith(" s")


def test_a_short_search_names_the_steps_that_it_left_out(gramian, train, tmp_path):
    options = ("--target", "y", "--budget", FEW, "--out", tmp_path / "y.model")
    (line,) = gramian("fit", train, *options).err.splitlines()
    assert line.startswith("gramian: the budget ended the search before planned steps: learned")


def test_a_terminal_has_a_bar_and_a_line_per_step(gramian, train, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    made = []
    monkeypatch.setattr(
        "gramian.cli.outputs.progress.Progress",
        lambda write, total, **more: made.append(total) or Progress(write, total=total, **more),
    )
    options = ("--target", "y", "--budget", "20 s", "--out", tmp_path / "y.model")
    done = gramian("fit", train, *options)
    assert made == [20.0]
    steps = re.findall(r"(\w+) [\d.e-]+ \([\d.]+ % less\)", CONTROL.sub("", done.err))
    assert {"sample", "metric", "fit"} <= set(steps)


# --- interrupted ---------------------------------------------------------------------------------


def interrupted(monkeypatch, step):
    """Have a search interrupted after its first trial of a step."""
    steps = Search.steps

    def until(self):
        for trial in steps(self):
            yield trial
            if trial.step == step:
                raise KeyboardInterrupt

    monkeypatch.setattr(Search, "steps", until)


@pytest.mark.parametrize("step", ["screen", "fit"])
def test_the_best_until_then_is_kept(gramian, report, train, tmp_path, monkeypatch, step):
    out = tmp_path / "y.model"
    interrupted(monkeypatch, step)
    done = gramian("fit", train, "--target", "y", "--out", out, "--history", tmp_path / "h.csv")
    assert done.code == 130
    rows = (tmp_path / "h.csv").read_text().splitlines()
    trials = len([row for row in rows[1:] if not row.startswith("refit")])
    assert done.err == f"gramian: interrupted; {out} holds the best of {trials} trials\n"
    assert done.out == ""
    assert report("info", out)["trained"]["stop_reason"] == "interrupted"
    assert report("evaluate", out, train)["r2"] > 0.3


def test_before_there_is_anything_nothing_is_written(gramian, train, tmp_path, monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("gramian.cli.commands.search.search_fit", interrupt)
    done = gramian("fit", train, "--target", "y", "--out", tmp_path / "y.model")
    resume = ". With --checkpoint FILE, a search can be resumed\n"
    assert (done.code, done.err) == (130, f"gramian: interrupted; nothing is saved{resume}")
    assert not (tmp_path / "y.model").exists()


# --- tune ----------------------------------------------------------------------------------------


@pytest.fixture
def tune(report):
    """Return a function that tunes on a table, for its report."""

    def run(data, *more):
        return report("tune", data, "--target", "y", *more)

    return run


def test_the_ranking(tune, train):
    said = tune(train, "--budget", FEW)
    rows = said["ranking"]
    assert 5 < len(rows) <= 15
    assert rows[0].keys() >= {"step", "kernel", "inputs", "medians", "metric", "penalty", "rmse"}
    errors = [row["rmse"] for row in rows]
    assert errors == sorted(errors)
    assert said["chosen_by"]["rmse"] <= 1.05 * errors[0]
    recipes = [tuple(row.values())[1:5] for row in rows if row["step"] != "average"]
    assert len(set(recipes)) == len(recipes)


def test_gains_lead_from_the_screen_to_the_error_of_the_result(tune, train):
    said = tune(train, "--budget", FEW)
    rows = said["gains"]
    assert [row["step"] for row in rows][:2] == ["screen", "sample"]
    assert rows[0]["less"] is None
    errors = [row["rmse"] for row in rows]
    assert errors == sorted(errors, reverse=True)
    for before, after in zip(errors, rows[1:], strict=False):
        share = float(after["less"].removesuffix(" %")) / 100
        assert 1 - after["rmse"] / before == pytest.approx(share, abs=6e-4)
    assert sum(row["trials"] for row in rows) == said["trials"]


def test_importances_are_the_largest_of_the_columns(tune, save):
    more = {f"noise{i}": np.random.default_rng(i).standard_normal(61) for i in range(9)}
    found = tune(save(**more), "--budget", FEW)["importances"]
    assert len(found) == 10
    assert next(iter(found)) == "a"


@pytest.mark.slow
def test_without_a_file_nothing_is_written(tune, train, tmp_path):
    tune(train, "--budget", FEW)
    assert [path.name for path in tmp_path.iterdir()] == ["train.parquet"]
    said = tune(train, "--budget", FEW, "--out", tmp_path / "best.model")
    assert said["model"] == str(tmp_path / "best.model")
    assert load(tmp_path / "best.model").model_.feature_names == ("a", "b", "c")


@pytest.mark.parametrize("kind", ["regression", "classification"])
@pytest.mark.slow
def test_the_command_repeats_the_winner(tune, report, save, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    data, fresh = save("train file.parquet", 300), save("fresh.parquet", 200, 1)
    more, error = (), "rmse"
    if kind == "classification":
        for path in (data, fresh):
            table = pq.read_table(path)
            label = pq.read_table(path)["y"].to_numpy() > 875
            pq.write_table(table.set_column(3, "y", [label.astype(int)]), path)
        more, error = ("--task", "classification"), "error"
    options = (*more, "--drop", "c", "--validation", fresh, "--seed", 2)
    said = tune(data, *options, "--budget", 3e7)
    program, *words = shlex.split(said["command"])
    assert (program, words[0]) == ("gramian", "fit")
    again = report(*words)
    assert again["method"] == "one fit"
    assert again["target"] == "y"
    limit = 1.5 if kind == "regression" else 2.0
    assert again["validation"][error] <= limit * said["validation"][error] + 0.02
    model = KernelModel.load("tuned.model")
    assert model.feature_names == ("a", "b")
    main = max(said["members"], key=lambda member: member["weight"])
    assert model.kernel.to_dict()["name"] == main["kernel"]
    assert (model.metric is None) == (main["metric"] is None)


def test_an_interrupted_tune_without_a_file(gramian, train, monkeypatch):
    interrupted(monkeypatch, "screen")
    done = gramian("tune", train, "--target", "y")
    assert done.code == 130
    assert done.err == "gramian: interrupted; nothing is saved without --out\n"


def test_a_ranking_for_people(gramian, train):
    done = gramian("tune", train, "--target", "y", "--budget", FEW)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "ranking"
    assert lines[1].split()[:5] == ["step", "kernel", "inputs", "medians", "metric"]
    assert lines[-1].startswith("command")
    assert "gramian fit" in lines[-1]


FLAGS = {
    "standard": {"--standardize true"},
    "quantile": {"--standardize quantile"},
    "common": {"--standardize false", "--standardize-target true"},
}


@pytest.mark.parametrize("inputs", FLAGS)
def test_the_command_has_the_inputs_of_the_recipe(report, train, tmp_path, monkeypatch, inputs):
    monkeypatch.chdir(tmp_path)
    recipe = Recipe("laplacian", inputs, 2.0, 2, 0.25, "matern32")
    nothing = np.zeros((1, 1), np.float32)
    member = Member(recipe, 1.0, Laplacian(), False, None, nothing, nothing, 1e-3, 0.1, True)
    words = shlex.split(command(train, FitOptions(target="y", seed=4), member, 61))
    flags = {word for word in words if word.startswith("--")}
    pairs = {f"{one} {two}" for one, two in itertools.pairwise(words)}
    assert {pair for pair in pairs if pair.startswith("--standardize")} == FLAGS[inputs]
    assert words[words.index("--metric-kernel") + 1] == "matern32"
    assert words[words.index("--seed") + 1] == "4"
    assert "--solver" not in flags
    assert "pcg" in command(train, FitOptions(target="y"), member, 20_000)
    report(*words[1:])
    found = KernelModel.load("tuned.model")
    assert (found.standardizer is None) == (inputs == "common")
    assert (found.quantiles is None) == (inputs != "quantile")
    assert found.metric is not None
    assert found.target_scale.item() > 10


class TestScoring:
    """`--scoring` compares the fits as `scoring=` does."""

    @pytest.mark.parametrize("name", ["mae", "neg_mean_absolute_percentage_error", "r2"])
    @pytest.mark.parametrize("command", ["fit", "tune"])
    def test_numbers(self, command, name, report, train, tmp_path):
        out = tmp_path / "y.model"
        said = report(command, train, "--target", "y", "--scoring", name, "--budget", FEW,
                      "--out", out)  # fmt: skip
        est = KernelRidgeCV(scoring=name, budget=FEW, random_state=0).fit(train, "y")
        table = pq.read_table(train)
        np.testing.assert_array_equal(load(out).predict(table), est.predict(table))
        assert said["scoring"] == name
        if name != "r2":  # a function of the squared error, which is reported as always
            score = -est.best_score_ if name == "mae" else est.best_score_
            assert said["chosen_by"][name] == pytest.approx(score)
        if name == "mae":
            assert said["chosen_by"]["mae_of_mean"] > 2 * said["chosen_by"]["mae"]
        if command == "tune" and name == "mae":
            steps = [row["step"] for row in said["ranking"]]
            first = [row["mae"] for row in said["ranking"] if "mae" in row]
            assert first == sorted(first)
            assert all(step not in ("screen", "metric", "kernel") for step in steps[: len(first)])
            assert said["gains"][-1]["mae"] == pytest.approx(first[0])

    def test_classes_and_the_default_metric_of_validation(self, report, save, tmp_path):
        table = pq.read_table(save("numbers.parquet", n=120)).to_pandas()
        table["y"] = np.where(table["y"] > table["y"].median(), "high", "low")
        table.to_parquet(data := tmp_path / "labels.parquet")

        def fit(*more):
            settings = ("--task", "classification", "--budget", FEW, "--out", tmp_path / "m")
            return report("fit", data, "--target", "y", *settings, *more)

        said = fit("--scoring", "log_loss", "--validation", 0.2)
        assert 0 < said["chosen_by"]["log_loss"] < np.log(2)
        assert said["validation"]["log_loss"] > 0
        chosen = fit("--scoring", "accuracy")["chosen_by"]
        assert chosen["accuracy"] > chosen["accuracy_of_majority"] > 0.4
