"""Intervals and sets on the command line: the same as in Python, and what they are worth."""

from dataclasses import dataclass

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV, load
from gramian.conformal import HeldOutMethod, RowScores
from gramian.conformal.base import methods
from gramian.conformal.held_out import errors_of

FEATURES = ["a", "b", "c"]
OWN = (
    "--kernel", "matern32", "--lengthscale", "median", "--penalty", "1e-4", "--seed", "3",
)  # fmt: skip
PLAIN = {
    "kernel": "matern32", "lengthscale": "median", "penalty": 1e-4, "standardize": True,
    "random_state": 3,
}  # fmt: skip


def rows_of(path):
    table = pq.read_table(path)
    return np.column_stack([table[name] for name in FEATURES]), table["y"].to_numpy()


@pytest.fixture
def many(save):
    return save("many.parquet", n=300)


@pytest.fixture
def model(fit, many):
    return fit(many, *OWN, "--conformal", "split")


def written(report, model, data, tmp_path, *more):
    report("predict", model, data, "--out", tmp_path / "p.csv", *more)
    return pyarrow.csv.read_csv(tmp_path / "p.csv")


@dataclass(frozen=True)
class AbsoluteErrors(HeldOutMethod):
    """A method that the package does not have: intervals of one width."""

    def score_rows(self, refit, learned, held_data, draws):
        # Divided, so that the scores have more digits than errors of float32 predictions.
        return RowScores(held_data.rows, np.abs(errors_of(refit, held_data)) / 3)


@pytest.mark.parametrize("method", ["split", "cv+", "cqr", "absolute"])
def test_the_same_as_in_python(report, fit, train, fresh, tmp_path, monkeypatch, method):
    monkeypatch.setattr(methods, "_classes", {**methods._classes, "absolute": AbsoluteErrors})
    X, y = rows_of(train)
    new = rows_of(fresh)[0]
    python = KernelRidge(**PLAIN, conformal=method).fit(X, y)
    path = fit(train, *OWN, "--conformal", method)
    table = written(report, path, fresh, tmp_path, "--interval", "0.8")
    assert table.column_names == ["prediction", "prediction_lower", "prediction_upper"]
    found = np.column_stack([table["prediction_lower"], table["prediction_upper"]])
    np.testing.assert_allclose(found, python.predict_interval(new, 0.8), rtol=1e-5)


@pytest.mark.slow
def test_of_a_search(report, many, fresh, tmp_path):
    out = tmp_path / "m"
    budget = ("--budget", "400000", "--seed", "3")
    report("fit", many, "--target", "y", *budget, "--conformal", "split", "--out", out)
    ends = load(out).predict_interval(pq.read_table(fresh))
    assert (np.diff(ends) > 0).all()
    X, y = rows_of(many)
    python = KernelRidgeCV(budget=400_000, conformal="split", random_state=3).fit(X, y)
    assert len(python.dual_coef_) <= 0.8 * len(y)


def test_coverage_is_reported(report, model, fresh):
    y = rows_of(fresh)[1]
    low, high = load(model).predict_interval(pq.read_table(fresh)).T
    found = report("evaluate", model, fresh)["intervals_of_0.9"]
    assert found["coverage"] == pytest.approx(((low <= y) & (y <= high)).mean())
    assert found["width"] == pytest.approx((high - low).mean())
    assert "held-out rows" in report("info", model)["intervals"]
    assert "intervals_of_0.9" not in report("evaluate", model, fresh, "--metric", "mae")


def test_sets_of_classes(report, save, tmp_path):
    rng = np.random.default_rng(0)
    data = save("labels.parquet", n=300, y=np.array(["no", "so", "yes"])[rng.integers(0, 3, 300)])
    out = tmp_path / "m"
    report("fit", data, "--target", "y", *OWN, "--conformal", "split", "--out", out)
    table = written(report, out, data, tmp_path, "--interval", "0.9")
    X = np.column_stack([pq.read_table(data)[name] for name in FEATURES])
    labels = pq.read_table(data)["y"].to_numpy(zero_copy_only=False)
    python = KernelRidgeClassifier(**PLAIN, conformal="split").fit(X, labels)
    sets = python.predict_set(X)
    expected = ["|".join(python.classes_[row]) for row in sets]
    assert table["set"].to_pylist() == expected
    found = report("evaluate", out, data)["sets_of_0.9"]
    assert found["classes"] == pytest.approx(sets.sum(axis=1).mean())
    assert found["coverage"] > 0.85


def test_what_cannot_be(error, fit, train, model, fresh, tmp_path):
    out = ("--out", tmp_path / "p.csv")
    assert "no intervals: fit it with --conformal split" in error(
        "predict", fit(train, *OWN), fresh, *out, "--interval", "0.9"
    )
    said = error("predict", model, fresh, *out, "--interval", "1.2")
    assert "--interval must be between 0 and 1" in said
    said = error("fit", train, "--target", "y", "--conformal", "splt", *out)
    assert "--conformal must be None, 'cqr', 'cv+' or 'split'" in said


def test_groups(report, error, save, tmp_path):
    """The same as in Python; `evaluate` has the coverage of each group."""
    kind = np.array(["a", "b"])[np.arange(400) % 2]
    data = save("kinds.parquet", n=400, kind=kind)
    groups = ("--conformal", "split", "--conformal-groups", "kind")
    report("fit", data, "--target", "y", *OWN, *groups, "--out", tmp_path / "m")
    table = pq.read_table(data)
    python = KernelRidge(**PLAIN, conformal="split", conformal_groups="kind").fit(data, "y")
    ends = python.predict_interval(table)
    found = written(report, tmp_path / "m", data, tmp_path, "--interval", "0.9")
    np.testing.assert_allclose(found["prediction_lower"], ends[:, 0], rtol=1e-5)
    y = table["y"].to_numpy()
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    shares = report("evaluate", tmp_path / "m", data)["intervals_of_0.9"]["coverage_of_groups"]
    assert shares == pytest.approx({f"kind={k}": inside[kind == k].mean() for k in "ab"})
    assert "2 groups by 'kind'" in report("info", tmp_path / "m")["intervals"]
    said = error("fit", data, "--target", "y", *OWN, "--conformal-groups", "kind", "--out", "x")
    assert "--conformal-groups kind needs --conformal, such as --conformal split" in said


def test_groups_that_are_too_small(gramian, save, tmp_path):
    kind = np.where(np.arange(400) < 30, "rare", "usual")
    data = save("kinds.parquet", n=400, kind=kind)
    groups = ("--conformal", "split", "--conformal-groups", "kind")
    gramian("fit", data, "--target", "y", *OWN, *groups, "--out", tmp_path / "m")
    out = ("--interval", "0.9", "--out", tmp_path / "p.csv")
    said = gramian("predict", tmp_path / "m", data, *out).err
    assert "warning: groups with fewer than the 9 held-out rows that a level of 0.9 needs" in said
    assert "kind=rare" in said
    assert "with --conformal cv+ every row has a score" in said


def test_intervals_of_one_width_have_no_thirds(report, fit, save, monkeypatch):
    """Their ends are rounded, and so are their widths."""
    monkeypatch.setattr(methods, "_classes", {**methods._classes, "absolute": AbsoluteErrors})
    data = save("small.parquet", n=300, y=np.random.default_rng(0).normal(size=300))
    model = fit(data, *OWN, "--conformal", "absolute")
    assert np.ptp(np.diff(load(model).predict_interval(pq.read_table(data)))) > 0
    assert set(report("evaluate", model, data)["intervals_of_0.9"]) == {"coverage", "width"}
