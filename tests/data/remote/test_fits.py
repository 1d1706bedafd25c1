"""Fits to rows that are elsewhere: as from memory, and no more rows pulled than promised."""

from __future__ import annotations

import numpy as np
import pytest
from remote import Remote

from gramian import (
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    load,
)
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint, Validate
from gramian.engines import TiledEngine
from gramian.landmarks import Bless, selectors
from gramian.solvers import EigenPro3, Falkon, solvers

N, M, D = 3000, 60, 4
MEDIAN_ROWS = 1000
PLAIN = {
    "kernel": "gaussian",
    "landmarks": M,
    "penalty": 1e-5,
    "random_state": 0,
    "lengthscale": "median",
}
SAME = {xp.float32: 5e-3, xp.float64: 1e-5}
"""Predictions with targets of size one: solvers end at a residual of 1e-6."""

pytestmark = pytest.mark.filterwarnings(
    "ignore:stopped after:sklearn.exceptions.ConvergenceWarning"
)


# Products of rows elsewhere are tested in both precisions: test_operators.py
@pytest.fixture(
    params=[np.float32, pytest.param(np.float64, marks=pytest.mark.slow)],
    ids=["float32", "float64"],
)
def X(request) -> np.ndarray:
    rng = RandomStream(0)
    X = (
        rng.standard_normal((N, D), np.float32) * np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
        + 7
    )
    return X.astype(request.param)


def targets(X: np.ndarray) -> np.ndarray:
    rng = RandomStream(1)
    noise = 0.1 * rng.standard_normal(len(X), np.float64)
    return np.sin(xp.to_float64(X).sum(axis=1) / 5) + noise


def check(est: KernelRidge, X: np.ndarray, y: np.ndarray, most: int, **given: object) -> Remote:
    """Fit and predict with the rows elsewhere and here: the same, of no more rows than `most`."""
    rows = Remote.of(X)
    found = est.fit(rows, y, **given)
    assert rows.traffic.taken <= most
    values, score = found.predict(rows), found.score(rows, y)
    assert rows.traffic.taken <= most
    here = type(est)(**est.get_params()).fit(X, y, **given)
    np.testing.assert_allclose(values, here.predict(X), atol=SAME[X.dtype])
    assert score == pytest.approx(here.score(X, y), abs=SAME[X.dtype])
    return rows


PROMISED = M + MEDIAN_ROWS


class TestFalkon:
    @pytest.mark.parametrize("standardize", [False, True])
    def test_regression(self, X, standardize):
        rows = check(KernelRidge(**PLAIN, standardize=standardize), X, targets(X), PROMISED)
        assert rows.traffic.passes > 3

    @pytest.mark.filterwarnings("ignore:stopped at iteration .*rounding leaves no direction")
    @pytest.mark.parametrize("refine", [False, True])
    def test_products_in_float64(self, X, refine):
        check(KernelRidge(**PLAIN, solver=Falkon(refine=refine)), X, targets(X), PROMISED)

    def test_several_targets_and_weights(self, X):
        y = np.stack([targets(X), targets(X) ** 2], axis=1)
        weights = np.abs(y[:, 0]) + 0.1
        check(KernelRidge(**PLAIN), X, y, PROMISED, sample_weight=weights)

    def test_rows_of_weight_zero_are_left_out(self, X):
        y = targets(X)
        check(KernelRidge(**PLAIN), X, y, PROMISED, sample_weight=(y > 0).astype(float))

    @pytest.mark.parametrize("cuts", [[0], [-0.5, 0.5]])
    def test_classes(self, X, cuts):
        y = targets(X)
        labels, clear = np.digitize(y, cuts), np.abs(y[:, None] - cuts).min(axis=1) > 0.05
        check_labels(X, labels, clear)

    def test_early_stopping(self, X):
        est = KernelRidge(**PLAIN, early_stopping=True)
        rows = Remote.of(X)
        est.fit(rows, targets(X))
        assert rows.traffic.taken <= PROMISED
        assert est.score(rows, targets(X)) > 0.5

    def test_held_out_rows_that_are_elsewhere(self, X):
        y, rows, held = targets(X), Remote.of(X), Remote.of(X[:500])
        est = KernelRidge(**PLAIN, callbacks=[Validate(held, y[:500])]).fit(rows, y)
        assert held.traffic.taken == 0
        assert rows.traffic.taken <= PROMISED
        assert "valid_rmse" in est.history_[-1]

    @pytest.mark.parametrize("cv", [None, pytest.param(3, marks=pytest.mark.slow)])
    def test_a_path_of_penalties(self, X, cv):
        # With other landmarks the smallest penalty may be the best, of which a warning tells.
        path = {**PLAIN, "penalty": "auto", "landmarks": Bless(m=M), "random_state": 1}
        path["max_iter"] = 20
        X = X if cv is None or X.dtype == np.float32 else X[:1000]  # each fold is a path
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**path, cv=cv).fit(rows, y)
        here = KernelRidge(**path, cv=cv).fit(X, y)
        assert len(est.path_) == len(here.path_) > 3
        for name in ("penalty", "error"):
            first, other = (one.path_[0][name] for one in (est, here))
            assert first == pytest.approx(other, rel=1e-3)

    def test_a_penalty_that_is_chosen_by_a_sample(self, X):
        est = KernelRidge(**{**PLAIN, "penalty": "auto"})
        rows = Remote.of(X)
        assert est.fit(rows, targets(X)).score(rows, targets(X)) > 0.5
        assert rows.traffic.taken <= PROMISED + N

    def test_going_on(self, X):
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**PLAIN, warm_start=True, max_iter=3).fit(rows, y)
        est.set_params(max_iter=200).fit(rows, y)
        whole = KernelRidge(**PLAIN, max_iter=200).fit(rows, y)
        np.testing.assert_allclose(est.predict(rows), whole.predict(rows), atol=2e-3)

    def test_a_checkpoint_goes_on_exactly(self, X, tmp_path):
        rows, y, saved = Remote.of(X), targets(X), Checkpoint(tmp_path / "c.safetensors")
        KernelRidge(**PLAIN, callbacks=[saved], max_iter=3).fit(rows, y)
        est = KernelRidge(**PLAIN, callbacks=[saved], max_iter=7).fit(rows, y)
        whole = KernelRidge(**PLAIN, max_iter=7).fit(rows, y)
        assert np.array_equal(est.dual_coef_, whole.dual_coef_)

    def test_the_same_parts_give_the_same_bits(self, X):
        first, second = (KernelRidge(**PLAIN).fit(Remote.of(X), targets(X)) for _ in range(2))
        assert np.array_equal(first.dual_coef_, second.dual_coef_)

    def test_converged_fits_agree_to_rounding(self, X):
        given = {**PLAIN, "solver": Falkon(refine=True), "tol": 1e-12, "penalty": 1e-3}
        rows, y = Remote.of(xp.to_float64(X)), targets(X)
        found = KernelRidge(**given).fit(rows, y).predict(rows)
        here = KernelRidge(**given).fit(xp.to_float64(X), y).predict(xp.to_float64(X))
        np.testing.assert_allclose(found, here, atol=1e-10)

    def test_the_model_is_an_ordinary_one(self, X, tmp_path):
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**PLAIN, standardize=True).fit(rows, y)
        est.save(tmp_path / "model.gramian")
        values = load(tmp_path / "model.gramian").predict(X)
        np.testing.assert_allclose(np.ravel(values), est.predict(rows), atol=SAME[X.dtype])


def check_labels(X: np.ndarray, labels: np.ndarray, clear: np.ndarray) -> None:
    rows = Remote.of(X)
    est = KernelRidgeClassifier(**PLAIN).fit(rows, labels)
    here = KernelRidgeClassifier(**PLAIN).fit(X, labels)
    assert rows.traffic.taken <= PROMISED
    values = est.decision_function(rows)
    np.testing.assert_allclose(values, here.decision_function(X), atol=SAME[X.dtype])
    np.testing.assert_allclose(est.predict_proba(rows), here.predict_proba(X), atol=2e-3)
    assert (est.predict(rows) == here.predict(X)).mean() > 0.995
    assert est.score(rows, labels) > 0.7
    assert rows.traffic.taken <= PROMISED


def test_a_model_of_cells_predicts_rows_where_they_are(X):
    rows, y = Remote.of(X), targets(X)
    est = KernelRidge(penalty=1e-4, cells=500, lengthscale=3.0, random_state=0, kernel="gaussian")
    est.fit(X, y)
    np.testing.assert_allclose(est.predict(rows), est.predict(X), atol=1e-4)
    assert rows.traffic.taken == 0


def test_deviations_of_rows_where_they_are(X):
    rows, y = Remote.of(X), targets(X)
    est = KernelRidge(**{**PLAIN, "penalty": 1e-3}, solver="direct").fit(X, y)
    found, expected = (est.predict(some, return_std=True)[1] for some in (rows, X))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert rows.traffic.taken == 0


def test_the_engine_is_that_of_where_the_rows_are(X):
    rows = Remote.of(X)
    est = KernelRidge(**PLAIN, engine="numpy").fit(rows, targets(X))
    assert rows.traffic.questions > 0
    assert isinstance(est.engine_, TiledEngine)


@pytest.mark.parametrize("standardize", ["quantile", True])
def test_maps_of_features(X, standardize):
    check(KernelRidge(**PLAIN, standardize=standardize), X, targets(X), PROMISED + N)


def test_eigenpro3_is_a_stream_to_one_machine(X):
    solver, y = EigenPro3(), targets(X)
    rows = Remote.of(X)
    rows.streams = True
    est = KernelRidge(**PLAIN, solver=solver, max_iter=2).fit(rows, y)
    assert rows.traffic.streamed == 3 * N  # for the step, and once an epoch
    here = KernelRidge(**PLAIN, solver=solver, max_iter=2).fit(X, y)
    np.testing.assert_allclose(est.predict(rows), here.predict(X), atol=1e-4)


class TestIntervals:
    def test_of_rows_that_are_held_back(self, X):
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**PLAIN, conformal="split").fit(rows, y)
        assert rows.traffic.taken <= PROMISED + 10_000
        here = KernelRidge(**PLAIN, conformal="split").fit(X, y)
        taken = rows.traffic.taken
        found, expected = est.predict_interval(rows), here.predict_interval(X)
        np.testing.assert_allclose(found, expected, atol=0.02)
        assert rows.traffic.taken == taken

    @pytest.mark.slow
    def test_of_folds(self, X):
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**PLAIN, conformal="cv+").fit(rows, y)
        found = est.predict_interval(rows)
        assert 0.85 < ((found[:, 0] <= y) & (y <= found[:, 1])).mean() < 0.97

    def test_sets_of_classes(self, X):
        rows, y = Remote.of(X), (targets(X) > 0).astype(int)
        est = KernelRidgeClassifier(**PLAIN, conformal="split").fit(rows, y)
        assert rows.traffic.taken <= PROMISED
        sets = est.predict_set(rows)
        assert sets[np.arange(N), y].mean() > 0.85


CLUSTER = "but these rows are on a cluster; set landmarks and solver='falkon'"


class TestRefusals:
    """Before any work: no row is taken, and nothing passes over them."""

    def refused(self, est: KernelRidge, match: str) -> None:
        rows = Remote.of(np.zeros((50, 2)))
        with pytest.raises(ValueError, match=match):
            est.fit(rows, np.arange(50.0))
        assert rows.traffic.taken == rows.traffic.passes == rows.traffic.sent == 0

    def test_all_rows_as_centers(self):
        self.refused(KernelRidge(), f"Direct uses all rows as centers, {CLUSTER}")
        self.refused(KernelRidge(solver="pcg"), f"PCG uses all rows as centers, {CLUSTER}")

    @pytest.mark.parametrize(
        "name", sorted(name for name in solvers if not solvers[name].takes_remote)
    )
    def test_solvers(self, name):
        one = solvers[name]
        full = not any(kind.__name__ == "NystromProblem" for kind in one.problem_types)
        given = {"landmarks": None} if full else {"landmarks": 5}
        loss = {"loss": "huber"} if name == "newton" else {}
        match = "needs all rows on one machine" if loss else CLUSTER
        self.refused(KernelRidge(solver=name, penalty=1e-3, **given, **loss), match)

    @pytest.mark.parametrize(
        "name", sorted(name for name in selectors if not selectors[name].takes_remote)
    )
    def test_selectors(self, name):
        self.refused(KernelRidge(landmarks=name), "use landmarks='bless' or a number")

    @pytest.mark.parametrize("search", [KernelRidgeCV, KernelRidgeClassifierCV])
    def test_searches(self, search):
        self.refused(search(budget=1), "a search requires rows on one machine")

    def test_what_needs_all_rows_after_the_fit(self, X):
        rows, y = Remote.of(X), targets(X)
        est = KernelRidge(**PLAIN).fit(rows, y)
        taken, passes = rows.traffic.taken, rows.traffic.passes
        with pytest.raises(ValueError, match="need all rows on one machine"):
            est.predict(X[:5], return_std=True)
        assert (rows.traffic.taken, rows.traffic.passes) == (taken, passes)


def test_what_is_promised_is_what_is_registered():
    assert {n for n in solvers if solvers[n].takes_remote} == {"falkon", "eigenpro3"}
    known = {"uniform", "two_pass", "recursive_rls", "bless", "bless_r", "kmeans"}
    assert {n for n in selectors if selectors[n].takes_remote} == known
