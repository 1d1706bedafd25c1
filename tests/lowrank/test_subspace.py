"""Subspace iteration against the eigenvalues of LAPACK."""

from __future__ import annotations

import pytest
import torch

from gramian import kernels
from gramian.data import as_rows
from gramian.lowrank import block_columns, subspace_eigenpairs
from gramian.operators import KernelOperator

M = 600


def matrix(X: torch.Tensor, kernel: kernels.Kernel) -> torch.Tensor:
    rows = as_rows(X)
    return KernelOperator(kernel, rows, rows).double().dense()


def clusters() -> torch.Tensor:
    """A cloud, and twenty rows far from it and close to each other."""
    rng = torch.Generator().manual_seed(1)
    X = torch.randn(M, 3, generator=rng)
    X[-20:] = 100 + 0.1 * X[-20:]
    return X


ROWS = {
    "cloud": torch.randn(M, 10, generator=torch.Generator().manual_seed(0)),
    "clusters": clusters(),
    "equal rows": torch.ones(M, 3),
    "few rows": clusters()[:70],
}


@pytest.mark.parametrize("k", [1, 30])
@pytest.mark.parametrize("rows", ROWS)
def test_it_finds_the_largest_and_a_subspace_that_leaves_no_more(rows, k, dtype):
    H = matrix(ROWS[rows], kernels.Gaussian(3.0))
    values, V = subspace_eigenpairs(H.to(dtype), k, torch.Generator().manual_seed(2))
    expected = torch.linalg.eigvalsh(H).flip(0)
    rounding = 20 * torch.finfo(dtype).eps * float(expected[0])
    assert values.dtype == torch.float64
    assert V.dtype == dtype
    assert values.shape == (k,)
    assert bool((values <= expected[:k] + rounding).all())
    assert bool((values >= 0.98 * expected[:k] - rounding).all())
    V = V.double()
    torch.testing.assert_close(V.t() @ V, torch.eye(k).double(), rtol=0, atol=1e-5)
    left = H - V @ torch.diag(values) @ V.t()
    largest = float(torch.linalg.eigvalsh(left).abs().max())
    # Products with H, and the eigenvalue routine, round by up to n units of the norm.
    product_rounding = len(H) * torch.finfo(dtype).eps * float(expected[0])
    assert largest <= 1.1 * float(expected[min(k, len(H) - 1)]) + product_rounding


def test_the_same_start_gives_the_same_bits():
    H = matrix(ROWS["cloud"], kernels.Laplacian(3.0)).float()
    one, two = (subspace_eigenpairs(H, 9, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])
    assert block_columns(9) < M
