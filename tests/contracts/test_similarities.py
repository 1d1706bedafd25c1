"""Kernels of angles and of shared bits and counts, against scikit-learn and RDKit's formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from formulas import tanimoto
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor

from gramian import kernels
from gramian.data import SparseRows
from gramian.kernels import Cosine, Gaussian, Kernel, Tanimoto
from gramian.operators import TorchEngine


def counts(rng: torch.Generator, n: int, d: int, most: int, dtype=torch.float64) -> Tensor:
    """Return rows of counts, mostly zeros; the first one is empty, the last two are equal."""
    rows = torch.randint(1, most + 1, (n, d), generator=rng).to(dtype)
    rows[torch.rand(n, d, generator=rng) < 0.7] = 0.0
    rows[0], rows[-1] = 0.0, rows[-2]
    return rows


def sparse(x: Tensor) -> Tensor:
    return SparseRows(scipy.sparse.csr_matrix(x.numpy())).take(torch.arange(len(x)))


def test_cosine_is_that_of_scikit_learn(dtype, rng, tol):
    x = torch.randn(40, 7, generator=rng, dtype=torch.float64).to(dtype)
    x[3], x[5] = 0.0, 4 * x[9]
    expected = cosine_similarity(x.double().numpy())
    for rows in (x, sparse(x)):
        K = kernels.make("cosine")(rows, x)
        np.testing.assert_allclose(K.double().numpy(), expected, rtol=0, atol=tol(dtype, 10))
        assert not K[3].any()
        assert torch.equal(kernels.make("cosine").diag(rows), (x != 0).any(dim=1).to(dtype))


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_cosine_of_rows_whose_squares_leave_the_range_of_float32(size, rng):
    x = torch.randn(9, 4, generator=rng)
    block = TorchEngine().block(Cosine(), size * x, size * x)
    np.testing.assert_allclose(block.numpy(), cosine_similarity(x.double().numpy()), atol=1e-6)


def of_bits(a: set[int], b: set[int]) -> float:
    """Return RDKit's TanimotoSimilarity of bit vectors, by its set of bits that are on."""
    total = len(a) + len(b)
    common = len(a & b)
    return 1.0 if total == 0 else common / (total - common)


@pytest.mark.parametrize("how", ["product", "minmax"])
def test_tanimoto_of_bits_is_the_share_of_common_bits(how, dtype, rng, tol):
    x = counts(rng, 30, 12, 1, dtype)
    on = [set(row.nonzero()[:, 0].tolist()) for row in x]
    expected = np.array([[of_bits(a, b) for b in on] for a in on])
    K = kernels.make("tanimoto", counts=how)(x, x)
    np.testing.assert_allclose(K.double().numpy(), expected, rtol=0, atol=tol(dtype, 4))
    assert float(K[0, 0]) == 1.0
    assert torch.equal(K[0, 1:], torch.zeros(29, dtype=dtype))


@pytest.mark.parametrize("how", ["product", "minmax"])
@pytest.mark.parametrize("d", [1, 20])
def test_tanimoto_of_counts(how, d, dtype, rng, tol):
    x, z = counts(rng, 31, d, 9, dtype), counts(rng, 23, d, 9, dtype)
    expected = tanimoto(how, x.double().numpy(), z.double().numpy())
    kernel, atol = Tanimoto(counts=how), tol(dtype, 10)
    for got in (kernel(x, z), TorchEngine(tile_bytes=1 << 8).block(kernel, x, z)):
        np.testing.assert_allclose(got.double().numpy(), expected, rtol=0, atol=atol)
    K = kernel(x, x).double()
    assert torch.linalg.eigvalsh(K).min() >= -len(x) * atol
    assert torch.equal(K[-1], K[-2])
    assert torch.equal(kernel.diag(x), torch.ones(31, dtype=dtype))


@pytest.mark.parametrize("kernel", [Cosine(), Tanimoto(), Tanimoto() * Cosine()], ids=str)
def test_wide_sparse_rows_with_sparse_columns(kernel, dtype, rng, tol):
    d = 20_000  # beyond what landmarks become dense at
    x = torch.zeros(40, d, dtype=dtype)
    at = torch.randint(d, (40, 30), generator=rng)
    at[:, :10] = torch.arange(10)
    x.scatter_(1, at, counts(rng, 40, 30, 5, dtype))
    engine, rows = TorchEngine(tile_bytes=1 << 9), sparse(x)
    expected = kernel(x, x[:15])
    got = engine.block(kernel, rows, sparse(x[:15]))
    torch.testing.assert_close(got, expected, rtol=0, atol=tol(dtype, 10))


def test_minmax_refuses_sparse_rows_in_words():
    x = torch.eye(4, dtype=torch.float64)
    kernel: Kernel
    for kernel in (Tanimoto(counts="minmax"), Gaussian() * Tanimoto(counts="minmax")):
        assert not kernel.sparse_ok
        for call in (kernel, lambda a, b, k=kernel: TorchEngine().block(k, a, b)):
            with pytest.raises(ValueError, match=r"minmax.* needs dense rows.*toarray"):
                call(sparse(x), x)


@pytest.mark.parametrize("how", ["product", "minmax"])
def test_negative_features_are_refused_by_their_number(how):
    x = torch.ones(3, 4)
    bad = x.clone()
    bad[1, 2] = -0.5
    for left, right in ((x, bad), (bad, x)):
        with pytest.raises(ValueError, match=r"at least 0.* feature 2 has -0\.5"):
            Tanimoto(counts=how)(left, right)
    with pytest.raises(ValueError, match=r"at least 0.* feature 2 has -0\.5"):
        Tanimoto()(sparse(bad), x)


def test_counts_are_said_by_name():
    with pytest.raises(ValueError, match="counts must be 'product' or 'minmax', not 'min'"):
        Tanimoto(counts="min")
