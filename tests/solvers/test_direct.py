"""The direct solver with landmarks: which directions of K_mm it keeps, and which are rounding."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from close import assert_close
from extended import ridge_on_squares
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian import _linalg as la
from gramian.data import as_rows
from gramian.kernels import Polynomial
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Direct, ProblemSize, direct, solve


def predictions(problem: NystromProblem, X: np.ndarray) -> np.ndarray:
    return problem.model(solve(problem, Direct()).state.coef).predict(X)


@pytest.mark.parametrize("repeated", [False, True])
def test_landmarks_beyond_the_rank_of_the_kernel_add_nothing(repeated, rng):
    # 40 landmarks, of a kernel of rank 2 and with a ridge far below rounding: what is kept of the
    # 38 eigenvalues that are rounding would be fitted to the noise
    X, new = (rng.standard_normal((n, 2), np.float64) for n in (60, 20))
    y = rng.standard_normal((60, 1), np.float64)
    Z = np.tile(X[:2], (20, 1)) if repeated else X[:40]
    problem = NystromProblem(KernelOperator(kernels.Linear(1.0), X, Z), y, 1e-22)
    least_squares = np.linalg.lstsq(X, y)[0]
    assert_close(predictions(problem, new), new @ least_squares, rtol=0, atol=1e-9)


def test_small_eigenvalues_above_rounding_are_kept():
    X = np.linspace(0, 3, 12, dtype=np.float64)[:, None]
    K = KernelOperator(kernels.Gaussian(1.0), X, X)
    values, vectors = np.linalg.eigh(K.dense())
    i = int(np.flatnonzero(values > 1e-11 * values[-1])[0])
    assert values[i] < 1e-9 * values[-1]
    # the target is an eigenvector: it shrinks by lambda_i / (lambda_i + n penalty), here a half
    problem = NystromProblem(K.against(X), vectors[:, i : i + 1], float(values[i]) / 12)
    found = predictions(problem, X)
    assert_close(found, vectors[:, i : i + 1] / 2, rtol=0, atol=1e-4)


def test_float32_rows_are_solved_in_float64(rng):
    # a float32 matrix of normal equations, or of entries, would lose the sixth digit
    X = rng.standard_normal((80, 4), np.float32)
    y = rng.standard_normal((80, 1), np.float64)
    narrow, wide = (
        NystromProblem(KernelOperator(kernels.Gaussian(2.0), rows, rows[:30]), y, 1e-7)
        for rows in (X, xp.to_float64(X))
    )
    coef, exact = (solve(problem, Direct()).state.coef for problem in (narrow, wide))
    assert coef.dtype == np.float64
    assert_close(coef, exact, rtol=0, atol=1e-9 * float(np.abs(exact).max()))


@pytest.mark.parametrize("penalty", [1e-3, 1e-12])  # float32 can tell, and it cannot
@pytest.mark.parametrize("weighted", [False, True])
def test_a_factor_in_float32_gives_the_same_solution(penalty, weighted, rng, monkeypatch):
    monkeypatch.setattr(direct, "REFINED_ROWS", 1)
    X = rng.standard_normal((150, 3), np.float32)
    y = rng.standard_normal((150, 2), np.float64)
    K = KernelOperator(kernels.Matern32(2.0), (rows := as_rows(X)), rows)
    w = rng.random(150, np.float32) + 0.5 if weighted else None
    refined: list[bool] = []
    solve_refined = la.solve_refined

    def watched(*arguments):
        found = solve_refined(*arguments)
        refined.append(found is not None)
        return found

    monkeypatch.setattr(la, "solve_refined", watched)
    for penalties in (None, (penalty, 2 * penalty), (1e-3, 1e-12)):
        problem = FullProblem(K, y, penalty, w, penalties=penalties)
        exact = solve(problem, Direct()).state.coef
        assert not refined
        found = solve(problem, Direct(store_bytes=4 * 150 * 150)).state.coef
        assert refined == [one == 1e-3 or one == 2e-3 for one in sorted(penalties or (penalty,))]
        refined.clear()
        values = problem.double().apply
        assert_close(values(found), values(exact), rtol=1e-9, atol=1e-9)
        if penalty == 1e-3 and penalties is None:
            assert_close(found, exact, rtol=0, atol=1e-9 * float(np.abs(exact).max()))


def test_room_for_a_factor_in_float32_is_taken_where_it_pays():
    size = ProblemSize(n=5000, d=3, t=1, m=5000, itemsize=4, full=True)
    with_room = Direct().storing(size, 10**8)
    assert with_room.peak_bytes(size) - Direct().peak_bytes(size) == 10**8
    assert Direct().storing(size, 10**8 - 1) == Direct()
    small = replace(size, n=1000, m=1000)
    assert Direct().storing(small, 10**10) == Direct()
    assert with_room.peak_bytes(small) == Direct().peak_bytes(small)
    assert Direct().storing(replace(size, full=False, m=100), 10**10) == Direct()


def test_a_factor_in_float32_counts_half():
    size = ProblemSize(
        n=direct.REFINED_ROWS, d=3, t=1, m=direct.REFINED_ROWS, itemsize=4, full=True
    )
    wide, narrow = Direct(), Direct(store_bytes=4 * direct.REFINED_ROWS**2)
    assert 2 * narrow.operations(size, 1) == wide.operations(size, 1)
    fewer = replace(size, n=direct.REFINED_ROWS - 1, m=direct.REFINED_ROWS - 1)
    assert narrow.operations(fewer, 1) == wide.operations(fewer, 1)


def test_landmarks_of_rows_far_from_the_origin_keep_small_directions():
    """Eigenvectors of K_mm lost them: predictions were 1.5e-2 of their spread off."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((600, 20))
    X, y = Z + 30.0, np.sign(Z[:, 0] * Z[:, 1] + 0.1 * rng.standard_normal(600))
    exact = ridge_on_squares(X, y, penalty=600 * 1e-4)
    kernel = Polynomial(lengthscale=1.0, degree=2, coef0=1.0)
    settings = {"standardize": False, "standardize_target": False, "random_state": 0}
    for solver in ("direct", "falkon"):
        est = KernelRidge(kernel, penalty=1e-4, landmarks=250, solver=solver, tol=1e-10, **settings)
        with warnings.catch_warnings():  # rounding ends iterations above the tolerance
            warnings.simplefilter("ignore", ConvergenceWarning)
            error = est.fit(X, y).predict(X) - exact
        assert np.sqrt(np.mean(error**2)) < 1e-3
