"""Fit by cells: solve a full problem for each cell, with one kernel and one ridge for all cells."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...callbacks import Checkpoint, announce, stages
from ...callbacks.stages import announce_part
from ...cells import Partition
from ...data import LinearMap, RemoteDescription, RemoteRows, RowSource, scratch
from ...model import CellCenters
from ...solvers.loop.loop import Row
from ...solvers.loop.state import RESIDUAL_KEY, StopReason
from ..choice.choose import Chosen, choose
from ..inputs.scaling import Scaling
from ..inputs.training_data import TrainingData
from ..methods.base import Prepared
from ..plans import solver_choice
from ..plans.cells import partition_of, routed_block_bytes, temporary_file_bytes, workers_of
from ..result import Fitted
from ..settings import resolve
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from .problems import CellProblems
from .remote import CellRowsThere, ProblemsThere, remote_cell_rows
from .rows import CellRows, rows_by_cell
from .solver import CellSolver

REASONS_BY_RANK: tuple[StopReason, ...] = (
    "converged",
    "no_progress",
    "max_iterations",
    "time_limit",
)
"""Reasons to stop, from best to worst. The reason of the fit is the worst of its cells."""


def fit_cells(settings: FitSettings, data: TrainingData, *, rng: Generators) -> Fitted:
    """Fit a full problem to the rows of each cell; see `KernelRidge` for ``cells``.

    - `settings`: settings with ``cells``.

    Raise ValueError if the settings exclude cells, or rows are sparse, and FloatingPointError
    if the solver diverges in a cell with larger ridges, too.
    """
    partition = partition_of(settings.cells)
    if data.rows.sparse:
        raise ValueError("cells divide dense rows; give X.toarray(), or leave cells out")
    data = data.without_zero_weights()
    # 1. Rows of all cells in memory, or in a temporary file if they do not fit.
    has_files = temporary_file_bytes(settings, partition, data.rows, data.targets.shape[1]) > 0
    memory = 0 if has_files else sys.maxsize
    prepared, rows = _prepare(settings, data, rng, partition, memory)
    # 2. Solve the cells where their rows are.
    kind = ProblemsThere if isinstance(rows, CellRowsThere) else CellProblems
    workers = workers_of(len(rows), prepared.engine)
    coef = scratch((len(rows.X), data.targets.shape[1]), xp.float64, memory)
    outcomes = _all(kind(prepared, rows, rng.solver, workers), coef)
    # 3. The outcome names one solver: the one of a usual cell.
    # The solver of a cell of median size.
    cell = RemoteDescription(prepared.data.rows, rows.count(rows.usual))
    prepared = replace(
        prepared,
        solver=CellSolver.of(prepared, workers).solver(cell, prepared.data.targets.shape[1])[0],
    )
    # The outcome of all cells; the history ends with the cell of the largest residual.
    # By residual: the last row, which gives the metrics of the fit, is of the worst cell.
    history = sorted(
        (row for row, _ in outcomes), key=lambda row: float(row.get(RESIDUAL_KEY, 0.0))
    )
    model = prepared.data.model(
        prepared.kernel,
        rows.X,
        coef,
        cells=CellCenters(rows.cells, rows.starts),
        probabilities=prepared.probabilities,
    )
    return Fitted(
        model=prepared.scaling.model(model),
        settings=replace(prepared.user_settings, callbacks=()),
        solver=prepared.solver,
        engine=prepared.engine,
        penalty=prepared.settings.one_penalty,
        iteration=max(int(row["iteration"]) for row in history),
        # A fit has converged only if all its cells have.
        reason=max((reason for _, reason in outcomes), key=REASONS_BY_RANK.index),
        history=history,
        metrics=history[-1],
        learned=prepared.scaling.features.learned,
    )


def _prepare(
    settings: FitSettings, data: TrainingData, rng: Generators, partition: Partition, memory: int
) -> tuple[Prepared, CellRows]:
    """Return the settings and data of a fit, with kernel and solver, and the rows of all cells.

    The solver suits a cell of median size.

    `memory` is the limit in bytes for the rows of all cells.
    """
    ends = settings.deadline()
    # Rows are scaled and routed before kernels are compared, too early to choose quantiles.
    user_settings = settings.with_values(landmarks=None).with_plain_inputs()
    kernel = resolve.kernel(user_settings.kernel, user_settings.first_lengthscale)
    scaling = Scaling.of(user_settings, data, kernel=kernel, rng=rng.maps)
    settings, data = scaling.apply(user_settings, data)
    announce(settings.callbacks, stages.PREPARING_STAGE)
    d, block_bytes = data.rows.shape[1], routed_block_bytes(user_settings)
    # A cut along a feature that the kernel ignores would separate neighbours.
    unused = sorted(frozenset(range(d)) - kernel.used_features(d))
    rows = _by_cell(partition, data.rows, memory, block_bytes, unused, rng.landmarks)
    choice = _choose_settings(
        settings, user_settings, data, rows, scaling.features.metric, rng, ends
    )
    settings = choice.settings
    user_settings = user_settings.with_values(tol=settings.tol)
    kernel = resolve.kernel(settings.kernel, settings.first_lengthscale)
    kernel = resolve.kernel_for(kernel, rows.points(data.rows), rng.kernel)
    engine = resolve.engine_for(settings, data.rows, kernel)
    cell = RemoteDescription(data.rows, rows.count(rows.usual))
    solver, size = solver_choice.solver_and_size(settings, cell, data.targets.shape[1])
    prepared = Prepared(
        user_settings, settings, data, scaling, kernel, solver, engine, size, ends,
        probabilities=choice.shares,
    )  # fmt: skip
    return prepared, rows


def _by_cell(
    partition: Partition,
    rows: RowSource,
    memory: int,
    blocks: int,
    unused: Sequence[int],
    rng: RandomStream,
) -> CellRows:
    """Divide local or remote rows into cells, and return the rows of all cells."""
    if isinstance(rows, RemoteRows):
        return remote_cell_rows(partition, rows, memory_bytes=memory, unused=unused, rng=rng)
    return rows_by_cell(
        partition, rows, memory_bytes=memory, block_bytes=blocks, unused=unused, rng=rng
    )


def _choose_settings(
    settings: FitSettings,
    user_settings: FitSettings,
    data: TrainingData,
    rows: CellRows,
    mapped: LinearMap | None,
    rng: Generators,
    ends: float,
) -> Chosen:
    """Return settings in which values for "auto" are chosen by a fit to a cell of median size."""
    shares = None
    if settings.chooses:
        pilot = rows.of(rows.usual, data)
        choice = choose(settings, pilot, landmarks=None, rng=rng.choice, ends=ends, mapped=mapped)
        settings, shares = choice.settings, choice.shares
        if user_settings.chooses_penalty:  # All cells have the ridge of the cell that chose it.
            shift = settings.one_penalty * pilot.total
            settings = settings.with_values(penalty=shift / data.total)
    # Nothing is left to choose: this only replaces a tolerance that is still "auto".
    choice = choose(settings, data, landmarks=None, rng=rng.choice, ends=ends)
    return replace(choice, shares=shares)


def _all(problems: CellProblems, coef: Float[Array, "m t"]) -> list[tuple[Row, StopReason]]:
    """Solve all cells, write the coefficients into `coef`, and return the rows of the history."""
    callbacks, rows = problems.prepared.settings.callbacks, problems.rows
    announce(callbacks, stages.CELLS_STAGE)
    saved = [callback for callback in callbacks if isinstance(callback, Checkpoint)]
    outcomes = []
    journal = problems.journal(saved[0]) if saved else None
    for number, cell in enumerate(problems.solve_cells(journal)):
        coef[rows.bounds(number)] = cell.coef
        outcomes.append((cell.row, cell.reason))
        announce_part(callbacks, number + 1, len(rows))
    return outcomes
