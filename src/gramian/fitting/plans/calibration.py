"""Prediction of the seconds of a fit from small products and factorisations on this machine."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, RandomStream
from ...data import as_rows
from ...engines import choose_covering
from ...kernels import Kernel
from ...operators import Engine, KernelOperator
from ...paths.work import Work
from ...solvers import ProblemSize, Solver
from .memory import FitSize

PRODUCTS_PER_STEP = 4
"""Small products that take as long as the overhead of a step of a block method."""

READ_BYTES = 1 << 25
"""Bytes of a matrix with which the speed of reading is measured: more than a cache holds."""

CALIBRATION_ROWS = 1 << 13
"""Rows of a small product."""

MOST_COLUMNS = 2000
"""Most columns of a small product."""

CACHED_SPEEDS = 128
"""Most speeds of products that a process keeps."""

CALIBRATION_NUMBERS = 1 << 22
"""Numbers in the rows with which the speed of this machine is measured."""

MEASUREMENT_SECONDS = 0.05
"""Seconds of each measurement of the speed, in addition to a first call."""

DEVICE_SCALE = 64
"""Factor of the rows that keep a device busy, relative to the host."""


def calibrated_seconds(
    solver: Solver[Any, Any],
    size: FitSize,
    iterations: int,
    evaluations: int,
    kernel: Kernel,
    engine: Engine,
    dtype: xp.DType,
    device: str = "cpu",
) -> float:
    """Return the predicted seconds, from the speed of a small product and factorisation.

    The product is measured on the device of the engine, the factorisation where factors are kept.
    """
    flops, rate = device_speed(device)
    pairs = evaluations + size.selection_evaluations
    # Without evaluations, the speed does not matter and need not be measured.
    pair = _cached_pair_seconds(size, kernel, engine, dtype) if pairs else 0.0
    start = _start_seconds(kernel, engine, dtype, size.d, size.t)
    step = solver.bytes_read(size) / rate + PRODUCTS_PER_STEP * start
    return (
        pairs * pair
        + (size.operations(solver, iterations) + size.selection_operations) / flops
        + size.steps(solver, iterations) * step
    )


def work_seconds(work: Work, d: int, kernel: Kernel, engine: Engine) -> float:
    """Return the predicted seconds of work with rows of d features."""
    flops, rate = device_speed("cpu")
    seconds = work.operations / flops + work.moved_bytes / rate
    size = ProblemSize(CALIBRATION_ROWS, d, 1, MOST_COLUMNS, 4, full=False)
    counts = ((xp.float32, work.evaluations), (xp.float64, work.double_evaluations))
    for dtype, count in counts:
        if count:
            own_engine = choose_covering(engine, kernel, dtype=dtype, sparse=False)
            seconds += count * _cached_pair_seconds(size, kernel, own_engine, dtype)
    return seconds


def _cached_pair_seconds(
    size: ProblemSize, kernel: Kernel, engine: Engine, dtype: xp.DType
) -> float:
    """Return the seconds of a kernel evaluation, measured once a process for similar products."""
    # The key of the cache has a power of two for the landmarks, and a fixed number of rows.
    m = min(1 << (size.m - 1).bit_length(), MOST_COLUMNS)
    similar_size = ProblemSize(CALIBRATION_ROWS, size.d, size.t, m, dtype.itemsize, full=False)
    seconds = _measured_pair_seconds(similar_size, kernel, engine, dtype)
    # Products of factors take the same time per row for any number of landmarks.
    return seconds * m / size.m if kernel.bilinear and size.t < m else seconds


@functools.lru_cache(CACHED_SPEEDS)
def _measured_pair_seconds(
    size: ProblemSize, kernel: Kernel, engine: Engine, dtype: xp.DType
) -> float:
    return pair_seconds(size, kernel, engine, dtype)


@functools.lru_cache(CACHED_SPEEDS)
def _start_seconds(kernel: Kernel, engine: Engine, dtype: xp.DType, d: int, t: int) -> float:
    """Measure, once a process, the overhead of a product."""
    # A product of 64 rows computes next to nothing: its time is the overhead of a step.
    x, z, v = _points(ProblemSize(64, d, t, 64, dtype.itemsize, full=False), engine, dtype)
    operator = KernelOperator(kernel, as_rows(x[:64]), as_rows(z), engine=engine)
    return measure_seconds(lambda: float((operator @ v)[0, 0]))


@functools.cache
def device_speed(device: str) -> tuple[float, float]:
    """Measure, once a process, the operations of a factorisation and the bytes read per second."""
    # A device needs a larger matrix to be busy. The matrix I + 1/k is positive definite.
    k = 600 if device == "cpu" else 4096
    A = xp.eye(k, xp.float64, device=device) + 1 / k
    # The factorisation overwrites its matrix, so each call has a copy.
    flops = k**3 / 3 / measure_seconds(lambda: la.cholesky_(la.by_columns(xp.copy(A))))
    # A product with one column is as slow as the reading of the matrix.
    wide = xp.ones((READ_BYTES // 8000, 1000), xp.float64, device=device)
    column = xp.copy(wide[0, :, None])
    return flops, 8 * xp.size(wide) / measure_seconds(lambda: float((wide @ column)[0, 0]))


def pair_seconds(
    size: ProblemSize,
    kernel: Kernel,
    engine: Engine,
    dtype: xp.DType,
    rows: int = CALIBRATION_ROWS,
    **budget: float,
) -> float:
    """Return the seconds of a kernel evaluation, measured for ``budget`` seconds."""
    x, z, v = _points(size, engine, dtype, rows)
    # Reading a number waits for the device, whose calls return before they are done.
    work = measure_seconds(lambda: float(engine.normal(kernel, x, z, v)[0, 0]), **budget)
    by_factors = kernel.bilinear and size.t < min(len(x), len(z))
    # Products of factors take the same time per row for any number of landmarks.
    return work / (len(x) * (size.m if by_factors else len(z)))


def _points(
    size: ProblemSize, engine: Engine, dtype: xp.DType, count: int = CALIBRATION_ROWS
) -> tuple[Array, Array, Array]:
    """Return random rows, landmarks and coefficients for a small product."""
    rng = RandomStream(0)
    scale = 1 if engine.on_host else DEVICE_SCALE
    rows = max(min(count * scale, CALIBRATION_NUMBERS * min(scale, 8) // size.d), 64)
    # Between 0 and 1: some kernels refuse negative features, others numbers that are no latitudes.
    x = engine.place(rng.random((rows, size.d), dtype))
    z = x[: min(size.m, MOST_COLUMNS)]
    return x, z, engine.place(rng.standard_normal((len(z), size.t), dtype))


def measure_seconds(work: Callable[[], object], budget: float = MEASUREMENT_SECONDS) -> float:
    """Return the mean seconds of a call, measured for about `budget` seconds."""
    # The first call starts threads and loads libraries.
    work()
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < budget:
        work()
        count += 1
    return (time.perf_counter() - start) / count
