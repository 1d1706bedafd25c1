"""Plan of a fit before it starts: memory, kernel evaluations and seconds."""

from __future__ import annotations

import math
from dataclasses import replace

from ... import _arrays as xp
from ... import solvers
from ..._arrays import RandomStream
from ...data import RemoteDescription, RowSource, decoded_bytes
from ...kernels import Gaussian, Kernel, Linear
from ...operators import factor_bytes
from ..choice.choose import choice_work
from ..inputs.kernel_matrix import PRECOMPUTED_NAME as PRECOMPUTED
from ..inputs.kernel_matrix import cost_of_objects, plan_matrix
from ..inputs.objects import ObjectRows
from ..settings import landmarks as landmark_settings
from ..settings import resolve
from ..settings.settings import FitSettings
from . import solver_choice
from .calibration import calibrated_seconds, work_seconds
from .cells import (
    ROUTING_SECONDS,
    partition_of,
    passes_bytes,
    rows_bytes,
    temporary_file_bytes,
    workers_of,
)
from .memory import ASSUMED_ITERATIONS
from .placement import Placement
from .remote import plan_remote_cells, remote_seconds, spread_plan
from .result import Plan


def plan(settings: FitSettings, rows: RowSource, targets: int = 1) -> Plan:
    """Estimate memory, kernel evaluations and seconds of a fit, before it starts.

    - `targets`: columns of the targets.

    Seconds and memory include the choice of kernel, lengthscale and penalty where they are "auto";
    kernel evaluations do not, except along a path of penalties.

    Raise ValueError if the fit exceeds the memory, or the number of landmarks is not known before
    they are selected.
    """
    if settings.kernel == PRECOMPUTED:
        return _of_matrix(settings, rows, targets)
    if settings.cells is not None:
        return _of_cells(settings, rows, targets)
    settings = _with_columns(settings, rows)
    return _add_choice(_of_solver(settings, rows, targets), settings, rows, targets)


def _with_columns(settings: FitSettings, rows: RowSource) -> FitSettings:
    """Return settings with numbers of columns in place of names, and with a number of landmarks."""
    settings = resolve.with_names(settings, rows.feature_names)
    settings = landmark_settings.with_all_rows(settings, rows.shape[0])
    landmark_settings.require_count(settings.landmarks, rows.shape[0])
    return settings


def _add_choice(fit_plan: Plan, settings: FitSettings, rows: RowSource, targets: int) -> Plan:
    """Add the seconds of the choice of settings by some of `rows`, and its memory if it is more."""
    _, size = solver_choice.solver_and_size(settings, rows, targets)
    choice = choice_work(settings, rows, size)
    engine = resolve.engine_for(settings, rows)
    return replace(
        fit_plan,
        # The choice has ended when the solver begins.
        memory_bytes=max(fit_plan.memory_bytes, int(choice.peak_bytes)),
        seconds=fit_plan.seconds + work_seconds(choice, size.d, _kernel(settings, rows), engine),
    )


def _of_solver(settings: FitSettings, rows: RowSource, targets: int, *, workers: int = 1) -> Plan:
    """Return the plan of landmarks and solver.

    - `workers`: number of such fits at once, which share the memory of the machine.
    """
    solver, size = solver_choice.solver_and_size(settings, rows, targets)
    kernel, engine = _kernel(settings, rows), resolve.engine_for(settings, rows)
    limit = settings.limit
    solver = solver_choice.with_stored_entries(solver, size, limit, engine, kernel, workers)
    placement = Placement.of(engine, solver, size, limit)
    host_bytes, device_bytes = placement.bytes_with_blocks(engine, solver, size)
    if not solver.closed_form:
        spare = solver_choice.spare_bytes(solver, size, limit)
        # Factors of sparse rows are made only within the memory that is left; their size is known
        # by a bound.
        host_bytes += min(factor_bytes(kernel, rows), spare)
    iterations = 1 if solver.closed_form else min(settings.max_iter, ASSUMED_ITERATIONS)
    pairs, dtype = size.evaluations(solver, iterations), rows.dtype
    # Workers of a cluster evaluate the kernel of remote rows: their time is added below.
    spread = rows.spread()
    own_size, own_pairs = (replace(size, selector=None), 0) if spread else (size, pairs)
    local_plan = Plan(
        solver=solvers.name_of(solver),
        landmarks=None if size.full else size.m,
        memory_bytes=host_bytes,
        kernel_evaluations=pairs,
        seconds=calibrated_seconds(
            solver, own_size, iterations, own_pairs, kernel, engine, dtype, placement.device
        ),
        iterations=iterations,
        device=placement.device,
        device_bytes=device_bytes,
        kept_bytes=solver.kept_bytes(size),
        disk_bytes=0 if size.full else decoded_bytes(rows),
    )
    if spread is None:
        return local_plan
    more_seconds = remote_seconds(local_plan, spread, dtype, size, kernel, engine)
    remote_plan = replace(local_plan, seconds=local_plan.seconds + more_seconds)
    return spread_plan(remote_plan, spread, size, host_bytes - placement.host_bytes)


def _kernel(settings: FitSettings, rows: RowSource) -> Kernel:
    """Return a kernel whose evaluation costs as much as an evaluation of the fit's kernel."""
    kernel = resolve.kernel(settings.kernel, settings.first_lengthscale)
    # Of sparse rows, dense ones with as many numbers take the place, without meaningful columns.
    if rows.entries is not None:
        kernel = Linear() if kernel.bilinear else Gaussian()
    # Random rows: a plan must not read the data, but the kernel needs a lengthscale.
    rng = RandomStream(0)
    return kernel.resolve(rng.random((50, rows.width), xp.float32))


def _of_matrix(settings: FitSettings, rows: RowSource, targets: int) -> Plan:
    """Return the plan of a fit to a kernel matrix.

    If a function computes the matrix, add the time of its calls and the memory of the matrix.
    """
    matrix_plan = plan(*plan_matrix(settings, rows), targets)
    if not isinstance(rows, ObjectRows):
        return matrix_plan
    m = matrix_plan.landmarks
    cost = cost_of_objects(rows, None if m is None else settings.landmarks, m)
    held_bytes = 8 * len(rows) * (m or len(rows))
    return replace(
        matrix_plan,
        seconds=matrix_plan.seconds + cost.seconds,
        memory_bytes=matrix_plan.memory_bytes + held_bytes,
    )


def _of_cells(settings: FitSettings, rows: RowSource, targets: int) -> Plan:
    """Return the plan of one cell times the number of cells, plus the choice and all rows.

    A cell of median size chooses the settings of all cells.

    Raise ValueError if the fit exceeds ``memory_limit``.
    """
    partition, n = partition_of(settings.cells), len(rows)
    disk = temporary_file_bytes(settings, partition, rows, targets)
    count = partition.total_cell_rows(n) / min(partition.rows, n)
    # Cells that are solved at once share the memory of the machine.
    workers = workers_of(math.ceil(count), resolve.engine_for(settings, rows))
    cell_settings, cell_rows = _one_cell(settings, rows)
    cell_settings = _with_columns(cell_settings, cell_rows)
    cell_plan = _of_solver(cell_settings, cell_rows, targets, workers=workers)
    spread = rows.spread()
    if spread is not None:
        held_bytes = rows_bytes(partition, rows, targets)
        remote_plan = plan_remote_cells(cell_plan, spread, math.ceil(count), held=held_bytes)
        return _add_choice(remote_plan, cell_settings, cell_rows, targets)
    # In a file, only targets and blocks of the passes take memory.
    held_bytes = (
        passes_bytes(settings, rows, targets) if disk else rows_bytes(partition, rows, targets)
    )
    all_cells = replace(
        cell_plan,
        memory_bytes=workers * cell_plan.memory_bytes + held_bytes,
        kept_bytes=workers * cell_plan.kept_bytes,
        kernel_evaluations=int(count * cell_plan.kernel_evaluations),
        seconds=count * cell_plan.seconds + ROUTING_SECONDS * partition.total_cell_rows(n),
        cells=math.ceil(count),
        disk_bytes=disk,
    )
    return _add_choice(all_cells, cell_settings, cell_rows, targets)


def _one_cell(settings: FitSettings, rows: RowSource) -> tuple[FitSettings, RowSource]:
    """Return the settings and rows of a typical cell."""
    cell_size = min(partition_of(settings.cells).rows, len(rows))
    cell_settings = replace(settings, cells=None, landmarks=None)
    return cell_settings, RemoteDescription(rows, cell_size)


def check_memory(settings: FitSettings, rows: RowSource, targets: int = 1) -> None:
    """Raise ValueError if a fit does not fit in memory, without reading or measuring anything."""
    if settings.kernel == PRECOMPUTED:
        settings, rows = plan_matrix(settings, rows)
    if settings.cells is not None:
        temporary_file_bytes(settings, partition_of(settings.cells), rows, targets)
        # Only a single cell has to fit in memory.
        settings, rows = _one_cell(settings, rows)
    settings = landmark_settings.with_all_rows(settings, rows.shape[0])
    engine = resolve.engine_for(settings, rows)
    Placement.of(engine, *solver_choice.solver_and_size(settings, rows, targets), settings.limit)
