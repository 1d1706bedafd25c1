"""Plan: what a fit will need, before anything is computed."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .. import _linalg as la
from .._checks import readable_bytes
from ..kernels import Kernel
from ..operators import Engine
from ..preconditioners.eigenpro import BYTES_PER_PAIR, LARGE_SAMPLE, MANY_ROWS, SMALL_SAMPLE
from ..solvers import (
    PCG,
    ASkotch,
    Direct,
    EigenPro1,
    EigenPro2,
    EigenPro3,
    Falkon,
    SketchySAGA,
    Solver,
)
from ..solvers.eigenpro3 import PER_DIRECTION
from ..solvers.projection import projection_for

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan reckons with, as in the FALKON paper."""

BLOCKS = 1 << 30
"""Memory for blocks of rows if nobody limits it."""

LEAST_BLOCKS = 48 << 20
"""Memory for blocks of rows below which tiles no longer fit."""


LEVELS = 10.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; and about six beyond, with all landmarks.
"""

CALIBRATION = 1 << 22
"""Numbers in the rows with which the speed of this machine is measured."""


@dataclass(frozen=True)
class Size:
    """The sizes of a problem: n rows, d features, t targets, m centers, bytes per number.

    `fits` are those at each level of a path of penalties, in units of one to all rows; zero if
    the penalty is given. `pairs_once`: whether rows are dense with random access, so that a product
    of all rows with all evaluates each pair once, as long as they fit into memory.
    """

    n: int
    d: int
    t: int
    m: int
    itemsize: int
    full: bool
    fits: float = 0.0
    pairs_once: bool = True


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
    """

    solver: str
    landmarks: int | None
    memory_bytes: int
    kernel_evaluations: int
    seconds: float
    iterations: int

    def __str__(self) -> str:
        centers = "all rows" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        return (
            f"{self.solver} with {centers}: {readable_bytes(self.memory_bytes)}, "
            f"{self.kernel_evaluations:.3g} kernel evaluations, about {self.seconds:.3g} s "
            f"for {self.iterations} iterations"
        )


def least_blocks(size: Size) -> int:
    """Return the memory for blocks of rows that any solver needs."""
    return LEAST_BLOCKS + 64 * size.d * size.itemsize


def dense_bytes(solver: Solver[Any, Any], size: Size, mapped: bool = False) -> int:
    """Return the memory for factors and vectors of a solver, with its centers or without."""
    n, m, t = size.n, size.m, size.t
    vectors = 8 * t * (6 * m + (8 * n if size.full else n))
    if isinstance(solver, Direct):
        return vectors + (8 * n * n if size.full else 40 * m * m)
    if isinstance(solver, Falkon):
        path = 8 * m * m + 8 * n * (t + 1) if size.fits else 0  # the best level so far, and a part
        return vectors + 8 * m * m + 16 * m * size.d + path
    if isinstance(solver, ASkotch):
        return vectors + solver.block_bytes(n)
    if isinstance(solver, EigenPro2 | EigenPro3 | SketchySAGA):
        centers = 0 if mapped else _center_bytes(solver, size)
        return vectors + centers + _streaming_bytes(solver, size)
    return vectors + (solver.factor_bytes(n) if isinstance(solver, PCG) else 0)


def _center_bytes(solver: Solver[Any, Any], size: Size) -> int:
    """Return what the centers of a streaming solver take, and those that are temporary."""
    if size.full:
        return 0
    return (2 if isinstance(solver, EigenPro3) else 1) * size.m * size.d * size.itemsize


def _streaming_bytes(solver: EigenPro2 | EigenPro3 | SketchySAGA, size: Size) -> int:
    """Return what is kept beside vectors; what is chosen to fit is in the memory for blocks."""
    n, m = size.n, size.m
    if isinstance(solver, SketchySAGA):
        return 16 * n * size.t + 24 * m * solver.sketch_rank(m)
    given = solver.subsample != "auto" or isinstance(solver, EigenPro1)
    sample = BYTES_PER_PAIR * _subsample(solver, n) ** 2 if given else 0
    if isinstance(solver, EigenPro2):
        return sample
    exact = 8 * m * m if solver.projection == "exact" else 0
    return sample + exact + 16 * m * _flattened(solver, n, m)


def _flattened(solver: EigenPro3, n: int, m: int) -> int:
    """Return the directions that EigenPro 3 flattens at most, see `EigenProFactor`."""
    if solver.rank != "auto":
        return int(solver.rank)
    s = _subsample(solver, n)
    return min(max(1, m // PER_DIRECTION), s if s == n else s // 10)


def _subsample(solver: EigenPro2 | EigenPro3, n: int) -> int:
    """Return the rows of which EigenPro takes eigenvectors, if the memory is enough."""
    if isinstance(solver, EigenPro1):
        return n
    if solver.subsample != "auto":
        return min(n, int(solver.subsample))
    return min(n, SMALL_SAMPLE if n < MANY_ROWS else LARGE_SAMPLE)


def _streaming_evaluations(
    solver: EigenPro2 | EigenPro3 | SketchySAGA, size: Size, iterations: int
) -> int:
    n, m = size.n, size.m
    if isinstance(solver, SketchySAGA):
        return (iterations + 1) * n * m + m * m
    s = _subsample(solver, n)
    if isinstance(solver, EigenPro2):
        return iterations * (n * n + n * s) + 2 * s * s
    delayed = projection_for(solver.projection, m, BLOCKS) == "delayed"
    return iterations * (n * (m + s) + 2 * n * m * delayed) + 2 * s * s + m * (m + s)


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
        return iterations * product + n * solver.most(n)
    if isinstance(solver, EigenPro2 | EigenPro3 | SketchySAGA):
        return _streaming_evaluations(solver, size, iterations)
    last = (iterations + 1) * n * m + m * m
    return int(last * (1 + LEVELS * size.fits))


def operations(solver: Solver[Any, Any], size: Size) -> float:
    """Return the floating-point operations of the dense factorisations."""
    n, m = float(size.n), float(size.m)
    if isinstance(solver, Direct):
        return n**3 / 3 if size.full else 2 * n * m**2 + 10 * m**3
    if isinstance(solver, PCG):
        return 2 * n * float(solver.most(size.n)) ** 2
    if isinstance(solver, ASkotch):
        b = solver.block_rows(size.n)
        each = b**3 / 3 if solver.solver_for(b) == "exact" else 4.0 * b * b * solver.rank
        return ASSUMED_ITERATIONS * solver.iterations_per_pass(size.n) * each
    if isinstance(solver, EigenPro2 | EigenPro3):
        return 4 * float(_subsample(solver, size.n)) ** 3 / 3
    return m**3 if isinstance(solver, Falkon) else 0.0


def calibrated_seconds(
    solver: Solver[Any, Any],
    size: Size,
    iterations: int,
    kernel: Kernel,
    engine: Engine,
    dtype: torch.dtype,
) -> float:
    """Return the predicted seconds, from the speed of a small product and factorisation."""
    rng = torch.Generator().manual_seed(0)
    rows = max(min(2048, CALIBRATION // size.d), 64)
    x = torch.randn(rows, size.d, dtype=dtype, generator=rng)
    z = x[: min(size.m, 2000)]
    v = torch.randn(len(z), size.t, dtype=dtype, generator=rng)
    pairs = len(x) * len(z) / _seconds(lambda: engine.normal(kernel, x, z, v))
    A = torch.eye(600, dtype=torch.float64) + 1 / 600
    flops = 600**3 / 3 / _seconds(lambda: la.cholesky_(la.by_columns(A.clone())))
    return evaluations(solver, size, iterations) / pairs + operations(solver, size) / flops


def _seconds(work: Callable[[], object], budget: float = 0.2) -> float:
    work()  # the first call starts threads and loads libraries
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < budget:
        work()
        count += 1
    return (time.perf_counter() - start) / count


CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux keeps the memory limit of a container (control groups, version 2 and 1)."""


def machine_memory() -> int:
    """Return the memory of this machine in bytes, or of the container this runs in."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_container_limits()])


def _container_limits() -> list[int]:
    found = []
    for name in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # there is none, or it says "max"
            found.append(int(Path(name).read_text()))
    return found


def split_memory(limit: int | None, solver: Solver[Any, Any], size: Size) -> int:
    """Return the bytes left for blocks of rows; ValueError as in `divided`."""
    return divided(limit, solver, size)[1]


def divided(limit: int | None, solver: Solver[Any, Any], size: Size) -> tuple[int, int]:
    """Return the bytes for what a solver keeps, and those left for blocks of rows.

    Centers of a streaming solver that take more than the blocks are in a file, see
    `KernelOperator.points`, and do not count.

    Raises
    ------
    ValueError
        If factors and vectors leave too little; the message says what would fit.
    """
    if limit is None:
        limit = machine_memory()
        what = f"this machine has {readable_bytes(limit)}"
    else:
        what = f"memory_limit is {readable_bytes(limit)}"
    least, points = least_blocks(size), size.m * size.d * size.itemsize
    for mapped in (False, True):
        dense = dense_bytes(solver, size, mapped)
        blocks = int(max(least, min(BLOCKS, (limit - dense) // 2)))
        if dense + least <= limit and (points > blocks or not mapped):
            return dense, blocks
    count = f"{size.n:,} rows" if size.full else f"{size.m:,} landmarks"
    raise ValueError(
        f"{count} need {readable_bytes(dense + least)}, but {what}; "
        f"{_what_fits(limit - least, solver, size)}"
    )


def _what_fits(free: int, solver: Solver[Any, Any], size: Size) -> str:
    """Say how many centers would fit, or what the limit would have to be."""
    fits = _most(size.m, lambda m: dense_bytes(solver, _with_centers(size, m)) <= free)
    if fits == 0:
        least = least_blocks(size) + dense_bytes(solver, _with_centers(size, 1))
        return f"a single one needs {readable_bytes(least)}: raise the limit"
    if not size.full:
        return f"at most {fits:,} landmarks fit"
    other = "" if isinstance(solver, PCG) else "or solver='pcg', "
    return f"use landmarks, {other}or at most {fits:,} rows"


def _with_centers(size: Size, m: int) -> Size:
    return replace(size, m=m, n=m if size.full else size.n)


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest m up to `most` that fits, or 0, by bisection."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
