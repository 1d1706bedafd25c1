"""Products with rows that are elsewhere: the same as with rows in memory."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from close import assert_close
from remote import Remote

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.engines import NativeEngine, TiledEngine
from gramian.kernels import Gaussian, Laplacian, Linear
from gramian.operators import KernelOperator, diagonal, largest_diagonal
from gramian.operators.block_functions import (
    Normal,
    Product,
    evaluate_diagonal,
    evaluate_entries,
    evaluate_gradients,
)

N, M, D, T = 120, 17, 3, 2
ENGINES = [TiledEngine(tile_bytes=1 << 12, threads=1), NativeEngine(threads=1)]


def normal(*shape: int, seed: int = 0, dtype: np.dtype = np.float64) -> np.ndarray:
    rng = RandomStream(seed)
    return rng.standard_normal(shape, dtype)


def agree(found: np.ndarray, expected: np.ndarray, dtype: np.dtype | None = None) -> None:
    """Compare what differs by where blocks are cut: BLAS rounds otherwise for other shapes."""
    atol = 1e-4 if (dtype or found.dtype) == np.float32 else 1e-11
    assert_close(found, expected, rtol=0, atol=atol)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def sides(request):
    """The same rows elsewhere and here, and an operator of each with some of them as columns."""
    X = normal(N, D, dtype=request.param)
    remote, here = Remote.of(X), as_rows(X)
    kernel = Laplacian(1.3)
    return remote, *(KernelOperator(kernel, rows, X[:M], "numpy") for rows in (remote, here))


def test_products_pull_no_row(sides):
    rows, far, near = sides
    v, u, w = (xp.cast(x, far.dtype) for x in (normal(M, T), normal(N, T), np.abs(normal(N))))
    agree(far @ v, near @ v)
    agree(far.T @ u, near.T @ u)
    for args in ((v, w, u), (v, None, None), (None, None, u), (v, w, None)):
        agree(far.normal(*args) / N, near.normal(*args) / N, far.dtype)
    agree(far.dense(), near.dense())
    agree(xp.to_float64(far).dense(), xp.to_float64(near).dense())
    assert rows.traffic.taken == 0


def test_strips_diagonals_and_gradients(sides):
    rows, far, near = sides
    agree(far.over_strips(np.negative), -near.dense())
    weight = np.arange(N, dtype=far.dtype)
    found = far.over_strips(np.multiply, weight[:, None])
    agree(found / N, near.dense() * weight[:, None] / N)
    K = KernelOperator(Linear(), rows, rows, "numpy")
    own = np.square(xp.to_float64(near.rows.take(np.arange(N)))).sum(axis=1)
    assert_close(diagonal(K, rows), own)
    assert_close(xp.to_float64(K.diag()), own, rtol=1e-6, atol=0)
    assert largest_diagonal(K) == pytest.approx(float(own.max()))
    assert rows.traffic.taken == 0
    smooth = [KernelOperator(Gaussian(1.0), K.rows, near.cols, "numpy") for K in (far, near)]
    gradients = [K.gradients(K.rows, xp.cast(normal(M), K.dtype)) for K in smooth]
    agree(*gradients)
    assert rows.traffic.taken == 0


def test_a_block_takes_what_memory_allows_and_the_order_stays(sides):
    _, far, near = sides
    small = KernelOperator(far.kernel, far.rows, far.cols, ENGINES[0], 1 << 15)
    v = xp.cast(normal(M, 1), far.dtype)
    agree(small @ v, near @ v)
    agree(
        small.normal(v, None, xp.cast_like(normal(N, 1), v)) / N,
        near.normal(v, None, xp.cast_like(normal(N, 1), v)) / N,
    )


def test_selected_columns_are_taken_once(sides):
    rows, far, near = sides
    index = np.array([5, 100, 3])
    K, L = (replace_sides(K)[:, index] for K in (far, near))
    assert rows.traffic.taken == 3
    v = xp.cast(normal(3), K.dtype)
    agree(K @ v, L @ v)
    assert rows.traffic.taken == 3


def replace_sides(K: KernelOperator) -> KernelOperator:
    return KernelOperator(K.kernel, K.rows, K.rows, "numpy")


def test_selected_rows_are_taken_if_they_are_few(sides, monkeypatch):
    rows, far, near = sides
    index = np.arange(0, N, 2)
    agree(far[index].dense(), near[index].dense())
    assert rows.traffic.taken == len(index)
    agree(far.at(index).dense(), near.at(index).dense())
    monkeypatch.setattr("gramian.operators.kernel_operator.MOST_TAKEN", 10)
    agree(far[index].dense(), near[index].dense())
    assert rows.traffic.taken == len(index)


def test_columns_that_are_too_many_are_refused(sides):
    _, far, _ = sides
    small = KernelOperator(far.kernel, far.rows, far.cols, ENGINES[0], 1 << 10)
    with pytest.raises(ValueError, match="raise the memory limit or use fewer landmarks"):
        small @ normal(M)


@pytest.mark.parametrize(
    "use",
    [
        lambda K: K @ normal(N),
        lambda K: K.normal(normal(N, 1)),
        lambda K: K.dense(),
        lambda K: list(K.strips()),
    ],
)
def test_all_remote_rows_are_no_columns(use):
    rows = Remote.of(normal(N, D))
    with pytest.raises(
        ValueError, match=r"would be centers in memory, but these rows are on a cluster"
    ):
        use(KernelOperator(Gaussian(1.0), rows, rows, "numpy"))
    assert rows.traffic.taken == rows.traffic.passes == 0


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_values_are_small_and_come_back_the_same(engine):
    """Parts of larger tensors are sent without these."""
    large = normal(5000, D)
    z, v, block = large[:M], normal(5000, T)[:M], normal(40, D, seed=1)
    cpu, f64 = "cpu", np.float64
    kernel = Gaussian(1.3)
    functions = {
        Normal(engine, kernel, z, v): lambda f: f(0, block),
        Normal(engine, kernel, z, None, aimed=True, negated=True): lambda f: f(0, block, block),
        Product(engine, kernel, z, v, cpu, f64): lambda f: f(block),
        partial(evaluate_entries, engine, kernel, z, 0, cpu): lambda f: f(block),
        partial(evaluate_gradients, engine, kernel, z, v, cpu, f64): lambda f: f(block),
        partial(evaluate_diagonal, kernel, f64, cpu): lambda f: f(block),
    }
    for function, use in functions.items():
        data = pickle.dumps(function)
        assert len(data) < 8 * M * (D + T) * 1.1 + 4096
        assert np.array_equal(use(pickle.loads(data)), use(function))
