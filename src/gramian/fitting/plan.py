"""Plan: the memory, kernel evaluations and seconds of a fit, before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from .. import solvers
from .._checks import readable_bytes
from ..data import RowSource, Subset
from ..solvers import Solver
from . import resolve
from .calibration import calibrated_seconds
from .cells import check_rows, partition_of, rows_bytes
from .memory import FitSize
from .placement import Placement
from .settings import FitSettings

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan reckons with, as in the FALKON paper."""

FITS_PER_PATH = 10.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; and about six beyond, with all landmarks.
"""


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
    cells : int
        Their number, about; 0 without cells.
    """

    solver: str
    landmarks: int | None
    memory_bytes: int
    kernel_evaluations: int
    seconds: float
    iterations: int
    device: str = "cpu"
    device_bytes: int = 0
    cells: int = 0

    def __str__(self) -> str:
        centers = "all rows" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        centers = f"{centers} of each of {self.cells:,} cells" if self.cells else centers
        there = readable_bytes(self.device_bytes)
        memory = readable_bytes(self.memory_bytes)
        memory += f" and {there} of the device" if self.device_bytes else ""
        return (
            f"{self.solver} with {centers}: {memory}, "
            f"{self.kernel_evaluations:.3g} kernel evaluations, about {self.seconds:.3g} s "
            f"for {self.iterations} iterations"
        )


def evaluations(solver: Solver[Any, Any], size: FitSize, iterations: int) -> int:
    """Return the kernel evaluations of some iterations, setup and path included."""
    return int(solver.evaluations(size, iterations) * (1 + FITS_PER_PATH * size.fits))


def plan(settings: FitSettings, rows: RowSource, targets: int = 1) -> Plan:
    """Return the plan of a fit to these rows.

    Parameters
    ----------
    settings : FitSettings
    rows : RowSource of shape (n, d)
    targets : int, default=1
        Columns of the targets.

    Raises
    ------
    ValueError
        If it does not fit in memory, or the number of landmarks is not known before they are
        selected.
    """
    if settings.cells is not None:
        return _of_cells(settings, rows, targets)
    settings = resolve.automatic(settings, rows.shape[0])
    resolve.require_count(settings.landmarks, rows.shape[0])
    solver, size = resolve.solver_and_size(settings, rows, targets)
    count = min(settings.max_iter, ASSUMED_ITERATIONS)
    iterations = 1 if solver.closed_form else count
    rng = torch.Generator().manual_seed(0)
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    kernel = kernel.resolve(torch.randn(50, rows.shape[1], generator=rng))
    engine = resolve.engine_for(settings, rows)
    where = Placement.of(engine, solver, size, settings.limit)
    host, there = where.bytes_with_blocks(engine, solver, size)
    pairs = evaluations(solver, size, iterations)
    return Plan(
        solver=solvers.name_of(solver),
        landmarks=None if size.full else size.m,
        memory_bytes=host,
        kernel_evaluations=pairs,
        seconds=calibrated_seconds(
            solver, size, iterations, pairs, kernel, engine, rows.dtype, where.device
        ),
        iterations=iterations,
        device=where.device,
        device_bytes=there,
    )


def _of_cells(settings: FitSettings, rows: RowSource, targets: int) -> Plan:
    """Return the plan of one cell, times their number; and of all rows, as they are and by cells.

    Raises
    ------
    ValueError
        If that does not fit in ``memory_limit``.
    """
    partition, n = partition_of(settings.cells), len(rows)
    check_rows(settings, partition, rows, targets)
    one = plan(*_one_cell(settings, rows), targets)
    count = partition.inflated(n) / min(partition.rows, n)
    return replace(
        one,
        memory_bytes=one.memory_bytes + rows_bytes(partition, rows, targets),
        kernel_evaluations=int(count * one.kernel_evaluations),
        seconds=count * one.seconds,
        cells=math.ceil(count),
    )


def _one_cell(settings: FitSettings, rows: RowSource) -> tuple[FitSettings, RowSource]:
    """Return the settings of a cell, and as many rows."""
    each = min(partition_of(settings.cells).rows, len(rows))
    return replace(settings, cells=None, landmarks=None), Subset(rows, torch.arange(each))


def check_memory(settings: FitSettings, rows: RowSource, targets: int = 1) -> None:
    """Raise ValueError if a fit does not fit in memory, without reading or measuring anything."""
    if settings.cells is not None:
        check_rows(settings, partition_of(settings.cells), rows, targets)
        settings, rows = _one_cell(settings, rows)
    settings = resolve.automatic(settings, rows.shape[0])
    engine = resolve.engine_for(settings, rows)
    Placement.of(engine, *resolve.solver_and_size(settings, rows, targets), settings.limit)
