"""The compiled tiles against float64, for shapes, kernels and layouts drawn at random."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from plain import PLAIN

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian.engines._compiled.kernels import NATIVE_MODULE, distances
from gramian.engines._tiles.precision import unscale_kernel
from gramian.kernels import Gaussian, Kernel, L1Laplacian, Laplacian, Linear, RationalQuadratic
from gramian.operators import (
    KernelOperator,
    MultiDeviceEngine,
    NativeEngine,
    TiledEngine,
    choose_engine,
    compiled_tiles,
)

pytestmark = pytest.mark.skipif(not compiled_tiles(), reason="the compiled tiles are not installed")

ENTRY = {np.float32: 1e-5, np.float64: 1e-7}
"""What an entry may be off by, relative to sqrt(k(x, x) k(z, z)): see test_precision.py."""

SUM = {np.float32: 5e-6, np.float64: 1e-13}
"""What a sum of terms may be off by beside them, relative to the sum of their sizes."""

ALWAYS = (
    "gaussian",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "rational_quadratic",
    "l1_laplacian",
    "linear",
    "polynomial",
    "tanimoto",
    "chi_squared",
)
"""Kernels that have compiled tiles wherever there are any; others may."""

COMPILED = [
    name
    for name in kernels.names()
    if compiled_tiles()
    and NativeEngine().covers(kernels.make(name), dtype=np.float32, sparse=False)
]


@pytest.fixture(params=compiled_tiles())
def isa(request) -> str:
    return request.param


class Draw:
    """A problem drawn at random: kernel, rows, columns, vectors, in odd layouts."""

    def __init__(self, seed: int) -> None:
        self.random = random = np.random.default_rng(seed)
        self.dtype = (np.float32, np.float64)[seed % 2]
        self.n, self.m = (int(random.choice([1, 2, 7, 8, 47, 49, 130, 411])) for _ in range(2))
        self.d = int(random.choice([1, 2, 3, 8, 9, 31, 32, 33, 90, 300, 2000]))
        self.t = int(random.choice([1, 2, 3, 4, 5, 6, 9, 16, 23, 64]))
        self.kernel = self._kernel()
        offset = float(random.choice([0.0, 0.0, 3.0, 1e3]))
        if isinstance(unscale_kernel(self.kernel)[1], Linear | kernels.Polynomial):
            offset = 0.0
        self.x, self.z = self.points(self.n, offset), self.points(self.m, offset)
        near = min(self.n, self.m) // 2
        self.z[:near] = self.x[:near] + 1e-4 * self.points(near, 0.0)
        self.v, self.y = self.rows(self.m, 0.0, self.t), self.rows(self.n, 0.0, self.t)
        self.weights = np.abs(self.rows(self.n, 0.0, 1)[:, 0])
        self.diagonal = int(random.integers(-self.n, self.m)) if random.random() < 0.5 else None

    def _kernel(self) -> Kernel:
        name = str(self.random.choice(COMPILED))
        typical = self.d if name in ("l1_laplacian", "chi_squared") else self.d**0.5
        scale = typical * float(self.random.choice([0.3, 1.0, 4.0]))
        each = tuple(scale * self.random.uniform(0.5, 2.0, self.d))
        kernel = kernels.make(name, lengthscale=each if self.random.random() < 0.4 else scale)
        if name == "tanimoto":
            kernel = replace(kernel, counts=str(self.random.choice(["product", "minmax"])))
        if name == "rational_quadratic":
            alpha = float(self.random.choice([0.3, 1.0, 50.0]))
            kernel = RationalQuadratic(kernel.lengthscale, alpha=alpha)
        return 2.5 * kernel if self.random.random() < 0.3 else kernel

    def points(self, n: int, offset: float) -> np.ndarray:
        rows = self.rows(n, offset)
        return xp.clip_(rows, min=0.0) if self.kernel.nonnegative else rows

    def rows(self, n: int, offset: float, d: int | None = None) -> np.ndarray:
        values = self.random.standard_normal((n, d or self.d)) + offset
        values = xp.cast(values, self.dtype)
        layout = self.random.integers(3)
        if layout == 0:
            return values
        return xp.contiguous(values.T).T if layout == 1 else np.stack([values] * 2, axis=-1)[..., 1]

    def matrix(self) -> np.ndarray:
        K = self.kernel(xp.to_float64(self.x), xp.to_float64(self.z))
        if self.diagonal is not None:
            i = np.arange(self.n)
            inside = (i + self.diagonal >= 0) & (i + self.diagonal < self.m)
            j = i[inside] + self.diagonal
            K[i[inside], j] = self.kernel.diag(xp.to_float64(self.z))[j]
        return K


@pytest.mark.parametrize("seed", range(60))
def test_fuzz(seed, isa):
    case, engine = Draw(seed), NativeEngine(threads=1 + seed % 3, instructions=isa)
    kernel, x, z, v = case.kernel, case.x, case.z, case.v
    K, v64, y64 = case.matrix(), xp.to_float64(v), xp.to_float64(case.y)
    B = np.sqrt(np.outer(kernel.diag(xp.to_float64(x)), kernel.diag(xp.to_float64(z))))
    entry, total = ENTRY[case.dtype], SUM[case.dtype]

    block = xp.to_float64(engine.block(kernel, x, z, diagonal=case.diagonal))
    assert float((np.abs(block - K) / B).max()) <= entry
    product = engine.matvec(kernel, x, z, v, diagonal=case.diagonal)
    close(product, block @ v64, B @ np.abs(v64), total)
    normal = engine.normal(
        kernel, x, z, v, weights=case.weights, targets=case.y, diagonal=case.diagonal
    )
    w = xp.to_float64(case.weights)[:, None]
    size = B @ np.abs(v64) + np.abs(y64)
    close(normal, block.T @ (w * (block @ v64 - y64)), B.T @ (w * size), 3 * total)
    square = xp.to_float64(engine.block(kernel, z, z, diagonal=0))
    B = np.sqrt(np.outer(kernel.diag(xp.to_float64(z)), kernel.diag(xp.to_float64(z))))
    # the two triangles of a block differ by the rounding of one entry; the product uses one of them
    close(engine.symmetric(kernel, z, v), square @ v64, B @ np.abs(v64), total + entry)


@pytest.mark.parametrize("d", [1, 5, 31, 40])
@pytest.mark.parametrize("diagonal", [None, -150, 3])
def test_sums_over_the_rows_of_several_strips(d, diagonal, isa, dtype, rng):
    """Entries of a strip are added as those of the next take their place, but for a last one."""
    shapes = (1200, d), (130, d), (130, 1), (1200, 1), (1100, d), (1100, 1)
    x, z, v, y, square, u = (rng.standard_normal(s, dtype) for s in shapes)
    w, engine = rng.random(1200, dtype), NativeEngine(1, instructions=isa)
    for kernel in (Gaussian(d**0.5), kernels.Matern52(d**0.5), L1Laplacian(float(d))):
        K = xp.to_float64(engine.block(kernel, x, z, diagonal=diagonal))
        found = engine.normal(kernel, x, z, v, weights=w, targets=y, diagonal=diagonal)
        expected = K.T @ (xp.to_float64(w)[:, None] * (K @ xp.to_float64(v) - xp.to_float64(y)))
        close(
            found,
            expected,
            K.T @ (K @ np.abs(xp.to_float64(v)) + np.abs(xp.to_float64(y))),
            SUM[dtype],
        )
        K = xp.to_float64(engine.block(kernel, square, square, diagonal=0))
        # an entry and the one across differ by rounding, and the product uses one of them
        found = engine.symmetric(kernel, square, u)
        close(found, K @ xp.to_float64(u), K @ np.abs(xp.to_float64(u)), SUM[dtype] + ENTRY[dtype])


def close(actual: np.ndarray, expected: np.ndarray, size: np.ndarray, precision: float) -> None:
    assert actual.shape == expected.shape
    assert float((np.abs(actual - expected) / size.clip(min=1e-30)).max()) <= precision


def test_the_instruction_sets_agree_with_torch(isa, dtype, rng):
    x, z = (
        rng.standard_normal((300, 40), dtype),
        xp.cast(rng.standard_normal((70, 40), np.float32), dtype),
    )
    for name in COMPILED:
        kernel = kernels.make(name, lengthscale=6.0)
        if kernel.nonnegative:
            x, z = np.abs(x), np.abs(z)
        mine = NativeEngine(instructions=isa).block(kernel, x, z)
        theirs = TiledEngine().block(kernel, x, z)
        assert_close(mine, theirs, rtol=1e3 * xp.finfo(dtype).eps, atol=ENTRY[dtype] / 10)


def test_denormal_entries_are_as_fast_to_zero_as_others(isa, dtype):
    """Entries next to the smallest normal number are zero, or it, and products stay finite."""
    x = np.linspace(0, 60, 500, dtype=dtype)[:, None]
    for kernel in (Gaussian(), Laplacian(0.5), L1Laplacian(0.4)):
        engine = NativeEngine(instructions=isa)
        K = engine.block(kernel, x, x)
        smallest = xp.finfo(dtype).tiny
        assert bool(((smallest / 2 >= K) | (smallest <= K)).all())
        assert bool(np.isfinite(engine.matvec(kernel, x, x, x)).all())


def test_sums_over_a_million_rows_keep_their_digits(isa):
    """Added one after the other in float32, entries lose 3 to 5 digits; here none."""
    n = 1 << 20
    x, z = np.zeros((n, 1), np.float32), np.array([[0.7], [1.3], [1.9]], dtype=np.float32)
    K = Gaussian()(xp.to_float64(x[:1]), xp.to_float64(z))
    engine = NativeEngine(instructions=isa)
    sums = engine.normal(Gaussian(), x, z, None, targets=-np.ones((n, 1), np.float32))[:, 0]
    assert float(np.abs(sums / (n * K[0]) - 1).max()) <= 1e-6
    running = [np.cumsum(np.full(n, float(k), np.float32))[-1] / (n * float(k)) for k in K[0]]
    assert np.abs(np.array(running) - 1).min() > 1e-4


@pytest.mark.parametrize("how", ["product", "minmax"])
@pytest.mark.parametrize("d", [1, 20, 1024])
def test_shares_of_bits_and_counts_are_those_of_torch(how, d, isa, dtype, rng):
    """Of rows without anything, too, and exactly 1 of equal ones."""
    x = xp.cast(0 + rng.integers(4 - 0, size=(61, d)), dtype)
    x[rng.random((61, d), np.float32) < 0.6] = 0.0
    x[3], x[17], x[-1] = 0.0, 0.0, x[-2]
    kernel, engine = kernels.Tanimoto(counts=how), NativeEngine(1, isa)
    K = engine.block(kernel, x, x[:50])
    assert_close(K, kernel(x, x[:50]), rtol=0, atol=4 * xp.finfo(dtype).eps)
    assert bool((K[[3, 17]][:, [3, 17]] == 1).all())
    assert bool((xp.diagonal(K) == 1).all())


@pytest.mark.parametrize("kernel", [kernels.Tanimoto(), kernels.ChiSquared(2.0)], ids=str)
def test_compiled_tiles_refuse_negative_features_by_their_number(kernel):
    x = np.ones((60, 4), np.float32)
    bad = xp.copy(x)
    bad[51, 2] = -0.5
    for left, right in ((x, bad), (bad, x)):
        with pytest.raises(ValueError, match=r"at least 0.* feature 2 has -0\.5"):
            NativeEngine(threads=1).block(kernel, left, right)


# --- what is computed how ------------------------------------------------------------------------


def test_these_kernels_have_compiled_tiles():
    assert set(ALWAYS) <= set(COMPILED)


def test_products_of_rows_are_used_where_they_keep_the_digits():
    f32, f64 = np.float32, np.float64
    assert distances(Gaussian(), 2.0, 4, f32) == (False, f32)
    assert distances(Gaussian(), 50.0, 4, f32) == (True, f32)
    assert distances(Gaussian(), 2.0, 90, f32) == (False, f32)
    assert distances(Gaussian(), 1e3, 90, f32) == (True, f32)
    assert distances(Gaussian(), 1e4, 90, f32) == (False, f64)
    assert distances(Laplacian(), 2.0, 90, f32) == (False, f32)
    assert distances(Laplacian(), 2.0, 4, f32) == (True, f32)
    assert distances(L1Laplacian(), 0.5, 90, f32) == (False, f32)
    assert distances(L1Laplacian(), 40.0, 90, f32) == (True, f32)
    assert distances(L1Laplacian(), 1e3, 90, f32)[1] == f64
    assert distances(Linear(), 1e9, 90, f32) == (False, f32)
    for reach in (float("inf"), 1e300):
        assert distances(Gaussian(), reach, 90, f32) == (True, f64)


def test_which_kernels_have_compiled_tiles(dtype):
    engine = NativeEngine(threads=1)
    for kernel in (Gaussian() + Linear(), Gaussian() * Laplacian()):
        assert not engine.covers(kernel, dtype=dtype, sparse=False)
        with pytest.raises(ValueError, match="engine=NativeEngine has no tiles for"):
            KernelOperator(
                kernel, np.zeros((3, 2), np.float32), np.zeros((3, 2), np.float32), engine
            )
    for name in COMPILED:
        assert engine.covers(2.0 * (3.0 * kernels.make(name)), dtype=dtype, sparse=False)
        assert not engine.covers(kernels.make(name), dtype=dtype, sparse=True)


def test_what_is_not_covered_is_refused_without_rows_too(dtype):
    engine, kernel = NativeEngine(threads=1), Gaussian() + Linear()
    x, v = np.zeros((3, 2), dtype), np.zeros((3, 1), dtype)
    for call in (
        lambda: engine.matvec(kernel, x[:0], x, v),
        lambda: engine.normal(kernel, x[:0], x, v),
        lambda: engine.symmetric(kernel, x[:0], v[:0]),
        lambda: engine.block(kernel, x, x[:0]),
    ):
        with pytest.raises(ValueError, match="engine=NativeEngine has no tiles for"):
            call()


@pytest.mark.parametrize(
    ("kernel", "sparse", "what"),
    [
        (Gaussian() + Laplacian(), False, "Sum"),
        (2.0 * (Gaussian() * Laplacian()), False, "Scaled"),
        (Gaussian(), True, "sparse rows"),
    ],
    ids=["sum", "product", "sparse"],
)
def test_what_has_no_compiled_tiles_is_refused_or_computed_with_another_engine(
    kernel, sparse, what, dtype
):
    asked = {"dtype": dtype, "kernel": kernel, "sparse": sparse}
    assert choose_engine("auto", **asked) == TiledEngine()
    for spec in ("native", NativeEngine(), MultiDeviceEngine((NativeEngine(),) * 2)):
        with pytest.raises(ValueError, match=f"has no tiles for {what}.*engine='auto'"):
            choose_engine(spec, **asked)
    X = np.random.default_rng(0).standard_normal((60, 3))
    rows = scipy.sparse.csr_array(X) if sparse else X
    with pytest.raises(ValueError, match="engine='native' has no tiles for"):
        KernelRidge(
            kernel=kernel, landmarks=20, engine="native", lengthscale="median", penalty=1e-6
        ).fit(rows, X[:, 0])
    est = KernelRidge(
        kernel=kernel, landmarks=20, random_state=0, lengthscale="median", penalty=1e-6
    ).fit(rows, X[:, 0])
    assert est.engine_ == TiledEngine()
    assert KernelOperator(kernel, rows, rows).engine == TiledEngine()


def test_a_model_of_dense_rows_predicts_sparse_ones():
    X = np.random.default_rng(0).standard_normal((60, 3))
    settings = {"landmarks": 20, "standardize": False, "random_state": 0}
    est = KernelRidge(**(PLAIN | settings)).fit(X, X[:, 0])
    expected = est.predict(X)
    np.testing.assert_allclose(est.predict(scipy.sparse.csr_array(X)), expected, atol=1e-9)
    asked = KernelRidge(**(PLAIN | settings), engine=NativeEngine()).fit(X, X[:, 0])
    assert asked.engine_ == est.engine_ == NativeEngine()
    with pytest.raises(ValueError, match="engine=NativeEngine has no tiles for sparse rows"):
        asked.predict(scipy.sparse.csr_array(X))
    centered = est.set_params(standardize=True).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"sparse rows cannot be centered.*pass dense rows"):
        centered.predict(scipy.sparse.csr_array(X))


def test_a_kernel_of_another_package_is_not_taken_for_one_of_ours():
    class Other(Gaussian):
        pass

    Other.__module__ = "other"
    assert not NativeEngine().covers(Other(), dtype=np.float32, sparse=False)


@pytest.mark.parametrize(
    "kernel", [Gaussian("median"), Gaussian((1.0, 2.0))], ids=["median", "two"]
)
def test_a_kernel_that_does_not_fit_is_refused(kernel):
    with pytest.raises(
        ValueError, match=r"has no value yet|has 2 lengthscales but the rows have 3"
    ):
        NativeEngine().block(kernel, np.zeros((4, 3), np.float32), np.zeros((5, 3), np.float32))


# --- two at once ---------------------------------------------------------------------------------


def test_two_fits_at_once_give_what_each_gives_alone():
    random = np.random.default_rng(0)
    X = random.standard_normal((1500, 6)).astype(np.float32)
    y = np.sin(X.sum(axis=1))
    scales = (1.5, 3.0)

    def fit(lengthscale: float) -> np.ndarray:
        model = KernelRidge(
            landmarks=200,
            lengthscale=lengthscale,
            engine=NativeEngine(threads=2),
            random_state=0,
            kernel="gaussian",
            penalty=1e-6,
            max_iter=200,
        )
        return model.fit(X, y).predict(X)

    alone = [fit(scale) for scale in scales]
    together: dict[float, np.ndarray] = {}
    threads = [threading.Thread(target=lambda s=s: together.update({s: fit(s)})) for s in scales]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for scale, expected in zip(scales, alone, strict=True):
        np.testing.assert_allclose(together[scale], expected, rtol=0, atol=1e-4)


def compiled_plan(dtype: type = np.float64) -> Any:
    """Return the Gaussian kernel at ten columns of three features."""
    native = import_module(NATIVE_MODULE)
    z = np.linspace(-1, 1, 30).reshape(10, 3).astype(dtype)
    shape = (np.zeros(3), np.ones(3))
    plan = native.Plan("best", "gaussian", 0.0, 0.0, 1.0, False, dtype is np.float32, z, *shape,
                       None, 0, 0, 0.0)  # fmt: skip
    plan.pack(z, 0, 10)
    return plan


Z = np.linspace(-1, 1, 30).reshape(10, 3)
OUT, NUMBER, WIDE = np.zeros((10, 1)), np.array(1.0), 2**61
ROWS = (np.array([0, 3]), np.array([0, 1, 2]), np.ones(3))
MISFITS: dict[str, Callable[[Any, Any], object]] = {
    "0-d columns": lambda plan, m: m.Plan("best", "gaussian", 0.0, 0.0, 1.0, False, False, NUMBER,
                                          np.zeros(3), np.ones(3), None, 0, 0, 0.0),
    "offset": lambda plan, m: m.Plan("best", "gaussian", 0.0, 0.0, 1.0, False, False, Z,
                                     np.zeros(3), np.ones(3), np.ones(10), 2**63 - 1, 0, 0.0),
    "0-d rows": lambda plan, m: plan.matvec(NUMBER, 0, 10, ones(plan), OUT),
    "0-d v": lambda plan, m: plan.matvec(Z, 0, 10, NUMBER, OUT),
    "0-d v, symmetric": lambda plan, m: plan.symmetric(Z, 0, 1, NUMBER, OUT),
    "0-d v, gradients": lambda plan, m: plan.gradients(Z, 0, 10, Z, NUMBER, OUT),
    "0-d out": lambda plan, m: plan.normal(Z, 0, 10, None, None, None, NUMBER),
    "empty v of many columns": lambda plan, m: plan.matvec(
        Z, 0, 0, np.empty((WIDE, 0)), np.empty((0, WIDE))),
    "rows without features": lambda plan, m: m.reach(
        "best", np.empty((WIDE, 0)), np.zeros(0), np.ones(0), 2),
    "entries without columns": lambda plan, m: m.multiply_stored(
        "best", np.empty((WIDE, 0)), None, 0, WIDE, np.empty((1, 0)), None, None, None, None, 1,
        False),
    "0-d sums": lambda plan, m: m.multiply_stored(
        "best", Z, None, 0, 10, np.ones((1, 3)), None, None, None, NUMBER, 1, True),
    "t of nothing": lambda plan, m: m.multiply_stored(
        "best", Z, None, 0, 10, None, None, None, None, None, WIDE, False),
    "out of many targets": lambda plan, m: m.Columns(
        np.zeros(1, np.int64), np.zeros(1, np.int64)
    ).normal(*ROWS, None, None, None, np.empty((0, WIDE))),
    "strided out": lambda plan, m: plan.matvec(Z, 0, 10, ones(plan), np.zeros((20, 1))[::2]),
    "read-only out": lambda plan, m: plan.matvec(Z, 0, 10, ones(plan), read_only(OUT)),
}  # fmt: skip
"""Calls of the compiled module whose arguments do not fit together."""


def ones(plan: Any) -> np.ndarray:
    """Return a vector of ones as the tiles read it, zero where there is no column."""
    return np.pad(np.ones((1, 10)), ((0, 0), (0, plan.width - 10)))


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("name", MISFITS)
def test_arguments_that_do_not_fit_are_refused(name):
    with pytest.raises((TypeError, ValueError)):
        MISFITS[name](compiled_plan(), import_module(NATIVE_MODULE))


def test_strips_beyond_the_last_one_add_nothing():
    plan, out = compiled_plan(), np.zeros((1, 10))
    v = ones(plan)
    for first, step in ((2**61, 1), (2**63 - 1, 2**63 - 1), (1, 2**60)):
        plan.symmetric(Z, first, step, v, out)
    assert (out == 0).all()
    plan.symmetric(Z, 0, 2**60, v, out)  # the sum 0 + step * 48 does not overflow
    expected = np.zeros((10, 1))
    plan.matvec(Z, 0, 10, v, expected)
    np.testing.assert_allclose(out[0], expected[:, 0], rtol=1e-14)


def test_degrees_below_one_end():
    native, shape = import_module(NATIVE_MODULE), (np.zeros(3), np.ones(3))
    for degree in (0.0, -1.0, float("nan")):
        plan = native.Plan("best", "polynomial", degree, 1.0, 1.0, False, False, Z, *shape,
                           None, 0, 0, 0.0)  # fmt: skip
        plan.pack(Z, 0, 10)
        plan.gradients(Z, 0, 10, Z, ones(plan), np.zeros((10, 1, 3)))


def test_read_only_inputs_are_accepted():
    plan = compiled_plan()
    v, out, other = ones(plan), np.zeros((10, 1)), np.zeros((10, 1))
    plan.matvec(Z, 0, 10, v, out)
    plan.matvec(read_only(Z), 0, 10, read_only(v), other)
    assert (out == other).all()
    native = import_module(NATIVE_MODULE)
    start, column, value = (read_only(array) for array in ROWS)
    product = np.zeros((1, 3))
    native.SparseRight("best", start, column, value, 3).product(
        read_only(np.array([0, 1])), read_only(np.array([0])), read_only(np.ones(1)), product
    )
    assert (product == 1).all()


@pytest.mark.parametrize("name", COMPILED)
def test_a_kept_product_has_the_bits_of_matvec(name, rng):
    kernel = 0.5 * kernels.make(name)
    z, v = rng.random((100, 5), np.float64), rng.standard_normal((100, 2), np.float64)
    for dtype in (np.float32, np.float64):
        engine, columns = NativeEngine(threads=2), z.astype(dtype)
        product = engine.against(kernel, columns, v)
        for count in (3, 1, 48, 49, 100, 2):
            x = rng.random((count, 5), np.float64).astype(dtype)
            assert np.array_equal(product(x), engine.matvec(kernel, x, columns, v))


def test_a_kept_product_refuses_what_its_kernel_does(rng):
    z, v = rng.random((20, 3), np.float64), np.ones((20, 1))
    product = NativeEngine().against(kernels.make("chi_squared"), z, v)
    product(z[:1])
    with pytest.raises(ValueError, match="features of at least 0"):
        product(-z[:1])
