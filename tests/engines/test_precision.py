"""Kernel entries and sums in float32 against float64, on data that float32 has trouble with."""

from __future__ import annotations

from collections.abc import Callable

import formulas
import numpy as np
import pytest
import torch
from torch import Tensor

from gramian import kernels
from gramian.engines._compiled.kernels import instructions
from gramian.kernels import Gaussian, Kernel, Laplacian
from gramian.operators import Engine, KernelOperator, NativeEngine, TorchEngine

ENTRY_ERROR = 1e-5
"""What the engine promises for float32 entries of kernels with k(x, x) = 1, whatever the data."""

ENGINES: dict[str, Engine] = {"torch": TorchEngine()}
ENGINES |= {f"native {isa}": NativeEngine(instructions=isa) for isa in instructions()}

NAMES = [name for name in kernels.names() if kernels.make(name).stationary]

each_pair = pytest.mark.parametrize(
    ("engine", "name"),
    [
        pytest.param(engine, name, id=f"{called}-{name}")
        for called, engine in ENGINES.items()
        for name in NAMES
        if engine.covers(kernels.make(name), dtype=torch.float32, sparse=False)
    ],
)


def exact(kernel: Kernel, x: Tensor, z: Tensor) -> np.ndarray:
    """Return the kernel matrix from differences in float64: nothing cancels."""
    return formulas.exact(kernel, x.double().numpy(), z.double().numpy())


# --- data: rows, columns, and the lengthscale that goes with one feature -------------------------


def normal(n: int, d: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=rng, dtype=torch.float64)


def centered(d: int) -> tuple[Tensor, Tensor]:
    return normal(151, d), normal(97, d, seed=1)


def offset(d: int) -> tuple[Tensor, Tensor]:
    x, z = centered(d)
    return x + 1e4, z + 1e4


def near_duplicates(d: int) -> tuple[Tensor, Tensor]:
    x = normal(151, d)
    return x, x[:97] + 1e-3 * normal(97, d, seed=1)


def all_near(d: int) -> tuple[Tensor, Tensor]:
    """Give pairs all near each other, and far from the one column that moves the mean."""
    x, z = (30 + 1e-3 * u for u in centered(d))
    z[0] = -30.0
    return x, z


def duplicates(d: int) -> tuple[Tensor, Tensor]:
    x = normal(151, d)
    return torch.cat([x, x[:50]]), torch.cat([x[:97], x[:10]])


def two_clusters(d: int) -> tuple[Tensor, Tensor]:
    x, z = centered(d)
    x[::2, 0] += 1e3
    z[::2, 0] += 1e3
    return x, z


def at_all_distances(d: int) -> tuple[Tensor, Tensor]:
    """Give each column a row at 1e-5 to 1 of its norm: some just too far to be recomputed."""
    x = normal(151, d)
    return x, x[:97] + torch.logspace(-5, 0, 97, dtype=torch.float64)[:, None] * normal(97, d, 1)


def heavy_tails(d: int) -> tuple[Tensor, Tensor]:
    """Give Student's t with two degrees of freedom: the variance is infinite."""

    def student(n: int, seed: int) -> Tensor:
        return normal(n, d, seed) / (normal(n, 2, seed + 1).square().sum(dim=1) / 2).sqrt()[:, None]

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
def data(request) -> Callable[[int], tuple[Tensor, Tensor]]:
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
    x, z = (points.float() for points in data(d))
    for width in (0.05, 0.4, 1.0, 3.0, 10.0):  # wide: one large feature among many, in d = 90
        kernel = with_lengthscale(name, width, d)
        K = engine.block(kernel, x, z)
        assert K.dtype == torch.float32
        assert bool(torch.isfinite(K).all())
        # the same float32 points: only what is done with them can go wrong
        assert np.abs(K.numpy() - exact(kernel, x, z)).max() <= ENTRY_ERROR


@each_pair
@pytest.mark.parametrize("d", [1, 4, 90])
def test_entries_in_float64(engine, data, name, d):
    x, z = data(d)
    kernel = with_lengthscale(name, 1.0, d)
    K = engine.block(kernel, x, z)
    # points 500 lengthscales from the mean leave 1e-10 of r^2; under a kink that would be 1e-5 of
    # r, but pairs nearer than 1e-3 are recomputed, so that 1e-7 is left
    assert np.abs(K.numpy() - exact(kernel, x, z)).max() <= 1e-7


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_evaluation_is_as_good(data, name):
    """``k(x, z)`` of float32 rows computes in float64 and rounds."""
    kernel = kernels.make(name, lengthscale=2.0)
    x, z = (points.float() for points in data(4))
    K = kernel(x, z)
    assert K.dtype == torch.float32
    assert np.abs(K.numpy() - exact(kernel, x, z)).max() <= 1e-6


@each_pair
def test_entries_that_underflow(engine, name, dtype):
    """Far points: entries are zero for all purposes, and no numbers that are none."""
    distance = torch.tensor([[0.0], [5.0], [30.0], [88.0], [1e3], [1e5], [1e15]], dtype=dtype)
    kernel = kernels.make(name)
    K = engine.block(kernel, distance, distance[:1])
    assert bool(torch.isfinite(K).all())
    assert bool((K >= 0).all())
    np.testing.assert_allclose(K.numpy(), exact(kernel, distance, distance[:1]), atol=ENTRY_ERROR)
    v = torch.ones(1, 1, dtype=dtype)
    assert bool(torch.isfinite(engine.matvec(kernel, distance, distance[:1], v)).all())


# --- sums ----------------------------------------------------------------------------------------

SUM_ERROR = 3e-6


def relative(actual: Tensor, expected: Tensor) -> float:
    return float(((actual.double() - expected).abs() / expected.abs()).max())


def test_a_plain_float32_sum_would_not_do():
    """The yardstick of the two tests below: what adding up one after the other costs."""
    values = torch.full((200_000,), 0.1)
    total = np.cumsum(values.numpy(), dtype=np.float32)[-1]
    assert abs(total / (values.double().sum().item()) - 1) > 10 * SUM_ERROR


@pytest.mark.parametrize("block", [None, 4999], ids=["one block", "blocks"])
def test_sums_over_many_rows(engine, block):
    """K' u and K' K v in float32, over 100,000 rows: all terms positive, nothing cancels."""
    n, m = 100_000, 7
    x, z = normal(n, 3).float(), normal(m, 3, seed=1).float()
    memory = 1 << 30
    if block is not None:
        memory = engine.workspace_bytes(m, 3, 2, 4) + block * engine.row_bytes(3, 2, 4)
    K = KernelOperator(Gaussian(2.0), x, z, engine, memory)
    rng = torch.Generator().manual_seed(2)
    u, v = torch.rand(n, 2, generator=rng), torch.rand(m, 2, generator=rng)
    A = torch.from_numpy(exact(K.kernel, x, z))
    assert relative(K.normal(None, targets=-u), A.T @ u.double()) <= SUM_ERROR
    assert relative(K.T @ u, A.T @ u.double()) <= SUM_ERROR
    assert relative(K.normal(v), A.T @ (A @ v.double())) <= SUM_ERROR


def test_sums_over_many_columns(engine):
    n, m = 5, 200_000
    x, z = normal(n, 3).float(), normal(m, 3, seed=1).float()
    K = KernelOperator(Gaussian(2.0), x, z, engine)
    v = torch.rand(m, 2, generator=torch.Generator().manual_seed(2))
    A = torch.from_numpy(exact(K.kernel, x, z))
    assert relative(K @ v, A @ v.double()) <= SUM_ERROR


def test_sums_of_many_blocks_are_not_added_in_float32():
    """Blocks of a sum that grows: float32 partial sums would lose the last digits."""
    n = 20_000
    x = torch.zeros(n, 1)
    engine = TorchEngine(tile_bytes=1 << 8, threads=1)
    memory = engine.workspace_bytes(1, 1, 1, 4) + 500 * engine.row_bytes(1, 1, 4)
    K = KernelOperator(Laplacian(), x, torch.zeros(1, 1), engine, memory)
    u = torch.full((n, 1), 1 / 3)
    assert relative(K.T @ u, u.double().sum()[None, None]) <= 1e-7


@pytest.mark.parametrize("n", [1000, 20_000, 500_000])
@pytest.mark.parametrize("engine", list(ENGINES.values())[1:], ids=list(ENGINES)[1:])
def test_sums_of_equal_terms_lose_no_more_when_they_are_many(engine, n):
    """Each float32 addition of a third rounds the same way: some hundred follow each other."""
    x, u = torch.zeros(n, 1), torch.full((n, 1), 1 / 3)
    K = KernelOperator(Laplacian(), x, torch.zeros(1, 1), engine)
    expected = u.double().sum()[None, None]
    assert relative(K.T @ u, expected) <= 1e-6
    assert relative(K.normal(None, targets=-u), expected) <= 1e-6
