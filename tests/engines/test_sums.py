"""Sums that are taken in another way where something does not fit, or to keep digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian.data import as_rows
from gramian.operators import KernelOperator, TiledEngine, largest_diagonal
from gramian.operators.dense import DenseBlock
from gramian.solvers.sketchy_saga.sketch import Hessian


def test_the_right_hand_side_where_the_columns_do_not_fit(rng):
    X, Z = (rng.standard_normal((n, 2), np.float64) for n in (50, 9000))
    y, w = (rng.random((50, t), np.float64) for t in (2, 1))
    engine = TiledEngine(tile_bytes=1 << 10, threads=1)
    K = KernelOperator(kernels.Gaussian(1.0), X, Z, engine)
    small = replace(K, memory_bytes=1 << 20)
    assert K._budget(2).holds(9000)
    assert not small._budget(2).holds(9000)
    expected = -K.dense().T @ (w * y)
    assert_close(K.normal(None, w[:, 0], y), expected)
    assert_close(small.normal(None, w[:, 0], y), expected)


def test_products_of_kept_entries_with_many_columns(rng):
    E = rng.standard_normal((3, 2500), np.float32)
    v = rng.standard_normal((2500, 2), np.float64)
    expected = xp.to_float64(E) @ v
    assert_close(DenseBlock(E) @ v, expected, rtol=0, atol=1e-3)


def test_the_largest_diagonal_counts_weights(rng):
    X = np.array([[3.0], [1.0], [2.0]], dtype=np.float64)
    K = KernelOperator(kernels.Linear(1.0), rows := as_rows(X), rows)
    assert largest_diagonal(K) == 9
    assert largest_diagonal(K, np.array([0.1, 1.0, 3.0], dtype=np.float64)) == 12


def test_the_trace_of_a_hessian_is_estimated_without_a_bias(rng):
    X = rng.standard_normal((40, 3), np.float64)
    K = KernelOperator(kernels.Gaussian(0.5), X, X[:10])
    ones = np.ones(40, np.float64)
    sample = Hessian(K, ones, ones[:10], None, 0.0).sample(40, rng)
    mean = sum(sample.trace(rng) for _ in range(200)) / 200
    exact = float(np.square(K.dense()).sum()) / 40
    assert abs(mean - exact) < 0.1 * exact
