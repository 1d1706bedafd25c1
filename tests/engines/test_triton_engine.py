"""The fused tiles against float64, interpreted on the CPU or on a GPU, and compiled for two."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.engines import choose_covering, tiled_on, triton_engine
from gramian.engines._fused.distances import ERROR_LIMITS, choose, squared_error
from gramian.engines.triton_engine import is_installed
from gramian.kernels import Gaussian, Kernel, L1Laplacian, Laplacian, Linear, Matern52
from gramian.operators import (
    KernelOperator,
    MultiDeviceEngine,
    TiledEngine,
    TritonEngine,
    choose_engine,
)

# a solver is stopped after two iterations on purpose
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

installed = pytest.mark.skipif(not is_installed(), reason="triton is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PRECISIONS = ["ieee", "3xtf32", "3xbf16"]


def engine(precision: str = "3xtf32") -> TritonEngine:
    return TritonEngine(DEVICE, precision=precision, tuned=False)


ALWAYS = (
    "gaussian",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "rational_quadratic",
    "l1_laplacian",
)
"""Kernels that have fused tiles; others may."""

FUSED = [
    name
    for name in kernels.names()
    if is_installed() and engine().covers(kernels.make(name), dtype=np.float32, sparse=False)
]


@installed
def test_these_kernels_have_fused_tiles():
    assert set(ALWAYS) <= set(FUSED)


def draw(n: int, d: int, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float32)


def exact(kernel: Kernel, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return kernel(xp.to_float64(x), xp.to_float64(z))


def worst(actual: np.ndarray, expected: np.ndarray, size: np.ndarray | float = 1.0) -> float:
    assert actual.shape == expected.shape
    return float((np.abs(xp.to_float64(actual) - expected) / size).max())


# --- entries --------------------------------------------------------------------------------------


def spread(n: int, d: int, seed: int) -> np.ndarray:
    return draw(n, d, seed) / math.sqrt(d)


def one_feature(n: int, d: int, seed: int) -> np.ndarray:
    """Give points whose norm is that of one feature, with digits that splitting loses most of."""
    points = 1e-3 * draw(n, d, seed)
    points[:, 3] = 1 + 2.0**-9 + 2.0**-12 + 2.0**-18 + 1e-4 * draw(n, 1, seed)[:, 0]
    points[::2, 3] *= -1
    return points


@installed
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("points", [spread, one_feature])
@pytest.mark.parametrize("d", [9, 50])
def test_entries_from_products_are_off_by_the_estimate_at_most(precision, points, d):
    from gramian.engines._fused.products import Fused

    x, z = points(129, d, 0), points(65, d, 1)
    z[:30] = x[:30] + 1e-3 * z[:30]
    kernel = Gaussian()
    K = Fused.build(
        kernel,
        torch.as_tensor(x, device=DEVICE),
        torch.as_tensor(z, device=DEVICE),
        None,
        precision,
        False,
    )
    assert K.constants["DISTANCE"] == precision
    away = xp.to_float64(z - z.mean(axis=0))
    reach, fourth = float((away**2).sum(1).max()), float((away**4).sum(1).max()) ** 0.5
    estimate = squared_error(precision, reach, fourth, d) / 2
    error = worst(xp.to_host(K.dense()), exact(kernel, x, z))
    assert estimate <= ERROR_LIMITS[precision]
    # the worst digits lose twice as much as others; coordinates and the entry are rounded, too
    assert error <= 2 * estimate + 4 * 2.0**-23
    if precision != "ieee" and points is one_feature:
        assert error > 0.01 * estimate  # digits are lost: it is the split that was measured


@installed
@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("d", [1, 20])
def test_each_profile(name, d):
    typical = d if name == "l1_laplacian" else d**0.5
    each = tuple(typical * (0.5 + i / d) for i in range(d))
    more = {"alpha": 7.0} if name == "rational_quadratic" else {}
    kernel = kernels.make(name, lengthscale=each, **more)
    x, z = draw(67, d) + 3, draw(33, d, seed=1) + 3
    assert worst(engine().block(2.5 * kernel, x, z), 2.5 * exact(kernel, x, z)) <= 2e-6


def near(d: int) -> tuple[np.ndarray, np.ndarray]:
    x = draw(65, d)
    return x, x[:33] + 1e-3 * draw(33, d, seed=1)


def offset(d: int) -> tuple[np.ndarray, np.ndarray]:
    return draw(65, d) + 1e4, draw(33, d, seed=1) + 1e4


def two_clusters(d: int) -> tuple[np.ndarray, np.ndarray]:
    x, z = near(d)
    x[::2, 0] += 1e3
    z[::2, 0] += 1e3
    return x, z


def wide(d: int) -> tuple[np.ndarray, np.ndarray]:
    x, z = near(d)
    return 20 * x, 20 * z


@installed
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("data", [near, offset, two_clusters, wide])
@pytest.mark.parametrize("name", ["gaussian", "laplacian", "l1_laplacian"])
def test_entries_keep_their_digits_on_hard_data(precision, data, name):
    for d in (3, 33):
        x, z = data(d)
        kernel = kernels.make(name, lengthscale=d if name == "l1_laplacian" else d**0.5)
        error = worst(engine(precision).block(kernel, x, z), exact(kernel, x, z))
        assert error <= max(1e-5, ERROR_LIMITS[precision])


def test_how_distances_are_computed():
    def of(kernel, reach, d, precision="3xtf32", fourth=0.0):
        return choose(kernel, reach, fourth, d, precision)

    assert of(Gaussian(), 2.0, 18) == "3xtf32"
    assert of(Gaussian(), 2.0, 18, "3xbf16", fourth=1.0) == "3xbf16"
    assert of(Gaussian(), 6.0, 18, "3xtf32", fourth=6.0) == "3xtf32"
    assert of(Gaussian(), 20.0, 18, "3xtf32", fourth=20.0) == "ieee"
    assert of(Gaussian(), 9.0, 18, "3xbf16", fourth=9.0) == "ieee"
    assert of(Gaussian(), 1e2, 18) == "difference"
    assert of(Gaussian(), 2.0, 8) == "difference"
    assert of(Laplacian(), 2.0, 90) == "difference"
    assert of(L1Laplacian(), 2.0, 90) == "absolute"
    assert of(L1Laplacian(), 1e3, 90) is None
    assert of(Linear(), 1.0, 90) is None
    for unusual in (1e6, math.inf, math.nan):
        assert of(Gaussian(), unusual, 90) is None


# --- products -------------------------------------------------------------------------------------


@installed
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("t", [1, 2, 17, 64, 65])
def test_products_of_few_and_many_targets(precision, t):
    x, z, v = draw(131, 10), draw(129, 10, seed=1), draw(129, t, seed=2)
    kernel = Matern52(3.0)
    K, v64 = exact(kernel, x, z), xp.to_float64(v)
    actual = engine(precision).matvec(kernel, x, z, v)
    assert worst(actual, K @ v64, K @ np.abs(v64)) <= ERROR_LIMITS[precision]


@installed
@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_lose_no_digits_over_many_columns(precision):
    """Equal terms, which float32 additions would round the same way each time."""
    m, limit = 5_000, 1e-5 if precision == "3xbf16" else 1e-6
    z = np.zeros((m, 1), np.float32)
    for t in (1, 2):
        v = np.full((m, t), 1 / 3)
        product = engine(precision).matvec(Gaussian(), z[:1], z, v)
        assert worst(product, xp.to_float64(v).sum(axis=0)[None], m / 3) <= limit


@installed
def test_columns_split_over_programs_give_the_same_product(monkeypatch):
    from gramian.engines._fused import products

    x, z, v = draw(130, 3), draw(700, 3, seed=1), draw(700, 2, seed=2)
    whole = engine().matvec(Gaussian(), x, z, v)
    assert products._span(256, 700) == 4096
    monkeypatch.setattr(products, "SPAN_COLUMNS", 128)
    assert products._span(256, 768) == 128
    split = engine().matvec(Gaussian(), x, z, v)
    assert worst(split, whole) <= 1e-12 * float(np.abs(whole).max())
    assert np.array_equal(split, engine().matvec(Gaussian(), x, z, v))


def test_spans_cover_all_columns():
    pytest.importorskip("triton")
    from gramian.engines._fused.points import PADDED_ROWS, padded_features
    from gramian.engines._fused.products import SPAN_COLUMNS, _span

    for rows in (128, 1 << 16, 1 << 24):
        for columns in (128, 5 * 128, 1 << 20):
            span = _span(rows, columns)
            assert span % PADDED_ROWS == 0
            assert span >= SPAN_COLUMNS
            assert -(-columns // span) < 1 << 16
    assert [padded_features(d) for d in (1, 16, 18, 33, 90, 784)] == [16, 16, 32, 48, 96, 800]


@installed
def test_a_nan_and_far_points(dtype):
    x = np.array([[0.0], [1.0], [1e3], [1e15], [math.nan]], dtype=dtype)
    mine = choose_covering(engine(), Gaussian(), dtype=dtype, sparse=False)
    for name in FUSED:
        K = mine.block(kernels.make(name), x, x[:2])
        assert bool(np.isfinite(K[:4]).all())
        assert bool(np.isnan(K[4]).all())
        product = mine.matvec(kernels.make(name), x, x[:2], np.ones((2, 1), dtype))
        assert np.array_equal(np.isnan(product)[:, 0], np.isnan(x[:, 0]))


# --- the symmetric product ------------------------------------------------------------------------


@installed
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("t", [1, 3, 33])
def test_symmetric_products_of_few_and_many_targets(precision, t):
    x, v = draw(131, 10), draw(131, t, seed=1)
    K, v64 = exact(Matern52(3.0), x, x), xp.to_float64(v)
    actual = engine(precision).symmetric(2.0 * Matern52(3.0), x, v)
    assert worst(actual, 2 * K @ v64, 2 * K @ np.abs(v64)) <= ERROR_LIMITS[precision]


@installed
@pytest.mark.parametrize("n", [127, 129, pytest.param(400, marks=pytest.mark.slow)])
def test_symmetric_products_in_strips_over_several_programs(n, monkeypatch):
    """One tile of rows at a time, several at once, and columns that several programs share."""
    from gramian.engines._fused import products

    x, v = draw(n, 3), draw(n, 2, seed=1)
    K, v64 = exact(Laplacian(0.5), x, x), xp.to_float64(v)
    whole = engine().symmetric(Laplacian(0.5), x, v)
    monkeypatch.setattr(products, "SPAN_COLUMNS", 128)
    for scratch in (0, 8 * 512 * 16 * 3):
        monkeypatch.setattr(products, "SCRATCH_BYTES", scratch)
        actual = engine().symmetric(Laplacian(0.5), x, v)
        assert worst(actual, K @ v64, K @ np.abs(v64)) <= 2e-6
        assert worst(actual, whole) <= 1e-12 * float(np.abs(whole).max())
        assert np.array_equal(actual, engine().symmetric(Laplacian(0.5), x, v))


@installed
def test_tiles_left_of_the_diagonal_are_not_evaluated():
    """Other points on the right tell a pair from its mirror image."""
    from gramian.engines._fused.points import PADDED_ROWS
    from gramian.engines._fused.products import Fused

    x, z, v = draw(300, 2), draw(300, 2, seed=1), draw(300, 1, seed=2)
    K = Fused.build(
        Gaussian(),
        torch.as_tensor(x, device=DEVICE),
        torch.as_tensor(z, device=DEVICE),
        None,
        "ieee",
        False,
    )
    tile = np.arange(300) // PADDED_ROWS
    E = exact(Gaussian(), x, z)
    on, right = (E * mask for mask in (tile[:, None] == tile, tile[:, None] < tile))
    expected = (on + right + right.T) @ xp.to_float64(v)
    assert worst(xp.to_host(K.symmetric(torch.as_tensor(v, device=DEVICE))), expected) <= 1e-5 * 300


@installed
def test_symmetric_products_lose_no_digits_over_many_rows():
    """Equal terms, which float32 additions would round the same way each time."""
    n = 1_100
    v = np.full((n, 1), 1 / 3)
    product = engine().symmetric(Gaussian(), np.zeros((n, 1), np.float32), v)
    assert worst(product, xp.expand(xp.to_float64(v).sum(axis=0), (n, 1)), n / 3) <= 1e-6


# --- the normal product ---------------------------------------------------------------------------

DIVIDED = 4 * 129 * 128
"""Memory for entries of 128 rows with 129 columns."""


def normal_of(kernel: Kernel, x: np.ndarray, z: np.ndarray, precision: str, w, y, diagonal=None):
    from gramian.engines._fused.normal import Normal
    from gramian.engines._fused.products import Fused

    placed = (None if u is None else torch.as_tensor(u, device=DEVICE) for u in (w, y))
    K = Fused.build(
        kernel,
        torch.as_tensor(x, device=DEVICE),
        torch.as_tensor(z, device=DEVICE),
        diagonal,
        precision,
        False,
    )
    return Normal(K, 2.0, *placed)


@installed
@pytest.mark.parametrize("way", ["multiply_storing", "multiply_recomputing"])
@pytest.mark.parametrize("t", [1, 5])
@pytest.mark.parametrize("d", [3, 20])
def test_both_ways_to_compute_the_normal_product(way, t, d, monkeypatch):
    from gramian.engines._fused import normal

    monkeypatch.setattr(normal, "SCRATCH_BYTES", DIVIDED)
    monkeypatch.setattr(import_module("gramian._linalg.sums"), "FLOAT32_TERMS", 50)
    x, z, v, y = draw(257, d), draw(129, d, 1), draw(129, t, 2), draw(257, t, 3)
    x[200], w = z[11], np.abs(draw(257, 1, seed=4)[:, 0])
    kernel = Gaussian(d**0.5)
    K, v64 = 2 * exact(kernel, x, z), xp.to_float64(v)
    for weights, targets in [(None, None), (w, y)]:
        given = normal_of(kernel, x, z, "3xtf32", weights, targets)
        actual = xp.to_host(getattr(given, way)(torch.as_tensor(v, device=DEVICE)))
        W = (
            xp.to_float64(np.ones((257, 1), np.float32))
            if weights is None
            else xp.to_float64(w)[:, None]
        )
        u = K @ v64 - (0.0 if targets is None else xp.to_float64(y))
        size = K.T @ (W * (K @ np.abs(v64) + np.abs(xp.to_float64(y))))
        assert worst(actual, K.T @ (W * u), size) <= ERROR_LIMITS["3xtf32"]


@installed
@pytest.mark.parametrize("diagonal", [-250, -3, 120])
def test_entries_that_are_kept_have_the_diagonal(diagonal, monkeypatch):
    from gramian.engines._fused import normal

    # the two share no row here: the diagonal is wrong on purpose, so that it shows
    monkeypatch.setattr(normal, "SCRATCH_BYTES", DIVIDED)
    x, z, v = draw(257, 3), draw(129, 3, seed=1), draw(129, 2, seed=2)
    told = normal_of(Gaussian(0.3), x, z, "ieee", None, None, diagonal)
    K = exact(Gaussian(0.3), x, z)
    i = np.arange(max(-diagonal, 0), min(129 - diagonal, 257))
    K[i, i + diagonal] = 1.0
    K, v64 = 2 * K, xp.to_float64(v)
    assert (
        worst(
            xp.to_host(told.multiply_storing(torch.as_tensor(v, device=DEVICE))),
            K.T @ (K @ v64),
            K.T @ (K @ np.abs(v64)),
        )
        <= 2e-6
    )


@installed
def test_entries_that_are_kept_lose_no_digits_over_many_rows():
    """Equal terms, which float32 additions would round the same way each time."""
    told = normal_of(
        Gaussian(),
        np.zeros((9_000, 1), np.float32),
        np.zeros((3, 1), np.float32),
        "ieee",
        None,
        None,
    )
    v = np.full((3, 1), 1 / 3)
    expected = np.full((3, 1), 4.0 * 9_000, dtype=np.float32) * xp.to_float64(v).sum()
    assert (
        worst(
            xp.to_host(told.multiply_storing(torch.as_tensor(v, device=DEVICE))), expected, expected
        )
        <= 1e-6
    )


@installed
def test_which_way_is_taken(monkeypatch):
    from gramian.engines._fused import normal

    def keeps(distance, precision, d, t=1):
        return normal.keeping_is_cheaper(distance, precision, d, t)

    for precision, few, many in (("ieee", 91, 92), ("3xtf32", 184, 185), ("3xbf16", 363, 364)):
        assert not keeps(precision, precision, few)
        assert keeps(precision, precision, many)
        assert keeps(precision, precision, few, t=65)  # which entries are computed for twice
    assert not keeps("difference", "3xtf32", 46)
    assert keeps("difference", "3xtf32", 47)

    taken = []
    for way in ("multiply_storing", "multiply_recomputing"):
        monkeypatch.setattr(normal.Normal, way, lambda self, v, way=way: taken.append(way) or v)

    def call(d, v):
        x = draw(9, d)
        return engine().normal(Gaussian(d**0.5), x, x, v, targets=np.ones((9, 1), np.float32))

    call(20, np.ones((9, 1), np.float32))
    call(400, np.ones((9, 1), np.float32))
    call(400, None)  # one product only
    monkeypatch.setattr(normal, "torch_keeps_float32", lambda: False)
    call(400, np.ones((9, 1), np.float32))
    monkeypatch.setattr(normal, "torch_keeps_float32", lambda: True)
    monkeypatch.setattr(normal, "SCRATCH_BYTES", 4 * 9 * 127)  # less than a tile of rows takes
    call(400, np.ones((9, 1), np.float32))
    storing, recomputing = "multiply_storing", "multiply_recomputing"
    assert taken == [recomputing, storing, recomputing, recomputing]


@installed
def test_tf32_in_torch_is_seen(monkeypatch):
    from gramian.engines._devices import torch_keeps_float32

    before = torch.get_float32_matmul_precision()
    try:
        for precision, expected in {"highest": True, "high": False, "medium": False}.items():
            torch.set_float32_matmul_precision(precision)
            assert torch_keeps_float32() == expected
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        with pytest.raises(ValueError, match=re.escape('set_float32_matmul_precision("highest")')):
            TiledEngine("cuda").check()
    finally:
        torch.set_float32_matmul_precision(before)


# --- what has no fused tiles ----------------------------------------------------------------------


@installed
def test_which_kernels_have_fused_tiles():
    mine, x, f32 = engine(), draw(30, 3), np.float32
    for kernel in (Gaussian() + Linear(), Gaussian() * Laplacian(), Linear()):
        assert not mine.covers(kernel, dtype=f32, sparse=False)
        with pytest.raises(ValueError, match="engine=TritonEngine has no tiles for"):
            KernelOperator(kernel, x, x, mine)
    for name in FUSED:
        assert mine.covers(2.0 * (3.0 * kernels.make(name)), dtype=f32, sparse=False)
        assert not mine.covers(kernels.make(name), dtype=f32, sparse=True)
        assert not mine.covers(kernels.make(name), dtype=np.float64, sparse=False)


@installed
def test_the_same_in_float64_is_computed_by_torch_on_the_same_device():
    x, v = draw(30, 3), draw(30, 2, seed=1)
    K = KernelOperator(Gaussian(), x, x, engine())
    assert K.engine == engine()
    assert K.double().engine == tiled_on(DEVICE)
    v64 = xp.to_float64(v)
    assert worst(K.double() @ v64, exact(Gaussian(), x, x) @ v64, 1.0) <= 1e-12
    est = KernelRidge(
        lengthscale=1.0,
        landmarks=5,
        engine=engine(),
        random_state=0,
        kernel="gaussian",
        penalty=1e-6,
    )
    with pytest.raises(ValueError, match="has no tiles for rows in float64"):
        est.fit(xp.to_float64(x), v[:, 0])
    assert est.fit(x, v[:, 0]).engine_ == engine()


@installed
def test_digits_that_float32_would_lose_are_computed_in_float64():
    x, v = two_clusters(3)[0], draw(65, 2, seed=1)
    told, torchs = engine(), tiled_on(DEVICE)
    for verb in ("matvec", "normal"):
        products = [getattr(each, verb)(Gaussian(), x, x, v) for each in (told, torchs)]
        assert np.array_equal(*products)


@installed
def test_a_subclass_of_a_kernel_is_another_kernel():
    class Other(Gaussian):
        pass

    assert not engine().covers(Other(), dtype=np.float32, sparse=False)


@installed
@pytest.mark.parametrize(
    "kernel", [Gaussian("median"), Gaussian((1.0, 2.0))], ids=["median", "two"]
)
def test_a_kernel_that_does_not_fit_is_refused(kernel):
    with pytest.raises(
        ValueError, match=r"has no value yet|has 2 lengthscales but the rows have 3"
    ):
        engine().block(kernel, np.zeros((4, 3), np.float32), np.zeros((5, 3), np.float32))


# --- choice ---------------------------------------------------------------------------------------


@installed
@pytest.mark.parametrize("spec", ["triton", "triton:cuda", "triton:cuda:1", "triton:cuda:0,1"])
def test_engines_of_devices_that_are_not_there_are_not_replaced(spec, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"TritonEngine.* needs a CUDA device.*engine='auto'"):
        choose_engine(spec, dtype=np.float32)


@installed
def test_a_device_beyond_those_that_are_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_engine("triton:cuda:1", dtype=np.float32) == TritonEngine("cuda:1")
    assert choose_engine("torch:cuda:1", dtype=np.float32).device == "cuda:1"
    two = MultiDeviceEngine((TritonEngine("cuda:0"), TritonEngine("cuda:1")))
    assert choose_engine("triton:cuda:0,1", dtype=np.float32) == two
    for spec in ("triton:cuda:2", "torch:cuda:2", "triton:cuda:0,2", "torch:cuda:2,1"):
        with pytest.raises(ValueError, match="needs CUDA device 2, but torch finds 2"):
            choose_engine(spec, dtype=np.float32)


@installed
def test_auto_takes_a_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr("gramian.engines.choose.has_driver", lambda: True)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)  # of which it takes one
    for capability, expected in {(9, 0): True, (8, 0): True, (7, 5): False}.items():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda c=capability: c)
        chosen = choose_engine("auto", dtype=np.float32)
        assert isinstance(chosen, TritonEngine) == expected
    assert choose_engine("triton", dtype=np.float64) == TritonEngine()


def test_where_triton_is_missing_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(triton_engine, "is_installed", lambda: False)
    with pytest.raises(ValueError, match=r"triton, 3.4 or later, .* `pip install gramian\["):
        choose_engine("triton", dtype=np.float32)
    assert not isinstance(choose_engine("auto", dtype=np.float32), TritonEngine)


@installed
def test_the_cpu_is_for_the_interpreter_only(monkeypatch):
    monkeypatch.setattr(triton_engine, "is_interpreted", lambda: False)
    with pytest.raises(ValueError, match="TRITON_INTERPRET=1 before Python starts"):
        TritonEngine("cpu")


@installed
def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="must be one of 3xbf16, 3xtf32, ieee, not 'tf32'"):
        TritonEngine(DEVICE, precision="tf32")


@installed
def test_the_engine_says_what_it_needs_to_work():
    base = {"m": 100, "d": 5, "t": 2, "itemsize": 4}
    for key in base:
        more = base | {key: 2 * base[key]}
        assert engine().workspace_bytes(**more) >= engine().workspace_bytes(**base)
    assert engine().row_bytes(5, 2, 4) >= 5 * 4


# --- what is built on it --------------------------------------------------------------------------


@installed
@pytest.mark.parametrize("solver", ["direct", "pcg", "falkon", "askotch", "eigenpro3"])
def test_solvers_give_the_model_that_they_give_with_torch(solver):
    X = draw(60, 3)
    y = np.sin(X).sum(axis=1)
    landmarks = 12 if solver in ("falkon", "eigenpro3") else None
    told = [
        KernelRidge(
            lengthscale=2.0, penalty=1e-3, landmarks=landmarks, solver=solver, engine=each,
            tol=1e-9, max_iter=2, random_state=0, kernel="gaussian"
        ).fit(X, y).predict(X)
        for each in (engine(), TiledEngine())
    ]  # fmt: skip
    np.testing.assert_allclose(told[0], told[1], rtol=0, atol=1e-4)


@installed
@pytest.mark.parametrize("name", ["bless", "recursive_rls", "rpcholesky", "uniform"])
def test_selectors_choose_what_they_choose_with_torch(name):
    X, y = draw(60, 3), draw(60, 1, seed=1)[:, 0]
    chosen = [
        KernelRidge(
            lengthscale=1.0, landmarks=name, penalty=1e-2, engine=each, max_iter=1, tol=1e-1,
            random_state=0, kernel="gaussian"
        ).fit(X, y).landmark_index_
        for each in (engine(), TiledEngine())
    ]  # fmt: skip
    assert np.array_equal(chosen[0], chosen[1])


# --- compiled -------------------------------------------------------------------------------------


@pytest.mark.slow
@installed
@pytest.mark.parametrize("capability", [80, 90])
def test_tiles_compile_for_gpus(capability, tmp_path):
    script = Path(__file__).with_name("compile_tiles.py")
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script), str(capability)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(made) == 8
    for each in made:
        assert each["cubin"] > 0
        assert each["shared"] <= 99 * 1024  # of consumer GPUs, too
        assert each["narrow"] == []  # no offset that ends at 2³¹
        words = each["case"].split()
        tensor = "bf16" if "3xbf16" in words else "tf32"
        uses = "3x" in each["case"] or "difference" in words  # the latter in the product with v
        assert each["tensor"] == ([tensor] if uses else []), each["case"]
    assert np.unique([each["case"] for each in made]).size == 8
