"""FALKON against dense linear algebra, and what its preconditioner promises."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from close import assert_close
from extended import ridge_on_squares
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian import _linalg as la
from gramian._arrays import RandomStream
from gramian._linalg.spectrum import Spectrum
from gramian.data import as_rows
from gramian.kernels import Polynomial
from gramian.operators import KernelOperator
from gramian.preconditioners import FalkonFactor
from gramian.preconditioners._root import Root
from gramian.problems import NystromProblem
from gramian.solvers import Direct, Falkon, Result, State, max_iterations, solve, tolerance

# Ten features: K_mm of a few hundred points is then far from singular. With fewer, say two, and a
# Gaussian kernel, a change of K_mm by one rounding unit moves the exact solution by 1e-3 at new
# points, in float64 too: there would be nothing to compare with.
N, M, D = 400, 80, 10
PENALTY = 1e-6


def draw(n: int = N, d: int = D, *, dtype: np.dtype = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and two noisy targets, of values that float32 holds."""
    rng = RandomStream(0)
    X = xp.cast(rng.standard_normal((n, d), np.float64), np.float32)
    noise = 0.1 * rng.standard_normal((n, 2), np.float64)
    y = xp.to_float64(np.stack([np.sin(X[:, 0]), X[:, 1] ** 2 / 2], axis=1))
    return xp.cast(X, dtype), y + noise


NEW = RandomStream(1).standard_normal((50, D), np.float64)
KERNEL = kernels.Gaussian(math.sqrt(D))


def problem_of(
    X: np.ndarray,
    y: np.ndarray,
    Z: np.ndarray,
    *,
    kernel: kernels.Kernel = KERNEL,
    penalty: float = PENALTY,
    **parts: Any,
) -> NystromProblem:
    return NystromProblem(KernelOperator(kernel, X, Z), y, penalty, **parts)


def run(problem: NystromProblem, solver: Falkon | None = None, **settings: Any) -> Result:
    lowest = 1e-13 if problem.K.dtype == np.float64 or (solver and solver.refine) else 1e-6
    stop = [tolerance(settings.get("tol", lowest)), max_iterations(settings.get("most", 400))]
    return solve(problem, solver or Falkon(), stop=stop)


def function(problem: NystromProblem, coef: np.ndarray, new: np.ndarray = NEW) -> np.ndarray:
    return problem.K.kernel(new, xp.to_float64(problem.K.cols.take(np.arange(len(coef))))) @ coef


def dense(problem: NystromProblem, new: np.ndarray = NEW) -> np.ndarray:
    """Predict with the solution of the dense system, by NumPy and SciPy.

    Least squares on [K_nm T⁻¹; sqrt(n penalty) I]: the normal equations would lose half the digits.
    """
    X, Z = (
        xp.to_float64(side.take(np.arange(len(side)))) for side in (problem.K.rows, problem.K.cols)
    )
    kernel = problem.K.kernel
    T = scipy.linalg.cholesky(kernel(Z, Z))
    features = scipy.linalg.solve_triangular(T, kernel(Z, X), trans=1).T
    ridge = math.sqrt(problem.shift) * np.eye(len(Z))
    targets = np.vstack([problem.targets, np.zeros((len(Z), problem.targets.shape[1]))])
    beta = scipy.linalg.lstsq(np.vstack([features, ridge]), targets)[0]
    return kernel(new, Z) @ scipy.linalg.solve_triangular(T, beta)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(xp.norm(a - b) / xp.norm(b))


class TestAgainstDenseSolutions:
    def test_all_rows_as_landmarks_need_one_iteration(self):
        X, y = draw(200)
        problem = problem_of(X, y, X)
        result = run(problem, Falkon(None), most=1)
        K = KERNEL(X, X)
        alpha = np.linalg.solve(K + 200 * PENALTY * np.eye(200), y)
        expected = KERNEL(NEW, X) @ alpha
        assert result.state.iteration == 1
        assert difference(function(problem, result.state.coef), expected) < 1e-9

    @pytest.mark.parametrize("m", [1, 17, M, N])
    @pytest.mark.parametrize("penalty", [1e-2, 1e-6])
    def test_any_number_of_landmarks(self, m, penalty):
        X, y = draw()
        problem = problem_of(X, y, X[:m], penalty=penalty)
        assert difference(function(problem, run(problem).state.coef), dense(problem)) < 1e-8

    @pytest.mark.parametrize(
        "kernel",
        [
            KERNEL,
            kernels.Matern52(3.0),
            kernels.Laplacian(3.0),
            2.0 * KERNEL + kernels.L1Laplacian(9.0),
        ],
        ids=lambda kernel: type(kernel).__name__,
    )
    def test_float32_loses_three_digits_at_most(self, kernel):
        X, y = draw(dtype=np.float32)
        problem = problem_of(X, y, X[:M], kernel=kernel)
        assert difference(function(problem, run(problem).state.coef), dense(problem)) < 1e-3

    def test_refinement_gives_float32_the_digits_of_float64(self):
        X, y = draw(dtype=np.float32)
        problem = problem_of(X, y, X[:M])
        plain, refined = (run(problem, Falkon(refine=r)).state.coef for r in (False, True))
        assert difference(function(problem, refined), dense(problem)) < 1e-9
        assert difference(function(problem, plain), dense(problem)) > 1e-5

    def test_with_refinement_the_exact_solution_leaves_no_residual(self):
        """With a wrong one all products would be float64 in the end, slow and right as well."""
        X, y = draw(dtype=np.float32)
        problem = problem_of(X, y, X[:M])
        start = State(0, solve(problem.double(), Direct()).state.coef)
        residuals = [
            solve(problem, Falkon(refine=r), stop=[max_iterations(1)], state=start).history[0]
            for r in (False, True)
        ]
        plain, refined = (row["rel_residual"] for row in residuals)
        assert refined < 1e-10
        assert plain > 1e-7

    def test_float32_with_landmarks_that_are_nearly_the_same(self):
        """Rounding to float32, blown up by the factors, once outweighed the penalty: 0.3 here."""
        rng = RandomStream(0)
        centers = rng.standard_normal((60, 3), np.float64)
        X = centers[rng.integers(60, size=(2000,))]
        X = xp.cast(X + 0.01 * rng.standard_normal((2000, 3), np.float64), np.float32)
        y = np.sign(np.sin(3 * xp.to_float64(X).sum(axis=1, keepdims=True)))
        rough, fine = (
            problem_of(x, y, x[:300], kernel=kernels.Gaussian(1.0), penalty=1e-7)
            for x in (X, xp.to_float64(X))
        )
        values = [function(p, run(p, most=20).state.coef, xp.to_float64(X)) for p in (rough, fine)]
        assert difference(*values) < 0.1

    def test_landmarks_that_are_not_rows(self):
        X, y = draw()
        Z = RandomStream(5).standard_normal((M, D), np.float64)
        problem = problem_of(X, y, Z)
        assert difference(function(problem, run(problem).state.coef), dense(problem)) < 1e-8

    @pytest.mark.parametrize("tolerable", [(np.float64, 1e-8), (np.float32, 1e-3)])
    def test_far_more_landmarks_than_the_rank_of_the_kernel(self, tolerable):
        dtype, rtol = tolerable
        X, y = draw(300, 3, dtype=dtype)
        problem = problem_of(X, y, X[:60], kernel=kernels.Linear(), penalty=1e-3)
        # The linear kernel's solution is linear ridge regression: a 3 x 3 system.
        x = xp.to_float64(X)
        w = np.linalg.solve(x.T @ x + 0.3 * np.eye(3, dtype=np.float64), x.T @ y)
        new = NEW[:, :3]
        assert difference(function(problem, run(problem).state.coef, new), new @ w) < rtol

    def test_a_kernel_that_is_zero_everywhere(self):
        problem = problem_of(
            np.zeros((9, 2), np.float32),
            np.ones((9, 1), np.float32),
            np.zeros((4, 2), np.float32),
            kernel=kernels.Linear(),
        )
        result = solve(problem, Falkon(), stop=[tolerance(1e-6), max_iterations(5)])
        assert result.reason == "converged"  # the right-hand side is zero
        assert not result.state.coef.any()


class TestWhatDoesNotMatter:
    @pytest.fixture
    def problem(self) -> NystromProblem:
        X, y = draw()
        return problem_of(X, y, X[:M])

    @pytest.fixture
    def expected(self, problem: NystromProblem) -> np.ndarray:
        return dense(problem)

    def test_duplicate_landmarks(self, problem, expected):
        Z = problem.K.cols.take(np.arange(M).repeat(3))
        more = replace(problem, K=problem.K.against(Z))
        assert difference(function(more, run(more).state.coef), expected) < 1e-8

    def test_duplicate_landmarks_in_float32(self, problem, expected):
        X, y = draw(dtype=np.float32)
        more = problem_of(X, y, np.tile(X[:M], (3, 1)))
        assert difference(function(more, run(more).state.coef), expected) < 1e-3

    def test_the_order_of_landmarks(self, problem, expected):
        order = RandomStream(3).permutation(M)
        other = replace(problem, K=problem.K.against(problem.K.cols.take(order)))
        assert difference(function(other, run(other).state.coef), expected) < 1e-8

    def test_landmark_weights(self, problem, expected):
        weight = np.logspace(-2, 2, M, dtype=np.float64)
        other = replace(problem, landmark_weight=weight)
        assert difference(function(other, run(other).state.coef), expected) < 1e-8

    def test_the_penalty_of_the_preconditioner(self, problem, expected):
        choices = ("auto", None, 1e-8, 1e-4, 1.0)
        results = [run(problem, Falkon(preconditioner_penalty=choice)) for choice in choices]
        for result in results:
            assert difference(function(problem, result.state.coef), expected) < 1e-8
        assert len({result.state.iteration for result in results}) > 2

    def test_where_it_starts(self, problem, expected):
        start = State(0, xp.to_float64(RandomStream(7).standard_normal((M, 2), np.float32)))
        result = solve(problem, Falkon(), stop=[tolerance(1e-13), max_iterations(400)], state=start)
        assert difference(function(problem, result.state.coef), expected) < 1e-8

    def test_a_state_of_another_preconditioner_is_a_starting_point(self, problem, expected):
        half = solve(problem, Falkon(preconditioner_penalty=1e-3), stop=[max_iterations(8)]).state
        stop = [tolerance(1e-13), max_iterations(400)]
        result = solve(problem, Falkon(preconditioner_penalty=1e-5), stop=stop, state=half)
        assert difference(function(problem, result.state.coef), expected) < 1e-8


class TestSingularMatrices:
    """K_mm is the exact one in what is solved; landmarks that add nothing are left out."""

    def test_the_fixed_point_is_that_of_the_exact_system(self):
        X, y = draw()
        problem = problem_of(X, y, X[:M], penalty=1e-4)
        coef = run(problem).state.coef
        K_nm, K_mm = KERNEL(X, X[:M]), KERNEL(X[:M], X[:M])
        expected = np.linalg.solve(K_nm.T @ K_nm + problem.shift * K_mm, K_nm.T @ y)
        # These are normal equations: eps times their condition number, 1e7, is what they allow.
        assert difference(function(problem, coef), KERNEL(NEW, X[:M]) @ expected) < 1e-8

    def test_equal_landmarks_are_left_out(self):
        X, y = draw(50, 2)
        problem = problem_of(X, y, np.tile(X[:1], (40, 1)))  # K_mm is all ones
        factor = FalkonFactor.build(problem)
        assert factor.triangles.shape == (1, 1)
        assert np.count_nonzero(factor.solve_T(np.ones((1, 1)))) == 1

    def test_the_root_is_that_of_the_matrix_in_the_order_of_the_pivots(self, dtype):
        X, _ = draw(400, 3, dtype=dtype)
        K_mm = kernels.Polynomial(degree=2)(xp.to_float64(X), xp.to_float64(X))  # rank 10
        root = Root.build(la.by_columns(xp.copy(K_mm)), np.float64)
        T, order = np.triu(root.T), root.order
        assert (T.shape, root.S.shape) == ((10, 10), (10, 390))
        R = np.concatenate([T, root.S], axis=1)
        assert_close(R.T @ R, K_mm[order][:, order], rtol=1e-12, atol=1e-10)

    def test_left_out_landmarks_count_in_the_preconditioner(self):
        """With all rows as landmarks it is exact, however few of them are kept."""
        X, y = draw(300, 2)
        weight = np.linspace(0.5, 1.5, 300, dtype=np.float64)
        problem = problem_of(
            X, y, X, kernel=kernels.Polynomial(degree=2), weights=weight, landmark_weight=weight
        )
        assert len(FalkonFactor.build(problem).diagonal) == 6
        assert run(problem, Falkon(None), tol=1e-10).state.iteration == 1

    def test_a_start_from_coefficients_of_landmarks_that_are_left_out(self):
        X, y = draw(300, 2)
        problem = problem_of(X, y, X[:60], kernel=kernels.Polynomial(degree=2), penalty=1e-4)
        solution = solve(problem, Direct()).state.coef
        history = solve(problem, Falkon(), state=State(0, solution)).history
        assert history[0]["rel_residual"] < 1e-9

    def test_a_kernel_that_overflows_is_refused_in_words(self):
        X, y = draw(20, 2)
        problem = problem_of(1e200 * X, y, 1e200 * X[:5], kernel=kernels.Linear())
        with pytest.raises(ValueError, match=r"not finite.*rescale"):
            run(problem)


SMOOTH = {
    "d = 1": (1, kernels.Gaussian(1.0)),
    "d = 2": (2, kernels.Gaussian(1.4)),
    "d = 3": (3, kernels.Gaussian(1.7)),
    "Matern, d = 1": (1, kernels.Matern52(1.0)),
    "Matern, d = 3": (3, kernels.Matern52(1.7)),
    "Laplacian, d = 1": (1, kernels.Laplacian(1.0)),
    "polynomial, d = 1": (1, kernels.Polynomial()),
    "polynomial, d = 3": (3, kernels.Polynomial()),
    "linear, d = 3": (3, kernels.Linear()),
}


class TestFloat32OfSmoothProblems:
    """Where K_mm is nearly singular: against Direct on the same float32 rows, in float64."""

    @staticmethod
    def problem(name: str, penalty: float) -> NystromProblem:
        d, kernel = SMOOTH[name]
        rng = RandomStream(0)
        X = xp.cast(rng.standard_normal((450, d), np.float64), np.float32)
        noise = 0.1 * rng.standard_normal((450, 1), np.float64)
        y = (
            np.sin(2 * xp.to_float64(X[:, :1]))
            + np.square(xp.to_float64(X)).mean(axis=1, keepdims=True)
            + noise
        )
        return problem_of(X, y, X[:100], kernel=kernel, penalty=penalty)

    @staticmethod
    def error(problem: NystromProblem, coef: np.ndarray) -> float:
        """Return the distance of predictions from the exact ones, relative to their spread."""
        rows = xp.to_float64(problem.K.rows.take(np.arange(450)))
        expected = function(problem, solve(problem, Direct()).state.coef, rows)
        gap = function(problem, coef, rows) - expected
        return float(np.sqrt(np.square(gap).mean()) / expected.std())

    @pytest.mark.parametrize(
        ("penalty", "refine"), [(1e-3, "auto"), (1e-6, "auto"), (1e-9, "auto"), (1e-6, True)]
    )
    @pytest.mark.parametrize("name", SMOOTH)
    def test_predictions_are_the_exact_ones(self, name, penalty, refine):
        problem = self.problem(name, penalty)
        result = solve(problem, Falkon(refine=refine), stop=[tolerance(1e-6), max_iterations(170)])
        error = self.error(problem, result.state.coef)
        if result.reason == "converged":
            assert error < 1e-3
        else:  # of which the estimators warn
            assert result.reason == "max_iterations"
            assert penalty < 1e-6
            assert error < 1e-2

    def test_products_in_float32_alone_leave_out_what_they_cannot_tell(self):
        problem = self.problem("d = 1", 1e-6)
        result = run(problem, Falkon(refine=False), tol=1e-6)
        exact = FalkonFactor.build(problem)
        assert result.state.metrics["wide"] == 0
        assert len(result.state.cg.coef) < len(exact.diagonal)
        assert 1e-4 < self.error(problem, result.state.coef) < 2e-2

    @pytest.mark.parametrize("d", [10, 20])
    def test_ordinary_fits_stay_in_float32(self, d):
        X, y = draw(1000, d, dtype=np.float32)
        problem = problem_of(X, y, X[:100], kernel=kernels.Gaussian(math.sqrt(d)))
        result = solve(problem, Falkon(), stop=[max_iterations(20)])
        assert FalkonFactor.build(problem).rounding < 2e-4
        assert result.state.metrics["wide"] == 0
        setup = 100 * 100 + 2 * 100 * 100  # the factor; its rounding
        # The factor of all rows, the right-hand side, and the iterations.
        assert result.history[-1]["kernel_evaluations"] == setup + (1 + 1 + 20) * 1000 * 100

    @pytest.mark.parametrize(("lengthscale", "is_coarse"), [(2.3, False), (3.0, True)])
    def test_the_rounding_decides_the_precision_of_products(self, lengthscale, is_coarse):
        X, y = draw(2000, 4, dtype=np.float32)
        kernel = kernels.Gaussian(lengthscale)
        problem = problem_of(X, y, X[:200], kernel=kernel, penalty=1e-5)
        assert (FalkonFactor.build(problem, "landmarks").rounding > 0.3) == is_coarse
        solver = Falkon("landmarks")
        result = solve(problem, solver, stop=[tolerance(1e-4), max_iterations(200)])
        assert result.history[0]["wide"] == is_coarse
        assert result.state.metrics["wide"] == is_coarse
        gap = problem.double().K @ (result.state.coef - solve(problem, Direct()).state.coef)
        assert np.all(np.sqrt(np.square(gap).mean(axis=0)) < 3e-4 * y.std(axis=0))

    def test_a_long_run_without_a_true_residual_continues_in_float64(self, monkeypatch):
        monkeypatch.setattr("gramian.solvers.falkon.LONGEST_RUN", 8)
        X, y = draw(1500, 3, dtype=np.float32)
        problem = problem_of(X, y[:, :1], X[:200], kernel=kernels.Gaussian(1.0), penalty=1e-7)
        exact = solve(problem, Direct()).state.coef
        states = list(islice(Falkon("landmarks").iterate(problem), 20))
        assert [state.metrics["wide"] for state in states] == [0] * 9 + [1] * 11
        for state in states[9:]:
            gap = problem.double().K @ (state.coef - exact)
            true = float(np.sqrt(np.square(gap).mean()) / problem.targets.std())
            assert 0.3 < true / state.metrics["prediction_error"] < 3
        for start in (4, 12):
            again = islice(Falkon("landmarks").iterate(problem, states[start]), 20 - start)
            assert [state.metrics for state in again] == [s.metrics for s in states[start:]]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_few_rows_need_two_iterations(self, dtype, weighted):
        X, y = draw(500, 5, dtype=dtype)
        weights = np.linspace(0.1, 3, 500) if weighted else None
        problem = problem_of(X, y, X[:60], weights=weights)
        result = solve(problem, Falkon(), stop=[tolerance(1e-6), max_iterations(20)])
        assert result.state.iteration <= 2
        slow = solve(problem, Falkon("landmarks"), stop=[tolerance(1e-6), max_iterations(20)])
        assert slow.state.iteration > 5
        exact = solve(problem.double(), Direct()).state.coef
        error = problem.double().K @ (xp.to_float64(result.state.coef) - exact)
        assert float(np.sqrt(np.mean(np.square(error)))) < 1e-5 * float(y.std())


class TestRounding:
    @pytest.mark.parametrize("name", ["gaussian", "matern52", "laplacian"])
    @pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
    def test_it_foretells_the_error_of_float32_products(self, name, factor):
        X, y = draw(600, 6, dtype=np.float32)
        kernel = kernels.make(name, lengthscale=factor * math.sqrt(6))
        problem = problem_of(X, y, X[:100], kernel=kernel)
        B = FalkonFactor.build(problem)
        plain = run(problem, Falkon(refine=False), tol=1e-6).state.coef
        gap = difference(
            function(problem, plain, xp.to_float64(X)), dense(problem, xp.to_float64(X))
        )
        assert gap < 3 * B.rounding + 3e-6  # the tolerance of the iteration

    def test_float64_rows_have_none(self):
        X, y = draw()
        assert FalkonFactor.build(problem_of(X, y, X[:M])).rounding == 0


class TestPreconditioner:
    @staticmethod
    def system(problem: NystromProblem) -> np.ndarray:
        """Return H = K_nm' K_nm / n + penalty K_mm."""
        K, K_mm = xp.to_float64(problem.K.dense()), xp.to_float64(problem.K_mm.dense())
        return K.T @ K / len(K) + problem.penalty * K_mm

    def test_it_inverts_the_system_if_all_rows_are_landmarks(self):
        X, y = draw(150)
        problem = problem_of(X, y, X, penalty=1e-4)
        factor = FalkonFactor.build(problem, problem.penalty)
        B = factor.to_coef(np.eye(150, dtype=np.float64))
        identity = B.T @ self.system(problem) @ B
        assert np.abs(identity - np.eye(150, dtype=np.float64)).max() < 1e-9

    def test_weights_stand_for_repeated_rows(self):
        X, y = draw(60)
        counts = np.arange(60) % 4 + 1
        n = int(counts.sum())
        X, y = np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0)
        Z, weight = np.unique(X, axis=0, return_counts=True)
        problem = problem_of(X, y, Z, landmark_weight=xp.to_float64(weight) * 60 / n, coverage=1.0)
        # The landmarks with their weights are all the data: one iteration, as for m = n.
        result = run(problem, Falkon(None), most=1)
        assert difference(function(problem, result.state.coef), dense(problem)) < 1e-9

    def test_its_halves_are_those_of_one_factor(self):
        X, y = draw()
        problem = problem_of(X, y, X[:M], penalty=1e-3)
        factor = FalkonFactor.build(problem, 1e-3)
        eye = np.eye(M, dtype=np.float64)
        T, A = np.linalg.inv(factor.solve_T(eye)), np.linalg.inv(factor.solve_A(eye))
        K_mm = problem.K_mm.dense()
        assert_close(T.T @ T, K_mm, rtol=1e-9, atol=1e-11)
        assert_close(A.T @ A, T @ T.T / M + 1e-3 * eye, rtol=1e-9, atol=1e-11)
        assert_close(factor.solve_Tt(eye), factor.solve_T(eye).T)
        assert_close(factor.solve_At(eye), factor.solve_A(eye).T)

    def test_into_coordinates_and_back(self):
        X, y = draw()
        factor = FalkonFactor.build(problem_of(X, y, X[:M]))
        beta = xp.to_float64(RandomStream(0).standard_normal((M, 3), np.float32))
        there_and_back = factor.from_coef(factor.to_coef(beta))
        assert_close(there_and_back, beta, rtol=1e-7, atol=1e-9)

    @pytest.mark.parametrize("penalty", [1e-6, 1e-4, 1e-1])
    def test_the_lanczos_estimate_is_the_condition_number(self, penalty):
        X, y = draw()
        problem = problem_of(X, y, X[:40], penalty=1e-5)
        factor = FalkonFactor.build(problem, penalty)
        B = factor.to_coef(np.eye(40, dtype=np.float64))
        expected = np.linalg.cond(B.T @ self.system(problem) @ B)
        history = run(problem, Falkon(preconditioner_penalty=penalty), most=60).history
        estimates = [row["condition"] for row in history]
        assert estimates[-1] == pytest.approx(expected, rel=0.02)
        # It comes from below: each step of Lanczos widens the interval of its eigenvalues.
        assert max(estimates) < 1.001 * estimates[-1]

    def test_a_penalty_in_step_with_the_landmarks_conditions_better(self, monkeypatch):
        # So few rows would give an exact factor, which needs no other penalty.
        monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
        # A smooth kernel and a small penalty: far fewer landmarks than 1 / penalty.
        X, y = draw(1000, 6)
        problem = problem_of(X, y, X[:M], penalty=1e-7)
        auto, own = (
            run(problem, Falkon(preconditioner_penalty=choice), most=60).history[-1]["condition"]
            for choice in ("auto", None)
        )
        assert auto < own / 4


class TestEffectiveDimension:
    def test_it_is_that_of_the_matrix(self):
        X, _ = draw()
        C = KERNEL(X[:200], X[:200]) / 200
        spectrum = Spectrum.build(lambda v: C @ v, 200)
        for penalty in (1e-1, 1e-2, 1e-3, 1e-4):
            eye = np.eye(200, dtype=np.float64)
            exact = float((C @ np.linalg.inv(C + penalty * eye)).trace())
            # Three standard deviations: four random probes have a variance of 2 tr f(C)² / 4 at
            # most, and no eigenvalue of f(C) is above one.
            error = abs(spectrum.effective_dimension(penalty) - exact)
            assert error < 3 * math.sqrt(exact / 2)

    def test_the_penalty_for_a_dimension(self):
        X, _ = draw()
        C = KERNEL(X[:200], X[:200]) / 200
        spectrum = Spectrum.build(lambda v: C @ v, 200)
        chosen = spectrum.penalty_for(20.0, 1e-9)
        assert spectrum.effective_dimension(chosen) == pytest.approx(20, rel=1e-3)
        assert spectrum.penalty_for(20.0, 2 * chosen) == 2 * chosen  # the least that is allowed

    @pytest.mark.parametrize("m", [1, 2, 3])
    def test_matrices_smaller_than_the_number_of_steps(self, m):
        C = np.diag(np.arange(1.0, m + 1, dtype=np.float64))
        exact = sum(i / (i + 0.5) for i in range(1, m + 1))
        estimate = Spectrum.build(lambda v: C @ v, m).effective_dimension(0.5)
        assert estimate == pytest.approx(exact, rel=1e-9)  # random signs: exact for a diagonal


@pytest.mark.parametrize("penalty", [0.0, -1e-3, math.inf, math.nan, "automatic"])
def test_a_penalty_that_cannot_be_is_refused(penalty):
    with pytest.raises(ValueError, match="preconditioner_penalty must be positive"):
        falkon_with(penalty)


def falkon_with(penalty: Any) -> Falkon:
    # The annotation admits no other text than "auto", which the test run would refuse by itself.
    solver = object.__new__(Falkon)
    object.__setattr__(solver, "preconditioner_penalty", penalty)
    solver.__post_init__()
    return solver


class TestCentersThatAreNoRows:
    """Own centers: more than rows, about as many, a grid; the penalty decides between rows."""

    @staticmethod
    def problem(n: int, m: int, penalty: float, *, repeat: int = 1) -> NystromProblem:
        rng = RandomStream(0)
        X = np.tile(rng.random((n, 2), np.float64), (repeat, 1))
        Z = rng.random((m, 2), np.float64)
        if m == 625:
            side = np.linspace(0, 1, 25, dtype=np.float64)
            Z = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
        noise = 0.3 * rng.standard_normal((n * repeat, 1), np.float64)
        y = np.sin(5 * X).sum(axis=1, keepdims=True) + noise
        K = KernelOperator(kernels.Matern52(0.5), X, Z)
        return NystromProblem(K, y, penalty)

    @staticmethod
    def error(problem: NystromProblem, coef: np.ndarray) -> float:
        """Return the distance of predictions at new points from the exact ones, by the spread."""
        new = RandomStream(1).random((300, 2), np.float64)
        exact = solve(problem, Direct()).state.coef
        gap = function(problem, coef - exact, new)
        return float(np.sqrt(np.square(gap).mean()) / problem.targets.std())

    @pytest.mark.parametrize(
        ("n", "m", "repeat"),
        [
            (60, 120, 1),
            (60, 90, 1),
            (60, 58, 1),
            (60, 40, 1),
            (30, 50, 2),
            (60, 120, 8),
            (400, 625, 1),
        ],
    )
    @pytest.mark.parametrize("penalty", [1e-6, 1e-8, 1e-10])
    def test_predictions_between_rows_are_the_exact_ones(self, n, m, repeat, penalty):
        problem = self.problem(n, m, penalty, repeat=repeat)
        result = solve(problem, Falkon("landmarks"), stop=[tolerance(1e-6), max_iterations(20)])
        assert result.reason == "converged"
        assert self.error(problem, result.state.coef) < 1e-4

    @pytest.mark.parametrize("penalty", [1e-12, 1e-14])
    def test_what_float64_cannot_tell_is_not_converged(self, penalty):
        problem = self.problem(60, 120, penalty)
        result = solve(problem, Falkon(), stop=[tolerance(1e-6), max_iterations(20)])
        assert result.reason == "no_progress"
        estimate = result.history[-1]["prediction_error"]
        assert 1e-6 < self.error(problem, result.state.coef) < 5 * estimate
        assert estimate < 0.5

    def test_rows_with_hardly_any_weight_do_not_count(self):
        problem = self.problem(600, 150, 1e-8)
        weights = np.full((600,), 1e-9, dtype=np.float64)
        weights[:60] = 1
        problem = replace(problem, weights=weights)
        # "auto" would take the rows anyway, because they are few.
        result = solve(problem, Falkon("landmarks"), stop=[tolerance(5e-3), max_iterations(20)])
        assert result.reason == "converged"
        assert self.error(problem, result.state.coef) < 1e-3

    def test_zero_weights_and_several_targets(self):
        problem = self.problem(60, 90, 1e-8)
        weights = np.ones(60, np.float64)
        weights[:20] = 0
        targets = np.concatenate([problem.targets, np.square(problem.targets) + 5], axis=1)
        problem = replace(problem, targets=targets, weights=weights, penalties=(1e-8, 1e-7))
        result = solve(problem, Falkon(), stop=[tolerance(1e-6), max_iterations(40)])
        assert result.reason == "converged"
        assert self.error(problem, result.state.coef) < 1e-4


class TestPredictionError:
    @pytest.mark.parametrize("case", range(12))
    def test_it_is_near_the_true_error_after_any_number_of_iterations(self, case):
        problem = random_problem(case)
        exact = solve(problem, Direct()).state.coef
        for state in islice(Falkon().iterate(problem), 3, 12, 4):
            gap = problem.K @ (state.coef - exact)
            true = float((np.sqrt(np.square(gap).mean(axis=0)) / problem.targets.std(axis=0)).max())
            if true > 1e-3:  # below, rounding of landmarks that depend on others may decide
                assert 0.4 < state.metrics["prediction_error"] / true < 10

    @pytest.mark.parametrize("penalties", [(1e-5, 1.0), (1.0, 1e-5)])
    def test_it_is_of_the_target_with_the_smallest_penalty(self, penalties):
        rng = RandomStream(0)
        X = rng.standard_normal((400, 2), np.float64)
        y = np.stack([np.sin(4 * X[:, 0]), 1.5 * np.sin(X[:, 0])], axis=1)
        y += 0.3 * rng.standard_normal((400, 2), np.float64)
        y = y if penalties[0] < 1 else xp.flip(y, 1)  # the smoother target has the larger penalty
        problem = problem_of(X, y, X[:120], kernel=kernels.Matern32(0.3), index=np.arange(120))
        problem = replace(problem, penalties=penalties)
        exact = solve(problem, Direct()).state.coef
        for state in islice(Falkon().iterate(problem), 3, 8):
            true = problem.relative_error(xp.norm(problem.K @ (state.coef - exact), axis=0) / 20)
            assert true < 2 * state.metrics["prediction_error"]

    def test_a_start_with_a_small_residual_is_not_converged(self, monkeypatch):
        monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
        rng = RandomStream(0)
        X = rng.standard_normal((400, 2), np.float64)
        y = np.sin(2 * X[:, :1]) + 0.5 * rng.standard_normal((400, 1), np.float64)
        kernel = kernels.Laplacian(10.0)
        problem = problem_of(X, y, X[:100], kernel=kernel, penalty=1e-9, index=np.arange(100))
        start = State(0, solve(replace(problem, penalty=1e-7), Direct()).state.coef)
        exact = solve(problem, Direct()).state.coef

        def true(coef: np.ndarray) -> float:
            return problem.relative_error(xp.norm(problem.K @ (coef - exact), axis=0) / 20)

        for state in islice(Falkon().iterate(problem, start), 6):
            assert true(state.coef) < 1.5 * state.metrics["prediction_error"]

    def test_an_exact_start_ends_at_once(self):
        problem = random_problem(0)
        start = State(0, solve(problem, Direct()).state.coef)
        result = solve(problem, Falkon(), state=start, stop=[tolerance(1e-4), max_iterations(20)])
        assert result.reason == "converged"
        assert result.state.iteration <= 3

    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_a_resumed_warm_start_goes_on_alike(self, k):
        problem = random_problem(1)
        start = State(0, solve(replace(problem, penalty=1.0), Direct()).state.coef)
        states = list(islice(Falkon().iterate(problem, start), 7))
        again = Falkon().iterate(problem, states[k])
        for expected, state in zip(states[k:], again, strict=False):
            assert state.metrics == expected.metrics
            assert np.array_equal(state.cg.lanczos, expected.cg.lanczos)

    @pytest.mark.parametrize("seed", range(4))
    def test_products_in_float32_alone_state_their_rounding(self, seed):
        rng = RandomStream(seed)
        X = rng.standard_normal((400, 2), np.float32)
        y = np.sin(2 * X).sum(axis=1, keepdims=True) + 0.1 * rng.standard_normal(
            (400, 1), np.float32
        )
        kernel = kernels.Gaussian(1.0 + seed)
        problem = problem_of(X, y, X[:100], kernel=kernel, penalty=1e-9)
        result = solve(problem, Falkon(refine=False), stop=[tolerance(1e-3), max_iterations(100)])
        gap = problem.double().K @ (result.state.coef - solve(problem, Direct()).state.coef)
        true = float(np.sqrt(np.square(gap).mean()) / y.std())
        assert result.reason != "converged" or true < 3e-3
        assert true < 20 * result.history[-1]["prediction_error"]


def random_problem(seed: int) -> NystromProblem:
    rng = np.random.default_rng(seed)
    n, d, m = int(rng.integers(200, 400)), int(rng.choice([1, 2, 3, 6])), int(rng.choice([20, 80]))
    kernel = (kernels.Gaussian, kernels.Matern52, kernels.Matern32, kernels.Laplacian)[seed % 4]
    X = rng.standard_normal((n, d))
    noise = rng.choice([0.1, 0.5, 2]) * rng.standard_normal((n, 2))
    y = np.sin(2 * X).sum(axis=1, keepdims=True) + noise + 5.0  # an offset of several deviations
    scale, rows = float(rng.choice([0.3, 1, 3])) * d**0.5, as_rows(X)
    K = KernelOperator(kernel(scale), rows, rows)
    index = rng.permutation(n)[:m]
    return NystromProblem.at(K, index, y, 10.0 ** -rng.uniform(2, 9))


def test_rounding_in_float64_is_part_of_the_estimated_error():
    """Predictions were 8e-4 of their spread off, with an estimate of 7e-9 and "converged"."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) + 100.0
    y = np.sin(X[:, 0] - 100)
    exact = ridge_on_squares(X, y, penalty=300 * 1e-5)
    kernel = Polynomial(lengthscale=1.0, degree=2, coef0=1.0)
    settings = {"standardize": False, "penalty": 1e-5, "landmarks": 100, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="off by an estimated"):
        est = KernelRidge(kernel, solver=Falkon(), tol=1e-8, **settings).fit(X, y)
    error = np.sqrt(np.mean((est.predict(X) - exact) ** 2)) / y.std()
    estimate = est.history_[-1]["prediction_error"]
    assert estimate / 50 < error < 2 * estimate


@pytest.mark.parametrize("landmarks", [50, 100])
def test_flat_functions_round_no_more_than_they_weigh(landmarks):
    """The norm of random functions' coefficients alone was 200 times the error of predictions."""
    X = np.linspace(0, 6, 300)[:, None]
    y = np.sin(X[:, 0])
    settings = {"lengthscale": 5.0, "penalty": 1e-10, "landmarks": landmarks, "standardize": False}
    est = KernelRidge("gaussian", solver=Falkon(), tol=1e-6, random_state=0, **settings).fit(X, y)
    assert est.stop_reason_ == "converged"
    exact = KernelRidge("gaussian", solver="direct", random_state=0, **settings).fit(X, y)
    assert np.sqrt(np.mean((est.predict(X) - exact.predict(X)) ** 2)) < 3e-6


@pytest.mark.parametrize("mean", [3.0, -100.0])
def test_products_in_float32_suffice_for_the_spread_of_targets_with_a_mean(mean):
    """Predictions were 0.36 of the spread off with a mean of 146 spreads, and "converged"."""
    rng = np.random.default_rng(0)
    X = np.linspace(-3, 0, 40, dtype=np.float32)[:, None]
    y = mean + 0.7 * rng.standard_normal(40)
    kernel = Polynomial(lengthscale=3.0, degree=2, coef0=1.0)
    settings = {"standardize": False, "standardize_target": False, "penalty": 1e-5, "landmarks": 5}
    est = KernelRidge(kernel, solver=Falkon(), tol=1e-6, random_state=0, **settings).fit(X, y)
    assert est.stop_reason_ == "converged"
    exact = ridge_on_squares(X / 3, y, penalty=40 * 1e-5)
    assert np.sqrt(np.mean((est.predict(X) - exact) ** 2)) < 2e-3 * y.std()
