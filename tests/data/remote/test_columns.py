"""Targets and weights that stay with rows that are elsewhere: the same fits, and none comes."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close
from remote import Remote

from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint
from gramian.data import (
    RemoteColumns,
    all_finite,
    as_columns,
    as_rows,
    check_finite,
    check_magnitude,
)
from gramian.landmarks import Bless
from gramian.scoring.forms import ExplainedVariance
from gramian.scoring.reductions import RowMeans
from gramian.scoring.table import METRIC_TABLE
from gramian.solvers import EigenPro3, Falkon

N, M, D = 3000, 60, 4
MEDIAN_ROWS = 1000
GIVEN = {
    "kernel": "gaussian",
    "landmarks": M,
    "penalty": 1e-5,
    "random_state": 0,
    "lengthscale": "median",
}
DIAGNOSED = 2000
"""Rows and targets that a fit which converged looks at to warn of weak ones."""

PROMISED = M + MEDIAN_ROWS + 2 * DIAGNOSED

pytestmark = pytest.mark.filterwarnings(
    "ignore:stopped after:sklearn.exceptions.ConvergenceWarning"
)


@pytest.fixture
def X() -> np.ndarray:
    rng = RandomStream(0)
    return (
        rng.standard_normal((N, D), np.float32) * np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
        + 7
    )


def targets(X: np.ndarray) -> np.ndarray:
    rng = RandomStream(1)
    noise = 0.1 * rng.standard_normal(len(X), np.float64)
    return np.sin(xp.to_float64(X).sum(axis=1) / 5) + noise


def check(est: KernelRidge, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None):
    """Fit with numbers that stay, and with those that are sent: the same bits, if not scaled."""
    rows = Remote.of(X)
    w = None if weights is None else rows.beside(weights)
    found = est.fit(rows, rows.beside(y), sample_weight=w)
    assert rows.traffic.taken <= PROMISED
    score = found.score(rows, rows.beside(y), w)
    assert rows.traffic.taken <= PROMISED
    sent = type(est)(**est.get_params()).fit(Remote.of(X), y, sample_weight=weights)
    if est.get_params()["standardize"] is False:
        assert np.array_equal(found.dual_coef_, sent.dual_coef_)
    np.testing.assert_allclose(found.predict(X), sent.predict(X), atol=5e-3)
    assert score == pytest.approx(found.score(X, y, weights), abs=1e-6)
    assert score == pytest.approx(sent.score(X, y, weights), abs=1e-3)
    return found


class TestFits:
    @pytest.mark.parametrize("standardize", [False, True])
    def test_regression(self, X, standardize):
        check(KernelRidge(**GIVEN, standardize=standardize), X, targets(X))

    def test_several_targets_and_weights(self, X):
        y = np.stack([targets(X), 5 + targets(X) ** 2], axis=1)
        est = check(KernelRidge(**GIVEN), X, y, np.abs(y[:, 0]) + 0.1)
        assert est.predict(X[:3]).shape == (3, 2)

    def test_a_penalty_for_each_target(self, X):
        y = np.stack([targets(X), targets(X) ** 2], axis=1)
        check(KernelRidge(**{**GIVEN, "penalty": [1e-5, 1e-3]}), X, y)

    def test_rows_of_weight_zero_are_left_out(self, X):
        y = targets(X)
        check(KernelRidge(**GIVEN), X, y, (y > 0).astype(float))

    def test_true_residuals(self, X):
        check(KernelRidge(**GIVEN, solver=Falkon(refine=True)), X, targets(X))

    @pytest.mark.slow
    def test_one_column_is_what_it_looks_like(self, X):
        rows, y = Remote.of(X), targets(X)
        assert KernelRidge(**GIVEN).fit(rows, rows.beside(y)).predict(rows).shape == (N,)
        two = KernelRidge(**GIVEN).fit(rows, rows.beside(y[:, None]))
        assert (
            two.predict(rows).shape
            == (N, 1)
            == KernelRidge(**GIVEN).fit(X, y[:, None]).predict(X).shape
        )

    @pytest.mark.slow
    def test_a_path_of_penalties(self, X):
        # With other landmarks the smallest penalty may be the best, of which a warning tells.
        path = {**GIVEN, "penalty": "auto", "landmarks": Bless(m=M), "random_state": 1}
        path["max_iter"] = 20
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**path).fit(rows, rows.beside(y))
        here = KernelRidge(**path).fit(Remote.of(X), y)
        assert len(est.path_) == len(here.path_) > 3
        assert est.penalty_ == pytest.approx(here.penalty_, rel=1e-9)

    def test_a_penalty_that_is_chosen_by_a_sample(self, X):
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**{**GIVEN, "penalty": "auto"}).fit(rows, rows.beside(y))
        assert est.score(rows, rows.beside(y)) > 0.5

    @pytest.mark.slow
    def test_early_stopping_and_intervals(self, X):
        rows, y = Remote.of(X), targets(X)
        for more in ({"early_stopping": True}, {"conformal": "split"}):
            est = KernelRidge(**GIVEN, **more).fit(rows, rows.beside(y))
            assert est.score(rows, rows.beside(y)) > 0.5
        found = est.predict_interval(rows)
        assert 0.85 < ((found[:, 0] <= y) & (y <= found[:, 1])).mean() < 0.97

    def test_a_checkpoint_goes_on_exactly(self, X, tmp_path):
        rows, y, saved = Remote.of(X), targets(X), Checkpoint(tmp_path / "c.safetensors")
        weights = rows.beside(np.abs(y) + 1)
        KernelRidge(**GIVEN, callbacks=[saved], max_iter=3).fit(rows, rows.beside(y), weights)
        est = KernelRidge(**GIVEN, callbacks=[saved], max_iter=7)
        est.fit(rows, rows.beside(y), weights)
        assert est.history_[0]["iteration"] == 3
        whole = KernelRidge(**GIVEN, max_iter=7).fit(rows, rows.beside(y), weights)
        assert np.array_equal(est.dual_coef_, whole.dual_coef_)
        other = KernelRidge(**GIVEN, callbacks=[saved], max_iter=9)
        with pytest.raises(ValueError, match="targets"):
            other.fit(rows, rows.beside(y + 1e-9), weights)

    def test_going_on(self, X):
        rows = Remote.of(X)
        y = rows.beside(targets(X))
        est = KernelRidge(**GIVEN, warm_start=True, max_iter=3).fit(rows, y)
        est.set_params(max_iter=200).fit(rows, y)
        assert est.score(rows, y) > 0.5

    def test_a_stream_to_one_machine_brings_targets_along(self, X):
        rows, y = Remote.of(X), targets(X)
        rows.streams = True
        est = KernelRidge(**GIVEN, solver=EigenPro3(), max_iter=2).fit(rows, rows.beside(y))
        here = KernelRidge(**GIVEN, solver=EigenPro3(), max_iter=2).fit(X, y)
        np.testing.assert_allclose(est.predict(rows), here.predict(X), atol=1e-4)


class TestLabels:
    @pytest.mark.parametrize("cuts", [[0], [-0.5, 0.5]])
    @pytest.mark.parametrize(
        "weight",
        [
            None,
            pytest.param("balanced", marks=pytest.mark.slow),
            pytest.param({0: 2.0}, marks=pytest.mark.slow),
        ],
    )
    def test_classes(self, X, cuts, weight):
        labels = np.digitize(targets(X), cuts)
        est = KernelRidgeClassifier(**GIVEN, class_weight=weight)
        rows = Remote.of(X)
        est.fit(rows, rows.beside(labels))
        here = KernelRidgeClassifier(**GIVEN, class_weight=weight).fit(Remote.of(X), labels)
        assert est.classes_.dtype == labels.dtype
        assert est.classes_.tolist() == here.classes_.tolist()
        found, expected = est.decision_function(rows), here.decision_function(X)
        np.testing.assert_allclose(found, expected, atol=5e-3)
        right = est.predict(X) == labels
        assert est.score(rows, rows.beside(labels)) == pytest.approx(right.mean(), abs=1e-3)
        assert rows.traffic.taken <= PROMISED

    def test_truth_values(self, X):
        labels = targets(X) > 0
        rows = Remote.of(X)
        est = KernelRidgeClassifier(**GIVEN).fit(rows, rows.beside(labels))
        assert est.classes_.tolist() == [False, True]
        assert est.predict(rows).dtype == bool

    def test_weights_of_rows(self, X):
        labels, weights = np.digitize(targets(X), [0]), np.abs(targets(X)) + 0.1
        rows = Remote.of(X)
        w = rows.beside(weights)
        est = KernelRidgeClassifier(**GIVEN).fit(rows, rows.beside(labels), w)
        here = KernelRidgeClassifier(**GIVEN).fit(Remote.of(X), labels, weights)
        found, expected = est.decision_function(rows), here.decision_function(X)
        np.testing.assert_allclose(found, expected, atol=5e-3)
        expected = est.score(X, labels, weights)
        assert est.score(rows, rows.beside(labels), w) == pytest.approx(expected, rel=1e-12)
        with pytest.raises(ValueError, match="leave one out, and give the product as the other"):
            KernelRidgeClassifier(**GIVEN, class_weight="balanced").fit(
                rows, rows.beside(labels), w
            )

    def test_numbers_that_are_no_labels(self, X):
        rows = Remote.of(X)
        with pytest.raises(ValueError, match="numbers of a continuous range, but a classifier"):
            KernelRidgeClassifier(**GIVEN).fit(rows, rows.beside(targets(X)))
        with pytest.raises(ValueError, match="one class only"):
            KernelRidgeClassifier(**GIVEN).fit(rows, rows.beside(np.ones(N)))

    def test_labels_that_the_training_had_not_are_wrong(self, X):
        labels = np.digitize(targets(X), [0])
        rows = Remote.of(X)
        est = KernelRidgeClassifier(**GIVEN).fit(rows, rows.beside(labels))
        strange = labels.copy()
        strange[:30] = 7
        expected = est.score(X, strange)
        assert est.score(rows, rows.beside(strange)) == expected == est.score(rows, strange)


class TestRefusals:
    """Before any work."""

    @pytest.mark.parametrize("kind", [KernelRidge, KernelRidgeClassifier])
    def test_numbers_that_are_not_finite(self, X, kind):
        rows, y = Remote.of(X), np.digitize(targets(X), [0]).astype(float)
        y[77] = np.nan
        with pytest.raises(ValueError, match="y contains NaN"):
            kind(**GIVEN).fit(rows, rows.beside(y))

    @pytest.mark.parametrize(
        ("weights", "match"),
        [
            (-np.ones(N), "sample_weight must not be negative; its least value is -1"),
            (np.zeros(N), "all sample weights are zero"),
            (np.full(N, np.inf), "NaN or infinity"),
            (np.ones((N, 2)), "sample_weight must be 3000 numbers"),
        ],
    )
    def test_weights(self, X, weights, match):
        rows = Remote.of(X)
        with pytest.raises(ValueError, match=match):
            KernelRidge(**GIVEN).fit(rows, rows.beside(targets(X)), rows.beside(weights))

    def test_a_column_that_is_the_target(self, X):
        rows = Remote.of(X, names=("a", "b", "c", "d"))
        with pytest.raises(ValueError, match="column 'c' equals it in every row"):
            KernelRidge(**GIVEN).fit(rows, rows.beside(X[:, 2]))
        check_finite(rows, targets=rows.beside(np.ones(N)))

    def test_targets_that_are_too_large(self, X):
        rows = Remote.of(X)
        with pytest.raises(ValueError, match="overflow"):
            check_magnitude(rows.beside(np.full((N, 1), 1e30)), np.float32)


class TestColumns:
    def test_they_have_what_a_tensor_has(self, X):
        rows, y = Remote.of(X), np.arange(2.0 * N).reshape(N, 2)
        there, here = rows.beside(y), y
        assert (there.shape, there.ndim, there.dtype) == (here.shape, 2, np.float64)
        index = np.array([5, 0, N - 1])
        assert np.array_equal(there[index], here[index])
        assert np.array_equal(there[2:4], here[2:4])
        assert np.array_equal(there[:, np.array([1])].gather(), here[:, [1]])
        assert np.array_equal(there.gather(), here)
        assert_close(there.mean(axis=0), here.mean(axis=0))
        assert float(there.sum()) == float(here.sum())
        assert there.range == as_columns(here).range == (0.0, 2.0 * N - 1)
        assert all_finite(there)
        assert np.asarray(there).dtype == y.dtype
        mask = np.arange(N) < 3
        assert np.array_equal(there[mask], here[mask])

    def test_many_stay_and_few_come(self, X, monkeypatch):
        rows = Remote.of(X)
        index = np.arange(0, N, 2)
        monkeypatch.setattr("gramian.data.remote.columns.MOST_TAKEN", len(index) - 1)
        found = rows.beside(targets(X)).part(index)
        assert isinstance(found, RemoteColumns)
        assert rows.traffic.taken == 0
        np.testing.assert_array_equal(found.gather(), targets(X)[::2])
        assert isinstance(found.part(np.arange(5)), np.ndarray)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_arrays_and_remote_columns_agree(self, weighted):
        rng = np.random.default_rng(0)
        y = np.column_stack([rng.integers(4, size=60), np.full(60, 7), rng.normal(size=60)])
        rows, w = Remote.of(y), rng.random(60)
        w[y[:, 0] == 3] = 0.0
        here, there = as_columns(y), rows.beside(y)
        assert_close(np.array(there.ends), np.array(here.ends))
        assert there.range == here.range
        weights = (rows.beside(w), w) if weighted else (None, None)
        total = float(w.sum()) if weighted else 60.0
        for a, b in zip(
            there.moments(weights[0], total), here.moments(weights[1], total), strict=True
        ):
            assert_close(a, b)
        labels_there, labels_here = rows.beside(y[:, 0]), as_columns(y[:, 0])
        for a, b in zip(
            labels_there.counts(weights[0]), labels_here.counts(weights[1]), strict=True
        ):
            assert a.tolist() == b.tolist()
        table, classes = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0])
        codes = labels_there.look_up(classes, table, unknown=-5.0).gather()
        assert np.array_equal(codes, labels_here.look_up(classes, table, unknown=-5.0))
        assert np.array_equal(rows.beside(w).positive(), as_columns(w).positive())
        assert np.array_equal(there.select(np.array([2]), np.float64).gather(), y[:, [2]])
        assert np.array_equal(as_columns(y).select(np.array([2]), np.float64), y[:, [2]])

    def test_texts(self):
        rows = Remote.of(np.arange(6.0)[:, None])
        places = rows.beside(np.array([0.0, 2.0, 2.0, 1.0, 0.0, 0.0]))
        names = RemoteColumns(places.rows, flat=True, labels=np.array(["bad", "fair", "good"]))
        assert np.asarray(names).tolist() == ["bad", "good", "good", "fair", "bad", "bad"]
        assert names.counts()[0].tolist() == ["bad", "fair", "good"]
        table = np.array([[1.0], [2.0]], dtype=np.float32)
        found = names.look_up(np.array(["fair", "none"]), table, unknown=-1.0)
        assert found.gather()[:, 0].tolist() == [-1, -1, -1, 1, -1, -1]
        with pytest.raises(ValueError, match="such as 'bad', but KernelRidge predicts numbers"):
            KernelRidge("gaussian", landmarks=2).fit(rows, names)

    def test_sums_are_those_of_all_rows(self):
        rng = np.random.default_rng(0)
        y, values, w = rng.normal(5, 1, (40, 2)), rng.normal(5, 1, (40, 2)), rng.random(40)
        from sklearn.metrics import r2_score

        reduction = RowMeans((ExplainedVariance(METRIC_TABLE["r2"]),))
        rows = Remote.of(values, parts=4)
        means = rows.fold(reduction, rows.beside(y), rows.beside(w), size=7)
        (found,) = reduction.values(means)
        assert found == pytest.approx(r2_score(y, values, sample_weight=w), rel=1e-12)
        y[:, 1] = 0.1
        means = rows.fold(reduction, rows.beside(y), rows.beside(w), size=7)
        (found,) = reduction.values(means)
        assert found == pytest.approx(r2_score(y[:, 0], values[:, 0], sample_weight=w) / 2)
        exact = as_rows(y).fold(reduction, y, size=9)
        assert reduction.values(exact) == [1.0]
