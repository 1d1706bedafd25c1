"""The direct solver with landmarks: which eigenvalues of K_mm it keeps, and which are rounding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gramian import kernels
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import Direct, solve


def predictions(problem: NystromProblem, X: Tensor) -> Tensor:
    return problem.model(solve(problem, Direct()).state.coef).predict(X)


@pytest.mark.parametrize("repeated", [False, True])
def test_landmarks_beyond_the_rank_of_the_kernel_add_nothing(repeated, rng):
    # 40 landmarks, of a kernel of rank 2 and with a ridge far below rounding: what is kept of the
    # 38 eigenvalues that are rounding would be fitted to the noise
    X, new = (torch.randn(n, 2, generator=rng, dtype=torch.float64) for n in (60, 20))
    y = torch.randn(60, 1, generator=rng, dtype=torch.float64)
    Z = X[:2].repeat(20, 1) if repeated else X[:40]
    problem = NystromProblem(KernelOperator(kernels.Linear(1.0), X, Z), y, 1e-22)
    least_squares = torch.linalg.lstsq(X, y).solution
    torch.testing.assert_close(predictions(problem, new), new @ least_squares, rtol=0, atol=1e-9)


def test_small_eigenvalues_above_rounding_are_kept():
    X = torch.linspace(0, 3, 12, dtype=torch.float64)[:, None]
    K = KernelOperator(kernels.Gaussian(1.0), X, X)
    values, vectors = torch.linalg.eigh(K.dense())
    i = int((values > 1e-11 * values[-1]).nonzero()[0])
    assert values[i] < 1e-9 * values[-1]
    # the target is an eigenvector: it shrinks by lambda_i / (lambda_i + n penalty), here a half
    problem = NystromProblem(K.against(X), vectors[:, i : i + 1], float(values[i]) / 12)
    found = predictions(problem, X)
    torch.testing.assert_close(found, vectors[:, i : i + 1] / 2, rtol=0, atol=1e-4)


def test_float32_rows_are_solved_in_float64(rng):
    # a float32 matrix of normal equations, or of entries, would lose the sixth digit
    X = torch.randn(80, 4, generator=rng)
    y = torch.randn(80, 1, generator=rng, dtype=torch.float64)
    narrow, wide = (
        NystromProblem(KernelOperator(kernels.Gaussian(2.0), rows, rows[:30]), y, 1e-7)
        for rows in (X, X.double())
    )
    coef, exact = (solve(problem, Direct()).state.coef for problem in (narrow, wide))
    assert coef.dtype == torch.float64
    torch.testing.assert_close(coef, exact, rtol=0, atol=1e-9 * float(exact.abs().max()))
