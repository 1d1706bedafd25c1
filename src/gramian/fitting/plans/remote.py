"""Plans and checks of fits whose rows are on the workers of a cluster."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from ... import _arrays as xp
from ..._messages.errors import SETTING_FORM, ParameterError, Text, TextError
from ..._parallel.workers import default_threads
from ..._parameters.types import LandmarksLike
from ...callbacks import Checkpoint
from ...data import RowSource, Spread
from ...engines import Engine
from ...kernels import Kernel
from ...landmarks import Selector
from ..plans import solver_choice
from ..settings import landmarks as landmark_settings
from ..settings.settings import FitSettings
from .calibration import pair_seconds
from .memory import FitSize
from .result import Plan

LIBRARY_BYTES = 650 << 20
"""Bytes of a worker process after importing this package, measured."""

TASK_SECONDS = 0.002
"""Seconds of client and scheduler for a task, measured on a busy machine."""

PASSES_BEFORE_FIT = 5
"""Passes over all rows before the fit: for values that are not finite, for means and deviations,
for a sample, for landmarks; and passes over targets, which take as long together as one."""

READS_PER_PASS = 2.5
"""Time of a pass without kernel entries, in units of the time to read rows in small blocks.

A pass also opens files, scales rows and touches new memory. On workers of one thread a pass over 4
million rows took 1.2 CPU seconds in addition to the products, and to read the rows 0.42.
"""

CALIBRATED_THERE = 1.0
"""Seconds in which the speed of workers is measured."""

ROWS_THERE = 1 << 16
"""Rows of the products that measure the speed: on a busy machine, small ones mostly wait."""

TASK_BYTES = 2048
"""Bytes of a task in addition to its vectors."""


def remote_seconds(
    one: Plan, spread: Spread, dtype: xp.DType, size: FitSize, kernel: Kernel, engine: Engine
) -> float:
    """Return the seconds of products, reading and tasks on all workers in parallel."""
    # Measured by the workers: this machine may be faster or slower.
    pair_seconds_there = spread.mean(
        partial(pair_seconds, size, kernel, engine, dtype, ROWS_THERE, budget=CALIBRATED_THERE)
    )
    pairs = one.kernel_evaluations + size.selection_evaluations
    passes = one.iterations + 1
    reads = READS_PER_PASS * passes + PASSES_BEFORE_FIT
    work = pair_seconds_there * pairs + spread.seconds_to_read() * reads
    return work / spread.slots + TASK_SECONDS * spread.tasks * passes


def spread_plan(one: Plan, spread: Spread, size: FitSize, blocks: int) -> Plan:
    """Turn the plan for local rows into the plan for the same rows on a cluster.

    Each running task of a worker has a block, the centers and a vector. Targets are also on the
    workers, unless the user gave an array, which counts as data.
    """
    vector = 8 * size.m * size.t
    # Each task that runs on a worker has blocks of its own.
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


def plan_remote_cells(one: Plan, spread: Spread, count: int, held: int) -> Plan:
    """Return the plan of a fit by cells that workers solve, and send with their rows."""
    running = math.ceil(spread.slots / spread.workers)
    # The plan of a cell is for all threads of this machine; a slot of a worker has one.
    cell_seconds = one.seconds * default_threads() * math.ceil(count / spread.slots)
    share = held // spread.workers
    return replace(
        one,
        memory_bytes=held,
        kernel_evaluations=count * one.kernel_evaluations,
        seconds=cell_seconds + 3 * spread.seconds_to_read() / spread.slots + TASK_SECONDS * count,
        cells=count,
        workers=spread.workers,
        slots=spread.slots,
        worker_bytes=LIBRARY_BYTES + running * one.memory_bytes + 2 * share,
        tasks=spread.tasks + count,
        pass_bytes=2 * held,
    )


def check_remote(settings: FitSettings, rows: RowSource) -> None:
    """Raise ValueError, with a remedy, if a fit would transfer remote rows to this machine."""
    if not rows.remote:
        return
    if settings.is_nonlinear:
        problem = "needs all rows on one machine, but these are on other machines"
        remedy = Text("use {loss='squared'} with {landmarks}")
        raise ParameterError("loss", settings.loss, problem, remedy, SETTING_FORM)
    if settings.cells is not None:
        _check_cells(settings)
        return
    # It raises the errors of solvers and selectors that cannot use remote rows.
    solver_choice.solver_and_size(landmark_settings.with_all_rows(settings, len(rows)), rows, 1)


def _check_cells(settings: FitSettings) -> None:
    """Raise ValueError for settings that a fit by cells of remote rows does not support."""
    if any(isinstance(callback, Checkpoint) for callback in settings.callbacks):
        raise TextError(
            "a fit by cells of rows on other machines has no checkpoint: leave {Checkpoint} or "
            "{cells} out"
        )


def check_remote_landmarks(given: LandmarksLike, rows: RowSource) -> None:
    """Raise ValueError if landmarks cannot be chosen by the workers that have remote rows."""
    if not rows.remote:
        return
    selector = landmark_settings.selector(given, len(rows))
    if selector is None:
        problem = "means all rows, which is not supported for rows on a cluster"
        remedy = "give a number of landmarks, or the name of a selector"
        raise ParameterError("landmarks", None, problem, remedy, SETTING_FORM)
    if isinstance(selector, Selector):
        selector.check_rows(rows)
