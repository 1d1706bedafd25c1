"""`--blend lightgbm` of a search, and what other commands say of a blend."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramian as library

RNG = np.random.default_rng(0)
EVALUATIONS = 1e6


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    frame = pd.DataFrame(RNG.uniform(-1, 1, (500, 2)), columns=["a", "b"])
    frame["y"] = np.floor(3 * frame["a"]) + 3 * (frame["b"] > 0.2) + 0.01 * frame["b"]
    path = tmp_path_factory.mktemp("blend") / "steps.csv"
    frame.to_csv(path, index=False)
    return path


def test_fit_info_and_evaluate(report, steps, tmp_path):
    out = tmp_path / "y.model"
    options = ("--target", "y", "--budget", EVALUATIONS, "--blend", "lightgbm", "--out", out)
    fitted = report("fit", steps, *options, "--validation", 0.2)
    blend = fitted["blend"]
    assert blend["kernel_weight"] < 0.9
    assert blend["kernel_weight"] + blend["lightgbm_weight"] == pytest.approx(1)
    assert fitted["chosen_by"]["rmse"] < 0.5 * fitted["chosen_by"]["rmse_of_mean"]
    assert report("info", out)["blend"] == blend
    measured = report("evaluate", out, steps)
    frame = pd.read_csv(steps)
    predicted = library.load(out).predict(frame)
    assert measured["rmse"] == pytest.approx(np.sqrt(np.mean((predicted - frame["y"]) ** 2)))


def test_tune_ranks_the_blend(report, steps):
    tuned = report("tune", steps, "--target", "y", "--budget", EVALUATIONS, "--blend", "lightgbm")
    assert tuned["ranking"][0]["step"] == "blend"
    assert tuned["gains"][-1]["step"] == "blend"


def test_intervals(report, steps, tmp_path):
    out = tmp_path / "y.model"
    options = ("--budget", EVALUATIONS, "--blend", "lightgbm", "--conformal", "split", "--out", out)
    report("fit", steps, "--target", "y", *options)
    assert report("evaluate", out, steps)["intervals_of_0.9"]["coverage"] > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--blend", "xgboost"), "--blend must be None or 'lightgbm', not 'xgboost'"),
        (("--blend", "lightgbm", "--kernel", "gaussian"), "--blend and --kernel cannot be"),
        (("--blend", "lightgbm", "--std"), "without --blend"),
    ],
)
def test_refusals(options, message, gramian, steps, tmp_path):
    done = gramian("fit", steps, "--target", "y", *options, "--out", tmp_path / "y.model")
    assert done.code != 0
    assert message in done.err


def test_classes_of_more_rows_than_a_sample(report, tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.fitting.search.data.MOST_ROWS", 2000)
    # Cells hold out more rows than the search on the sample.
    monkeypatch.setattr("gramian.fitting.search.larger_fit.HELD_OUT", (4, 10_000))
    frame = pd.DataFrame(RNG.uniform(-1, 1, (2500, 3)), columns=list("abc"))
    frame["y"] = np.where(np.sign(frame["a"]) * np.sign(frame["b"] - 0.2) > 0, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ("--budget", 1e8, "--blend", "lightgbm", "--out", tmp_path / "y.model")
    fitted = report("fit", tmp_path / "t.csv", "--target", "y", *options)
    assert fitted["blend"]["kernel_weight"] < 0.5
    assert fitted["chosen_by"]["error"] < 0.05
    assert report("evaluate", tmp_path / "y.model", tmp_path / "t.csv")["error"] < 0.05
