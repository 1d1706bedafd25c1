"""penalty="auto": what is chosen is what the path says, and what it says is true."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from close import assert_close
from sklearn.base import clone

from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian import landmarks as selectors
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint, Validate
from gramian.fitting.choice import penalty_path
from gramian.fitting.held_out import folds as held_out
from gramian.fitting.plans import calibration
from gramian.kernels import Gaussian
from gramian.landmarks import Bless, BlessR, RPCholesky, Uniform
from gramian.landmarks.base import SizeOrPenalty
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.search import Split
from gramian.solvers import PCG, Direct, Falkon, max_iterations, tolerance

N = 150
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 2))
TRUTH = np.sin(2 * X[:, 0]) * X[:, 1]
Y = TRUTH + 0.3 * RNG.standard_normal(N)
CLASSES = np.array(["high", "low", "middle"])[(TRUTH > -0.5).astype(int) + (TRUTH > 0.5)]

both = pytest.mark.parametrize(
    ("kind", "y"), [(KernelRidge, Y), (KernelRidgeClassifier, CLASSES)], ids=["ridge", "classes"]
)
# tested once: most of these targets have little noise
pytestmark = pytest.mark.filterwarnings("ignore:the smallest penalty tried")


def auto(kind: Any = KernelRidge, **settings: Any) -> Any:
    given = {"landmarks": Bless(penalty=1e-4), "lengthscale": 1.0, "tol": 1e-4}
    given = given | {"kernel": "gaussian", "random_state": 0} | settings
    return kind(penalty="auto", **given)


def column(est: Any, name: str) -> list[Any]:
    return [row[name] for row in est.path_]


# --- the choice ----------------------------------------------------------------------------------


class TestTheChoice:
    @both
    @pytest.mark.parametrize("cv", [None, pytest.param(3, marks=pytest.mark.slow)])
    def test_is_the_level_of_the_smallest_error(self, kind, y, cv):
        est = auto(kind, cv=cv).fit(X, y)
        errors = column(est, "error")
        best = errors.index(min(errors))
        chosen = column(est, "penalty").index(est.penalty_)
        assert errors[chosen] == errors[best]  # of equal ones, the codes decide
        assert kind is KernelRidgeClassifier or chosen == best
        assert len(est.landmark_index_) == est.path_[chosen]["landmarks"]

    def test_what_a_row_says(self):
        est = auto(cv=4).fit(X, Y)
        penalties = column(est, "penalty")
        assert penalties == sorted(penalties, reverse=True)
        for row in est.path_:
            assert len(row["fold_errors"]) == 4
            assert row["error"] == pytest.approx(np.mean(row["fold_errors"]))
            assert 0 < row["effective_dimension"] < N
            # a pass over the other rows for each iteration, one for the right-hand side
            assert row["kernel_evaluations"] > row["iterations"] * 100 * row["landmarks"]
            assert row["seconds"] > 0

    @both
    def test_equals_a_fit_with_its_penalty_and_landmarks(self, kind, y):
        est = auto(kind, tol=1e-10).fit(X, y)
        same = kind(
            penalty=est.penalty_,
            landmarks=X[est.landmark_index_],
            lengthscale=1.0,
            tol=1e-10,
            kernel="gaussian",
        ).fit(X, y)
        value = "predict" if kind is KernelRidge else "decision_function"
        np.testing.assert_allclose(
            getattr(est, value)(X), getattr(same, value)(X), rtol=1e-6, atol=1e-7
        )
        assert (same.penalty_, same.path_) == (est.penalty_, None)

    @pytest.mark.slow
    def test_is_as_good_as_the_best_of_a_grid(self):
        fresh = np.random.default_rng(1).uniform(-2, 2, (2000, 2))
        truth = np.sin(2 * fresh[:, 0]) * fresh[:, 1]

        def error(est: Any) -> float:
            noisy = truth + 0.3 * np.random.default_rng(2).standard_normal(2000)
            return float(np.sqrt(np.mean((est.fit(X, Y).predict(fresh) - noisy) ** 2)))

        grid = [KernelRidge(lengthscale=1.0, penalty=10.0**-p) for p in range(1, 9)]
        assert error(auto(cv=5)) < 1.05 * min(map(error, grid))

    def test_of_a_target_without_noise_is_the_end_of_the_path(self):
        with pytest.warns(UserWarning, match=r"smallest penalty tried, .*such as 1e-05, or use l"):
            est = auto(landmarks=Bless(penalty=1e-3)).fit(X, X[:, 0] ** 2)
        assert est.penalty_ == est.path_[-1]["penalty"] == pytest.approx(1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", [Bless, BlessR])
    @pytest.mark.parametrize("m", [25, 40])
    def test_of_so_many_landmarks_lies_beyond_the_path(self, kind, m):
        est = auto(landmarks=kind(m=m), cv=3, max_iter=300).fit(X, Y)
        path = [row for row in est.path_ if np.isfinite(row["effective_dimension"])]
        beyond = est.path_[len(path) :]
        assert path[-1]["landmarks"] == m
        assert [row["landmarks"] for row in beyond] == [m] * len(beyond)
        assert est.penalty_ <= path[-1]["penalty"]
        assert est.path_[-1]["penalty"] < est.penalty_

    def test_of_pure_noise_ends_the_path_early(self):
        y = RNG.standard_normal(N)
        est = auto(landmarks=Bless(penalty=1e-6)).fit(X, y)
        errors = column(est, "error")
        assert est.path_[-1]["penalty"] > 1e-5
        assert errors.index(min(errors)) <= len(errors) - 1 - penalty_path.PATIENCE_LEVELS
        assert est.penalty_ > 1e-3

    @pytest.mark.slow
    def test_a_fast_target_is_not_given_up_at_the_first_levels(self):
        x = np.linspace(0, 1, 200)[:, None]
        est = auto(landmarks=Bless(penalty=1e-4), lengthscale=0.015, cv=3, standardize=False)
        est.fit(x, np.sin(120 * x[:, 0]) + 0.1 * RNG.standard_normal(200))
        assert min(column(est, "error")) < 0.05  # of a variance of one half


class TestReproducible:
    @pytest.mark.slow
    @both
    def test_from_random_state(self, kind, y):
        one, two, other = (auto(kind, random_state=seed).fit(X, y) for seed in (3, 3, 4))
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
        assert column(one, "fold_errors") == column(two, "fold_errors")
        assert column(one, "fold_errors") != column(other, "fold_errors")

    @pytest.mark.slow
    def test_a_copy_says_the_same(self):
        est = auto(cv=2)
        assert clone(est).get_params()["cv"] == 2
        assert clone(est).fit(X, Y).penalty_ == est.fit(X, Y).penalty_

    def test_penalties_that_are_given_draw_what_they_drew(self):
        one, two = (
            KernelRidge(landmarks=20, random_state=5, cv=cv).fit(X, Y).landmark_index_
            for cv in (None, 7)
        )
        np.testing.assert_array_equal(one, two)

    def test_a_given_penalty_forgets_the_path(self):
        est = auto().fit(X, Y)
        assert est.set_params(penalty=1e-3).fit(X, Y).path_ is None
        assert est.penalty_ == 1e-3


# --- the algorithm -------------------------------------------------------------------------------


def task(folds: int | None = None, **changes: Any) -> tuple[Any, Any]:
    """Return a search in tight tolerance, and the levels of a path."""
    rows = X
    targets = np.stack([Y, TRUTH], axis=1)
    K = KernelOperator(Gaussian(1.0), rows, rows)
    rng = RandomStream(0)
    held = held_out.folds(N, folds, rng)

    def problem(chosen: Any, penalty: float) -> NystromProblem:
        return NystromProblem(K.against(chosen.points), targets, penalty, None, chosen.weight)

    stop = [tolerance(1e-11), max_iterations(300)]
    levels = Bless(penalty=1e-2).select_path(K, rng=rng)
    return replace(penalty_path.PathSettings(K, problem, Falkon(), stop, held), **changes), levels


class TestTheSearch:
    @pytest.mark.slow
    @pytest.mark.parametrize("folds", [None, 3])
    def test_warm_starts_save_iterations_and_change_no_result(self, folds):
        search, levels = task(folds)
        (warm, rows), (cold, cold_rows) = (
            penalty_path.search(replace(search, warm=warm), levels) for warm in (True, False)
        )
        assert warm.penalty == cold.penalty
        for a, b in zip(rows, cold_rows, strict=True):
            np.testing.assert_allclose(a["fold_errors"], b["fold_errors"], rtol=1e-6)
        start, end = (sum(row["iterations"] for row in one) for one in (rows, cold_rows))
        assert start < end

    @pytest.mark.parametrize("apart", [False, True])
    def test_errors_are_those_of_the_dense_algebra(self, apart):
        search, levels = task(3)
        if apart:  # as in a series: later rows are tested, some are in neither part
            fold = Split(np.arange(60), np.arange(90, 140))
            search = replace(search, folds=[fold, *search.folds])
        _, rows = penalty_path.search(search, levels)
        level, row = levels[-1], rows[-1]
        K = Gaussian(1.0)(X, X)
        y, j = np.stack([Y, TRUTH], axis=1), level.dictionary.index
        for fold, error in zip(search.folds, row["fold_errors"], strict=True):
            held, train = fold.validation, fold.train
            A, ridge = K[np.ix_(train, j)], len(train) * level.penalty * K[np.ix_(j, j)]
            coef = np.linalg.lstsq(A.T @ A + ridge, A.T @ y[train], rcond=None)[0]
            difference = K[np.ix_(held, j)] @ coef - y[held]
            assert error == pytest.approx(np.mean(difference**2), rel=1e-5)

    def test_one_factor_serves_all_folds_and_the_last_fit(self, monkeypatch):
        built = []
        build = Falkon.factor

        def counted(self: Falkon, problem: NystromProblem) -> Any:
            built.append(problem)
            return build(self, problem)

        monkeypatch.setattr(Falkon, "factor", counted)
        est = auto(cv=3).fit(X, Y)
        assert len(built) == len(est.path_)

    def test_the_start_is_the_last_function(self):
        search, levels = task()
        _, (one, two) = levels[:-2], levels[-2:]
        before = penalty_path._fit_level(search, one, None)
        after = penalty_path._fit_level(search, two, before.function)
        problem = search.problem(after.function.landmarks, two.penalty)
        (start,) = penalty_path._starts(problem, two, after.solver.prepared, before.function, 1)
        assert start is not None
        at = after.function.landmarks.points
        old = problem.K_mm.against(before.function.landmarks.points) @ before.function.coef
        assert_close(problem.K_mm @ start.coef, old, rtol=1e-6, atol=1e-8)
        assert len(at) == len(start.coef)

    def test_a_level_that_diverges_has_an_infinite_error(self, monkeypatch):
        search, levels = task(max(2, 2))
        solve = penalty_path.solve

        def diverging(problem: Any, *args: Any, **settings: Any) -> Any:
            result = solve(problem, *args, **settings)
            return replace(result, reason="diverged") if problem.penalty < 0.1 else result

        monkeypatch.setattr(penalty_path, "solve", diverging)
        best, rows = penalty_path.search(search, levels)
        assert best.penalty > 0.1
        assert rows[-1]["error"] == np.inf
        with pytest.raises(FloatingPointError, match="diverged at every penalty"):
            penalty_path.search(search, levels[-1:])


class TestHeldBackRows:
    def test_a_fifth(self):
        (fold,) = held_out.folds(23, None, RandomStream(0))
        held = fold.validation
        assert len(held) == 5
        assert bool((xp.diff(held) > 0).all())

    @pytest.mark.parametrize("cv", [2, 3, 23])
    def test_folds_are_all_rows(self, cv):
        parts = [f.validation for f in held_out.folds(23, cv, RandomStream(0))]
        assert len(parts) == cv
        assert np.array_equal(xp.sort(np.concatenate(parts)), np.arange(23))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1

    def test_every_class_is_in_every_fold(self):
        classes = np.array([0] * 40 + [1] * 8 + [2] * 4)
        classes = classes[RandomStream(0).permutation(52)]
        for fold in held_out.folds(52, 4, RandomStream(1), classes):
            assert xp.bincount(classes[fold.validation]).tolist() == [10, 2, 1]

    @pytest.mark.parametrize("coded", [False, True])
    def test_the_error_is_weighted(self, coded):
        rows, held = X, np.arange(0, N, 2)
        weight = np.linspace(0.0, 2.0, N, dtype=np.float64)
        K = KernelOperator(Gaussian(1.0), rows, rows).against(rows[:5])
        targets = X[:, :1] + 1
        problem = NystromProblem(K, targets, 1e-3, weight)
        error, squared = held_out.error(problem, held, np.zeros((5, 1), np.float32), coded)
        y = targets[held, 0]
        assert squared == pytest.approx(np.average(y**2, weights=weight[held]))
        wrong = np.average(y > 0, weights=weight[held])
        assert error == pytest.approx(wrong if coded else squared)

    @pytest.mark.parametrize(("n", "cv"), [(1, None), (3, 4)])
    def test_too_few_rows(self, n, cv):
        with pytest.raises(ValueError, match=f"there are {n} rows, too few for penalty='auto'"):
            auto(cv=cv, landmarks=Bless(m=1)).fit(X[:n], Y[:n])

    def test_two_rows_are_enough(self):
        assert auto(landmarks=Bless(m=2)).fit(X[:2], Y[:2]).predict(X).shape == (N,)


# --- data of all kinds ---------------------------------------------------------------------------


class TestData:
    @pytest.mark.slow
    def test_weights_are_those_of_the_error(self):
        weight = RNG.uniform(0.5, 2.0, N)
        short: Any = {"cv": 3, "tol": 1e-10, "landmarks": Bless(penalty=1e-2)}
        est = auto(**short).fit(X, Y, sample_weight=weight)
        given: Any = {"penalty": est.penalty_, "landmarks": X[est.landmark_index_], "tol": 1e-10}
        same = KernelRidge("gaussian", lengthscale=1.0, **given).fit(X, Y, sample_weight=weight)
        np.testing.assert_allclose(est.predict(X), same.predict(X), rtol=1e-6, atol=1e-7)
        scaled = auto(**short).fit(X, Y, sample_weight=8 * weight)
        np.testing.assert_allclose(column(scaled, "error"), column(est, "error"), rtol=1e-6)

    def test_rows_of_weight_zero_are_not_there(self):
        weight = np.ones(N)
        weight[100:] = 0
        spoilt = np.where(weight > 0, Y, 1e6)
        one = auto().fit(X, spoilt, sample_weight=weight)
        two = auto().fit(X[:100], Y[:100], sample_weight=weight[:100])
        np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9, atol=1e-9)

    def test_weights_of_classes(self):
        est = auto(KernelRidgeClassifier, class_weight="balanced", tol=1e-10).fit(X, CLASSES)
        same = KernelRidgeClassifier(
            "gaussian",
            penalty=est.penalty_,
            landmarks=X[est.landmark_index_],
            lengthscale=1.0,
            tol=1e-10,
        ).set_params(class_weight="balanced")
        expected = same.fit(X, CLASSES).decision_function(X)
        np.testing.assert_allclose(est.decision_function(X), expected, rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("cv", [None, 2])
    def test_many_targets(self, cv):
        est = auto(cv=cv).fit(X, np.stack([Y, TRUTH, X[:, 0]], axis=1))
        assert est.predict(X).shape == (N, 3)
        assert np.abs(est.predict(X)[:, 2] - X[:, 0]).mean() < 0.1

    @pytest.mark.slow
    def test_two_classes(self):
        est = auto(KernelRidgeClassifier, cv=3).fit(X, TRUTH > 0)
        assert est.score(X, TRUTH > 0) > 0.9
        assert (
            set(column(est, "error")) <= {k / 300 for k in range(301)}
            or max(abs(300 * e - round(300 * e)) for e in column(est, "error")) < 1e-9
        )

    def test_single_precision(self):
        one, two = (auto().fit(X.astype(dtype), Y) for dtype in (np.float32, np.float64))
        np.testing.assert_allclose(column(one, "error")[:5], column(two, "error")[:5], rtol=1e-2)
        assert np.sqrt(np.mean((one.predict(X) - TRUTH) ** 2)) < 0.3

    @pytest.mark.slow
    def test_files_and_sparse_rows_as_arrays(self, tmp_path):
        x = np.round(X, 1)
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table(dict(zip("ab", x.T, strict=True))), path, row_group_size=70)
        short: Any = {"cv": 2, "standardize": False, "landmarks": Bless(penalty=1e-2)}
        truth = auto(**short).fit(x, Y)
        for rows in (path, scipy.sparse.csr_array(x), x):
            est = auto(**short).fit(rows, Y)
            np.testing.assert_allclose(est.predict(rows), truth.predict(x), rtol=1e-3, atol=1e-3)
            assert est.penalty_ == pytest.approx(truth.penalty_)


# --- settings ------------------------------------------------------------------------------------


class TestSettings:
    @pytest.mark.parametrize(
        "chosen",
        [
            "bless",
            "bless_r",
            pytest.param(Bless(m=90), marks=pytest.mark.slow),
            pytest.param(BlessR(penalty=1e-5), marks=pytest.mark.slow),
        ],
    )
    def test_paths(self, chosen):
        est = auto(landmarks=chosen).fit(X, Y)
        assert len(est.landmark_index_) <= 150
        assert np.sqrt(np.mean((est.predict(X) - TRUTH) ** 2)) < 0.3

    @pytest.mark.parametrize("chosen", [None, 50, "uniform", Uniform(20), X[:9]])
    @both
    def test_landmarks_without_a_path(self, kind, y, chosen):
        est = auto(kind, landmarks=chosen).fit(X, y)
        assert est.path_ is None
        assert 0 < est.penalty_ < 1

    @pytest.mark.parametrize(
        ("chosen", "words"), [("bles", "did you mean bless"), (0.5, "landmarks must be None")]
    )
    @both
    def test_no_landmarks(self, kind, y, chosen, words):
        with pytest.raises(ValueError, match=words):
            auto(kind, landmarks=chosen).fit(X, y)

    @pytest.mark.parametrize("solver", ["direct", "pcg", Direct(), PCG(), 3])
    def test_other_solvers(self, solver):
        with pytest.raises(ValueError, match="follows a path that needs solver='falkon', not"):
            auto(solver=solver).fit(X, Y)

    def test_falkon_with_settings_of_its_own(self):
        est = auto(solver=Falkon(preconditioner_penalty=None, refine=True)).fit(X, Y)
        assert est.solver_ == Falkon(preconditioner_penalty=None, refine=True)

    def test_warm_start(self):
        with pytest.raises(ValueError, match=r"give penalty=est.penalty_ to continue"):
            auto(warm_start=True).fit(X, Y)

    @pytest.mark.parametrize("cv", [1, 0, -3, 2.5, True, "five", [1, 2]])
    def test_cv(self, cv):
        with pytest.raises(ValueError, match="cv must be None, a number of folds of at least 2"):
            auto(cv=cv).fit(X, Y)

    @pytest.mark.parametrize("penalty", ["best", b"auto", None, {1.0}])
    def test_penalty(self, penalty):
        with pytest.raises(ValueError, match=r"penalty must be finite and at least 0, .*or 'auto'"):
            auto().set_params(penalty=penalty).fit(X, Y)

    def test_more_landmarks_than_rows(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            auto(landmarks=Bless(m=1000)).fit(X, Y)
        assert any("1000 landmarks were asked for" in str(w.message) for w in seen)

    def test_a_fit_that_fails_leaves_the_last_one(self):
        est = auto().fit(X, Y)
        before = est.predict(X)
        with pytest.raises(ValueError, match="follows a path that needs solver='falkon'"):
            est.set_params(solver="direct").fit(X, Y)
        np.testing.assert_array_equal(est.predict(X), before)

    @pytest.mark.slow
    def test_callbacks_see_the_last_fit_only(self, tmp_path):
        checkpoint = Checkpoint(tmp_path / "state")
        est = auto(callbacks=[Validate(X, Y), checkpoint]).fit(X, Y)
        assert all("valid_rmse" in row for row in est.history_)
        again = auto(callbacks=[checkpoint]).fit(X, Y)
        np.testing.assert_allclose(again.predict(X), est.predict(X), rtol=1e-9)


# --- selectors by name, and those that are given a penalty ---------------------------------------


@pytest.mark.parametrize("name", selectors.names())
def test_selectors_by_name(name):
    est = KernelRidge(landmarks=name, lengthscale=1.0, penalty=1e-3, random_state=0).fit(X, Y)
    assert len(est.dual_coef_) == est.plan(X).landmarks == 100
    assert np.sqrt(np.mean((est.predict(X) - TRUTH) ** 2)) < 0.4


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    once = calibration.measure_seconds
    monkeypatch.setattr(calibration, "measure_seconds", lambda work: once(work, budget=1e-9))


GIVEN_A_PENALTY = [
    selectors.make(name, penalty=1e-2)
    for name in selectors.names()
    if isinstance(selectors.make(name, m=1), SizeOrPenalty)
]


@pytest.mark.usefixtures("quick")
class TestANumberThatIsNotKnown:
    @pytest.mark.parametrize("chosen", GIVEN_A_PENALTY, ids=lambda s: type(s).__name__)
    def test_fits(self, chosen):
        est = KernelRidge(landmarks=chosen, lengthscale=1.0, penalty=1e-2, random_state=0)
        est.fit(X, Y)
        assert 5 < len(est.dual_coef_) <= N
        assert est.solver_ == Falkon()

    @pytest.mark.parametrize("penalty", ["auto", 1e-3])
    def test_no_plan(self, penalty):
        est = KernelRidge(landmarks=Bless(penalty=1e-4), penalty=penalty)
        with pytest.raises(ValueError, match=r"depends on the rows.*give m, a number"):
            est.plan(X)

    @pytest.mark.parametrize("penalty", ["auto", 1e-3])
    def test_the_limit_holds_once_it_is_known(self, penalty):
        x = RNG.standard_normal((700, 5))
        est = KernelRidge(
            landmarks=Bless(penalty=1e-7),
            penalty=penalty,
            lengthscale=0.5,
            memory_limit="51MB",
            random_state=0,
        )
        with pytest.raises(ValueError, match=r"\d+ landmarks need .* at most \d+ landmarks fit"):
            est.fit(x, x[:, 0])

    def test_other_selectors_need_say_nothing(self):
        class Odd(selectors.Selector):
            def select(self, K: KernelOperator, *, rng: RandomStream) -> Any:
                return Uniform(17).select(K, rng=rng)

        assert len(KernelRidge(landmarks=Odd(), penalty=1e-2).fit(X, Y).dual_coef_) == 17


@pytest.mark.usefixtures("quick")
class TestPlan:
    def test_of_a_path(self):
        est = auto(landmarks=Bless(m=90))
        plan = est.plan(X)
        assert (plan.solver, plan.landmarks) == ("falkon", 90)
        once = est.set_params(penalty=1e-3).plan(X)
        assert plan.kernel_evaluations > 2 * once.kernel_evaluations
        assert plan.memory_bytes > once.memory_bytes

    def test_folds_take_longer(self):
        few, many = (auto(landmarks="bless", cv=cv).plan(X).kernel_evaluations for cv in (None, 5))
        assert many > 2 * few

    def test_rpcholesky_by_residual(self):
        with pytest.raises(ValueError, match="is unknown before the fit"):
            KernelRidge(landmarks=RPCholesky(penalty=1e-3)).plan(X)
