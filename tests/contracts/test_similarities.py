"""Kernels of angles and of shared bits and counts, against scikit-learn and RDKit's formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from formulas import tanimoto
from sklearn.metrics.pairwise import cosine_similarity

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import SparseRows
from gramian.kernels import Cosine, Gaussian, Kernel, Tanimoto
from gramian.operators import TiledEngine


def counts(rng: RandomStream, n: int, d: int, most: int, dtype=np.float64) -> np.ndarray:
    """Return rows of counts, mostly zeros; the first one is empty, the last two are equal."""
    rows = xp.cast(1 + rng.integers(most + 1 - 1, size=(n, d)), dtype)
    rows[rng.random((n, d), np.float32) < 0.7] = 0.0
    rows[0], rows[-1] = 0.0, rows[-2]
    return rows


def sparse(x: np.ndarray) -> np.ndarray:
    return SparseRows(scipy.sparse.csr_matrix(x)).take(np.arange(len(x)))


def test_cosine_is_that_of_scikit_learn(dtype, rng, tol):
    x = xp.cast(rng.standard_normal((40, 7), np.float64), dtype)
    x[3], x[5] = 0.0, 4 * x[9]
    expected = cosine_similarity(xp.to_float64(x))
    for rows in (x, sparse(x)):
        K = kernels.make("cosine")(rows, x)
        np.testing.assert_allclose(xp.to_float64(K), expected, rtol=0, atol=tol(dtype, 10))
        assert not K[3].any()
        assert np.array_equal(
            kernels.make("cosine").diag(rows), xp.cast((x != 0).any(axis=1), dtype)
        )


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_cosine_of_rows_whose_squares_leave_the_range_of_float32(size, rng):
    x = rng.standard_normal((9, 4), np.float32)
    block = TiledEngine().block(Cosine(), size * x, size * x)
    np.testing.assert_allclose(block, cosine_similarity(xp.to_float64(x)), atol=1e-6)


def of_bits(a: set[int], b: set[int]) -> float:
    """Return RDKit's TanimotoSimilarity of bit vectors, by its set of bits that are on."""
    total = len(a) + len(b)
    common = len(a & b)
    return 1.0 if total == 0 else common / (total - common)


@pytest.mark.parametrize("how", ["product", "minmax"])
def test_tanimoto_of_bits_is_the_share_of_common_bits(how, dtype, rng, tol):
    x = counts(rng, 30, 12, 1, dtype)
    on = [set(np.flatnonzero(row).tolist()) for row in x]
    expected = np.array([[of_bits(a, b) for b in on] for a in on])
    K = kernels.make("tanimoto", counts=how)(x, x)
    np.testing.assert_allclose(xp.to_float64(K), expected, rtol=0, atol=tol(dtype, 4))
    assert float(K[0, 0]) == 1.0
    assert np.array_equal(K[0, 1:], np.zeros(29, dtype))


@pytest.mark.parametrize("how", ["product", "minmax"])
@pytest.mark.parametrize("d", [1, 20])
def test_tanimoto_of_counts(how, d, dtype, rng, tol):
    x, z = counts(rng, 31, d, 9, dtype), counts(rng, 23, d, 9, dtype)
    expected = tanimoto(how, xp.to_float64(x), xp.to_float64(z))
    kernel, atol = Tanimoto(counts=how), tol(dtype, 10)
    for got in (kernel(x, z), TiledEngine(tile_bytes=1 << 8).block(kernel, x, z)):
        np.testing.assert_allclose(xp.to_float64(got), expected, rtol=0, atol=atol)
    K = xp.to_float64(kernel(x, x))
    assert np.linalg.eigvalsh(K).min() >= -len(x) * atol
    assert np.array_equal(K[-1], K[-2])
    assert np.array_equal(kernel.diag(x), np.ones(31, dtype))


@pytest.mark.parametrize("kernel", [Cosine(), Tanimoto(), Tanimoto() * Cosine()], ids=str)
def test_wide_sparse_rows_with_sparse_columns(kernel, dtype, rng, tol):
    d = 20_000  # beyond what landmarks become dense at
    x = np.zeros((40, d), dtype)
    at = rng.integers(d, size=(40, 30))
    at[:, :10] = np.arange(10)
    np.put_along_axis(x, at, counts(rng, 40, 30, 5, dtype), 1)
    engine, rows = TiledEngine(tile_bytes=1 << 9), sparse(x)
    expected = kernel(x, x[:15])
    got = engine.block(kernel, rows, sparse(x[:15]))
    assert_close(got, expected, rtol=0, atol=tol(dtype, 10))


def test_minmax_refuses_sparse_rows_in_words():
    x = np.eye(4, dtype=np.float64)
    kernel: Kernel
    for kernel in (Tanimoto(counts="minmax"), Gaussian() * Tanimoto(counts="minmax")):
        assert not kernel.sparse_ok
        for call in (kernel, lambda a, b, k=kernel: TiledEngine().block(k, a, b)):
            with pytest.raises(ValueError, match=r"minmax.* needs dense rows.*toarray"):
                call(sparse(x), x)


@pytest.mark.parametrize("how", ["product", "minmax"])
def test_negative_features_are_refused_by_their_number(how):
    x = np.ones((3, 4), np.float32)
    bad = xp.copy(x)
    bad[1, 2] = -0.5
    for left, right in ((x, bad), (bad, x)):
        with pytest.raises(ValueError, match=r"at least 0.* feature 2 has -0\.5"):
            Tanimoto(counts=how)(left, right)
    with pytest.raises(ValueError, match=r"at least 0.* feature 2 has -0\.5"):
        Tanimoto()(sparse(bad), x)


def test_counts_are_said_by_name():
    with pytest.raises(ValueError, match="counts must be 'product' or 'minmax', not 'min'"):
        Tanimoto(counts="min")
