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
from ..inputs.kernel_matrix import PRECOMPUTED_NAME as PRECOMPUTED
from ..inputs.kernel_matrix import cost_of_objects, plan_matrix
from ..inputs.objects import ObjectRows
from ..settings import landmarks as landmark_settings
from ..settings import resolve
from ..settings.settings import FitSettings
from . import solver_choice
from .calibration import calibrated_seconds
from .cells import partition_of, passes_bytes, rows_bytes, temporary_file_bytes, workers_of
from .memory import ASSUMED_ITERATIONS
from .placement import Placement
from .remote import plan_remote_cells, remote_seconds, spread_plan
from .result import Plan


def plan(settings: FitSettings, rows: RowSource, targets: int = 1, *, workers: int = 1) -> Plan:
    """Estimate memory, kernel evaluations and seconds of a fit, before it starts.

    - `targets`: columns of the targets.
    - `workers`: number of such fits at once, which share the memory of the machine.

    Raise ValueError if the fit exceeds the memory, or the number of landmarks is not known before
    they are selected.
    """
    if settings.kernel == PRECOMPUTED:
        return _of_matrix(settings, rows, targets)
    if settings.cells is not None:
        return _of_cells(settings, rows, targets)
    settings = resolve.with_names(settings, rows.feature_names)
    settings = landmark_settings.with_all_rows(settings, rows.shape[0])
    landmark_settings.require_count(settings.landmarks, rows.shape[0])
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
    """Return the plan of one cell times the number of cells, plus the storage of all rows.

    Raise ValueError if the fit exceeds ``memory_limit``.
    """
    partition, n = partition_of(settings.cells), len(rows)
    disk = temporary_file_bytes(settings, partition, rows, targets)
    count = partition.total_cell_rows(n) / min(partition.rows, n)
    # Cells that are solved at once share the memory of the machine.
    workers = workers_of(math.ceil(count), resolve.engine_for(settings, rows))
    cell_plan = plan(*_one_cell(settings, rows), targets, workers=workers)
    spread = rows.spread()
    if spread is not None:
        return plan_remote_cells(
            cell_plan, spread, math.ceil(count), held=rows_bytes(partition, rows, targets)
        )
    # In a file, only targets and blocks of the passes take memory.
    held_bytes = (
        passes_bytes(settings, rows, targets) if disk else rows_bytes(partition, rows, targets)
    )
    return replace(
        cell_plan,
        memory_bytes=workers * cell_plan.memory_bytes + held_bytes,
        kept_bytes=workers * cell_plan.kept_bytes,
        kernel_evaluations=int(count * cell_plan.kernel_evaluations),
        seconds=count * cell_plan.seconds,
        cells=math.ceil(count),
        disk_bytes=disk,
    )


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
