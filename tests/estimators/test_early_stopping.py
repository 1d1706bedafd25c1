"""Early stopping: the coefficients that were best on held-out rows, whatever ended the fit."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clock import ManualClock
from plain import PLAIN
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit

from gramian import KernelRidge, KernelRidgeClassifier
from gramian.callbacks import Checkpoint, Validate
from gramian.data import as_rows, as_table
from gramian.landmarks import Bless, BlessR, Uniform
from gramian.solvers import Falkon

RNG = np.random.default_rng(0)
N = 300
X = RNG.uniform(-2, 2, (N, 2))
TRUTH = np.sin(2 * X[:, 0]) * X[:, 1]
Y = TRUTH + 0.7 * RNG.standard_normal(N)
LABELS = np.array(["a", "b", "c"])[(Y > -0.5).astype(int) + (Y > 0.5)]
WEIGHT = RNG.uniform(0.1, 3, N)

FALKON: dict[str, Any] = {"landmarks": 100, "penalty": 1e-12}
SOLVERS: dict[str, dict[str, Any]] = {
    "falkon": FALKON,
    "eigenpro2": {"solver": "eigenpro2", "penalty": 0, "landmarks": None},
    "eigenpro3": {"solver": "eigenpro3", "penalty": 0, "landmarks": 100},
}
solvers = pytest.mark.parametrize("name", SOLVERS)
# with a smallest penalty of noise-free targets, and limits on purpose
pytestmark = [
    pytest.mark.filterwarnings("ignore:the smallest penalty tried"),
]


def early(kind: Any = KernelRidge, **settings: Any) -> Any:
    given = {"lengthscale": 0.4, "validation_fraction": 0.2, "tol": 0.0, "max_iter": 80}
    given |= {"early_stopping": True, "random_state": 0}
    return kind(**(PLAIN | given | settings))


def held(est: Any) -> np.ndarray:
    """Return the numbers of the rows that were held out."""
    index: np.ndarray = est._fitted.held_out
    return index


def errors(est: Any, name: str = "valid_rmse") -> list[float]:
    return [row[name] for row in est.history_ if name in row]


def rmse(est: Any, x: Any, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    return float(np.sqrt(np.average((est.predict(x) - y) ** 2, weights=weight)))


# --- what is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "falkon", Falkon()])
def test_falkon_has_iterations_to_choose_from(solver):
    """A factor of all rows, which few rows would have, ends in two iterations."""
    est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-8, landmarks=40, solver=solver)
    est.set_params(early_stopping=True, random_state=0).fit(X, Y)
    assert est.solver_ == Falkon("landmarks")
    assert len(est.history_) > 4
    est.set_params(solver=Falkon(None)).fit(X, Y)
    assert est.solver_ == Falkon(None)  # a given penalty stays


class TestTheBestState:
    @solvers
    def test_is_kept_and_not_the_last(self, name):
        est = early(**SOLVERS[name]).fit(X, Y)
        found = errors(est)
        assert est.stop_reason_ == "early_stopping"
        assert est.best_iteration_ == found.index(min(found)) == est.n_iter_ - 5 > 0
        assert est.validation_error_ == min(found)
        assert rmse(est, X[held(est)], Y[held(est)]) == pytest.approx(min(found), rel=1e-6)

    @solvers
    def test_is_that_of_so_many_iterations(self, name):
        est = early(**SOLVERS[name]).fit(X, Y)
        with pytest.warns(ConvergenceWarning, match="held-out rows still fell: raise max_iter"):
            until = clone(est).set_params(max_iter=est.best_iteration_).fit(X, Y)
        np.testing.assert_array_equal(until.dual_coef_, est.dual_coef_)
        assert until.best_iteration_ == until.n_iter_ == est.best_iteration_

    @pytest.mark.parametrize("patience", [1, 2, 9])
    def test_is_waited_for_as_long_as_asked(self, patience):
        est = early(**SOLVERS["eigenpro2"], patience=patience).fit(X, Y)
        assert est.n_iter_ == est.best_iteration_ + patience
        assert est.n_iter_ + 1 == len(est.history_)

    def test_is_kept_when_the_iterations_end(self):
        est = early(**FALKON, patience=70, max_iter=20).fit(X, Y)
        assert est.stop_reason_ == "max_iterations"
        assert 0 < est.best_iteration_ < est.n_iter_ == 20
        assert est.validation_error_ == min(errors(est))

    def test_is_kept_when_the_time_is_over(self, clock):
        best = early(**FALKON).fit(X, Y).best_iteration_

        def slow(problem: Any, state: Any) -> None:
            clock.advance(0.5 if state.iteration == best + 2 else 0.0)

        est = early(**FALKON, time_limit=0.45, callbacks=[slow])
        with pytest.warns(ConvergenceWarning, match=rf"; iteration {best} is kept, the best on"):
            est.fit(X, Y)
        assert (est.stop_reason_, est.n_iter_, est.best_iteration_) == (
            "time_limit",
            best + 2,
            best,
        )

    def test_of_a_closed_form_is_the_only_one(self):
        est = early(landmarks=None, solver="direct").fit(X, Y)
        assert (est.stop_reason_, est.best_iteration_, len(est.history_)) == ("converged", 0, 1)
        rows = held(est)
        assert est.validation_error_ == pytest.approx(rmse(est, X[rows], Y[rows]), rel=1e-6)
        others = np.setdiff1d(np.arange(N), rows)
        same = KernelRidge(landmarks=None, lengthscale=0.4, kernel="gaussian", penalty=1e-6).fit(
            X[others], Y[others]
        )
        np.testing.assert_allclose(est.predict(X), same.predict(X), rtol=1e-6, atol=1e-8)

    def test_is_better_than_the_last_on_other_rows(self):
        fresh = np.random.default_rng(1).uniform(-2, 2, (2000, 2))
        truth = np.sin(2 * fresh[:, 0]) * fresh[:, 1]
        given = SOLVERS["eigenpro2"]
        est = early(**given).fit(X, Y)
        late = early(**given, early_stopping=False, max_iter=60).fit(X, Y)
        assert rmse(est, fresh, truth) < 0.8 * rmse(late, fresh, truth)

    def test_single_precision(self):
        one, two = (early(**FALKON).fit(X.astype(t), Y) for t in (np.float32, np.float64))
        assert one.dual_coef_.dtype == np.float64
        np.testing.assert_array_equal(held(one), held(two))
        assert one.validation_error_ == pytest.approx(two.validation_error_, rel=0.02)

    def test_many_targets_in_their_own_units(self):
        both = np.stack([Y, 1000 * Y + 5], axis=1)
        est = early(**FALKON).fit(X, both)
        rows = held(est)
        assert est.validation_error_ == pytest.approx(rmse(est, X[rows], both[rows]), rel=1e-6)

    def test_without_it_there_is_none(self):
        est = KernelRidge(landmarks=20, lengthscale=1.0, kernel="gaussian", penalty=1e-6).fit(X, Y)
        assert (est.best_iteration_, est.validation_error_) == (None, None)

    @pytest.mark.slow
    def test_one_that_looks_once_in_a_pass(self):
        x = np.random.default_rng(0).uniform(-2, 2, (2000, 2))
        y = np.sin(2 * x[:, 0]) * x[:, 1] + 0.7 * np.random.default_rng(1).standard_normal(2000)
        est = early(solver="askotch", landmarks=None, penalty=1e-10, max_iter=30).fit(x, y)
        looked = [row["iteration"] for row in est.history_ if "valid_rmse" in row]
        steps = {b - a for a, b in itertools.pairwise(looked)}
        (step,) = steps
        assert step > 1
        assert est.n_iter_ == est.best_iteration_ + 5 * step


class TestWhatIsHeldOut:
    def test_weights_are_those_of_the_error(self):
        est = early(**FALKON).fit(X, Y, sample_weight=WEIGHT)
        rows = held(est)
        expected = rmse(est, X[rows], Y[rows], WEIGHT[rows])
        assert est.validation_error_ == pytest.approx(expected, rel=1e-6)
        assert abs(expected - rmse(est, X[rows], Y[rows])) > 1e-3

    def test_landmarks_are_numbered_among_all_rows_and_none_is_held_out(self):
        est = early(**FALKON).fit(X, Y)
        assert not set(est.landmark_index_) & set(held(est))
        rows = est.model_.standardizer.apply(as_rows(X)).take(est.landmark_index_)
        np.testing.assert_array_equal(est.model_.centers.take(np.arange(100)), rows)

    def test_standardisation_does_not_know_them(self):
        far = X.copy()
        first = early(**FALKON).fit(X, Y)
        far[held(first)] *= 1e3
        second = early(**FALKON).fit(far, Y)
        np.testing.assert_array_equal(held(first), held(second))
        np.testing.assert_array_equal(
            first.model_.standardizer.scale, second.model_.standardizer.scale
        )

    def test_given_rows_are_looked_at_and_none_held_out(self):
        fresh = np.random.default_rng(5).uniform(-2, 2, (100, 2))
        truth = np.sin(2 * fresh[:, 0]) * fresh[:, 1]
        est = early(**FALKON, callbacks=[Validate(fresh, truth)]).fit(X, Y)
        assert est._fitted.held_out is None
        assert est.stop_reason_ == "early_stopping"
        assert est.validation_error_ == min(errors(est))
        assert est.validation_error_ == pytest.approx(rmse(est, fresh, truth), rel=1e-6)

    def test_given_rows_that_are_looked_at_seldom(self):
        callbacks = [Validate(X[:50], TRUTH[:50], every=3)]
        est = early(**FALKON, callbacks=callbacks, patience=2).fit(X, Y)
        assert est.best_iteration_ % 3 == 0
        assert est.n_iter_ == est.best_iteration_ + 6

    def test_the_last_state_is_looked_at_in_any_case(self):
        callbacks = [Validate(X[:50], TRUTH[:50], every=100)]
        est = early(**FALKON, callbacks=callbacks, max_iter=4)
        with pytest.warns(ConvergenceWarning, match="still fell"):
            est.fit(X, Y)
        assert est.best_iteration_ == 4
        assert est.validation_error_ == est.history_[-1]["valid_rmse"]

    def test_other_callbacks_see_the_error_too(self):
        seen = []

        def look(problem: Any, state: Any) -> None:
            seen.append(state.metrics["valid_rmse"])

        est = early(**FALKON, callbacks=[look, Validate(X[:50], TRUTH[:50])]).fit(X, Y)
        assert seen == errors(est)

    def test_a_file_is_divided_like_an_array(self, tmp_path):
        path = tmp_path / "x.parquet"
        table = pa.table(dict(zip("ab", X.T, strict=True)))
        pq.write_table(table, path, row_group_size=70)
        one = early(penalty=1e-12, landmarks=60).fit(X, Y)
        two = early(penalty=1e-12, landmarks=60).fit(path, Y)
        np.testing.assert_array_equal(held(one), held(two))
        assert two.best_iteration_ == one.best_iteration_
        assert two.validation_error_ == pytest.approx(one.validation_error_, rel=1e-6)
        np.testing.assert_array_equal(one.landmark_index_, two.landmark_index_)

    @pytest.mark.parametrize("kind", [KernelRidge, KernelRidgeClassifier])
    def test_a_frame_is_divided_like_an_array(self, kind):
        y = Y if kind is KernelRidge else LABELS
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
        one, two = early(kind, **FALKON).fit(X, y), early(kind, **FALKON).fit(frame, "y")
        np.testing.assert_array_equal(held(one), held(two))
        np.testing.assert_array_equal(one.landmark_index_, two.landmark_index_)
        assert two.best_iteration_ == one.best_iteration_
        np.testing.assert_allclose(two.dual_coef_, one.dual_coef_, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("weight", [None, WEIGHT])
    def test_an_encoding_has_not_seen_their_targets(self, weight):
        rng = np.random.default_rng(3)
        levels = np.array([f"level {k}" for k in rng.integers(0, 40, N)])
        frame = pd.DataFrame({"a": X[:, 0], "of": levels, "y": Y})
        if weight is not None:
            weight = weight.copy()
            weight[:40] = 0
        est = early(**FALKON).fit(frame, "y", sample_weight=weight)
        counts = np.arange(N) if weight is None else np.flatnonzero(weight)
        rows = counts[held(est)]
        found = rmse(est, frame.iloc[rows], Y[rows], None if weight is None else weight[rows])
        assert est.validation_error_ == pytest.approx(found, rel=1e-6)
        others = np.setdiff1d(counts, rows)
        alone = clone(est).set_params(early_stopping=False, max_iter=1, tol=1e-9)
        with pytest.warns(ConvergenceWarning):
            alone.fit(frame.iloc[others], "y", None if weight is None else weight[others])
        same, seen = (e.model_.encoding.rows(as_table(frame)) for e in (alone, est))
        index = np.arange(N)
        np.testing.assert_allclose(same.take(index), seen.take(index), rtol=1e-6, atol=1e-6)

    def test_others_draw_what_they_drew(self):
        one = KernelRidge(landmarks=20, random_state=3, validation_fraction=0.3, **PLAIN).fit(X, Y)
        two = KernelRidge(landmarks=20, random_state=3, **PLAIN).fit(X, Y)
        np.testing.assert_array_equal(one.landmark_index_, two.landmark_index_)


class TestClasses:
    def test_are_held_out_by_their_shares_and_counted(self):
        est = early(KernelRidgeClassifier, **FALKON).fit(X, LABELS)
        rows = held(est)
        counts = np.unique(LABELS[rows], return_counts=True)[1]
        expected = np.unique(LABELS, return_counts=True)[1] / 5
        np.testing.assert_allclose(counts, expected, atol=1)
        wrong = float(np.mean(est.predict(X[rows]) != LABELS[rows]))
        assert est.validation_error_ == pytest.approx(wrong)
        pairs = list(zip(errors(est, "valid_error"), errors(est), strict=True))
        assert est.best_iteration_ == pairs.index(min(pairs)) == est.n_iter_ - 5

    def test_two_of_them_with_weights(self):
        y = np.where(Y > 0.8, "yes", "no")
        est = early(KernelRidgeClassifier, **FALKON, class_weight="balanced").fit(X, y, WEIGHT)
        rows = held(est)
        weight = WEIGHT * np.where(y == "yes", N / (y == "yes").sum(), N / (y == "no").sum())
        wrong = np.average(est.predict(X[rows]) != y[rows], weights=weight[rows])
        assert est.validation_error_ == pytest.approx(wrong)

    def test_a_rare_one_is_learned(self):
        y = LABELS.astype(object)
        y[7] = "rare"
        for seed in range(10):
            est = early(KernelRidgeClassifier, **FALKON, random_state=seed, patience=1)
            est.fit(X, y.astype(str))
            assert 7 not in held(est)


# --- with what else there is ---------------------------------------------------------------------


class PowerCut:
    """Ends the process, as far as a callback can, after some iterations."""

    def __init__(self, after: int, how: type[BaseException] = SystemExit) -> None:
        self.after, self.how = after, how

    def __call__(self, problem: Any, state: Any) -> None:
        if state.iteration == self.after:
            raise self.how


class TestResumption:
    @pytest.mark.parametrize("kind", [KernelRidge, KernelRidgeClassifier])
    @pytest.mark.parametrize("after", [-2, 0, 2])
    def test_the_best_state_survives(self, kind, after, tmp_path):
        y = Y if kind is KernelRidge else LABELS
        whole = early(kind, **FALKON, callbacks=[Checkpoint(tmp_path / "a")]).fit(X, y)
        at = max(whole.best_iteration_ + after, 0)
        cut = [Checkpoint(tmp_path / "b"), PowerCut(at)]
        with pytest.raises(SystemExit):
            early(kind, **FALKON, callbacks=cut).fit(X, y)
        resumed = early(kind, **FALKON, callbacks=cut[:1]).fit(X, y)
        assert resumed.history_[0]["iteration"] == at
        assert (resumed.best_iteration_, resumed.n_iter_) == (whole.best_iteration_, whole.n_iter_)
        np.testing.assert_array_equal(resumed.dual_coef_, whole.dual_coef_)
        assert resumed.validation_error_ == whole.validation_error_

    def test_a_finished_fit_is_not_done_again(self, tmp_path):
        one, two = (
            early(**FALKON, callbacks=[Checkpoint(tmp_path / "a")]).fit(X, Y) for _ in range(2)
        )
        assert len(two.history_) == 1
        assert (two.stop_reason_, two.best_iteration_) == ("early_stopping", one.best_iteration_)
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)

    def test_other_held_out_rows_are_another_problem(self, tmp_path):
        checkpoint = Checkpoint(tmp_path / "a")
        early(**FALKON, callbacks=[checkpoint]).fit(X, Y)
        with pytest.raises(ValueError, match="checkpoint of another problem"):
            early(**FALKON, callbacks=[checkpoint], validation_fraction=0.3).fit(X, Y)


class TestWithOtherSettings:
    @pytest.mark.parametrize(
        ("cv", "folds"), [(None, 1), (3, 3), (KFold(3), 3), (TimeSeriesSplit(2), 2)], ids=str
    )
    def test_a_path_of_penalties(self, cv, folds):
        est = early(penalty="auto", landmarks=Bless(penalty=1e-4), cv=cv, tol=1e-4)
        est.fit(X, Y)
        rows = held(est)
        assert len(rows) == 60
        assert not set(est.landmark_index_) & set(rows)
        assert est.validation_error_ == pytest.approx(rmse(est, X[rows], Y[rows]), rel=1e-6)
        assert len(est.path_[0]["fold_errors"]) == folds

    def test_a_warm_start(self):
        est = early(**FALKON, warm_start=True).fit(X, Y)
        first, rows = est.validation_error_, held(est)
        est.fit(X, Y)
        np.testing.assert_array_equal(held(est), rows)
        assert est.history_[0]["valid_rmse"] == pytest.approx(first, rel=1e-6)
        assert est.validation_error_ <= first * (1 + 1e-6)

    def test_a_grid(self):
        grid = {"lengthscale": [0.01, 0.4], "patience": [1, 3]}
        search = GridSearchCV(early(**FALKON, tol=1e-3), grid, cv=3).fit(X, Y)
        assert search.best_params_["lengthscale"] == 0.4
        assert search.best_estimator_.best_iteration_ is not None

    def test_copies_and_pickles(self):
        est = early(**FALKON, cv=KFold(4), time_limit=100).fit(X, Y)
        copy = clone(est)
        for name in ("early_stopping", "validation_fraction", "patience", "time_limit"):
            assert copy.get_params()[name] == est.get_params()[name]
        again = pickle.loads(pickle.dumps(est))
        np.testing.assert_array_equal(again.predict(X), est.predict(X))
        assert again.best_iteration_ == est.best_iteration_
        np.testing.assert_array_equal(copy.fit(X, Y).dual_coef_, est.dual_coef_)

    def test_parts_of_the_rows_are_refused(self):
        est = early(solver="eigenpro3", landmarks=20, penalty=0)
        with pytest.raises(ValueError, match=r"partial_fit passes once .* early_stopping=False"):
            est.partial_fit(X, Y)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"validation_fraction": 1}, "validation_fraction must be between 0 and 1"),
            ({"patience": 0}, "patience must be a whole number"),
            ({"time_limit": -1}, "time_limit must be positive"),
            ({"early_stopping": "auto"}, "early_stopping must be True or False"),
        ],
    )
    def test_what_cannot_be_is_refused(self, changes, message):
        with pytest.raises(ValueError, match=message):
            early(**(FALKON | changes)).fit(X, Y)

    def test_one_row(self):
        with pytest.raises(ValueError, match="holds out rows, but 1 rows are too few"):
            early(landmarks=None).fit(X[:1], Y[:1])


def test_an_interrupted_fit_leaves_the_last_one():
    est = early(**FALKON).fit(X, Y)
    before, iterations = est.predict(X), est.n_iter_
    with pytest.raises(KeyboardInterrupt):
        est.set_params(callbacks=[PowerCut(2, KeyboardInterrupt)]).fit(X, -Y)
    np.testing.assert_array_equal(est.predict(X), before)
    assert (est.n_iter_, est.stop_reason_) == (iterations, "early_stopping")


# --- the time ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlowUniform(Uniform):
    """Random landmarks, after a while."""

    clock: ManualClock | None = None

    def select(self, K: Any, **more: Any) -> Any:
        self.clock.advance(0.3)
        return super().select(K, **more)


@dataclass(frozen=True)
class SlowBless(BlessR):
    """A path of penalties, after a while."""

    clock: ManualClock | None = None

    def select_path(self, K: Any, **more: Any) -> Any:
        self.clock.advance(0.3)
        return super().select_path(K, **more)


class TestTheTimeLimit:
    def test_ends_the_fit_and_says_how_far_it_came(self, clock):
        def slow(problem: Any, state: Any) -> None:
            clock.advance(0.0625)

        est = KernelRidge(
            **({"kernel": "gaussian", "penalty": 1e-6} | FALKON),
            lengthscale=0.4,
            tol=0.0,
            time_limit=0.4,
            callbacks=[slow],
        )
        words = r"time_limit=0.4 at iteration \d+ with predictions .*estimated \d.*above tol=0"
        with pytest.warns(ConvergenceWarning, match=words):
            est.fit(X, Y)
        assert est.stop_reason_ == "time_limit"
        assert est.n_iter_ == 6
        assert est.best_iteration_ is None

    def test_counts_the_choice_of_landmarks(self, clock):
        est = KernelRidge(
            landmarks=SlowUniform(20, clock=clock),
            penalty=1e-9,
            time_limit=0.2,
            tol=0.0,
            kernel="gaussian",
            lengthscale="median",
        )
        with pytest.warns(ConvergenceWarning, match="time_limit=0.2 at iteration 0"):
            est.fit(X, Y)

    def test_ends_a_path_after_a_level(self, clock):
        given = {
            "kernel": "gaussian",
            "penalty": "auto",
            "lengthscale": 0.4,
            "random_state": 0,
            "tol": 0.0,
        }
        est = KernelRidge(landmarks=SlowBless(m=40, clock=clock), time_limit=0.2, **(PLAIN | given))
        with pytest.warns(ConvergenceWarning, match="time_limit=0.2"):
            est.fit(X, Y)
        assert len(est.path_) == 1
        assert est.stop_reason_ == "time_limit"

    def test_of_a_closed_form_has_no_effect(self):
        est = KernelRidge(landmarks=None, time_limit=1e-9, **PLAIN).fit(X, Y)
        assert est.stop_reason_ == "converged"

    def test_that_is_long_has_none(self):
        est = KernelRidge(landmarks=20, time_limit=1e9, **PLAIN).fit(X, Y)
        assert est.stop_reason_ == "converged"
