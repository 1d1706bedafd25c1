"""Gradients of predictors: every kernel on every engine against autograd and differences."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse
import slopes
from close import assert_close
from formulas import exact, suited
from tensors import fused_engines

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import SparseRows
from gramian.engines._compiled.kernels import instructions
from gramian.engines._devices import count_devices
from gramian.kernels import (
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Periodic,
    Polynomial,
    Radial,
    RationalQuadratic,
)
from gramian.operators import (
    Engine,
    KernelOperator,
    MultiDeviceEngine,
    NativeEngine,
    TiledEngine,
)

GPU = "cuda" if count_devices() else None

SIMPLE = [kernels.make(name, lengthscale=1.7) for name in slopes.KERNELS]
COMPOSITE = [
    Gaussian(1.3) + Linear(2.0),
    2.5 * Laplacian(1.5) * L1Laplacian(3.0),
    (0.5 * Polynomial(3.0, degree=2) + Gaussian()) * L1Laplacian(4.0),
    Matern32(1.1) * (Linear(2.0) * RationalQuadratic(1.2, alpha=0.7)),
    Periodic(0.9, 3.0) * Gaussian(2.0).on([0]),
]
PARAMETERS = [RationalQuadratic(1.5, alpha=0.6), Polynomial(2.0, degree=1), 3.0 * Laplacian(0.9)]
KERNELS = SIMPLE + COMPOSITE + PARAMETERS
SHARP = [Laplacian(1.7), L1Laplacian(1.7)]

ROW_BY_ROW = "tiles of one row"
TRITON = fused_engines(GPU)
ENGINES: dict[str, Engine] = (
    {
        "default": TiledEngine(),
        ROW_BY_ROW: TiledEngine(tile_bytes=1, threads=1),
        "small tiles": TiledEngine(tile_bytes=1 << 10, threads=3),
        "two engines": MultiDeviceEngine((TiledEngine(threads=1), TiledEngine(threads=2))),
    }
    | {f"native {isa}": NativeEngine(threads=2, instructions=isa) for isa in instructions()}
    | TRITON
)

SHAPES = [(1, 1, 1, 1), (1, 13, 3, 2), (37, 1, 1, 3), (53, 29, 2, 17), (101, 31, 9, 1)]
"""Rows, columns, features, targets."""

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.to_dict()["name"])


FEW = {title: ENGINES[title] for title in ENGINES if title == "default" or "native" in title}
"""Engines for what takes the others seconds."""


def each_engine_with(
    kernels: list[Kernel], engines: dict[str, Engine] = ENGINES
) -> pytest.MarkDecorator:
    cases = [
        pytest.param(
            engine,
            kernel,
            dtype,
            id=f"{title}-{str(dtype)[6:]}-{kernel.to_dict()['name']}",
            # what rows are cut into has nothing to do with the formula
            marks=[pytest.mark.slow] if title == ROW_BY_ROW and kernel != SIMPLE[0] else [],
        )
        for title, engine in engines.items()
        for dtype in (np.float32, np.float64)
        for kernel in kernels
        if engine.covers(kernel, dtype=dtype, sparse=False)
    ]
    return pytest.mark.parametrize(("engine", "kernel", "dtype"), cases)


def draw(rng: RandomStream, *shapes: tuple[int, ...], dtype=np.float64) -> list[np.ndarray]:
    return [xp.cast(rng.standard_normal(shape, np.float64), dtype) for shape in shapes]


def precision(kernel: Kernel, dtype: np.dtype) -> float:
    """Return what a term may be off by: rounding, or what is promised next to a kink."""
    if dtype == np.float64:
        return 1e-7 if kernel.kinked else 1e-13
    return 5e-6


def check(
    engine: Engine, kernel: Kernel, x: np.ndarray, z: np.ndarray, v: np.ndarray, most: float
) -> None:
    """Compare with autograd in float64: errors relative to the terms of each gradient."""
    x, z = suited(kernel, x, z)
    actual = engine.gradients(kernel, x, z, v)
    expected = slopes.gradients(kernel, xp.to_float64(x), xp.to_float64(z), xp.to_float64(v))
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    error = np.abs(actual - expected) / slopes.sizes(kernel, x, z, v)
    assert float(error.max()) <= most


# --- engines ------------------------------------------------------------------------------------


@each_engine_with(KERNELS)
@pytest.mark.usefixtures("unchecked")
def test_gradients_are_those_of_autograd(engine, kernel, dtype, rng):
    for b, m, d, t in SHAPES:
        x, z, v = draw(rng, (b, d), (m, d), (m, t), dtype=dtype)
        check(engine, kernel, x, z, v, precision(kernel, dtype))


@each_engine_with([replace(k, lengthscale=(1.3, 0.6, 2.0, 4.0)) for k in SIMPLE])
@pytest.mark.usefixtures("unchecked")
def test_each_feature_may_have_its_lengthscale(engine, kernel, dtype, rng):
    x, z, v = draw(rng, (53, 4), (31, 4), (31, 2), dtype=dtype)
    check(engine, kernel, x, z, v, precision(kernel, dtype))


@each_engine_with([*SHARP, Gaussian(1.7), Linear()], FEW)
@pytest.mark.usefixtures("unchecked")
def test_sizes_beyond_tiles_strips_and_sums_in_one_dtype(engine, kernel, dtype, rng):
    for b, m, d, t in [(97, 1100, 3, 1), (49, 49, 67, 2), (3, 6200, 2, 1), (50, 97, 7, 40)]:
        x, z, v = draw(rng, (b, d), (m, d), (m, t), dtype=dtype)
        scaled = replace(kernel, lengthscale=kernel.lengthscale * d**0.5)
        check(engine, scaled, x, z, v, precision(kernel, dtype))


@each_engine_with([*SHARP, Gaussian(1.7), Matern32(1.7), SHARP[0] * SHARP[1]], FEW)
def test_a_kink_has_the_mean_of_its_slopes(engine, kernel, dtype, rng):
    """Rows that are columns, repeated ones too, and coordinates that are equal by chance."""
    for d in (1, 3, 12):
        x, z, v = draw(rng, (53, d), (29, d), (29, 2), dtype=dtype)
        x, z = (8 * x).round() / 8, (8 * z).round() / 8
        x[:20] = z[:20]
        x[20:30], z[25:] = z[3], z[7]
        check(engine, kernel, x, z, v, precision(kernel, dtype))


@each_engine_with([*SHARP, Gaussian(1.7), Matern32(1.7), 2.0 * SHARP[0]], FEW)
@pytest.mark.parametrize("apart", [1e-8, 1e-6, 1e-4, 1e-2, 1e-1])
def test_rows_next_to_each_other_keep_their_slope(engine, kernel, dtype, apart, rng):
    """Its size is that of the kernel at a kink, however near, and its direction is right."""
    for d in (2, 20):
        z, v, step = draw(rng, (29, d), (29, 2), (53, d), dtype=np.float64)
        z = xp.cast(z, dtype)
        x = xp.cast(xp.to_float64(z[np.arange(53) % 29]) + apart * step, dtype)
        if isinstance(kernel, L1Laplacian):  # coordinates are rounded once they are centered
            x = np.where(np.abs(x - z[np.arange(53) % 29]) < 1e-6, x + 1e-3, x)
        check(engine, kernel, x, z, xp.cast(v, dtype), precision(kernel, dtype))


@each_engine_with(
    [*SHARP, Gaussian(1.7), Matern32(1.7), RationalQuadratic(1.7), 2.0 * SHARP[0]], FEW
)
@pytest.mark.parametrize("scale", [1e-3, 0.05, 1e3])
def test_lengthscales_that_are_tiny_or_flat(engine, kernel, dtype, scale, rng):
    """The promise is that of an entry: 1e-5 of float32 rows."""
    plain = kernel.kernel if isinstance(kernel, kernels.Scaled) else kernel
    scaled = replace(plain, lengthscale=scale)
    for d in (2, 12):
        x, z, v = draw(rng, (53, d), (29, d), (29, 2), dtype=dtype)
        x[::3] = z[0] + 0.5 * scale * x[::3]
        check(engine, scaled, x, z, v, 1e-5 if dtype == np.float32 else 1e-9)


def test_tiles_have_the_type_in_which_rows_are_prepared(rng):
    """Distances that float32 cannot tell are prepared in float64; float32 tiles would lose them."""
    x, z, v = draw(rng, (53, 12), (29, 12), (29, 2), dtype=np.float32)
    x[::3] = z[0] + 0.025 * x[::3]
    exact = (xp.to_float64(array) for array in (x, z, v))
    expected = TiledEngine().gradients(Gaussian(0.05), *exact)
    error = np.abs(TiledEngine().gradients(Gaussian(0.05), x, z, v) - expected)
    assert float(error.max()) < 1e-9 * float(np.abs(expected).max())


@each_engine_with([*SHARP, Gaussian(1.7), Matern32(1.7)], FEW)
def test_rows_far_from_the_origin(engine, kernel, dtype, rng):
    x, z, v = draw(rng, (53, 3), (29, 3), (29, 2), dtype=dtype)
    check(engine, kernel, x + 1000, z + 1000, v, 1e-5 if dtype == np.float32 else 1e-9)
    z[0] += 300  # which moves the center, too
    check(engine, kernel, x, z, v, 1e-5 if dtype == np.float32 else 1e-9)


@each_engine_with([Gaussian(), Laplacian(), L1Laplacian(), Linear()])
def test_no_rows_columns_or_targets_give_zeros_of_their_shape(engine, kernel, dtype, rng):
    x, v = draw(rng, (5, 3), (5, 2), dtype=dtype)
    for got, shape in [
        (engine.gradients(kernel, x[:0], x, v), (0, 2, 3)),
        (engine.gradients(kernel, x, x[:0], v[:0]), (5, 2, 3)),
        (engine.gradients(kernel, x, x, v[:, :0]), (5, 0, 3)),
    ]:
        assert got.shape == shape
        assert got.dtype == np.float64
        assert not got.any()


def strided(x: np.ndarray) -> np.ndarray:
    room = np.full((3 * x.shape[1], 2 * x.shape[0]), np.nan, dtype=x.dtype)
    view = room[::3, ::2].T
    xp.assign_(view, x)
    return view


@each_engine_with([Gaussian(), Laplacian(), L1Laplacian(), Linear()])
def test_arguments_of_any_layout_are_left_alone(engine, kernel, dtype, rng, tol):
    x, z, v = draw(rng, (23, 3), (17, 3), (17, 2), dtype=dtype)
    before = [xp.copy(u) for u in (x, z, v)]
    expected = engine.gradients(kernel, x, z, v)
    assert all(map(np.array_equal, (x, z, v), before))
    again = engine.gradients(kernel, strided(x), strided(z), strided(v))
    assert_close(again, expected, rtol=0, atol=tol(dtype, 100))


@each_engine_with([Gaussian(), Laplacian(), L1Laplacian()])
def test_a_nan_is_not_hidden(engine, kernel, dtype, rng):
    x, z, v = draw(rng, (5, 3), (4, 3), (4, 2), dtype=dtype)
    x[1, 0] = np.nan
    got = engine.gradients(kernel, x, z, v)
    assert np.array_equal(np.isnan(got).any(axis=(1, 2)), np.isnan(x).any(axis=1))


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
def test_what_has_no_gradients_is_refused(engine, rng):
    @dataclass(frozen=True)
    class Flat(Radial):
        @property
        def scale(self) -> float:
            return 1.0

        def profile(self, s: np.ndarray, *, underflow: bool = True) -> np.ndarray:
            return xp.fill_(s, 1.0)

    x, v = draw(rng, (9, 4), (9, 2), dtype=np.float32)
    for kernel in (Flat(), 2.0 * Flat(), Flat() + Gaussian(), Gaussian() * Flat()):
        assert not kernel.differentiable
        with pytest.raises(ValueError, match=r"Flat.* has no gradients; .*`derivative`"):
            engine.gradients(kernel, x, x, v)
    csr = SparseRows(scipy.sparse.csr_matrix(x)).take(np.arange(9))
    with pytest.raises(ValueError, match="gradients need dense rows"):
        engine.gradients(Gaussian(), csr, x, v)


# --- kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", kernels.names())
def test_gradients_are_limits_of_differences(name, rng):
    """A check that trusts no formula of ours for the slope: of the entries alone."""
    kernel = kernels.make(name, lengthscale=1.4)
    if name == "haversine":
        assert not kernel.differentiable  # on the sphere
        return
    if not kernel.differentiable:
        pytest.fail(f"{name} has no gradients; if it cannot have any, say so here")
    x, z, v = draw(rng, (23, 3), (17, 3), (17, 2))
    x, z, v = (u for u in (*suited(kernel, x, z), v))
    step, expected = 1e-5, np.empty((23, 2, 3))
    for k, along in enumerate(step * np.eye(3)):
        ahead, behind = (exact(kernel, x + sign * along, z) @ v for sign in (1, -1))
        expected[:, :, k] = (ahead - behind) / (2 * step)
    actual = TiledEngine().gradients(kernel, *map(np.asarray, (x, z, v)))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


def test_rows_closer_than_rounding_count_as_equal(rng):
    """A slope of 1e13 times a difference of which nothing is left would be noise."""
    z, v, step = draw(rng, (29, 3), (29, 2), (29, 3))
    engine = TiledEngine()
    expected = engine.gradients(Laplacian(), z, z, v)
    actual = engine.gradients(Laplacian(), z + 1e-13 * step, z, v)
    assert_close(actual, expected, rtol=0, atol=1e-10)


@each_kernel
def test_weights_multiply_what_is_differentiated(kernel, rng):
    """Products of kernels are made of it: the gradients of sum_j w_ij v_j k(x_i, z_j)."""
    x, z, v, w = draw(rng, (11, 3), (7, 3), (7, 2), (11, 7))
    x, z = suited(kernel, x, z)
    left, right = kernel.prepare(x, "left"), kernel.prepare(z, "right")
    actual = kernel.gradients(left, right, v, xp.copy(w))
    for i in range(11):
        expected = slopes.gradients(kernel, x[i : i + 1], z, w[i][:, None] * v)[0]
        assert_close(actual[i], expected, rtol=1e-10, atol=1e-10)


# --- operators ----------------------------------------------------------------------------------


def test_an_operator_gives_gradients_at_other_rows(dtype, rng, tol):
    x, z, v = draw(rng, (37, 3), (29, 3), (29, 2), dtype=dtype)
    rows = np.zeros((5, 3), dtype)  # those of the operator do not matter
    K = KernelOperator(Matern32(1.3), rows, z)
    expected = slopes.gradients(K.kernel, xp.to_float64(x), xp.to_float64(z), xp.to_float64(v))
    before = K.meter.evaluations
    actual = K.gradients(x, v)
    assert K.meter.evaluations - before == 37 * 29
    assert actual.dtype == dtype
    assert_close(xp.to_float64(actual), expected, rtol=0, atol=tol(dtype, 1000))
    assert_close(K.gradients(x, v[:, 1]), actual[:, 1])
    whole = K.gradients(x, np.ones((29, 1), np.int64))
    assert whole.dtype == np.float64


def test_rows_come_in_blocks_that_fit_the_budget(rng):
    x, z, v = draw(rng, (4001, 3), (29, 3), (29, 2), dtype=np.float32)
    expected = KernelOperator(Laplacian(), x[:1], z).gradients(x, v)
    sizes = []

    class Watched(TiledEngine):
        def gradients(self, kernel, x, z, v):
            sizes.append(len(x))
            return super().gradients(kernel, x, z, v)

    engine = Watched(threads=1, tile_bytes=1 << 12)
    least = engine.workspace_bytes(29, 3, 2, 4)
    K = KernelOperator(Laplacian(), x[:1], z, engine, memory_bytes=least + (1 << 17))
    assert_close(K.gradients(x, v), expected)
    assert max(sizes) * (engine.row_bytes(3, 2, 4) + 2 * 3 * 8) <= 1 << 17
    assert sum(sizes) == 4001
    tight = KernelOperator(Laplacian(), x[:1], z, engine, memory_bytes=least // 2)
    with pytest.raises(ValueError, match="raise the memory limit or use fewer landmarks"):
        tight.gradients(x, v)


def test_an_operator_refuses_what_does_not_fit(rng):
    x, v = draw(rng, (7, 3), (7, 2))
    K = KernelOperator(Gaussian(), x, x)
    with pytest.raises(ValueError, match=r"does not match coef of shape .* coef needs 7 rows"):
        K.gradients(x, v[:5])
    with pytest.raises(ValueError, match="number of features, not 2 and 3"):
        K.gradients(x[:, :2], v)
    with pytest.raises(ValueError, match="gradients need dense rows"):
        KernelOperator(Gaussian(), x, x, "torch").gradients(scipy.sparse.csr_matrix(x), v)
    with pytest.raises(TypeError, match="multiplied by real vectors"):
        K.gradients(x, v + 1j)
