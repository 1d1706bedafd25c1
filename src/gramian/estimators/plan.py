"""Plan: what a fit will need, before anything is computed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .. import _linalg as la
from .._checks import readable_bytes
from ..data import as_rows
from ..kernels import Kernel
from ..operators import Engine, KernelOperator, strip_rows
from ..preconditioners.falkon import SAMPLE
from ..solvers import (
    PCG,
    ASkotch,
    Direct,
    EigenPro2,
    EigenPro3,
    Falkon,
    SketchySAGA,
    Solver,
)
from ..solvers.projection import projection_for
from ..solvers.streaming import LEAST_BATCH
from .memory import BLOCKS, Size, flattened, subsample_rows

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan reckons with, as in the FALKON paper."""

LEVELS = 10.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; and about six beyond, with all landmarks.
"""

PER_TRUE_RESIDUAL = 7
"""Iterations of PCG with float32 rows after which the residual has dropped tenfold, about."""

SKETCH_STEPS = 380
"""Products with the sketch by which SketchySAGA chooses its damping, in units of a step."""

PRODUCTS = 4
"""Small products, in time, of which a step of a block method consists beside its work."""

READ_BYTES = 1 << 24
"""Bytes of a matrix with which the speed of reading is measured."""

CALIBRATION = 1 << 22
"""Numbers in the rows with which the speed of this machine is measured."""

DEVICE_SCALE = 64
"""How many times as many a device needs to have something to do."""


@dataclass(frozen=True)
class Plan:
    """What a fit will need.

    Attributes
    ----------
    solver : str
    landmarks : int or None
        None if all rows are centers.
    memory_bytes : int
        Peak of what the fit allocates, beside the data it is given and the libraries.
    kernel_evaluations : int
        Of `iterations` iterations, setup included.
    seconds : float
        For these on this machine, after a calibration of half a second.
    iterations : int
        What is assumed of an iterative solver; 1 for a closed form.
    device : str
        Where vectors and factors are: that of the engine if they fit there, else "cpu".
    device_bytes : int
        Peak of what the fit allocates on the device of the engine, which `memory_bytes` does not
        count; 0 if it computes on the host, or on several devices.
    """

    solver: str
    landmarks: int | None
    memory_bytes: int
    kernel_evaluations: int
    seconds: float
    iterations: int
    device: str = "cpu"
    device_bytes: int = 0

    def __str__(self) -> str:
        centers = "all rows" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        there = readable_bytes(self.device_bytes)
        memory = readable_bytes(self.memory_bytes)
        memory += f" and {there} of the device" if self.device_bytes else ""
        return (
            f"{self.solver} with {centers}: {memory}, "
            f"{self.kernel_evaluations:.3g} kernel evaluations, about {self.seconds:.3g} s "
            f"for {self.iterations} iterations"
        )


def _streaming_evaluations(
    solver: EigenPro2 | EigenPro3 | SketchySAGA, size: Size, iterations: int
) -> int:
    n, m = size.n, size.m
    if isinstance(solver, SketchySAGA):
        return (iterations + 1) * n * m + m * m
    s = subsample_rows(solver, n)
    if isinstance(solver, EigenPro2):
        return iterations * (n * n + n * s) + 2 * s * s + n * s
    delayed = projection_for(solver.projection, m, BLOCKS) == "delayed"
    once = 2 * s * s + m * (m + s) + (n * s if solver.augment is None else 0)
    return iterations * (n * (m + s) + 2 * n * m * delayed) + once


def evaluations(solver: Solver[Any, Any], size: Size, iterations: int) -> int:
    """Return the kernel evaluations of some iterations, setup included."""
    n, m = size.n, size.m
    if isinstance(solver, Direct):
        return n * n if size.full else n * m + m * m
    if isinstance(solver, ASkotch):
        b = solver.block_rows(n)
        return math.ceil(iterations * solver.iterations_per_pass(n)) * (n * b + b * b)
    if isinstance(solver, PCG):
        product = n * (n + 1) // 2 if size.pairs_once else n * n
        true = iterations // PER_TRUE_RESIDUAL if size.itemsize < 8 else 0
        return (iterations + true) * product + n * solver.most(n)
    if isinstance(solver, EigenPro2 | EigenPro3 | SketchySAGA):
        return _streaming_evaluations(solver, size, iterations)
    last = (iterations + 1) * n * m + m * m
    if size.itemsize < 8 and isinstance(solver, Falkon):
        last += 2 * m * min(m, SAMPLE)  # what rounding does, see `FalkonFactor`
    return int(last * (1 + LEVELS * size.fits))


def operations(solver: Solver[Any, Any], size: Size) -> float:
    """Return the floating-point operations of the dense factorisations."""
    n, m = float(size.n), float(size.m)
    if isinstance(solver, Direct):
        if size.full:
            return n**3 / 3
        rows = min(n, strip_rows(size.m, 8, BLOCKS))
        return n * m**2 * (4 + 2 * m / rows) + 10 * m**3  # features, and their QR
    if isinstance(solver, PCG):
        return 2 * n * float(solver.most(size.n)) ** 2
    if isinstance(solver, ASkotch):
        b = solver.block_rows(size.n)
        each = b**3 / 3 if solver.solver_for(b) == "exact" else 4.0 * b * b * solver.rank
        return ASSUMED_ITERATIONS * solver.iterations_per_pass(size.n) * each
    if isinstance(solver, EigenPro2 | EigenPro3):
        s = float(subsample_rows(solver, size.n))
        exact = isinstance(solver, EigenPro3) and _kind(solver, size) == "exact"
        return 4 * s**3 + exact * m**3 / 3  # an eigenvalue problem runs at a third of the speed
    return m**3 if isinstance(solver, Falkon) else 0.0


def _kind(solver: EigenPro3, size: Size) -> str:
    return projection_for(solver.projection, size.m, BLOCKS)


def steps(solver: Solver[Any, Any], size: Size, iterations: int) -> int:
    """Return the batches or blocks of some iterations; an automatic batch is the least one."""
    n = size.n
    if isinstance(solver, ASkotch):
        return math.ceil(iterations * solver.iterations_per_pass(n))
    if isinstance(solver, SketchySAGA):
        return iterations * math.ceil(n / solver.batch_rows(n, n)) + SKETCH_STEPS
    if isinstance(solver, EigenPro2 | EigenPro3):
        batch = LEAST_BATCH if solver.batch == "auto" else int(solver.batch)
        return iterations * math.ceil(n / min(batch, n))
    return iterations


def bytes_read(solver: Solver[Any, Any], size: Size) -> float:
    """Return the bytes of stored matrices that a step reads, with one column as with a few."""
    n, m = float(size.n), float(size.m)
    if isinstance(solver, Falkon):
        return 16 * m * m  # four triangles
    if isinstance(solver, PCG):
        return 16 * n * solver.most(size.n)
    if isinstance(solver, ASkotch):
        b = float(solver.block_rows(size.n))
        return 64 * b * b  # moved, and looked through for what is not finite or too small
    if isinstance(solver, SketchySAGA):
        r = solver.sketch_rank(size.m)
        b = solver.batch_rows(size.n, size.n)
        return 16 * m * r + 8 * r * r + size.itemsize * m * (m + 3 * b)
    if isinstance(solver, EigenPro2 | EigenPro3):
        s = float(subsample_rows(solver, size.n))
        if isinstance(solver, EigenPro2):
            return 16 * s * s / 10
        q = flattened(solver, size.n, size.m)
        return 8 * q * (s + m) + (8 * m * m if _kind(solver, size) == "exact" else 0)
    return 0.0


def calibrated_seconds(
    solver: Solver[Any, Any],
    size: Size,
    iterations: int,
    kernel: Kernel,
    engine: Engine,
    dtype: torch.dtype,
    device: str = "cpu",
) -> float:
    """Return the predicted seconds, from the speed of a small product and factorisation.

    The first is measured where the engine computes, the second on the device of the factors.
    """
    rng = torch.Generator().manual_seed(0)
    scale = 1 if engine.on_host else DEVICE_SCALE
    rows = max(min(2048 * scale, CALIBRATION * min(scale, 8) // size.d), 64)
    x = engine.place(torch.randn(rows, size.d, dtype=dtype, generator=rng))
    z = x[: min(size.m, 2000)]
    v = engine.place(torch.randn(len(z), size.t, dtype=dtype, generator=rng))
    # a number that is read waits for the device
    pairs = len(x) * len(z) / _seconds(lambda: float(engine.normal(kernel, x, z, v)[0, 0]))
    k = 600 if device == "cpu" else 4096
    A = torch.eye(k, dtype=torch.float64, device=device) + 1 / k
    flops = k**3 / 3 / _seconds(lambda: la.cholesky_(la.by_columns(A.clone())))
    wide = torch.ones(READ_BYTES // 8000, 1000, dtype=torch.float64, device=device)
    column = wide[0, :, None].clone()
    rate = 8 * wide.numel() / _seconds(lambda: float((wide @ column)[0, 0]))
    few = KernelOperator(kernel, as_rows(x[:64]), as_rows(z[:64]), engine=engine)
    start = _seconds(lambda: float((few @ v[:64])[0, 0]))
    chooses = size.selector
    selecting = (
        (0, 0.0)
        if chooses is None
        else (chooses.evaluations(size.n, size.m), chooses.operations(size.n, size.d, size.m))
    )
    each = bytes_read(solver, size) / rate + PRODUCTS * start
    return (
        (evaluations(solver, size, iterations) + selecting[0]) / pairs
        + (operations(solver, size) + selecting[1]) / flops
        + steps(solver, size, iterations) * each
    )


def _seconds(work: Callable[[], object], budget: float = 0.2) -> float:
    work()  # the first call starts threads and loads libraries
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < budget:
        work()
        count += 1
    return (time.perf_counter() - start) / count
