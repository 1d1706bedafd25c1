"""Maps of features on the command line: what a fit does with them, and what info says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from correlated import Correlated
from plain import PLAIN

from gramian import AverageModel, KernelModel, KernelRidge, RecursiveFeatureMachine, load
from gramian.metric import metrics

NAMES = ["a", "b", "c"]


@pytest.fixture
def correlated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(metrics._classes, "learned", Correlated)


def columns(path: Any) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(path)
    return np.column_stack([table[name] for name in NAMES]), table["y"].to_numpy()


def test_the_same_as_in_python(fit, train, correlated, tmp_path):
    path = fit(
        train,
        "--kernel",
        "gaussian",
        "--standardize",
        "quantile",
        "--learn-metric",
        "--lengthscale",
        "2 median",
    )
    X, y = columns(train)
    settings = {"standardize": "quantile", "metric": "learned", "lengthscale": "2 median"}
    python = KernelRidge(
        **({"kernel": "gaussian", "lengthscale": "median"} | settings), penalty=1e-4, random_state=0
    ).fit(X, y)
    python.save(tmp_path / "python")
    one, two = KernelModel.load(path), KernelModel.load(tmp_path / "python")
    assert np.array_equal(one.predict(X), two.predict(X))
    assert np.array_equal(one.metric.scales, two.metric.scales)
    assert one.kernel == two.kernel


def test_info_names_the_maps_and_the_largest_importances(report, fit, train, correlated):
    said = report("info", fit(train, "--standardize", "quantile", "--learn-metric"))
    assert said["quantiles"] == "of 3 features"
    assert said["metric"] == "learned: 3 factors"
    assert sorted(said["importances"]) == NAMES
    shares = list(said["importances"].values())
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)


def test_info_of_a_matrix_that_was_given(report, train, tmp_path):
    X, y = columns(train)
    KernelRidge(metric=np.eye(3)[:, :2], **PLAIN).fit(X, y).save(tmp_path / "m")
    said = report("info", tmp_path / "m")
    assert (said["metric"], said["features"]) == ("given: matrix of 3 x 2", 3)
    assert said["importances"] is None


def test_an_average_predicts_and_is_described(report, gramian, fit, train, tmp_path):
    one = KernelModel.load(fit(train, "--landmarks", 20))
    other = KernelModel.load(fit(train, "--kernel", "l1_laplacian", name="other.model"))
    both = AverageModel((0.25, 0.75), (one, other), info=one.info)
    both.save(tmp_path / "both")
    said = report("info", tmp_path / "both")
    assert said["weights"] == [0.25, 0.75]
    assert said["average"]["model_2"]["kernel"]["name"] == "l1_laplacian"
    assert said["features"] == 3
    assert gramian("info", tmp_path / "both").code == 0
    out = tmp_path / "p.npy"
    assert gramian("predict", tmp_path / "both", train, "--out", out).code == 0
    X, y = columns(train)
    expected = 0.25 * one.predict(X) + 0.75 * other.predict(X)
    np.testing.assert_allclose(np.load(out).ravel(), expected[:, 0])
    error = float(np.sqrt(np.mean((expected[:, 0] - y) ** 2)))
    assert report("evaluate", tmp_path / "both", train)["rmse"] == pytest.approx(error)
    assert isinstance(load(tmp_path / "both").model_, AverageModel)


def test_what_contradicts_itself_is_refused(gramian, train, tmp_path):
    done = gramian("fit", train, "--target", "y", "--out", tmp_path / "m", "--standardize", "maybe")
    assert done.code == 2
    assert "--standardize must be one of true, false, quantile, auto, not 'maybe'" in done.err
    for bad in ("x median", "0 median", "2 medians"):
        done = gramian("fit", train, "--target", "y", "--out", tmp_path / "m", "--lengthscale", bad)
        assert done.code == 2
        assert "'2 median', not" in done.err


def test_how_a_metric_is_learned(fit, train, tmp_path):
    how = ("--metric-rounds", 1, "--metric-power", 0.25, "--metric-kernel", "matern32")
    one = KernelModel.load(fit(train, "--kernel", "laplacian", "--learn-metric", *how))
    X, y = columns(train)
    machine = RecursiveFeatureMachine(rounds=1, powers=(0.25,), kernel="matern32")
    given = {"penalty": 1e-4}
    other = KernelRidge("laplacian", metric=machine, random_state=0, **given).fit(X, y)
    assert np.array_equal(one.predict(X), other.model_.predict(X))
    assert one.kernel == other.kernel_
