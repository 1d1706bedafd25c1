"""Products of bfloat16 pieces, by an emulated matrix unit, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close
from scipy.spatial.distance import cdist

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.engines._compiled import bfloat16 as split
from gramian.engines._compiled import kernels as compiled
from gramian.kernels import Gaussian, Kernel, Laplacian, Radial
from gramian.operators import NativeEngine, choose_engine, compiled_tiles

pytestmark = pytest.mark.skipif(not compiled_tiles(), reason="the compiled tiles are not installed")

PROMISE = {"auto": 1e-5, "fast": 1e-4}

TYPICAL = {
    "auto": {1: 2e-6, 4: 5e-7, 18: 4e-7, 90: 3e-7, 784: 3e-7},
    "fast": {1: 5e-5, 4: 2e-5, 18: 1e-5, 90: 5e-6, 784: 2e-6},
}
"""Errors of entries of centered points, in the dimensions of the measurements: 1e-7 to 3e-7 of six
products and 4e-7 to 8e-6 of three, in 4 dimensions and more; in one, no signs cancel."""

RADIAL = [
    name
    for name in kernels.names()
    if isinstance(kernels.make(name), Radial) and compiled_tiles()
    if NativeEngine().covers(kernels.make(name), dtype=np.float32, sparse=False)
]


@pytest.fixture(params=["auto", "fast"])
def precision(request) -> str:
    return request.param


@pytest.fixture(autouse=True)
def used(monkeypatch) -> list[bool]:
    """Let few features be enough; return whether the calls so far used pieces."""
    found: list[bool] = []

    def spy(*arguments):
        result = split.split_for(*arguments)
        found.append(result is not None)
        return result

    monkeypatch.setattr(compiled, "split_for", spy)
    for name, choices in split.SPLIT_CHOICES.items():
        each = tuple(split.Choice(choice.pieces, choice.limit, 1) for choice in choices)
        monkeypatch.setitem(split.SPLIT_CHOICES, name, each)
    return found


def emulated(precision: str, threads: int = 1) -> NativeEngine:
    return NativeEngine(threads, "amx-emulated", precision)


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float32)


def exact(kernel: Radial, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel matrix from differences in float64."""
    r = cdist(xp.to_float64(x), xp.to_float64(z)) / kernel.lengthscale
    return kernel.profile(kernel.scale * r * r)


def worst(kernel: Kernel, x: np.ndarray, z: np.ndarray, precision: str) -> float:
    K = emulated(precision).block(kernel, x, z)
    assert K.dtype == np.float32
    return float(np.abs(xp.to_float64(K) - exact(kernel, x, z)).max())


# --- entries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("d", [1, 4, 18, 90, 784])
def test_entries_keep_the_promise_at_any_scale(name, d, precision, used):
    x, z = normal(49, d), normal(50, d, seed=1)
    for scale in (0.01, 0.2, 1.0, 1.5, 5.0, 100.0):
        kernel = kernels.make(name, lengthscale=d**0.5 / scale)
        error = worst(kernel, x, z, precision)
        assert error <= PROMISE[precision]
        if scale == 0.2:
            assert used[-1]
        if scale == 1.0 and used[-1]:
            assert error <= TYPICAL[precision][d]
    assert not used[-1]


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("d", [4, 90])
def test_points_far_from_zero_are_centered(name, d, precision, used):
    x, z = normal(49, d) + 1e4, normal(50, d, seed=1) + 1e4
    kernel = kernels.make(name, lengthscale=2 * d**0.5)
    assert worst(kernel, x, z, precision) <= PROMISE[precision]
    assert used == [True]


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("distance", [0.0, 1e-6, 1e-4, 1e-2, 0.1, 0.3])
def test_near_duplicates(name, distance, precision, used):
    for d in (18, 90):
        z = normal(50, d)
        x = np.concatenate([z + distance * normal(50, d, seed=1), normal(7, d, seed=2)])
        assert worst(kernels.make(name, lengthscale=d**0.5), x, z, precision) <= PROMISE[precision]
    assert used[-1]


def test_a_kink_shows_what_is_not_recomputed(monkeypatch):
    """The error that recomputing near pairs avoids, so that the test above could fail."""
    z = normal(50, 90)
    kernel = Laplacian(9.0)
    assert worst(kernel, z, z, "fast") <= 1e-5
    monkeypatch.setattr(compiled, "split_for", lambda *_: split.Bfloat16Split(pieces=2, near=0.0))
    assert worst(kernel, z, z, "fast") > 3e-4


@pytest.mark.parametrize("d", [4, 90])
def test_one_large_feature(d, precision):
    """All of a squared distance comes from one feature: errors have no signs to cancel."""
    x, z = normal(200, d), normal(50, d, seed=1)
    for points in (x, z):
        points[:, 1:] *= 1e-3
    for scale in (0.5, 1.0, 1.5, 2.0):
        for name in RADIAL:
            kernel = kernels.make(name, lengthscale=1 / scale)
            assert worst(kernel, x, z, precision) <= PROMISE[precision]


def test_six_products_are_as_good_as_float32_and_three_are_not(used):
    x, z = normal(100, 90), normal(90, 90, seed=1)
    kernel = Gaussian(9.0)
    six, three = (worst(kernel, x, z, each) for each in ("auto", "fast"))
    float32 = NativeEngine(1, precision="exact").block(kernel, x, z)
    assert used[:2] == [True, True]
    assert not any(used[2:])  # a processor with a matrix unit of its own asks for float32, too
    assert six <= 2 * float(np.abs(float32 - exact(kernel, x, z)).max())
    assert three > 2 * six


# --- verbs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (7, 50, 33, 2), (97, 131, 5, 1), (49, 550, 64, 6)])
@pytest.mark.parametrize("name", ["gaussian", "laplacian"])
def test_verbs_multiply_what_block_gives(shape, name, precision, used):
    n, m, d, t = shape
    x, z, v, y = normal(n, d), normal(m, d, 1), normal(m, t, 2), normal(n, t, 3)
    w = np.abs(normal(n, 1, 4)[:, 0])
    kernel, engine = kernels.make(name, lengthscale=2 * d**0.5), emulated(precision, threads=2)
    near = min(n, m) // 2
    x[:near] = z[:near] + 1e-3 * x[:near]
    K, v64, y64, w64 = (
        xp.to_float64(engine.block(kernel, x, z)),
        xp.to_float64(v),
        xp.to_float64(y),
        xp.to_float64(w),
    )
    close(engine.matvec(kernel, x, z, v), K @ v64, np.abs(K) @ np.abs(v64))
    residual = w64[:, None] * (K @ v64 - y64)
    size = K.T @ (w64[:, None] * (K @ np.abs(v64) + np.abs(y64)))
    close(engine.normal(kernel, x, z, v, weights=w, targets=y), K.T @ residual, size)
    close(engine.normal(kernel, x, z, None, targets=y), -K.T @ y64, K.T @ np.abs(y64))
    K = xp.to_float64(engine.block(kernel, x, z, diagonal=-2))
    i = np.arange(min(2, n), min(n, m + 2))
    assert np.array_equal(K[i, i - 2], np.ones(len(i), np.float64))
    close(engine.matvec(kernel, x, z, v, diagonal=-2), K @ v64, K @ np.abs(v64))
    K = xp.to_float64(engine.block(kernel, z, z, diagonal=0))
    size = K @ np.abs(v64)
    # the two triangles of a block differ by the rounding of one entry; the product uses one
    close(engine.symmetric(kernel, z, v), K @ v64, size, 3e-6)
    assert all(used)


def close(
    actual: np.ndarray, expected: np.ndarray, size: np.ndarray, precision: float = 2e-6
) -> None:
    assert actual.dtype == np.float64
    assert float((np.abs(actual - expected) / size.clip(min=1e-30)).max()) <= precision


def test_a_lengthscale_per_feature_and_a_factor(precision, used):
    x, z = normal(20, 10) * 100, normal(31, 10, seed=1) * 100
    K = emulated(precision).block(2.5 * Gaussian((300.0,) * 10), x, z)
    expected = 2.5 * exact(Gaussian(300.0), x, z)
    assert float(np.abs(K - expected).max()) <= 2.5 * PROMISE[precision]
    assert used == [True]


def test_a_nan_stays_in_its_row_and_column(precision):
    x, z = normal(20, 70), normal(50, 70, seed=1)
    x[3, 5] = np.nan
    expected = np.zeros((20, 50), np.bool_)
    expected[3] = True
    assert np.array_equal(np.isnan(emulated(precision).block(Gaussian(16.0), x, z)), expected)


# --- what is computed how ------------------------------------------------------------------------


def test_what_pieces_cannot_do_is_done_as_without_them(precision, used):
    x, z = normal(30, 5), normal(40, 5, seed=1)
    for kernel in (Gaussian(0.1), kernels.L1Laplacian(3.0), kernels.Linear()):
        expected = NativeEngine(1, precision="exact").block(kernel, x, z)
        found = emulated(precision).block(kernel, x, z)
        # other instructions may round otherwise; pieces would be off by 1e-5 and more
        assert_close(found, expected, rtol=2e-6, atol=1e-37)
    expected = NativeEngine(1).block(Gaussian(3.0), xp.to_float64(x), xp.to_float64(z))
    assert np.array_equal(
        emulated(precision).block(Gaussian(3.0), xp.to_float64(x), xp.to_float64(z)), expected
    )
    assert not any(used)


def test_exact_never_uses_pieces(used):
    x = normal(30, 90)
    emulated("exact").block(Gaussian(9.0), x, x)
    assert used == [False]


def test_pieces_are_used_where_they_win(monkeypatch):
    monkeypatch.undo()

    def pieces(d: int, precision: str) -> int:
        found = split.split_for(Gaussian(), 1.0, lambda: 3.0 / d, d, precision)
        return 0 if found is None else found.pieces

    dims = (1, 8, 9, 18, 63, 64, 90, 784)
    assert [pieces(d, "fast") for d in dims] == [0, 0, 2, 2, 2, 2, 2, 2]
    assert [pieces(d, "auto") for d in dims] == [0, 0, 0, 0, 0, 3, 3, 3]
    assert [pieces(d, "exact") for d in dims] == [0] * 8


def test_fast_tries_six_products_where_three_are_too_coarse():
    def pieces(reach: float) -> int:
        found = split.split_for(Gaussian(), reach, lambda: reach**2, 90, "fast")
        return 0 if found is None else found.pieces

    reaches = (0.0, 1.0, 4.0, 5.0, 10.0, 11.0, 1e3, np.inf, np.nan)
    assert [pieces(reach) for reach in reaches] == [2, 2, 2, 3, 3, 0, 0, 0, 0]


# --- by name -------------------------------------------------------------------------------------


def test_the_emulation_is_never_chosen():
    assert "amx-emulated" not in compiled_tiles()
    assert not compiled.has_split_products("best") or "amx" in compiled_tiles()


def test_fast_needs_amx():
    with pytest.raises(ValueError, match="precision='fast' needs AMX, which is not available"):
        NativeEngine(instructions="portable", precision="fast")
    if "amx" in compiled_tiles():
        assert choose_engine("native:fast", dtype=np.float32).precision == "fast"
    else:
        with pytest.raises(ValueError, match="precision='fast' needs AMX"):
            choose_engine("native:fast", dtype=np.float32)


def test_precisions_have_names():
    with pytest.raises(ValueError, match="must be one of exact, auto, fast, not 'high'"):
        NativeEngine(precision="high")
