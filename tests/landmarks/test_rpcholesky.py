"""RPCholesky: its certificate, its weights, and what it does with repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import Landmarks, RPCholesky
from gramian.operators import KernelOperator

N = 200
METHODS = ("accelerated", "simple", "block", "greedy")


def points(n: int = N, d: int = 3, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float64)


def operator(X: Any, kernel: kernels.Kernel | None = None) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernel or kernels.Gaussian(1.0), rows, rows)


def select(
    X: Any, kernel: kernels.Kernel | None = None, seed: int = 0, **settings: Any
) -> Landmarks:
    rng = RandomStream(seed)
    return RPCholesky(**settings).select(operator(X, kernel), rng=rng)


def left_by(K: np.ndarray, index: np.ndarray) -> np.ndarray:
    """K minus its Nystrom approximation; by Cholesky, which is stable where an inverse is not."""
    L = np.linalg.cholesky(K[index][:, index])
    half = xp.solve_triangular(L, K[index], upper=False)
    return K - half.T @ half


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("penalty", [1e-1, 1e-3, 1e-5])
def test_a_penalty_is_certified(method, penalty):
    chosen = select(points(), penalty=penalty, method=method)
    left = left_by(operator(points()).dense(), chosen.index)
    values = np.linalg.eigvalsh(left)
    assert values[0] > -1e-11
    assert values[-1] <= N * penalty + 1e-11
    assert chosen.info["residual_trace"] == pytest.approx(float(left.trace()), abs=1e-9)
    assert chosen.info["residual_trace"] <= N * penalty
    assert chosen.penalty == penalty
    without_last = left_by(operator(points()).dense(), chosen.index[:-1])
    assert float(without_last.trace()) > N * penalty  # no landmark too many


def test_a_size_gives_the_penalty_back():
    by_size = select(points(), m=40, method="simple")
    assert by_size.penalty == pytest.approx(by_size.info["residual_trace"] / N)
    by_penalty = select(points(), penalty=by_size.penalty * (1 + 1e-9), method="simple")
    assert np.array_equal(by_size.index, by_penalty.index)


def test_a_tolerance_leaves_landmarks_out():
    chosen = select(points(), m=150, tol=0.1)
    assert len(chosen.index) < 100
    assert chosen.info["residual_trace"] <= 0.1 * chosen.info["trace"]


@pytest.mark.parametrize("settings", [{"m": 30}, {"penalty": 3e-2}, {"penalty": 1e-4}])
@pytest.mark.parametrize("kernel", [kernels.Gaussian(1.0), kernels.Polynomial(2)])
def test_a_weight_counts_the_rows_nearest_in_the_metric_of_the_kernel(settings, kernel):
    # with a penalty, the last block is cut: its rows must find their way to other landmarks
    for seed in range(4):
        chosen = select(points(), kernel, seed, **settings)
        K, J, m = operator(points(), kernel).dense(), chosen.index, len(chosen.index)
        distance = xp.diagonal(K)[:, None] + xp.diagonal(K)[J] - 2 * K[:, J]
        count = xp.bincount(distance.argmin(axis=1), minlength=m)
        assert_close(chosen.weight, xp.to_float64(count) * (m / N))


def test_weights_of_one():
    assert np.array_equal(
        select(points(), m=9, weights="ones").weight, xp.to_float64(np.ones(9, np.float32))
    )


@pytest.mark.parametrize("method", METHODS)
def test_repeated_rows_are_chosen_once_and_weigh_more(method):
    X = np.concatenate([np.tile(points(6), (20, 1)), np.tile(points(6)[:1], (30, 1))])
    chosen = select(X, m=10, method=method)
    assert len(np.unique(chosen.points, axis=0)) == len(chosen.points) == 6
    first = (chosen.points == X[0]).all(axis=1)
    assert_close(chosen.weight, xp.to_float64(np.where(first, 50, 20)) * 6 / 150)


def test_a_matrix_of_low_rank_is_filled_with_rows_that_differ():
    X = np.tile(points(40), (5, 1))
    for m, distinct in ((25, 25), (60, 40)):
        chosen = select(X, kernels.Linear(), m=m)
        assert chosen.info["rank"] == 3
        assert chosen.info["residual_trace"] == 0
        assert 0 < chosen.penalty < 1e-10
        assert len(np.unique(chosen.points, axis=0)) == len(chosen.index) == distinct
        assert bool((chosen.weight > 0).all())
        assert float(chosen.weight.sum()) == pytest.approx(distinct)
        # and the weights are those of cells
        distance = xp.cdist(X, chosen.points)
        count = xp.bincount(distance.argmin(axis=1), minlength=distinct)
        assert_close(chosen.weight, xp.to_float64(count) * (distinct / len(X)))


def test_fill_is_random_and_uniform():
    X = np.concatenate([np.zeros((1, 1), np.float32), np.arange(1, 9.0, dtype=np.float32)[:, None]])
    counts = np.zeros(9, np.float32)
    for seed in range(120):
        counts[select(X, kernels.Linear(), seed, m=3).index] += 1
    assert bool((counts > 0).all())


def test_rows_that_are_all_zero_have_one_landmark():
    for settings in ({"m": 4}, {"penalty": 1e-3}):
        chosen = select(np.zeros((9, 2), np.float32), kernels.Linear(), **settings)
        assert chosen.points.tolist() == [[0.0, 0.0]]
        assert chosen.weight.tolist() == [1.0]


def test_small_clusters_are_hit():
    X = np.concatenate([points(1000) * 0.1, points(10, seed=1) * 0.1 + 9, points(990) * 0.1 - 9])
    for seed in range(20):
        near = select(X, kernels.Gaussian(2.0), seed, m=10).points.sum(axis=1)
        assert bool((near > 15).any())


def test_float32_and_sparse_rows():
    X = xp.cast(points() * (points(seed=1) > 0), np.float32)
    dense, double = select(X, m=30), select(xp.to_float64(X), m=30)
    assert dense.points.dtype == np.float32
    assert dense.weight.dtype == np.float64
    assert np.array_equal(dense.index, double.index)
    sparse = select(scipy.sparse.csr_array(X), m=30)
    assert xp.is_sparse(sparse.points)
    assert np.array_equal(sparse.index, dense.index)
    assert_close(sparse.weight, dense.weight)


def test_cost_is_counted():
    K = operator(points())
    RPCholesky(20, method="simple").select(K, rng=RandomStream(0))
    assert K.meter.evaluations == 20 * (N + 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs exactly one of m, a number of landmarks, and penalty"),
        ({"m": 3, "penalty": 0.1}, "needs exactly one of m"),
        ({"m": 3, "method": "fast"}, "one of accelerated, simple, block, greedy, not 'fast'"),
        ({"m": 3, "weights": "none"}, "'voronoi' or 'ones', not 'none'"),
        ({"m": 3, "tol": 1.5}, "tol must be a share of the trace"),
        ({"m": 3, "block": 0}, "rows in a block must be a whole number of at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        RPCholesky(**settings)
