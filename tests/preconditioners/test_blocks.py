"""Blocks of rows as preconditioners: against dense inverses, at the edges of sizes and rounding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.lowrank import pivoted_cholesky
from gramian.operators import KernelOperator
from gramian.preconditioners import BlockCholesky, BlockLowRank, blocks_of_rows
from gramian.preconditioners.block_cholesky import estimate_coupling

N, F64 = 101, np.float64


def generator() -> RandomStream:
    return RandomStream(0)


def rows(n: int = N, d: int = 3) -> np.ndarray:
    return generator().standard_normal((n, d), F64)


def operator(X: np.ndarray, kernel: kernels.Kernel | None = None) -> KernelOperator:
    source = as_rows(X)
    return KernelOperator(kernel or kernels.Matern32(1.0), source, source)


def divided(K: KernelOperator, size: int) -> list[np.ndarray]:
    return blocks_of_rows(K, size, rng=generator())


def system(
    K: KernelOperator, blocks: list[np.ndarray], ridge: np.ndarray, factor: np.ndarray
) -> np.ndarray:
    """Return F F' with the blocks of K in their places, plus the ridge."""
    A, P = K.double().dense(), factor @ factor.T
    for i in blocks:
        P[i[:, None], i] = A[i[:, None], i]
    return P + np.diag(xp.expand(ridge.reshape(-1), len(P)))


def off(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(xp.norm(xp.to_float64(actual) - expected) / xp.norm(expected))


def ridges(weighted: bool) -> np.ndarray:
    if not weighted:
        return np.array(0.3, dtype=F64)
    return 0.3 / np.linspace(0.1, 4, N, dtype=F64)[:, None]


class TestBlocksOfRows:
    @pytest.mark.parametrize("size", [1, 2, 7, 50, 100])
    @pytest.mark.parametrize("d", [1, 3])
    def test_each_row_is_in_one_block_and_none_is_too_large(self, size, d):
        blocks = divided(operator(rows(d=d)), size)
        assert np.array_equal(xp.sort(np.concatenate(blocks)), np.arange(N))
        assert max(map(len, blocks)) <= size
        assert all(bool((xp.diff(i) > 0).all()) for i in blocks)

    @pytest.mark.parametrize("size", [N, 500])
    def test_one_block_if_they_fit(self, size):
        (index,) = divided(operator(rows()), size)
        assert np.array_equal(index, np.arange(N))

    def test_they_lie_apart(self):
        """Along a line the blocks are intervals."""
        X = rows(d=1)
        blocks = sorted(divided(operator(X), 30), key=lambda i: float(X[i].min()))
        for first, second in pairwise(blocks):
            assert float(X[first].max()) < float(X[second].min())

    @pytest.mark.parametrize(
        "kernel",
        [
            kernels.L1Laplacian((1.0, 1e-3)),
            2.0 * kernels.Gaussian((1.0, 1e-3)),
            kernels.Gaussian((1.0, 1e-3)) + kernels.Laplacian((1.0, 1e-2)),
        ],
    )
    def test_they_are_split_where_the_kernel_sees_the_rows_apart(self, kernel):
        """The second feature is large once it is divided by its lengthscale."""
        X = rows(d=2)
        first, second = divided(operator(X, kernel), 60)
        a, b = X[first, 1], X[second, 1]
        assert float(a.max()) < float(b.min()) or float(b.max()) < float(a.min())

    @pytest.mark.parametrize(
        ("kernel", "coordinates"),
        [
            (
                kernels.Matern52([1.0, 2.0]).on([0, 1])
                + kernels.L1Laplacian([3.0, 4.0]).on([3, 2]),
                lambda X: [X[:, 0], X[:, 1] / 2, X[:, 3] / 3, X[:, 2] / 4],
            ),
            (
                2.0 * (kernels.Gaussian(2.0).on([1]) * kernels.Laplacian(0.5).on([1])),
                lambda X: [X[:, 1] / 2, X[:, 1] / 0.5],
            ),
            (
                kernels.Gaussian([2.0, 3.0]).on([1, 0]).on([2, 3]),
                lambda X: [X[:, 3] / 2, X[:, 2] / 3],
            ),
            (
                kernels.Periodic(0.5, period=4.0).on([2]) + kernels.Linear().on([0]),
                lambda X: [
                    2 * np.cos(np.pi / 2 * X[:, 2]),
                    2 * np.sin(np.pi / 2 * X[:, 2]),
                    X[:, 0],
                ],
            ),
            (
                kernels.Haversine(0.5, degrees=False, radius=2.0).on([0, 1]),
                lambda X: [
                    4 * np.cos(X[:, 0]) * np.cos(X[:, 1]),
                    4 * np.cos(X[:, 0]) * np.sin(X[:, 1]),
                    4 * np.sin(X[:, 0]),
                ],
            ),
            (kernels.ChiSquared(1.0), lambda X: list(X.T)),
        ],
    )
    def test_coordinates_are_the_features_that_a_kernel_uses_over_their_lengthscales(
        self, kernel, coordinates
    ):
        X = np.abs(rows(d=4)) / 3
        expected = np.stack(coordinates(X), axis=1)
        assert_close(kernel.coordinates(X), expected)

    @pytest.mark.parametrize(
        "kernel",
        [
            kernels.Laplacian(1.0).on([1]),
            kernels.Gaussian(1.0).on([1]) + kernels.Matern32(2.0).on([1]),
            3.0 * kernels.Gaussian([0.1]).on([1]) * kernels.Linear().on([2]),
        ],
        ids=repr,
    )
    def test_they_are_not_split_along_features_that_the_kernel_does_not_use(self, kernel):
        X = rows(d=3)
        X[:, 0] *= 1000
        X[:, 2] *= 1e-3
        other = np.concatenate([np.random.default_rng(0).random((N, 1)), X[:, 1:]], axis=1)
        first, second = divided(operator(X, kernel), 60)
        a, b = X[first, 1], X[second, 1]
        assert float(a.max()) < float(b.min()) or float(b.max()) < float(a.min())
        for index, same in zip((first, second), divided(operator(other, kernel), 60), strict=True):
            assert np.array_equal(index, same)

    def test_a_kernel_of_rows_that_do_not_differ_cuts_equal_parts(self):
        X = rows(d=2)
        X[:, 0] = 1.0
        blocks = divided(operator(X, kernels.Gaussian(1.0).on([0])), 20)
        assert sorted(map(len, blocks)) == [16, 17, 17, 17, 17, 17]

    def test_repeated_rows_are_cut(self):
        blocks = divided(operator(np.ones((N, 2), F64)), 20)
        assert np.array_equal(xp.sort(np.concatenate(blocks)), np.arange(N))
        assert sorted(map(len, blocks)) == [16, 17, 17, 17, 17, 17]

    def test_splits_from_a_sample_of_the_rows(self, monkeypatch):
        monkeypatch.setattr("gramian.preconditioners.block_cholesky.SAMPLE_ROWS", 40)
        blocks = divided(operator(rows()), 20)
        assert np.array_equal(xp.sort(np.concatenate(blocks)), np.arange(N))
        assert max(map(len, blocks)) <= 20

    def test_rows_that_come_in_pieces(self, monkeypatch):
        whole = divided(operator(rows()), 20)
        monkeypatch.setattr(f"{BlockCholesky.__module__}.default_block_size", lambda _: 13)
        pieces = divided(operator(rows()), 20)
        assert all(np.array_equal(a, b) for a, b in zip(whole, pieces, strict=True))

    def test_the_same_from_the_same_seed(self):
        first, again = (divided(operator(rows()), 9) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("size", [1, 30, N])
def test_coupling_is_what_lies_outside_of_the_blocks(size):
    """With 101 rows, 100 are looked at."""
    K = operator(rows(), kernels.Gaussian(0.7))
    blocks, A = divided(K, size), K.dense()
    within = sum(float(A[i[:, None], i].sum()) for i in blocks)
    expected = (float(A.sum()) - within) / within
    assert estimate_coupling(K, blocks, rng=generator()) == pytest.approx(
        expected, rel=0.05, abs=1e-9
    )
    K = operator(np.zeros((5, 2), F64), kernels.Linear())
    assert estimate_coupling(K, divided(K, 2), rng=generator()) == 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 7, 50, N])
class TestInverses:
    def test_of_the_blocks(self, size, weighted, dtype, tol):
        K, ridge = operator(rows()), ridges(weighted)
        blocks = divided(K, size)
        g = generator().standard_normal((N, 3), F64)
        P = system(K, blocks, ridge, np.zeros((N, 1), F64))
        inverse = BlockCholesky.build(K, blocks, ridge, dtype=dtype)
        assert {R.dtype.type for R in inverse.factors} == {dtype}
        assert off(inverse @ g, np.linalg.solve(P, g)) < tol(dtype, 1000)
        assert (inverse @ xp.cast(g, dtype)).dtype == dtype

    @pytest.mark.parametrize("rank", [0, 1, 20, N])
    def test_of_low_rank_and_blocks(self, rank, size, weighted, dtype, tol):
        K, ridge = operator(rows()), ridges(weighted)
        blocks = divided(K, size)
        factor = pivoted_cholesky(K, rank, rng=generator()).factor
        g = generator().standard_normal((N, 3), F64)
        P = system(K, blocks, ridge, factor)
        inverse = BlockLowRank.build(K, blocks, xp.copy(factor), ridge, dtype=dtype)
        assert off(inverse @ g, np.linalg.solve(P, g)) < tol(dtype, 1000)
        assert (inverse @ xp.cast(g, dtype)).dtype == dtype


def test_blocks_of_one_row_are_the_diagonal():
    K = operator(rows(), 3.0 * kernels.Gaussian(1.0))
    g = rows()
    assert_close(BlockCholesky.build(K, divided(K, 1), 0.5) @ g, g / 3.5)


def test_factors_have_the_dtype_of_the_rows(dtype):
    K = operator(xp.cast(rows(), dtype))
    assert BlockCholesky.build(K, divided(K, 30), 0.5).factors[0].dtype == dtype


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e6])
def test_flat_and_tiny_lengthscales(scale):
    """A kernel of ones, and the identity; the ridge is far above rounding."""
    K = operator(rows(), kernels.Matern32(scale))
    blocks, ridge = divided(K, 30), np.array(1e-3, dtype=F64)
    factor = pivoted_cholesky(K, 10, rng=generator()).factor
    g = generator().standard_normal((N, 2), F64)
    expected = np.linalg.solve(system(K, blocks, ridge, factor), g)
    assert off(BlockLowRank.build(K, blocks, xp.copy(factor), ridge) @ g, expected) < 1e-8


@pytest.mark.parametrize("rank", [5, 60, N])
@pytest.mark.parametrize("ridge", [1e-10, 1e-14, 1e-18])
def test_a_ridge_near_rounding(rank, ridge):
    """Repeated rows and a smooth kernel: what is left of a block is indefinite by rounding."""
    X = np.tile(rows(N // 2 + 1), (2, 1))[:N]
    K = operator(X, kernels.Gaussian(3.0))
    blocks = divided(K, 40)
    factor = pivoted_cholesky(K, rank, rng=generator()).factor
    for inverse in (
        BlockCholesky.build(K, blocks, ridge, dtype=np.float32),
        BlockLowRank.build(K, blocks, xp.copy(factor), ridge, dtype=np.float32),
        BlockLowRank.build(K, blocks, factor, ridge),
    ):
        g = generator().standard_normal((N, 5), F64)
        found = inverse @ g
        assert bool(np.isfinite(found).all())
        assert bool(((g * found).sum(axis=0) > 0).all())  # it stays positive definite


def test_a_jitter_changes_a_block_no_more_than_rounding_does():
    """What a factorisation that failed has spoilt is put right."""
    K = operator(rows(), kernels.Gaussian(30.0))
    blocks = divided(K, 60)
    F = pivoted_cholesky(K, 2, rng=generator()).factor
    both = BlockLowRank.build(K, blocks, xp.copy(F), 1e-30).blocks
    for inverse, factor in ((BlockCholesky.build(K, blocks, 1e-30), 0 * F), (both, F)):
        for index, R in zip(blocks, inverse.factors, strict=True):
            expected = K[index, index].dense() - factor[index] @ factor[index].T
            assert_close(np.triu(R).T @ np.triu(R), expected, rtol=0, atol=1e-9)


def test_entries_that_overflow_are_refused():
    K = operator(1e200 * rows(), kernels.Linear())
    with pytest.raises(ValueError, match="not finite"):
        BlockCholesky.build(K, [np.arange(N)], 1.0)


def test_rows_of_a_file_are_the_same(tmp_path):
    X = rows()
    columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(3)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=17)
    g, results = rows(), []
    for source in (as_rows(X), as_rows(tmp_path / "x.parquet")):
        K = KernelOperator(kernels.Matern32(1.0), source, source)
        results.append(BlockCholesky.build(K, divided(K, 20), 0.1) @ g)
    assert_close(*results, rtol=1e-12, atol=1e-12)
