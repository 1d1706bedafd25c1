"""Subspace iteration against the eigenvalues of LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.lowrank import block_columns, subspace_eigenpairs
from gramian.operators import KernelOperator

M = 600


def matrix(X: np.ndarray, kernel: kernels.Kernel) -> np.ndarray:
    rows = as_rows(X)
    return xp.to_float64(KernelOperator(kernel, rows, rows)).dense()


def clusters() -> np.ndarray:
    """A cloud, and twenty rows far from it and close to each other."""
    rng = RandomStream(1)
    X = rng.standard_normal((M, 3), np.float32)
    X[-20:] = 100 + 0.1 * X[-20:]
    return X


ROWS = {
    "cloud": RandomStream(0).standard_normal((M, 10), np.float32),
    "clusters": clusters(),
    "equal rows": np.ones((M, 3), np.float32),
    "few rows": clusters()[:70],
}


@pytest.mark.parametrize("k", [1, 30])
@pytest.mark.parametrize("rows", ROWS)
def test_it_finds_the_largest_and_a_subspace_that_leaves_no_more(rows, k, dtype):
    H = matrix(ROWS[rows], kernels.Gaussian(3.0))
    values, V = subspace_eigenpairs(xp.cast(H, dtype), k, RandomStream(2))
    expected = xp.flip(np.linalg.eigvalsh(H), 0)
    rounding = 20 * xp.finfo(dtype).eps * float(expected[0])
    assert values.dtype == np.float64
    assert V.dtype == dtype
    assert values.shape == (k,)
    assert bool((values <= expected[:k] + rounding).all())
    assert bool((values >= 0.98 * expected[:k] - rounding).all())
    V = xp.to_float64(V)
    assert_close(V.T @ V, xp.to_float64(np.eye(k, dtype=np.float32)), rtol=0, atol=1e-5)
    left = H - V @ np.diag(values) @ V.T
    largest = float(np.abs(np.linalg.eigvalsh(left)).max())
    # Products with H, and the eigenvalue routine, round by up to n units of the norm.
    product_rounding = len(H) * xp.finfo(dtype).eps * float(expected[0])
    assert largest <= 1.1 * float(expected[min(k, len(H) - 1)]) + product_rounding


def test_the_same_start_gives_the_same_bits():
    H = xp.cast(matrix(ROWS["cloud"], kernels.Laplacian(3.0)), np.float32)
    one, two = (subspace_eigenpairs(H, 9, RandomStream(3)) for _ in range(2))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])
    assert block_columns(9) < M
