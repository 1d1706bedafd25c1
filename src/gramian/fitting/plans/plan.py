"""The plan of a fit: what it takes is known before anything is computed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from ... import solvers
from ...data import Elsewhere, RowSource, decoded_bytes, subset
from ...kernels import Gaussian, Linear
from ...operators import factor_bytes
from ...solvers import Solver
from ..cells.memory import (
    partition_of,
    passes_bytes,
    rows_bytes,
    temporary_file_bytes,
    workers_of,
)
from ..choice import selection
from ..inputs.kernel_matrix import NAME as PRECOMPUTED
from ..inputs.kernel_matrix import cost_of_objects, planned
from ..inputs.objects import ObjectRows
from ..settings import resolve
from ..settings.settings import FitSettings
from .calibration import calibrated_seconds
from .memory import FitSize
from .placement import Placement
from .remote import cells_there, seconds_there, spread_plan
from .result import Plan

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan reckons with, as in the FALKON paper."""

FITS_PER_PATH = 10.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; and about six beyond, with all landmarks.
"""


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
        found, seconds=found.seconds + seconds_there(found, spread, rows, size, kernel, engine)
    )
    return spread_plan(found, spread, size, host - where.host_bytes)


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
    disk = temporary_file_bytes(settings, partition, rows, targets)
    count = partition.inflated(n) / min(partition.rows, n)
    workers = workers_of(math.ceil(count), resolve.engine_for(settings, rows))
    one = plan(*_one_cell(settings, rows), targets, workers=workers)
    spread = rows.spread()
    if spread is not None:
        return cells_there(
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
        temporary_file_bytes(settings, partition_of(settings.cells), rows, targets)
        settings, rows = _one_cell(settings, rows)
    settings = resolve.automatic(settings, rows.shape[0])
    engine = resolve.engine_for(settings, rows)
    Placement.of(engine, *resolve.solver_and_size(settings, rows, targets), settings.limit)
