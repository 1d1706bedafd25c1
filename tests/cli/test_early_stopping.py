"""Early stopping, time limits and folds on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gramian import KernelModel
from gramian.cli.options.options import parsing

FIT = ("--target", "y", "--lengthscale", 0.4, "--landmarks", 100, "--penalty", 1e-12, "--tol", 0)


@pytest.fixture
def noisy(save):
    """A table of 300 rows whose target is mostly noise."""
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(-2, 2, 300) for name in "abc"}
    y = 50 + 10 * np.sin(columns["a"]) + 7 * rng.standard_normal(300)
    return save("noisy.parquet", n=300, **columns, y=y)


@pytest.fixture
def fitted(gramian, tmp_path):
    """Return a function that fits, for the report: rounding may be remarked on."""

    def run(*arguments):
        done = gramian("fit", *arguments, "--out", tmp_path / "y.model", "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    return run


def test_a_tenth_is_held_out(fitted, noisy, tmp_path):
    said = fitted(noisy, *FIT, "--early-stopping", "--history", tmp_path / "h.json")
    assert (said["stop_reason"], said["rows"], said["validation"]["rows"]) == (
        "early_stopping",
        270,
        30,
    )
    assert said["iterations"] == said["best_iteration"] + 5
    assert 3 < said["validation"]["rmse"] < said["validation"]["rmse_of_mean"] < 20
    about = KernelModel.load(tmp_path / "y.model").info
    assert about["best_iteration"] == said["best_iteration"]
    assert about["validation"] == said["validation"]
    assert "optimistic, because these rows chose the iteration" in said["validation"]["remark"]


def test_rows_for_validation_are_looked_at(fitted, noisy, tmp_path):
    found = [
        fitted(noisy, *FIT, "--validation", 0.3, *more, "--history", tmp_path / "h.json")
        for more in ([], ["--early-stopping", "--patience", 2])
    ]
    last, best = found
    assert best["rows"] == last["rows"] == 210
    assert best["stop_reason"] == "early_stopping"
    assert best["iterations"] == best["best_iteration"] + 2
    assert best["validation"]["rmse"] < last["validation"]["rmse"]
    rows = json.loads((tmp_path / "h.json").read_text())
    assert best["validation"]["rmse"] == min(row["valid_rmse"] for row in rows)
    assert last["best_iteration"] is None
    assert "remark" not in last["validation"]


def test_classes(fitted, noisy, save):
    y = np.where(np.random.default_rng(1).uniform(size=300) < 0.7, "no", "yes")
    table = save("labels.parquet", n=300, y=y)
    found = fitted(table, *FIT, "--early-stopping")["validation"]
    assert found["rows"] == 30
    assert found["error"] <= 0.5
    assert found["error_of_majority"] == pytest.approx(np.mean(y == "yes"), abs=1 / 30)


def test_a_time_limit(gramian, noisy, tmp_path):
    given = ("fit", noisy, *FIT, "--time-limit", "0.0001", "--out", tmp_path / "y.model")
    done = gramian(*given)
    assert done.code == 0
    assert (
        "warning: stopped by --time-limit 0.0001 at iteration 0 with predictions that are off by "
        "an estimated"
    ) in done.err
    assert KernelModel.load(tmp_path / "y.model").info["stop_reason"] == "time_limit"


@pytest.mark.slow
def test_folds(report, noisy):
    given = ("plan", noisy, "--target", "y", "--landmarks", "bless_r:20", "--penalty", "auto")
    a, b = (report(*given, *more)["kernel_evaluations"] for more in ([], ["--cv", 5]))
    assert 3 < b / a < 6  # five fits to four fifths of the rows, and one, instead of one and one


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("1.5h", 5400), ("10min", 600), (" 2 min ", 120), (".5s", 0.5), ("1d", 86400)],
)
def test_times_are_read(text, expected):
    assert parsing.seconds(text) == expected


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--time-limit", "soon"], "--time-limit must be a positive time in seconds or as 10min"),
        (["--time-limit", "0"], "--time-limit must be a positive time in seconds or as 10min"),
        (["--patience", "0"], "--patience must be a whole number of at least 1, not 0"),
        (["--cv", "1"], "--cv must be a number of folds of at least 2, not 1"),
    ],
)
def test_what_cannot_be_is_refused(more, said, error, train, tmp_path):
    assert said in error("fit", train, "--target", "y", "--out", tmp_path / "y.model", *more)
