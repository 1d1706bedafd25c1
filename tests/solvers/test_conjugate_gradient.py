"""Conjugate gradient on matrices whose spectrum is known: diagonal ones, turned by a rotation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np
import pytest
from close import assert_close
from threads import blas_threads

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian._linalg import extremes_of_lanczos
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import (
    PCG,
    CGState,
    Solver,
    State,
    conjugate_gradient,
    max_iterations,
    solve,
    tolerance,
)

N = 200


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices of this size are multiplied faster by one thread than two threads can meet."""
    with blas_threads(1):
        yield


def rotation(n: int = N) -> np.ndarray:
    rng = RandomStream(3)
    return np.linalg.qr(rng.standard_normal((n, n), np.float64)).Q


def matrix(eigenvalues: np.ndarray) -> np.ndarray:
    Q = rotation(len(eigenvalues))
    return (Q * eigenvalues) @ Q.T


def normal(*shape: int) -> np.ndarray:
    return RandomStream(4).standard_normal(shape, np.float64)


def state_after(states: Iterator[CGState], iterations: int) -> CGState:
    return next(islice(states, iterations, None))


def relative_residual(A: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return xp.norm(b - A @ xp.to_float64(x), axis=0) / xp.norm(b, axis=0)


class TestPlain:
    @pytest.mark.parametrize("distinct", [1, 2, 5])
    def test_as_many_iterations_as_distinct_eigenvalues(self, distinct):
        A = matrix(xp.to_float64(np.arange(1, distinct + 1).repeat(N)[:N]))
        b = normal(N, 2)
        x = state_after(conjugate_gradient(lambda v: A @ v, b), distinct).coef
        assert relative_residual(A, x, b).max() < 1e-12

    @pytest.mark.parametrize("n", [1, 2, 7])
    def test_as_many_iterations_as_rows(self, n):
        A, b = matrix(xp.to_float64(np.arange(1.0, n + 1, dtype=np.float32))), normal(n, 3)
        x = state_after(conjugate_gradient(lambda v: A @ v, b), n).coef
        assert relative_residual(A, x, b).max() < 1e-12

    def test_the_error_bound_of_the_textbook(self):
        A, b = matrix(np.logspace(0, 2, N, dtype=np.float64)), normal(N, 1)
        solution = np.linalg.solve(A, b)
        rate = (10 - 1) / (10 + 1)  # sqrt of the condition number is 10

        def energy(x: np.ndarray) -> float:
            return float(np.sqrt(((x - solution) * (A @ (x - solution))).sum()))

        states = list(islice(conjugate_gradient(lambda v: A @ v, b), 60))
        errors = [energy(state.coef) for state in states]
        assert all(error <= 2 * rate**k * errors[0] for k, error in enumerate(errors))
        assert all(later <= sooner for sooner, later in pairwise(errors))

    def test_a_preconditioner_that_is_the_inverse_needs_one_iteration(self):
        A, b = matrix(np.logspace(0, 4, N, dtype=np.float64)), normal(N, 2)
        inverse = np.linalg.inv(A)
        states = conjugate_gradient(lambda v: A @ v, b, precondition=lambda r: inverse @ r)
        state = state_after(states, 1)
        assert relative_residual(A, state.coef, b).max() < 1e-10
        assert state.metrics["condition"] == pytest.approx(1)

    def test_the_residual_in_the_metrics_is_the_true_one(self):
        A, b = matrix(np.logspace(0, 3, N, dtype=np.float64)), normal(N, 3)
        for state in islice(conjugate_gradient(lambda v: A @ v, b), 150):
            true = float(relative_residual(A, state.coef, b).max())
            assert state.metrics["rel_residual"] == pytest.approx(true, rel=1e-3, abs=1e-13)

    def test_the_condition_number_is_estimated(self):
        A, b = matrix(np.logspace(0, 2, N, dtype=np.float64)), normal(N, 1)
        state = state_after(conjugate_gradient(lambda v: A @ v, b), 100)
        assert state.metrics["condition"] == pytest.approx(100, rel=0.03)

    def test_no_condition_number_is_infinite(self):
        # Beyond 1 / eps no estimate has a digit, and "diverged" would be the wrong word for it.
        A, b = matrix(np.logspace(0, -20, N, dtype=np.float64)), normal(N, 1)
        for state in islice(conjugate_gradient(lambda v: A @ v, b), 120):
            assert state.metrics["condition"] < 1e16


class TestColumns:
    """Columns share products and nothing else."""

    A = matrix(np.logspace(0, 2, N, dtype=np.float64))

    def test_columns_of_very_different_scale(self):
        scale = np.array([1e-150, 1e-30, 1.0, 1e30, 1e150], dtype=np.float64)
        b = normal(N, 1) * scale
        x = state_after(conjugate_gradient(lambda v: self.A @ v, b), 150).coef
        expected = np.linalg.solve(self.A, normal(N, 1))
        # Conjugate gradient commutes with scaling: each column is the same solution.
        assert_close(x / scale, xp.expand(expected, (N, 5)), rtol=1e-9, atol=1e-11)

    def test_a_zero_column_stays_zero(self):
        b = normal(N, 3)
        b[:, 1] = 0
        for state in islice(conjugate_gradient(lambda v: self.A @ v, b), 120):
            assert not state.coef[:, 1].any()
            assert not state.active[1]
        assert state.metrics["rel_residual"] < 1e-10

    def test_nothing_but_zeros(self):
        states = conjugate_gradient(lambda v: self.A @ v, np.zeros((N, 2), np.float64))
        for state in islice(states, 5):
            assert state.metrics["rel_residual"] == 0
            assert not state.coef.any()

    def test_an_eigenvector_is_done_after_one_step_and_then_left_alone(self):
        b = normal(N, 2)
        b[:, 0] = rotation()[:, 5]
        states = list(islice(conjugate_gradient(lambda v: self.A @ v, b), 100))
        expected = np.linalg.solve(self.A, b)
        for state in states[1:]:
            assert_close(state.coef[:, 0], expected[:, 0], rtol=1e-9, atol=1e-12)
        assert_close(states[-1].coef[:, 1], expected[:, 1], rtol=1e-6, atol=1e-9)

    def test_a_column_does_not_depend_on_its_neighbours(self):
        b = normal(N, 4) * np.array([1.0, 1e-9, 1e9, 0.0], dtype=np.float64)
        together = state_after(conjugate_gradient(lambda v: self.A @ v, b), 30).coef
        for j in range(4):
            alone = state_after(conjugate_gradient(lambda v: self.A @ v, b[:, j : j + 1]), 30).coef
            # Products of other shapes round differently; thirty steps let that grow a little.
            scale = float(xp.norm(b[:, j]))
            assert_close(together[:, j], alone[:, 0], rtol=0, atol=1e-9 * scale)


class TestRefinement:
    """float32 products with float64 residuals from time to time reach float64 accuracy."""

    eigenvalues = np.logspace(0, -3, N, dtype=np.float64)
    A = matrix(eigenvalues)

    def products(self, v: np.ndarray) -> np.ndarray:
        return xp.cast(self.A, np.float32) @ xp.cast(v, np.float32)

    def test_float32_alone_stalls_and_its_residual_lies(self):
        b = normal(N, 1)
        state = state_after(conjugate_gradient(self.products, xp.cast(b, np.float32)), 400)
        assert state.metrics["rel_residual"] < 1e-6
        assert relative_residual(self.A, state.coef, b).max() > 1e-6

    def test_with_float64_residuals_it_goes_on(self):
        b = normal(N, 3)
        states = conjugate_gradient(
            self.products, xp.cast(b, np.float32), exact_residual=lambda x: b - self.A @ x
        )
        state = state_after(states, 700)
        assert relative_residual(self.A, state.coef, b).max() < 1e-10
        # Between two true residuals the recursive one drops by a factor of ten at most.
        true = float(relative_residual(self.A, state.coef, b).max())
        assert state.metrics["rel_residual"] > true / 20

    def test_a_column_that_froze_too_early_moves_again(self):
        """Column 0 meets three eigenvectors only, so its recursive residual soon claims zero."""
        diagonal = np.logspace(0, -3, 400, dtype=np.float64)[:, None]
        b = np.zeros((400, 2), np.float64)
        b[[0, 150, 300], 0] = np.array([0.3, 0.7, 0.2], dtype=np.float64)
        b[:, 1] = normal(400) / diagonal[:, 0]
        states = conjugate_gradient(
            lambda v: xp.cast(diagonal, np.float32) * v,
            xp.cast(b, np.float32),
            exact_residual=lambda x: b - diagonal * x,
        )
        state = state_after(states, 700)
        assert (xp.norm(b - diagonal * state.coef, axis=0) / xp.norm(b, axis=0)).max() < 1e-10
        assert state.metrics["rel_residual"] < 1e-10

    def test_on_a_kernel_problem(self):
        rng = RandomStream(0)
        X = rng.standard_normal((300, 3), np.float32)
        y = normal(300, 2)
        rows = KernelOperator(kernels.Gaussian(1.0), X, X).rows
        problem = FullProblem(KernelOperator(kernels.Gaussian(1.0), rows, rows), y, 1e-4)
        K = problem.K.double().dense() + 300 * 1e-4 * np.eye(300, dtype=np.float64)

        def final(solver: Solver) -> float:
            stop = [tolerance(1e-11), max_iterations(800)]
            return float(
                relative_residual(K, solve(problem, solver, stop=stop).state.coef, y).max()
            )

        assert final(PCG()) < 1e-10


class TestSafety:
    @pytest.mark.parametrize("worst", [-1.0, -1e-3, 0.0])
    def test_curvature_that_is_not_positive_freezes_instead_of_nan(self, worst):
        eigenvalues = np.linspace(1, 2, N, dtype=np.float64)
        eigenvalues[:20] = worst
        A, b = matrix(eigenvalues), normal(N, 2)
        b[:, 1] = rotation()[:, 100]  # this column never meets the bad directions
        for state in islice(conjugate_gradient(lambda v: A @ v, b), 300):
            assert np.isfinite(state.coef).all()
            assert all(np.isfinite(np.array(list(state.metrics.values()))))
        if worst < 0:  # zero is positive as often as not, once rounded
            assert_close(state.coef[:, 1], b[:, 1] / eigenvalues[100])

    def test_a_matrix_of_zeros(self):
        b = normal(5, 1)
        states = list(islice(conjugate_gradient(np.zeros_like, b), 4))
        for state in states:
            assert not state.coef.any()
            assert state.metrics["rel_residual"] == 1
        assert [state.verdict for state in states] == [None] + 3 * ["no_progress"]

    def test_where_nothing_can_move_it_ends_at_its_best_with_a_true_residual(self):
        A, b = matrix(np.linspace(-1e-3, 1, N, dtype=np.float64)), normal(N, 2)
        states = list(islice(conjugate_gradient(lambda v: A @ v, b), 3 * N))
        end = next(i for i, s in enumerate(states) if s.verdict is not None)
        assert states[end].verdict == "no_progress"
        best = min(s.metrics["rel_residual"] for s in states[:end])
        assert states[end - 1].metrics["rel_residual"] > 2 * best  # rounding or curvature spoilt it
        assert states[end].metrics["rel_residual"] == pytest.approx(best, rel=1e-6)
        found = relative_residual(A, states[end].coef, b).max()
        assert found == pytest.approx(best, rel=1e-6)
        for later in (states[end + 1], states[-1]):
            assert np.array_equal(later.coef, states[end].coef)
            assert later.verdict == "no_progress"

    def test_it_says_nothing_where_the_residual_is_rounding(self):
        A, b = matrix(np.linspace(1, 10, N, dtype=np.float64)), normal(N, 2)
        for state in islice(conjugate_gradient(lambda v: A @ v, b), 200):
            assert state.verdict is None

    def test_running_on_after_convergence_does_no_harm(self):
        A, b = matrix(np.linspace(1, 10, N, dtype=np.float64)), normal(N, 2)
        state = state_after(conjugate_gradient(lambda v: A @ v, b), 500)
        assert relative_residual(A, state.coef, b).max() < 1e-13


class TestStart:
    A = matrix(np.logspace(0, 2, N, dtype=np.float64))

    def test_from_a_good_start_it_is_sooner_there(self):
        b = normal(N, 2)
        near = np.linalg.solve(self.A, b) + 1e-6 * normal(N, 2)

        def iterations(state: State | None) -> int:
            states = conjugate_gradient(lambda v: self.A @ v, b, state=state)
            for state in states:
                if state.metrics["rel_residual"] < 1e-8:
                    return state.iteration
            return 0

        assert iterations(State(0, near)) < iterations(None) / 2

    def test_from_the_solution_it_stays_there(self):
        b = normal(N, 2)
        solution = np.linalg.solve(self.A, b)
        states = conjugate_gradient(lambda v: self.A @ v, b, state=State(7, solution))
        state = next(states)
        assert state.iteration == 7
        assert state.metrics["rel_residual"] < 1e-12
        assert_close(state_after(states, 20).coef, solution, rtol=1e-10, atol=1e-12)

    def test_a_start_of_the_wrong_shape_is_refused(self):
        start = State(0, np.zeros((N, 1), np.float64))
        with pytest.raises(ValueError, match=r"must have shape \(200, 2\), not \(200, 1\)"):
            next(conjugate_gradient(lambda v: self.A @ v, normal(N, 2), state=start))


def test_the_condition_number_of_a_broken_recurrence_is_that_of_rounding():
    smallest, largest = extremes_of_lanczos(
        np.array([1.0, 1.0, 1.0], dtype=np.float32), np.array([-0.5, 0.1, 0.0], dtype=np.float32)
    )
    assert largest / smallest == 1 / xp.finfo(np.float64).eps
