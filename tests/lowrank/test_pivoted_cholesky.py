"""Partial Cholesky factors against dense linear algebra, and the law of their pivots."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import scipy.stats
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.lowrank import PartialCholesky, pivoted_cholesky
from gramian.lowrank._pivots import Elimination, Rejection, draw_by_residual
from gramian.operators import KernelOperator, TiledEngine

N, D = 150, 3
METHODS = ("accelerated", "simple", "block", "greedy")
every_method = pytest.mark.parametrize("method", METHODS)


def points(n: int = N, d: int = D, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float64)


def operator(X: Any, kernel: kernels.Kernel | None = None, **settings: Any) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernel or kernels.Gaussian(1.0), rows, rows, **settings)


def factorise(
    K: KernelOperator, k: int | None = None, seed: int = 0, **settings: Any
) -> PartialCholesky:
    return pivoted_cholesky(K, k, rng=RandomStream(seed), **settings)


def nystrom(K: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    """K_nS K_SS⁻¹ K_Sn by an eigendecomposition, which does not mind nearly singular matrices."""
    values, vectors = np.linalg.eigh(K[pivots][:, pivots])
    half = K[:, pivots] @ vectors / np.sqrt(values.clip(min=1e-300))
    return half @ half.T


@every_method
@pytest.mark.parametrize("k", [1, 2, 11, 60])
def test_the_factor_gives_the_nystrom_approximation(method, k):
    K = operator(points())
    found = factorise(K, k, method=method)
    dense = K.dense()
    assert found.factor.shape == (N, k)
    assert len(np.unique(found.pivots)) == len(found.pivots) == k
    product = found.factor @ found.factor.T
    assert_close(product, nystrom(dense, found.pivots), rtol=0, atol=1e-10)
    assert_close(product[found.pivots], dense[found.pivots], rtol=0, atol=1e-13)


@every_method
def test_the_residual_is_the_diagonal_that_is_left(method):
    K = operator(points())
    found = factorise(K, 40, method=method)
    left = K.dense() - found.factor @ found.factor.T
    assert bool((found.residual >= 0).all())
    assert bool((found.residual[found.pivots] == 0).all())
    assert_close(found.residual, xp.diagonal(left), rtol=0, atol=1e-13)
    assert found.trace == pytest.approx(N)
    assert found.residual_trace == pytest.approx(float(left.trace()), abs=1e-11)


@every_method
def test_the_residual_trace_is_a_certificate(method):
    K = operator(points())
    found = factorise(K, 30, method=method)
    values = np.linalg.eigvalsh(K.dense() - found.factor @ found.factor.T)
    assert values[0] > -1e-12
    assert values[-1] <= found.residual_trace


@every_method
def test_the_factor_is_triangular_at_its_pivots(method):
    found = factorise(operator(points()), 20, method=method)
    L = found.factor[found.pivots]
    assert_close(L, np.tril(L), rtol=0, atol=1e-12)
    assert bool((xp.diagonal(L) > 0).all())


@every_method
def test_all_pivots_give_the_matrix(method):
    K = operator(points())
    found = factorise(K, N, method=method)
    assert_close(found.factor @ found.factor.T, K.dense(), rtol=0, atol=1e-12)
    assert found.residual_trace == 0


@every_method
@pytest.mark.parametrize("k", [5, 20, None])
def test_a_matrix_of_rank_five_has_five_pivots(method, k):
    K = operator(points(d=5), kernels.Linear())
    settings = {} if k else {"tol": 1e-14}
    found = factorise(K, k, method=method, **settings)
    assert found.factor.shape == (N, 5)
    assert len(np.unique(found.pivots)) == 5
    assert found.residual_trace == 0
    assert_close(found.factor @ found.factor.T, K.dense())


@every_method
def test_rows_of_very_different_size(method):
    X = points(d=5) * 10.0 ** np.linspace(-6, 6, N, dtype=np.float64)[:, None]
    K = operator(X, kernels.Linear())
    found = factorise(K, 20, method=method)
    assert len(found.pivots) == 5
    scale = np.sqrt(K.diag())
    relative = (K.dense() - found.factor @ found.factor.T) / (scale[:, None] * scale)
    assert np.abs(relative).max() < 1e-11


@every_method
def test_repeated_rows_are_no_pivots(method):
    found = factorise(operator(np.tile(points(12), (10, 1))), 100, method=method)
    assert sorted((found.pivots % 12).tolist()) == list(range(12))


@every_method
def test_rows_that_are_zero_are_no_pivots(method):
    X = points(30)
    X[::2] = 0
    found = factorise(operator(X, kernels.Linear()), 30, method=method)
    assert len(found.pivots) == D
    assert bool((found.pivots % 2 == 1).all())
    nothing = factorise(operator(np.zeros((8, 2), np.float32), kernels.Linear()), 3, method=method)
    assert nothing.factor.shape == (8, 0)
    assert nothing.trace == nothing.residual_trace == 0


@every_method
@pytest.mark.parametrize("k", [None, 140])
def test_it_stops_at_the_first_pivot_that_meets_the_target(method, k):
    # each trace on the way is that of the factor's leading columns
    K = operator(points())
    for settings, goal in (({"tol": 0.05}, 0.05 * N), ({"target": 4.0}, 4.0)):
        found = factorise(K, k, method=method, **settings)
        traces = N - np.square(found.factor).sum(axis=0).cumsum(axis=0)
        assert found.residual_trace <= goal
        assert traces[-1] <= goal + 1e-10
        assert bool((traces[:-1] > goal - 1e-10).all())


def test_a_growing_factor_is_that_of_one_piece():
    K = operator(points())
    grown = factorise(K, tol=1e-9, method="simple")
    whole = factorise(K, len(grown.pivots), method="simple")
    assert len(grown.pivots) > 64  # the first buffer
    assert np.array_equal(grown.pivots, whole.pivots)
    assert np.array_equal(grown.factor, whole.factor)


def test_draws_have_the_law_of_the_residual(rng):
    residual = np.array([0.0, 3.0, 0.0, 1.0, 2.0, 0.0], dtype=np.float64)
    counts = xp.bincount(draw_by_residual(residual, 60_000, rng), minlength=6)
    assert counts[residual == 0].sum() == 0
    expected = 60_000 * residual / residual.sum()
    test = scipy.stats.chisquare(counts[residual > 0], expected[residual > 0])
    assert test.pvalue > 1e-3


def test_the_first_pivot_has_the_law_of_the_diagonal(rng):
    K, draws = operator(points(8), kernels.Linear()), 400
    first = np.concatenate([pivoted_cholesky(K, 1, rng=rng).pivots for _ in range(draws)])
    expected = draws * K.diag() / K.diag().sum()
    counts = xp.bincount(first, minlength=8)
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3


def test_accepted_pivots_have_the_law_of_simple_ones(rng):
    # all ordered triples of five rows, with their exact probabilities
    K, draws = kernels.Gaussian(2.0)(points(5, 4), points(5, 4)), 1500
    triples = list(itertools.permutations(range(5), 3))
    expected = np.array([probability(K, triple) for triple in triples])
    assert float(expected.sum()) == pytest.approx(1)
    counts = dict.fromkeys(triples, 0)
    rule, floor = Rejection(3, 200), xp.to_float64(np.full((200,), 1e-13, dtype=np.float32))
    for _ in range(draws):
        drawn = rule.draw(xp.diagonal(K), rng)
        small = Elimination(K[drawn][:, drawn], floor)
        rule.accept(small, 3, rng)
        counts[tuple(drawn[small.chosen].tolist())] += 1
    assert scipy.stats.chisquare(list(counts.values()), draws * expected).pvalue > 1e-3


def probability(K: np.ndarray, pivots: tuple[int, ...]) -> float:
    left, p = xp.copy(K), 1.0
    for j in pivots:
        p *= float(left[j, j] / left.trace())
        left = left - np.outer(left[:, j], left[:, j]) / left[j, j]
    return p


@pytest.mark.slow
def test_accelerated_and_simple_are_equally_good_on_average():
    # clusters of very different sizes, where blocks without rejection are worse
    X = np.concatenate([points(100) * 0.01, points(30, seed=1) + 6, points(20, seed=2) - 6])
    K = operator(X)
    traces = {
        method: [factorise(K, 8, seed, method=method, block=16).residual_trace for seed in seeds]
        for method, seeds in (("accelerated", range(60)), ("simple", range(60, 120)))
    }
    assert scipy.stats.ttest_ind(traces["accelerated"], traces["simple"]).pvalue > 1e-2
    assert scipy.stats.ks_2samp(traces["accelerated"], traces["simple"]).pvalue > 1e-2


def test_greedy_takes_the_largest_residual():
    K = operator(points(40), kernels.Polynomial(2))
    found, left = factorise(K, 10, method="greedy"), K.dense()
    for j in found.pivots.tolist():
        assert j == int(xp.diagonal(left).argmax())
        left = left - np.outer(left[:, j], left[:, j]) / left[j, j]


@every_method
def test_the_same_seed_the_same_factor(method):
    K = operator(points())
    first, again = (factorise(K, 25, 3, method=method) for _ in range(2))
    assert np.array_equal(first.pivots, again.pivots)
    assert np.array_equal(first.factor, again.factor)


def test_float32_rows_are_factored_in_float64():
    X = xp.cast(points(), np.float32)
    single, double = factorise(operator(X), 60), factorise(operator(xp.to_float64(X)), 60)
    assert single.factor.dtype == np.float64
    assert np.array_equal(single.pivots, double.pivots)
    assert_close(single.factor, double.factor, rtol=0, atol=1e-9)


def parquet(X: np.ndarray, folder: Path) -> Path:
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, folder / "x.parquet", row_group_size=17)
    return folder / "x.parquet"


@every_method
def test_parquet_and_sparse_rows(method, tmp_path):
    X = points() * (points(seed=1) > 0)
    here = factorise(operator(X), 30, method=method)
    for source in (parquet(X, tmp_path), scipy.sparse.csr_array(X)):
        there = factorise(operator(source), 30, method=method)
        assert np.array_equal(here.pivots, there.pivots)
        assert_close(here.factor, there.factor, rtol=0, atol=1e-9)


def test_strips_give_the_same_factor():
    X, engine = points(2000), TiledEngine(tile_bytes=1 << 12, threads=1)
    whole, strips = (operator(X, engine=engine, memory_bytes=size) for size in (1 << 30, 200_000))
    parts: set[int] = set()
    here = factorise(whole, 30)
    there = factorise(strips, 30, watch=lambda part, columns, pivots: parts.add(part.start))
    assert len(parts) > 1
    assert np.array_equal(here.pivots, there.pivots)
    assert_close(here.factor, there.factor, rtol=0, atol=1e-12)


def test_kernel_evaluations():
    k = 50
    for method, most in (("simple", k * (N + 1)), ("accelerated", 1.5 * k * N)):
        K = operator(points())
        factorise(K, k, method=method)
        assert k * N <= K.meter.evaluations <= most


def test_the_columns_pass_by_once():
    K = operator(points())
    seen: dict[int, np.ndarray] = {}

    def watch(part: slice, columns: np.ndarray, pivots: np.ndarray) -> None:
        for column, j in zip(columns.T, pivots.tolist(), strict=True):
            seen.setdefault(j, np.zeros(N, np.float64))[part] += column

    found = factorise(K, 40, watch=watch)
    assert list(seen) == found.pivots.tolist()
    for j, column in seen.items():
        assert_close(column, K.dense()[:, j])


def test_an_unknown_method_is_told_the_others():
    with pytest.raises(ValueError, match="accelerated, simple, block, greedy"):
        factorise(operator(points()), 3, method="acelerated")


def test_features_that_overflow_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        factorise(operator(points() * 1e200, kernels.Linear()), 3)
