"""Plan: the memory, kernel evaluations and seconds of a fit, before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from .. import solvers
from .._checks import readable_bytes
from .._workers import default_threads
from ..data import Elsewhere, RowSource, Spread, decoded_bytes, subset
from ..engines import Engine
from ..kernels import Gaussian, Kernel, Linear
from ..operators import factor_bytes
from ..solvers import Solver
from . import resolve, selection
from .calibration import calibrated_seconds, pair_seconds
from .cell_fits import workers_of
from .cells import in_file, partition_of, passes_bytes, rows_bytes
from .memory import FitSize
from .objects import ObjectRows
from .placement import Placement
from .precomputed import NAME as PRECOMPUTED
from .precomputed import cost_of_objects, planned
from .settings import FitSettings

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan reckons with, as in the FALKON paper."""

FITS_PER_PATH = 10.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; and about six beyond, with all landmarks.
"""

LIBRARY_BYTES = 650 << 20
"""Of a worker process that has only just imported this one, measured."""

TASK_SECONDS = 0.002
"""That client and scheduler take for a task, measured on a busy machine."""

LOOKS = 5
"""Readings of all rows before the fit: for what is not finite, for means and deviations, for some
rows anywhere, for landmarks; and some of targets, which take as long together."""

CALIBRATED_THERE = 1.0
"""Seconds in which the speed of workers is measured."""

ROWS_THERE = 1 << 16
"""Rows of the products by which it is measured: small ones, on a busy machine, mostly wait."""

TASK_BYTES = 2048
"""Of a task beside its vectors."""


@dataclass(frozen=True)
class Plan:
    """The memory, kernel evaluations and seconds that a fit will need.

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
    kept_bytes : int
        Of `memory_bytes`, for kernel entries that are evaluated once and read in each iteration; 0
        if they are evaluated anew.
    cells : int
        Their number, about; 0 without cells.
    disk_bytes : int
        Of temporary files: for rows of a file as they are decoded, and for rows by cells that do
        not fit in memory.
    workers, slots : int
        Of a cluster where the rows are, and the tasks that it runs at once; 0 for rows here.
    worker_bytes : int
        Memory of each worker, libraries included.
    tasks, pass_bytes : int
        Of a pass over the rows, and what is sent and comes back in it.
    """

    solver: str
    landmarks: int | None
    memory_bytes: int
    kernel_evaluations: int
    seconds: float
    iterations: int
    device: str = "cpu"
    device_bytes: int = 0
    kept_bytes: int = 0
    cells: int = 0
    disk_bytes: int = 0
    workers: int = 0
    slots: int = 0
    worker_bytes: int = 0
    tasks: int = 0
    pass_bytes: int = 0

    def __str__(self) -> str:
        centers = "all rows" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        centers = f"{centers} of each of {self.cells:,} cells" if self.cells else centers
        there = readable_bytes(self.device_bytes)
        memory = readable_bytes(self.memory_bytes)
        memory += f" and {there} of the device" if self.device_bytes else ""
        disk = readable_bytes(self.disk_bytes)
        memory += f" and {disk} of temporary files" if self.disk_bytes else ""
        kept = readable_bytes(self.kept_bytes)
        memory += f", {kept} of it for entries that are kept" if self.kept_bytes else ""
        return (
            f"{self.solver} with {centers}: {memory}, "
            f"{self.kernel_evaluations:.3g} kernel evaluations, about {self.seconds:.3g} s "
            f"for {self.iterations} iterations{self._elsewhere}"
        )

    @property
    def _elsewhere(self) -> str:
        if not self.workers:
            return ""
        threads = "1 thread" if self.slots == 1 else f"{self.slots:,} threads"
        return (
            f" on {self.workers:,} worker{'s' * (self.workers > 1)} ({threads}): "
            f"{readable_bytes(self.worker_bytes)} on each, {self.tasks:,} tasks and "
            f"{readable_bytes(self.pass_bytes)} sent per pass"
        )


def evaluations(solver: Solver[Any, Any], size: FitSize, iterations: int) -> int:
    """Return the kernel evaluations of some iterations, setup and path included."""
    return int(solver.evaluations(size, iterations) * (1 + FITS_PER_PATH * size.fits))


def plan(settings: FitSettings, rows: RowSource, targets: int = 1, *, workers: int = 1) -> Plan:
    """Return the plan of a fit to these rows.

    Parameters
    ----------
    settings : FitSettings
    rows : RowSource of shape (n, d)
    targets : int, default=1
        Columns of the targets.
    workers : int, default=1
        Such fits that share the memory of the machine, at once.

    Raises
    ------
    ValueError
        If it does not fit in memory, or the number of landmarks is not known before they are
        selected.
    """
    if settings.kernel == PRECOMPUTED:
        return _of_matrix(settings, rows, targets)
    if settings.cells is not None:
        return _of_cells(settings, rows, targets)
    settings = resolve.automatic(settings, rows.shape[0])
    selection.require_count(settings.landmarks, rows.shape[0])
    solver, size = resolve.solver_and_size(settings, rows, targets)
    count = min(settings.max_iter, ASSUMED_ITERATIONS)
    iterations = 1 if solver.closed_form else count
    rng = torch.Generator().manual_seed(0)
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    if rows.entries is not None:  # dense rows of as many numbers stand in, without their columns
        kernel = Linear() if kernel.bilinear else Gaussian()
    kernel = kernel.resolve(torch.rand(50, rows.width, generator=rng))
    engine = resolve.engine_for(settings, rows)
    solver = resolve.storing(solver, size, settings.limit, engine, kernel, workers)
    where = Placement.of(engine, solver, size, settings.limit)
    host, there = where.bytes_with_blocks(engine, solver, size)
    if not solver.closed_form:
        host += min(factor_bytes(kernel, rows), resolve.spare_bytes(solver, size, settings.limit))
    pairs, here = evaluations(solver, size, iterations), not rows.remote
    found = Plan(
        solver=solvers.name_of(solver),
        landmarks=None if size.full else size.m,
        memory_bytes=host,
        kernel_evaluations=pairs,
        seconds=calibrated_seconds(
            solver,
            size if here else replace(size, selector=None),
            iterations,
            pairs if here else 0,
            kernel,
            engine,
            rows.dtype,
            where.device,
        ),
        iterations=iterations,
        device=where.device,
        device_bytes=there,
        kept_bytes=solver.kept_bytes(size),
        disk_bytes=0 if size.full else decoded_bytes(rows),
    )
    spread = rows.spread()
    if spread is None:
        return found
    found = replace(
        found, seconds=found.seconds + _seconds_there(found, spread, rows, size, kernel, engine)
    )
    return _spread(found, spread, size, host - where.host_bytes)


def _seconds_there(
    one: Plan, spread: Spread, rows: RowSource, size: FitSize, kernel: Kernel, engine: Engine
) -> float:
    """Return the seconds of products, reading and tasks, as fast as workers are, all at once."""
    each = rows.mean_there(
        partial(pair_seconds, size, kernel, engine, rows.dtype, ROWS_THERE, budget=CALIBRATED_THERE)
    )
    pairs = one.kernel_evaluations + size.selection_evaluations
    passes = one.iterations + 1
    work = each * pairs + rows.seconds_to_read() * (passes + LOOKS)
    return work / spread.slots + TASK_SECONDS * spread.tasks * passes


def _spread(one: Plan, spread: Spread, size: FitSize, blocks: int) -> Plan:
    """Return the plan of rows on other machines, from that of rows here.

    Blocks are there, one for each task that runs, with centers and a vector; and so are targets,
    unless they were given as an array, which counts as data.
    """
    if not spread.workers:
        raise ConnectionError("the cluster has no worker: start some")
    vector = 8 * size.m * size.t
    running = math.ceil(spread.slots / spread.workers)
    return replace(
        one,
        memory_bytes=one.memory_bytes - blocks,
        workers=spread.workers,
        slots=spread.slots,
        worker_bytes=LIBRARY_BYTES + running * blocks + size.m * size.d * size.itemsize + vector,
        tasks=spread.tasks,
        pass_bytes=vector * (spread.workers + spread.tasks) + TASK_BYTES * spread.tasks,
    )


def _of_matrix(settings: FitSettings, rows: RowSource, targets: int) -> Plan:
    """Return the plan of a fit to a kernel matrix, with what it takes to call a function for it."""
    one = plan(*planned(settings, rows), targets)
    if not isinstance(rows, ObjectRows):
        return one
    m = one.landmarks
    cost = cost_of_objects(rows, None if m is None else settings.landmarks, m)
    held = 8 * len(rows) * (m or len(rows))
    return replace(one, seconds=one.seconds + cost.seconds, memory_bytes=one.memory_bytes + held)


def _of_cells(settings: FitSettings, rows: RowSource, targets: int) -> Plan:
    """Return the plan of one cell, times their number; and of all rows, in memory or in a file.

    Raises
    ------
    ValueError
        If that does not fit in ``memory_limit``.
    """
    partition, n = partition_of(settings.cells), len(rows)
    disk = in_file(settings, partition, rows, targets)
    count = partition.inflated(n) / min(partition.rows, n)
    workers = workers_of(math.ceil(count), resolve.engine_for(settings, rows))
    one = plan(*_one_cell(settings, rows), targets, workers=workers)
    spread = rows.spread()
    if spread is not None:
        return _cells_there(
            one, spread, rows, math.ceil(count), held=rows_bytes(partition, rows, targets)
        )
    held = passes_bytes(settings, rows, targets) if disk else rows_bytes(partition, rows, targets)
    return replace(
        one,
        memory_bytes=workers * one.memory_bytes + held,
        kept_bytes=workers * one.kept_bytes,
        kernel_evaluations=int(count * one.kernel_evaluations),
        seconds=count * one.seconds,
        cells=math.ceil(count),
        disk_bytes=disk,
    )


def _cells_there(one: Plan, spread: Spread, rows: RowSource, count: int, held: int) -> Plan:
    """Return the plan of cells that workers solve, and whose rows and coefficients come here."""
    if not spread.workers:
        raise ConnectionError("the cluster has no worker: start some")
    running = math.ceil(spread.slots / spread.workers)
    each = one.seconds * default_threads() * math.ceil(count / spread.slots)
    share = held // spread.workers
    return replace(
        one,
        memory_bytes=held,
        kernel_evaluations=count * one.kernel_evaluations,
        seconds=each + 3 * rows.seconds_to_read() / spread.slots + TASK_SECONDS * count,
        cells=count,
        workers=spread.workers,
        slots=spread.slots,
        worker_bytes=LIBRARY_BYTES + running * one.memory_bytes + 2 * share,
        tasks=spread.tasks + count,
        pass_bytes=2 * held,
    )


def _one_cell(settings: FitSettings, rows: RowSource) -> tuple[FitSettings, RowSource]:
    """Return the settings of a cell, and as many rows."""
    each = min(partition_of(settings.cells).rows, len(rows))
    one = replace(settings, cells=None, landmarks=None)
    return one, Elsewhere(rows, each) if rows.remote else subset(rows, torch.arange(each))


def check_memory(settings: FitSettings, rows: RowSource, targets: int = 1) -> None:
    """Raise ValueError if a fit does not fit in memory, without reading or measuring anything."""
    if settings.kernel == PRECOMPUTED:
        settings, rows = planned(settings, rows)
    if settings.cells is not None:
        in_file(settings, partition_of(settings.cells), rows, targets)
        settings, rows = _one_cell(settings, rows)
    settings = resolve.automatic(settings, rows.shape[0])
    engine = resolve.engine_for(settings, rows)
    Placement.of(engine, *resolve.solver_and_size(settings, rows, targets), settings.limit)
