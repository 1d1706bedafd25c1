"""Kernel entries and sums in float32 against float64, on data that float32 has trouble with."""

from __future__ import annotations

from collections.abc import Callable

import formulas
import numpy as np
import pytest

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.engines._compiled.kernels import instructions
from gramian.kernels import Gaussian, Kernel, Laplacian
from gramian.operators import Engine, KernelOperator, NativeEngine, TiledEngine

ENTRY_ERROR = 1e-5
"""What the engine promises for float32 entries of kernels with k(x, x) = 1, whatever the data."""

ENGINES: dict[str, Engine] = {"torch": TiledEngine()}
ENGINES |= {f"native {isa}": NativeEngine(instructions=isa) for isa in instructions()}

NAMES = [name for name in kernels.names() if kernels.make(name).stationary]

each_pair = pytest.mark.parametrize(
    ("engine", "name"),
    [
        pytest.param(engine, name, id=f"{called}-{name}")
        for called, engine in ENGINES.items()
        for name in NAMES
        if engine.covers(kernels.make(name), dtype=np.float32, sparse=False)
    ],
)


def exact(kernel: Kernel, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel matrix from differences in float64: nothing cancels."""
    return formulas.exact(kernel, xp.to_float64(x), xp.to_float64(z))


# --- data: rows, columns, and the lengthscale that goes with one feature -------------------------


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = RandomStream(seed)
    return rng.standard_normal((n, d), np.float64)


def centered(d: int) -> tuple[np.ndarray, np.ndarray]:
    return normal(151, d), normal(97, d, seed=1)


def offset(d: int) -> tuple[np.ndarray, np.ndarray]:
    x, z = centered(d)
    return x + 1e4, z + 1e4


def near_duplicates(d: int) -> tuple[np.ndarray, np.ndarray]:
    x = normal(151, d)
    return x, x[:97] + 1e-3 * normal(97, d, seed=1)


def all_near(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Give pairs all near each other, and far from the one column that moves the mean."""
    x, z = (30 + 1e-3 * u for u in centered(d))
    z[0] = -30.0
    return x, z


def duplicates(d: int) -> tuple[np.ndarray, np.ndarray]:
    x = normal(151, d)
    return np.concatenate([x, x[:50]]), np.concatenate([x[:97], x[:10]])


def two_clusters(d: int) -> tuple[np.ndarray, np.ndarray]:
    x, z = centered(d)
    x[::2, 0] += 1e3
    z[::2, 0] += 1e3
    return x, z


def at_all_distances(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Give each column a row at 1e-5 to 1 of its norm: some just too far to be recomputed."""
    x = normal(151, d)
    return x, x[:97] + np.logspace(-5, 0, 97, dtype=np.float64)[:, None] * normal(97, d, 1)


def heavy_tails(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Give Student's t with two degrees of freedom: the variance is infinite."""

    def student(n: int, seed: int) -> np.ndarray:
        return (
            normal(n, d, seed) / np.sqrt(np.square(normal(n, 2, seed + 1)).sum(axis=1) / 2)[:, None]
        )

    x, z = student(301, 0), student(97, 5)
    z[:40] = x[:40] + 1e-2 * normal(40, d, seed=9)  # neighbours in the tails, too
    return x, z


DATA = {
    data.__name__: data
    for data in (
        centered,
        offset,
        near_duplicates,
        at_all_distances,
        all_near,
        duplicates,
        two_clusters,
        heavy_tails,
    )
}


@pytest.fixture(params=DATA.values(), ids=DATA.keys())
def data(request) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    return request.param


@pytest.fixture(params=ENGINES.values(), ids=ENGINES.keys())
def engine(request) -> Engine:
    return request.param


def with_lengthscale(name: str, width: float, d: int) -> Kernel:
    """Return the kernel whose lengthscale is `width` typical distances in `d` features."""
    return kernels.make(name, lengthscale=width * (d if name == "l1_laplacian" else d**0.5))


@each_pair
@pytest.mark.parametrize("d", [1, 4, 90])
def test_entries_in_float32(engine, data, name, d):
    x, z = (xp.cast(points, np.float32) for points in data(d))
    for width in (0.05, 0.4, 1.0, 3.0, 10.0):  # wide: one large feature among many, in d = 90
        kernel = with_lengthscale(name, width, d)
        K = engine.block(kernel, x, z)
        assert K.dtype == np.float32
        assert bool(np.isfinite(K).all())
        # the same float32 points: only what is done with them can go wrong
        assert np.abs(K - exact(kernel, x, z)).max() <= ENTRY_ERROR


@each_pair
@pytest.mark.parametrize("d", [1, 4, 90])
def test_entries_in_float64(engine, data, name, d):
    x, z = data(d)
    kernel = with_lengthscale(name, 1.0, d)
    K = engine.block(kernel, x, z)
    # points 500 lengthscales from the mean leave 1e-10 of r^2; under a kink that would be 1e-5 of
    # r, but pairs nearer than 1e-3 are recomputed, so that 1e-7 is left
    assert np.abs(K - exact(kernel, x, z)).max() <= 1e-7


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_evaluation_is_as_good(data, name):
    """``k(x, z)`` of float32 rows computes in float64 and rounds."""
    kernel = kernels.make(name, lengthscale=2.0)
    x, z = (xp.cast(points, np.float32) for points in data(4))
    K = kernel(x, z)
    assert K.dtype == np.float32
    assert np.abs(K - exact(kernel, x, z)).max() <= 1e-6


@each_pair
def test_entries_that_underflow(engine, name, dtype):
    """Far points: entries are zero for all purposes, and no numbers that are none."""
    distance = np.array([[0.0], [5.0], [30.0], [88.0], [1e3], [1e5], [1e15]], dtype=dtype)
    kernel = kernels.make(name)
    K = engine.block(kernel, distance, distance[:1])
    assert bool(np.isfinite(K).all())
    assert bool((K >= 0).all())
    np.testing.assert_allclose(K, exact(kernel, distance, distance[:1]), atol=ENTRY_ERROR)
    v = np.ones((1, 1), dtype)
    assert bool(np.isfinite(engine.matvec(kernel, distance, distance[:1], v)).all())


# --- sums ----------------------------------------------------------------------------------------

SUM_ERROR = 3e-6


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    return float((np.abs(xp.to_float64(actual) - expected) / np.abs(expected)).max())


def test_a_plain_float32_sum_would_not_do():
    """The yardstick of the two tests below: what adding up one after the other costs."""
    values = np.full((200_000,), 0.1, dtype=np.float32)
    total = np.cumsum(values, dtype=np.float32)[-1]
    assert abs(total / (xp.to_float64(values).sum().item()) - 1) > 10 * SUM_ERROR


@pytest.mark.parametrize("block", [None, 4999], ids=["one block", "blocks"])
def test_sums_over_many_rows(engine, block):
    """K' u and K' K v in float32, over 100,000 rows: all terms positive, nothing cancels."""
    n, m = 100_000, 7
    x, z = xp.cast(normal(n, 3), np.float32), xp.cast(normal(m, 3, seed=1), np.float32)
    memory = 1 << 30
    if block is not None:
        memory = engine.workspace_bytes(m, 3, 2, 4) + block * engine.row_bytes(3, 2, 4)
    K = KernelOperator(Gaussian(2.0), x, z, engine, memory)
    rng = RandomStream(2)
    u, v = rng.random((n, 2), np.float32), rng.random((m, 2), np.float32)
    A = exact(K.kernel, x, z)
    assert relative(K.normal(None, targets=-u), A.T @ xp.to_float64(u)) <= SUM_ERROR
    assert relative(K.T @ u, A.T @ xp.to_float64(u)) <= SUM_ERROR
    assert relative(K.normal(v), A.T @ (A @ xp.to_float64(v))) <= SUM_ERROR


def test_sums_over_many_columns(engine):
    n, m = 5, 200_000
    x, z = xp.cast(normal(n, 3), np.float32), xp.cast(normal(m, 3, seed=1), np.float32)
    K = KernelOperator(Gaussian(2.0), x, z, engine)
    v = RandomStream(2).random((m, 2), np.float32)
    A = exact(K.kernel, x, z)
    assert relative(K @ v, A @ xp.to_float64(v)) <= SUM_ERROR


def test_sums_of_many_blocks_are_not_added_in_float32():
    """Blocks of a sum that grows: float32 partial sums would lose the last digits."""
    n = 20_000
    x = np.zeros((n, 1), np.float32)
    engine = TiledEngine(tile_bytes=1 << 8, threads=1)
    memory = engine.workspace_bytes(1, 1, 1, 4) + 500 * engine.row_bytes(1, 1, 4)
    K = KernelOperator(Laplacian(), x, np.zeros((1, 1), np.float32), engine, memory)
    u = np.full((n, 1), 1 / 3)
    assert relative(K.T @ u, xp.to_float64(u).sum()[None, None]) <= 1e-7


@pytest.mark.parametrize("n", [1000, 20_000, 500_000])
@pytest.mark.parametrize("engine", list(ENGINES.values())[1:], ids=list(ENGINES)[1:])
def test_sums_of_equal_terms_lose_no_more_when_they_are_many(engine, n):
    """Each float32 addition of a third rounds the same way: some hundred follow each other."""
    x, u = np.zeros((n, 1), np.float32), np.full((n, 1), 1 / 3)
    K = KernelOperator(Laplacian(), x, np.zeros((1, 1), np.float32), engine)
    expected = xp.to_float64(u).sum()[None, None]
    assert relative(K.T @ u, expected) <= 1e-6
    assert relative(K.normal(None, targets=-u), expected) <= 1e-6
