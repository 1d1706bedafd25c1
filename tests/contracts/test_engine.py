"""Every engine against the kernel itself, for shapes that do not fit its tiles."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from formulas import suited
from tensors import fused_engines
from threads import blas_threads

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian._parallel import workers as _workers
from gramian._parallel.workers import default_threads
from gramian.data import SparseRows
from gramian.engines import choose_covering, native_engine
from gramian.engines._compiled.kernels import instructions
from gramian.engines._devices import count_devices
from gramian.engines._tiles import tiled as _tiled
from gramian.engines.tiled_engine import tiled_on
from gramian.kernels import Gaussian, Kernel, L1Laplacian, Laplacian, Linear
from gramian.operators import (
    Engine,
    KernelOperator,
    MultiDeviceEngine,
    NativeEngine,
    TiledEngine,
    choose_engine,
)

GPU = "cuda" if count_devices() else None

KERNELS = [kernels.make(name, lengthscale=1.7) for name in kernels.names()]
KERNELS += [Gaussian(1.3) + Linear(2.0), 2.5 * Laplacian(1.5) * L1Laplacian(3.0)]

ROW_BY_ROW = "tiles of one row"
TRITON = fused_engines(GPU)
"""Fused tiles, on a GPU if there is one, otherwise interpreted: see conftest.py."""

NATIVE = {f"native {name}": name for name in instructions()[:1]}
"""The best tiles of this machine, if installed; for all of them test_native, test_precision."""

ENGINES: dict[str, Engine] = (
    {
        "default": TiledEngine(),
        ROW_BY_ROW: TiledEngine(tile_bytes=1, threads=1),
        "small tiles": TiledEngine(tile_bytes=1 << 10, threads=3),
    }
    | {name: NativeEngine(threads=2, instructions=isa) for name, isa in NATIVE.items()}
    | TRITON
)

THREADED = {"torch": lambda threads: TiledEngine(tile_bytes=1 << 13, threads=threads)} | {
    name: lambda threads, isa=isa: NativeEngine(threads=threads, instructions=isa)
    for name, isa in NATIVE.items()
}

SHAPES = [  # rows, columns, features, targets
    (1, 1, 1, 1),
    (1, 13, 3, 2),
    (37, 1, 1, 3),
    (53, 29, 2, 17),
    (101, 31, 5, 1),
]


def name(kernel: Kernel) -> str:
    return kernel.to_dict()["name"]


@pytest.fixture(params=THREADED.values(), ids=THREADED.keys())
def threaded(request) -> Callable[[int | None], Engine]:
    """Return a function that makes an engine with so many threads."""
    return request.param


each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=name)


def each_engine_with(kernels: list[Kernel], *, sparse: bool = False) -> pytest.MarkDecorator:
    """Return a mark: each engine, with the kernels and dtypes that it has tiles for.

    The others would be cases of torch by another name. Single rows, which take longest, are fast
    cases with one kernel: what they are cut into has nothing to do with its formula.
    """
    cases = [
        pytest.param(
            engine,
            kernel,
            dtype,
            id=f"{title}-{str(dtype)[6:]}-{name(kernel)}",
            marks=[pytest.mark.slow] if title == ROW_BY_ROW and name(kernel) != "gaussian" else [],
        )
        for title, engine in ENGINES.items()
        for dtype in (np.float32, np.float64)
        for kernel in kernels
        if engine.covers(kernel, dtype=dtype, sparse=sparse)
    ]
    return pytest.mark.parametrize(("engine", "kernel", "dtype"), cases)


each_engine = each_engine_with([Gaussian()])


def draw(rng: RandomStream, *shapes: tuple[int, ...], dtype=np.float64) -> list[np.ndarray]:
    return [xp.cast(rng.standard_normal(shape, np.float64), dtype) for shape in shapes]


def exact(kernel: Kernel, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel matrix in float64; test_kernel.py shows that it is right."""
    return kernel(xp.to_float64(x), xp.to_float64(z))


def bound(kernel: Kernel, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return sqrt(k(x, x) k(z, z)), which no entry exceeds and to which errors are relative."""
    return np.sqrt(np.outer(kernel.diag(xp.to_float64(x)), kernel.diag(xp.to_float64(z))))


def close(actual: np.ndarray, expected: np.ndarray, size: np.ndarray, precision: float) -> None:
    """Compare with errors relative to `size`: the expression with all terms positive."""
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    error = np.abs(actual - expected) / size.clip(min=1e-30)
    assert float(error.max()) <= precision


# --- the four verbs -------------------------------------------------------------------------------


@each_engine_with(KERNELS)
def test_verbs(engine, kernel, dtype, rng, tol):
    # entries are right to 50 eps or so (their norms, in lengthscales); each sum adds a few
    for b, m, d, t in SHAPES:
        x, z, v, y = draw(rng, (b, d), (m, d), (m, t), (b, t), dtype=dtype)
        x, z = suited(kernel, x, z)
        K, B, size = exact(kernel, x, z), bound(kernel, x, z), np.abs(xp.to_float64(v))
        block = engine.block(kernel, x, z)
        assert block.dtype == dtype
        close(xp.to_float64(block), K, B, tol(dtype, 50))
        close(engine.matvec(kernel, x, z, v), K @ xp.to_float64(v), B @ size, tol(dtype, 100))
        normal = engine.normal(kernel, x, z, v, targets=y)
        residual = K @ xp.to_float64(v) - xp.to_float64(y)
        size = B @ size + np.abs(xp.to_float64(y))
        close(normal, K.T @ residual, B.T @ size, tol(dtype, 100))


@each_engine_with(KERNELS)
@pytest.mark.usefixtures("unchecked")
def test_the_symmetric_product(engine, kernel, dtype, rng, tol):
    for n, d, t in [(1, 1, 1), (53, 3, 2), (130, 5, 17)]:
        x, v = draw(rng, (n, d), (n, t), dtype=dtype)
        (x,) = suited(kernel, x)
        K, B = exact(kernel, x, x), bound(kernel, x, x)
        xp.assign_(xp.diagonal(K), kernel.diag(xp.to_float64(x)))
        close(
            engine.symmetric(kernel, x, v),
            K @ xp.to_float64(v),
            B @ np.abs(xp.to_float64(v)),
            tol(dtype, 100),
        )


@each_engine
@pytest.mark.parametrize("use_v", [True, False], ids=["v", "no v"])
@pytest.mark.parametrize("use_weights", [True, False], ids=["weights", "equal weights"])
@pytest.mark.parametrize("use_targets", [True, False], ids=["targets", "no targets"])
def test_normal_with_weights_and_targets(
    engine, kernel, use_v, use_weights, use_targets, dtype, rng, tol
):
    for b, t in [(1, 3), (41, 1), (43, 17)]:
        x, z, v, y = draw(rng, (b, 2), (13, 2), (13, t), (b, t), dtype=dtype)
        w = rng.random(b, dtype)
        w[0] = 0.0  # a row that does not count
        given = {"weights": w if use_weights else None, "targets": y if use_targets else None}
        if not (use_v or use_targets):
            with pytest.raises(ValueError, match="normal needs v, targets or both"):
                engine.normal(kernel, x, z, None, **given)
            continue
        actual = engine.normal(kernel, x, z, v if use_v else None, **given)
        K = exact(kernel, x, z)
        residual = use_v * (K @ xp.to_float64(v)) - use_targets * xp.to_float64(y)
        expected = K.T @ (residual * (xp.to_float64(w)[:, None] if use_weights else 1.0))
        size = K.T @ (K @ np.abs(xp.to_float64(v)) + np.abs(xp.to_float64(y)))
        close(actual, expected, size, tol(dtype, 100))


@pytest.mark.parametrize("m", [4096, 4097, 9001])
@pytest.mark.parametrize("tile_bytes", [1 << 16, 1 << 22])
def test_more_columns_than_a_tile_has(m, tile_bytes, dtype, rng, tol):
    many_columns(TiledEngine(tile_bytes=tile_bytes), Gaussian(), m, dtype, rng, tol)


@each_engine
@pytest.mark.parametrize("m", [2047, 2049, pytest.param(9001, marks=pytest.mark.slow)])
def test_more_columns_than_are_summed_in_the_dtype_of_the_tiles(engine, kernel, m, dtype, rng, tol):
    many_columns(engine, kernel, m, dtype, rng, tol)


def many_columns(engine, kernel, m, dtype, rng, tol):
    x, z, v = draw(rng, (37, 3), (m, 3), (m, 2), dtype=dtype)
    K, v64 = exact(kernel, x, z), xp.to_float64(v)
    close(xp.to_float64(engine.block(kernel, x, z)), K, np.ones_like(K), tol(dtype, 50))
    # float32 sums of a tile of 4,096 columns: some 10 eps more
    close(engine.matvec(kernel, x, z, v), K @ v64, K @ np.abs(v64), tol(dtype, 100))
    close(engine.normal(kernel, x, z, v), K.T @ (K @ v64), K.T @ (K @ np.abs(v64)), tol(dtype, 100))


# --- rows that both sides share ------------------------------------------------------------------

OFFSETS = [-41, -40, -7, 0, 5, 28, 29]
"""Row i of x, of 41, is row i + offset of z, of 29: from -41 down and from 29 up none is."""


@each_engine_with([Laplacian(0.1), Linear(), 3.0 * Gaussian(0.2)])
def test_the_diagonal_is_exact_where_rows_are_shared(engine, kernel, dtype, rng):
    for offset in OFFSETS:
        x, z = (u + 100 for u in draw(rng, (41, 4), (29, 4), dtype=dtype))
        shared = [(i, i + offset) for i in range(41) if 0 <= i + offset < 29]
        i, j = np.array(shared, dtype=np.int64).reshape(-1, 2).T
        x[i] = z[j]
        K = engine.block(kernel, x, z, diagonal=offset)
        assert np.array_equal(K[i, j], kernel.diag(z)[j])
        rest = np.ones_like(K, dtype=np.bool_)
        rest[i, j] = False
        assert np.array_equal(K[rest], engine.block(kernel, x, z)[rest])


@each_engine_with([Gaussian(0.3)])
def test_products_have_the_diagonal_of_the_block(engine, kernel, dtype, rng, tol):
    # x and z share no row here: the diagonal is wrong on purpose, so that it shows
    x, z, v = draw(rng, (41, 4), (29, 4), (29, 2), dtype=dtype)
    v64 = xp.to_float64(v)
    B = bound(kernel, x, z)
    for offset in OFFSETS:
        K = xp.to_float64(engine.block(kernel, x, z, diagonal=offset))
        product = engine.matvec(kernel, x, z, v, diagonal=offset)
        close(product, K @ v64, B @ np.abs(v64), tol(dtype, 50))
        normal = engine.normal(kernel, x, z, v, diagonal=offset)
        close(normal, K.T @ (K @ v64), B.T @ (B @ np.abs(v64)), tol(dtype, 50))


# --- forms of the arguments ----------------------------------------------------------------------


def strided(x: np.ndarray) -> np.ndarray:
    """Return `x` in memory that is contiguous in no direction."""
    room = np.full((3 * x.shape[1], 2 * x.shape[0]), np.nan, dtype=x.dtype)
    view = room[::3, ::2].T
    xp.assign_(view, x)
    return view


@each_engine_with(KERNELS)
def test_inputs_need_not_be_contiguous(engine, kernel, dtype, rng, tol):
    x, z, v, y = draw(rng, (23, 3), (17, 3), (17, 2), (23, 2), dtype=dtype)
    x, z = suited(kernel, x, z)
    w = rng.random(23, dtype)
    x2, z2, v2, y2, w2 = strided(x), strided(z), strided(v), strided(y), strided(w[:, None])[:, 0]
    B, size = bound(kernel, x, z), np.abs(xp.to_float64(v))
    block = engine.block(kernel, x, z)
    close(xp.to_float64(engine.block(kernel, x2, z2)), xp.to_float64(block), B, tol(dtype, 50))
    product = engine.matvec(kernel, x, z, v)
    close(engine.matvec(kernel, x2, z2, v2), product, B @ size, tol(dtype, 100))
    normal = engine.normal(kernel, x, z, v, weights=w, targets=y)
    actual = engine.normal(kernel, x2, z2, v2, weights=w2, targets=y2)
    close(actual, normal, B.T @ (B @ size + np.abs(xp.to_float64(y))), tol(dtype, 100))


@each_engine_with(KERNELS)
def test_inputs_are_left_alone(engine, kernel, dtype, rng):
    given = draw(rng, (9, 3), (7, 3), (7, 2), (9, 2), (9,), dtype=dtype)
    given[:2] = suited(kernel, *given[:2])
    before = [xp.copy(u) for u in given]
    x, z, v, y, w = given
    engine.block(kernel, x, z, diagonal=0)
    engine.matvec(kernel, x, z, v, diagonal=0)
    engine.normal(kernel, x, z, v, weights=w, targets=y, diagonal=0)
    engine.normal(kernel, x, z, None, weights=w, targets=y)
    assert all(np.array_equal(a, b) for a, b in zip(given, before, strict=True))


@each_engine_with([k for k in KERNELS if k.sparse_ok], sparse=True)
def test_sparse_rows(engine, kernel, dtype, rng, tol):
    x, z, v, y = draw(rng, (43, 6), (17, 6), (17, 2), (43, 2), dtype=dtype)
    x, z = suited(kernel, x, z)
    x[rng.random(x.shape, np.float32) < 0.7] = 0.0
    x[5] = 0.0
    csr = SparseRows(scipy.sparse.csr_matrix(x)).take(np.arange(43))
    K, B = exact(kernel, x, z), bound(kernel, x, z)
    # sparse rows are not centered; at a kink that leaves sqrt(eps) of float64
    precision = max(tol(dtype, 100), 1e-7)
    close(xp.to_float64(engine.block(kernel, csr, z)), K, B, precision)
    v, y, size = xp.to_float64(v), xp.to_float64(y), np.abs(xp.to_float64(v))
    close(engine.matvec(kernel, csr, z, v), K @ v, B @ size, precision)
    residual, size = K @ v - y, B @ size + np.abs(y)
    close(engine.normal(kernel, csr, z, v, targets=y), K.T @ residual, B.T @ size, precision)


@each_engine
@pytest.mark.parametrize("other", [np.float32, np.float64])
def test_vectors_may_have_another_dtype(engine, kernel, other, dtype, rng, tol):
    x, z = draw(rng, (23, 3), (17, 3), dtype=dtype)
    v, y, w = (xp.cast(u, other) for u in draw(rng, (17, 2), (23, 2), (23,)))
    K = exact(kernel, x, z)
    worse = np.float32 if np.float32 in (dtype, other) else np.float64
    product = engine.matvec(kernel, x, z, v)
    close(product, K @ xp.to_float64(v), K @ np.abs(xp.to_float64(v)), tol(worse, 100))
    actual = engine.normal(kernel, x, z, None, weights=w, targets=-y)
    wy = xp.to_float64(w[:, None] * y)
    close(actual, K.T @ wy, K.T @ np.abs(wy), tol(worse, 100))


# --- threads -------------------------------------------------------------------------------------


def products(engine: Engine, rng: RandomStream, dtype=np.float32) -> list[np.ndarray]:
    """Return what each verb gives for one fixed problem that fills many tiles."""
    rng = RandomStream(1)
    x, z, v, y = draw(rng, (499, 5), (101, 5), (101, 3), (499, 3), dtype=dtype)
    kernel = Laplacian(2.0)
    return [
        engine.block(kernel, x, z),
        engine.matvec(kernel, x, z, v),
        engine.normal(kernel, x, z, v, targets=y),
        engine.symmetric(kernel, x, y),
        engine.gradients(kernel, x, z, v),
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_each_run_gives_the_same_bits(threaded, threads, dtype, rng):
    engine = threaded(threads)
    first = products(engine, rng, dtype)
    for _ in range(2):
        assert all(map(np.array_equal, products(engine, rng, dtype), first))


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_more_than_rounding(threaded, threads, dtype, rng, tol):
    few = products(threaded(1), rng, dtype)
    many = products(threaded(threads), rng, dtype)
    for a, b in zip(few, many, strict=True):
        assert_close(a, b, rtol=0, atol=tol(dtype, 50) * float(np.abs(a).max()))


def flushes_denormals() -> bool:
    return (np.array([1e-310]) * 1.0)[0] == 0.0


@pytest.mark.parametrize("threads", [1, 2])
def test_settings_of_the_caller_are_as_before(threaded, threads, rng):
    for count in (1, 2, 3):
        with blas_threads(count):
            products(threaded(threads), rng)
            assert default_threads() == count
            assert not flushes_denormals()


def test_settings_are_as_before_after_an_error(threaded, rng):
    before = default_threads()
    x, z, v = draw(rng, (50, 3), (20, 3), (19, 1))  # v is too short
    with pytest.raises((RuntimeError, ValueError)):
        threaded(2).normal(Gaussian(), x, z, v)
    assert default_threads() == before
    assert not flushes_denormals()


LENGTH = 120_000
LONG: dict[str, Callable[[Engine, np.ndarray], np.ndarray]] = {
    "matvec": lambda engine, x: engine.matvec(Gaussian(), x[:LENGTH], x[:LENGTH], x[:LENGTH]),
    "normal": lambda engine, x: engine.normal(Gaussian(), x[:LENGTH], x[:LENGTH], x[:LENGTH]),
    "symmetric": lambda engine, x: engine.symmetric(Gaussian(), x[:LENGTH], x[:LENGTH]),
    "block": lambda engine, x: engine.block(L1Laplacian(), *[x.reshape(-1, 2000)] * 2),
    "gradients": lambda engine, x: engine.gradients(Gaussian(), *[x[:LENGTH]] * 3),
}
"""Calls of which each part takes seconds."""


class Presser:
    """Interrupts the main thread, once, from the time on that `press` is called."""

    def __init__(self) -> None:
        self._main, self._done = threading.get_ident(), threading.Event()
        self._thread = threading.Thread(target=self._repeat)

    def __enter__(self) -> Presser:
        self._before = signal.signal(signal.SIGUSR1, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        signal.signal(signal.SIGUSR1, self._before)

    def press(self) -> None:
        if self._thread.ident is None:
            self._thread.start()

    def _repeat(self) -> None:
        while not self._done.wait(0.02):  # a signal just before a wait is noticed after it only
            signal.pthread_kill(self._main, signal.SIGUSR1)

    def _interrupt(self, *_: object) -> None:
        if not self._done.is_set():
            self._done.set()
            raise KeyboardInterrupt


@pytest.mark.parametrize("verb", LONG)
def test_an_interruption_ends_the_work_of_the_threads(threaded, verb, rng, monkeypatch):
    """A process cannot end before its threads have: Ctrl-C stops them within their tile."""
    ends: list[str] = []
    assert list(_workers.run(1, abs, [-1])) == [1]  # and there is a thread
    (x,) = draw(rng, (6_000_000, 1), dtype=np.float32)
    with Presser() as presser:

        def run(threads, function, items, stop, **given):
            def watched(item):
                presser.press()
                try:
                    result = function(item)
                except RuntimeError as error:
                    ends.append(str(error))
                    raise
                ends.append("finished")
                return result

            return _workers.run(threads, watched, items, stop, **given)

        for module in (native_engine, _tiled):
            monkeypatch.setattr(module, "run", run)
        with pytest.raises(KeyboardInterrupt):
            LONG[verb](threaded(1), x)
    assert list(_workers.run(1, abs, [-1])) == [1]  # all else that was begun is over
    assert set(ends) == {"stopped: the result is incomplete"}


def test_callers_at_once_get_right_answers_and_their_settings_back(threaded, rng):
    engine = threaded(None)
    expected, before = products(engine, rng), default_threads()
    barrier = threading.Barrier(3)
    seen: list[tuple[bool, int, int]] = []

    def work() -> None:
        generator, count = RandomStream(0), default_threads()
        barrier.wait()
        for _ in range(5):
            right = all(map(np.array_equal, products(engine, generator), expected))
            seen.append((right, count, default_threads()))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    work()
    for worker in workers:
        worker.join()
    assert seen == [(True, before, before)] * 15
    assert default_threads() == before


def in_child(queue, engine: Engine) -> None:
    results = products(engine, RandomStream(0))
    queue.put([xp.to_float64(result).sum().item() for result in results])


def test_works_in_a_forked_child(threaded, rng):
    engine = threaded(2)
    expected = [xp.to_float64(result).sum().item() for result in products(engine, rng)]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=in_child, args=(queue, engine))
    child.start()
    try:
        child.join(30)
        assert child.exitcode == 0, "the child hangs: it waits for threads that only its parent has"
    finally:
        child.kill()
        child.join()
    assert queue.get() == expected


# --- what an engine has no tiles for --------------------------------------------------------------


@pytest.mark.parametrize("given", ENGINES.values(), ids=ENGINES.keys())
@each_kernel
def test_what_is_not_covered_is_refused_and_never_computed_otherwise(given, kernel, dtype, rng):
    x, v = draw(rng, (9, 4), (9, 2), dtype=dtype)
    (x,) = suited(kernel, x)
    csr = SparseRows(scipy.sparse.csr_matrix(x)).take(np.arange(9))
    for rows in [x, csr] if kernel.sparse_ok else [x]:
        sparse = rows is csr
        calls = [
            lambda rows=rows: given.matvec(kernel, rows, x, v),
            lambda rows=rows: given.normal(kernel, rows, x, v),
            lambda rows=rows: given.block(kernel, rows, x),
            *([] if sparse else [lambda: given.symmetric(kernel, x, v)]),
        ]
        if given.covers(kernel, dtype=dtype, sparse=sparse):
            assert all(call() is not None for call in calls)
            assert choose_covering(given, kernel, dtype=dtype, sparse=sparse) is given
            continue
        for call in calls:
            with pytest.raises(ValueError, match=r"has no tiles for .*engine='auto'"):
                call()
        assert isinstance(choose_covering(given, kernel, dtype=dtype, sparse=sparse), TiledEngine)


class NoFloat64(TiledEngine):
    """An engine for float32 rows, with some memory of its own, as that of a GPU."""

    def covers(self, kernel: Kernel, *, dtype: np.dtype, sparse: bool) -> bool:
        return dtype == np.float32

    def device_bytes(self) -> int:
        return 1 << 26

    def matvec(self, kernel, x, z, v, *, diagonal=None):
        assert x.dtype == np.float32
        return super().matvec(kernel, x, z, v, diagonal=diagonal)


def test_an_operator_says_what_it_computes_with(rng):
    x, v = draw(rng, (41, 3), (29, 2), dtype=np.float32)
    one, stand_in = NoFloat64(), TiledEngine()
    for given, expected, limit in [
        (one, stand_in, 1 << 26),
        (MultiDeviceEngine((one, one)), MultiDeviceEngine((stand_in, stand_in)), 1 << 27),
    ]:
        with pytest.raises(ValueError, match="has no tiles for rows in float64"):
            KernelOperator(Gaussian(), xp.to_float64(x), xp.to_float64(x), given)
        K = KernelOperator(Gaussian(), x, x[:29], given)
        assert K.engine is K[:5].engine is given
        double = xp.to_float64(K)
        assert double.engine == double.T.engine == expected
        assert (K.memory_bytes, double.memory_bytes) == (1 << 30, limit)
        K64 = exact(Gaussian(), x, x[:29])
        assert_close(double @ xp.to_float64(v), K64 @ xp.to_float64(v), rtol=0, atol=1e-12)


@each_engine
def test_no_rows_and_no_columns_give_products_of_their_shapes(engine, kernel, dtype, rng):
    x, v, y = draw(rng, (5, 3), (5, 2), (5, 2), dtype=dtype)
    none, nothing = x[:0], v[:0]
    assert engine.block(kernel, none, x).shape == (0, 5)
    assert engine.block(kernel, x, none).shape == (5, 0)
    for product, expected in [
        (engine.matvec(kernel, none, x, v), (0, 2)),
        (engine.matvec(kernel, x, none, nothing), (5, 2)),
        (engine.normal(kernel, none, x, v, targets=nothing), (5, 2)),
        (engine.normal(kernel, x, none, nothing, targets=y), (0, 2)),
    ]:
        assert product.shape == expected
        assert product.dtype == np.float64
        assert not product.any()


# --- numbers that float32 has trouble with -------------------------------------------------------


@each_engine_with([kernel for kernel in KERNELS if kernel.dim is None])
def test_far_points_give_finite_entries(engine, kernel, dtype, tol):
    x = np.array([[0.0], [1e2], [1e4], [1e4]], dtype=dtype)
    z = np.array([[0.0], [1.0], [1e4]], dtype=dtype)
    K = xp.to_float64(engine.block(kernel, x, z))
    assert bool(np.isfinite(K).all())
    # float64 keeps eight digits of a distance that is 1e-8 of the squares it is the difference of
    close(K, exact(kernel, x, z), bound(kernel, x, z), max(tol(dtype, 100), 1e-7))


@each_engine
def test_a_nan_is_not_hidden(engine, kernel, dtype):
    x = np.zeros((3, 2), dtype)
    x[1, 0] = np.nan
    K = engine.block(kernel, x, np.zeros((4, 2), dtype))
    assert np.array_equal(np.isnan(K).any(axis=1), np.array([False, True, False]))


# --- memory formula, choice ----------------------------------------------------------------------


@pytest.mark.parametrize("tile_bytes", [1, 1 << 22])
def test_workspace_grows_with_everything(tile_bytes):
    engine = TiledEngine(tile_bytes=tile_bytes, threads=2)
    base = {"m": 100, "d": 5, "t": 2, "itemsize": 4}
    for key in base:
        more = base | {key: 2 * base[key]}
        assert engine.workspace_bytes(**more) >= engine.workspace_bytes(**base)
    assert engine.workspace_bytes(**base) >= 2 * tile_bytes
    assert engine.row_bytes(5, 2, 4) >= 5 * 4


def test_the_compiled_engine_says_what_it_needs_to_work(threaded):
    base = {"m": 100, "d": 5, "t": 2, "itemsize": 4}
    for threads in (1, 2):
        engine, more = threaded(threads), threaded(threads + 1)
        for key in base:
            larger = engine.workspace_bytes(**base | {key: 2 * base[key]})
            assert larger >= engine.workspace_bytes(**base) > 100 * 5 * 4
        assert more.workspace_bytes(**base) > engine.workspace_bytes(**base)
        assert engine.row_bytes(5, 2, 4) >= 5 * 4


@pytest.mark.parametrize("spec", ["torch", "torch:cpu"])
def test_choose_engine_on_the_cpu(spec, dtype):
    assert choose_engine(spec, dtype=dtype) == TiledEngine()


def test_the_compiled_engine_is_chosen_where_it_is_installed(dtype):
    fast = bool(instructions()) and instructions()[0] != "portable"
    assert choose_engine("auto", dtype=dtype) == (NativeEngine() if fast else TiledEngine())


@pytest.mark.skipif(bool(TRITON) and GPU is not None, reason="there is a GPU")
def test_auto_multiplies_bilinear_kernels_by_factors(dtype):
    assert choose_engine("auto", dtype=dtype, kernel=Linear()) == TiledEngine()


def test_auto_leaves_portable_tiles_aside(monkeypatch):
    monkeypatch.setattr("gramian.engines.choose.instructions", lambda: ["portable"])
    assert choose_engine("auto", dtype=np.float32) == TiledEngine()


def test_the_compiled_engine_is_not_replaced_where_it_is_missing(dtype, monkeypatch):
    monkeypatch.setattr(
        "gramian.engines._compiled.kernels.NATIVE_MODULE", "gramian.engines._not_there"
    )
    assert choose_engine("auto", dtype=dtype) == TiledEngine()
    with pytest.raises(ValueError, match=r"'native' needs the compiled tiles.*pip install"):
        choose_engine("native", dtype=dtype)


def test_instructions_that_the_machine_lacks_are_refused():
    message = "instructions='abacus' are not available" if NATIVE else "needs the compiled tiles"
    with pytest.raises(ValueError, match=message):
        NativeEngine(instructions="abacus")


def test_choose_engine_gives_an_engine_back(dtype):
    engine = TiledEngine(tile_bytes=12345)
    assert choose_engine(engine, dtype=dtype) is engine
    assert replace(engine, threads=2) != engine


@pytest.mark.parametrize(
    "spec", ["fast", "", "torch:", "torch:tpu", "cuda", "torch:cudax", "torch:cuda:0,", "TORCH"]
)
def test_choose_engine_refuses_unknown_names(spec):
    with pytest.raises(
        ValueError, match=f"unknown engine '{spec}'; known: auto, native, native:fast, numpy"
    ):
        choose_engine(spec, dtype=np.float32)


@pytest.mark.parametrize("spec", ["torch:cuda", "torch:cuda:1", "torch:cuda:0,1"])
def test_an_engine_that_cannot_run_is_not_replaced(spec, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"engine='{spec}' needs a CUDA device.*engine='auto'"):
        choose_engine(spec, dtype=np.float32)


@pytest.mark.parametrize("bad", [np.float16, np.int64])
@pytest.mark.parametrize("spec", ["auto", TiledEngine()], ids=["auto", "engine"])
def test_engines_compute_in_float32_or_float64(spec, bad):
    with pytest.raises(ValueError, match="float32 or float64, not in"):
        choose_engine(spec, dtype=bad)


def test_rows_split_over_engines_give_what_one_gives(dtype, rng, tol):
    """To rounding, as fewer rows are another call of BLAS; to the bit if they are as many."""
    whole = products(TiledEngine(threads=1), rng, dtype)
    split = products(MultiDeviceEngine((TiledEngine(threads=1),) * 2), rng, dtype)
    for one, two in zip(whole, split, strict=True):
        assert_close(one, two, rtol=0, atol=tol(dtype, 50) * float(np.abs(one).max()))
    assert all(
        map(
            np.array_equal,
            products(MultiDeviceEngine((TiledEngine(threads=1),) * 2), rng, dtype),
            split,
        )
    )


@pytest.mark.parametrize("n", [1, 2, 41])
def test_rows_split_over_engines_keep_their_place(n, dtype, rng, tol):
    """Weights, targets, sparse rows and the exact diagonal go with the rows of each part."""
    one, two = (
        TiledEngine(threads=1),
        MultiDeviceEngine((TiledEngine(threads=1), TiledEngine(threads=2))),
    )
    x, z, v, y = draw(rng, (n, 4), (29, 4), (29, 2), (n, 2), dtype=dtype)
    w, csr = np.abs(y[:, 0]), SparseRows(scipy.sparse.csr_matrix(x)).take(np.arange(n))
    for kernel, rows, diagonal in [(Laplacian(), x, -3), (Gaussian(), x, None), (Linear(), csr, 5)]:
        at = {"diagonal": diagonal}
        expected, actual = (each.block(kernel, rows, z, **at) for each in (one, two))
        assert_close(actual, expected, rtol=0, atol=tol(dtype, 50))
        expected = one.normal(kernel, rows, z, v, weights=w, targets=y, **at)
        actual = two.normal(kernel, rows, z, v, weights=w, targets=y, **at)
        atol = tol(dtype, 50) * float(np.abs(expected).max())
        assert_close(actual, expected, rtol=0, atol=atol)


def test_devices_are_named_together(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    for spec, devices in {"0,1": ["cuda:0", "cuda:1"], "2,00": ["cuda:2", "cuda:0"]}.items():
        chosen = choose_engine(f"torch:cuda:{spec}", dtype=np.float32)
        assert isinstance(chosen, MultiDeviceEngine)
        assert [each.device for each in chosen.engines] == devices
    assert choose_engine("torch:cuda:1", dtype=np.float32) == tiled_on("cuda:1")
    with pytest.raises(ValueError, match="'torch:cuda:1,3' needs CUDA device 3, but torch finds"):
        choose_engine("torch:cuda:1,3", dtype=np.float32)
    with pytest.raises(ValueError, match="'cuda:0,1,0' names a device twice"):
        choose_engine("torch:cuda:0,1,0", dtype=np.float32)


def test_the_meter_counts_what_a_symmetric_product_evaluates(rng):
    x, v = draw(rng, (41, 3), (41, 2), dtype=np.float32)
    one = TiledEngine(threads=1)
    for engine, expected in {one: 41 * 42 // 2, MultiDeviceEngine((one, one)): 41 * 41}.items():
        K = KernelOperator(Gaussian(), x, x, engine)
        assert_close(K @ v, xp.cast(exact(Gaussian(), x, x), np.float32) @ v, rtol=0, atol=1e-5)
        assert K.meter.evaluations == expected


def test_an_engine_that_splits_rows_needs_others():
    with pytest.raises(ValueError, match="needs at least one engine"):
        MultiDeviceEngine(())


@each_engine_with([Gaussian(1.3)])
def test_scipy_agrees(engine, kernel, dtype, rng, tol):
    """One check that does not trust our own kernels: a Gaussian by hand."""
    x, z, v = draw(rng, (61, 3), (19, 3), (19, 2), dtype=dtype)
    distance = np.linalg.norm(xp.to_float64(x)[:, None] - xp.to_float64(z)[None], axis=2)
    expected = np.exp(-(distance**2) / (2 * 1.3**2)) @ v
    actual = engine.matvec(kernel, x, z, v)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol(dtype, 450))
