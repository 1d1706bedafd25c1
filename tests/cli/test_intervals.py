"""Intervals and sets on the command line: the same as in Python, and what they are worth."""

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV, load

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


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_the_same_as_in_python(report, fit, train, fresh, tmp_path, method):
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
    assert "held-back rows" in report("info", model)["intervals"]
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
    assert "--conformal must be None, 'split' or 'cv+'" in said
