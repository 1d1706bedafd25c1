"""fit_cells: a fit by cells, each a full problem of its own with the same kernel and ridge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..._checks import as_count, readable_bytes
from ..._errors import SETTING_FORM, ParameterError, TextError
from ..._parameter_types import CellsLike
from ...callbacks import Checkpoint, announce, stages
from ...callbacks.stages import announce_part
from ...cells import MedianSplits, Partition, partitions
from ...data import LinearMap, RowSource, as_rows, scratch
from ...model import CellCenters
from ...solvers.loop.metrics import RESIDUAL
from ...solvers.loop.stopping import Row, StopReason
from ..choice.choose import Chosen, choose
from ..inputs.scaling import Scaling
from ..inputs.training_data import TrainingData
from ..plans.machine import machine_memory
from ..result import Fitted
from ..settings import resolve
from ..settings.generators import Generators
from ..settings.settings import FitSettings, is_integer
from .problems import CellProblems, workers_of
from .remote import ProblemsThere, cell_rows_there
from .rows import BLOCK_BYTES, BYTES_PER_ROW, CellRows, rows_by_cell

MEMORY_SHARE = 2
"""Rows by cells are held in memory if so many times their bytes fit there."""

BLOCK_SHARE = 8
"""Of the memory, one part in so many is for rows that are routed at once, at most."""

WORST: tuple[StopReason, ...] = ("converged", "no_progress", "max_iterations", "time_limit")
"""Reasons to stop, the worse the later: that of the fit is the worst of a cell."""


def partition_of(given: CellsLike) -> Partition:
    """Return the partition that the parameter ``cells`` means.

    Raises
    ------
    ValueError
        If it is none of a number of rows, the name of a partition, and a partition.
    """
    if isinstance(given, Partition):
        return given
    if is_integer(given):
        return MedianSplits(rows=as_count(given, "cells"))
    if isinstance(given, str):
        return partitions.make(given)
    problem = (
        "is none of: None, the rows of a cell, the name of a partition "
        f"({', '.join(partitions)}), an object of gramian.cells"
    )
    raise ParameterError("cells", given, problem, form=SETTING_FORM)


def rows_bytes(partition: Partition, rows: RowSource, targets: int) -> int:
    """Return the bytes of all rows by cells, of their numbers and of their coefficients."""
    n, d = rows.shape
    return int(partition.inflated(n) * (d * rows.dtype.itemsize + 8 + 8 * targets))


def passes_bytes(settings: FitSettings, rows: RowSource, targets: int) -> int:
    """Return the bytes of passes over rows in files: targets, given and scaled, and blocks.

    Of rows on other machines none are here.
    """
    n, d = rows.shape
    if rows.remote:
        return 0
    blocks = min(_block_bytes(settings), n * (BYTES_PER_ROW + 3 * d * rows.dtype.itemsize))
    return 2 * 8 * n * targets + blocks


def _block_bytes(settings: FitSettings) -> int:
    limit = settings.limit
    return BLOCK_BYTES if limit is None else min(BLOCK_BYTES, limit // BLOCK_SHARE)


def in_file(settings: FitSettings, partition: Partition, rows: RowSource, targets: int) -> int:
    """Return the bytes of temporary files of a fit by cells: 0 if all of it fits in memory.

    Raises
    ------
    ValueError
        If targets and blocks of rows alone do not fit in ``memory_limit``.
    """
    limit = machine_memory() if settings.limit is None else settings.limit
    least = passes_bytes(settings, rows, targets)
    if least > limit:
        raise TextError(
            f"a fit by cells holds targets and blocks of rows, in {readable_bytes(least)}, and "
            f"{{memory_limit}} is {readable_bytes(limit)}; raise it"
        )
    need = rows_bytes(partition, rows, targets)
    return need if MEMORY_SHARE * need > limit else 0


def fit_cells(settings: FitSettings, data: TrainingData, *, rng: Generators) -> Fitted:
    """Fit a full problem to the rows of each cell; see `KernelRidge` for ``cells``.

    Parameters
    ----------
    settings : FitSettings
        With ``cells``.
    data : TrainingData
    rng : Generators

    Raises
    ------
    ValueError
        If the settings do not go with cells, or rows are sparse.
    FloatingPointError
        If the solver diverges in a cell with larger ridges, too.
    """
    ends = settings.deadline()
    partition = partition_of(settings.cells)
    asked = replace(settings, landmarks=None).with_plain_inputs()
    if data.rows.sparse:
        raise ValueError("cells divide dense rows; give X.toarray(), or leave cells out")
    data = data.without_zero_weights()
    file_bytes = in_file(settings, partition, data.rows, data.targets.shape[1])
    kernel = resolve.kernel(asked.kernel, asked.lengthscale)
    scaling = Scaling.of(asked, data, kernel=kernel, rng=rng.maps)
    settings, data = scaling.apply(asked, data)
    announce(settings.callbacks, stages.PREPARING)
    memory = 0 if file_bytes else sys.maxsize
    d = data.rows.shape[1]
    unused = sorted(frozenset(range(d)) - kernel.used_features(d))
    rows = _by_cell(partition, data.rows, memory, _block_bytes(asked), unused, rng.landmarks)
    choice = _chosen(settings, asked, data, rows, scaling.features.metric, rng, ends)
    settings = choice.settings
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    near = data.rows if data.rows.remote else as_rows(rows.X)
    kernel = resolve.kernel_for(kernel, near, rng.kernel)
    engine = resolve.engine_for(settings, data.rows, kernel)
    problems = (ProblemsThere if data.rows.remote else CellProblems)(
        settings, asked, data, rows, kernel, engine, settings.one_penalty * data.total,
        rng.solver, ends, workers_of(len(rows), engine),
    )  # fmt: skip
    coef = scratch((len(rows.X), data.targets.shape[1]), torch.float64, memory)
    cells = _all(problems, coef)
    model = data.model(
        kernel,
        rows.X,
        coef,
        cells=CellCenters(rows.cells, rows.starts),
        probabilities=choice.shares,
    )
    history = sorted((row for row, _ in cells), key=lambda row: float(row.get(RESIDUAL, 0.0)))
    return Fitted(
        model=scaling.model(model),
        settings=replace(asked, callbacks=(), tol=settings.tol),
        solver=problems.solver(rows.usual),
        engine=engine,
        penalty=settings.one_penalty,
        path=None,
        path_ended_at_best=False,
        index=None,
        iteration=max(int(row["iteration"]) for row in history),
        reason=max((reason for _, reason in cells), key=WORST.index),
        history=history,
        solver_settings={},
        metrics=history[-1],
        learned=scaling.features.learned,
    )


def _by_cell(
    partition: Partition,
    rows: RowSource,
    memory: int,
    blocks: int,
    unused: Sequence[int],
    rng: torch.Generator,
) -> CellRows:
    """Return the rows of all cells, wherever they are."""
    if rows.remote:
        return cell_rows_there(partition, rows, memory_bytes=memory, unused=unused, rng=rng)
    return rows_by_cell(
        partition, rows, memory_bytes=memory, block_bytes=blocks, unused=unused, rng=rng
    )


def _chosen(
    settings: FitSettings,
    asked: FitSettings,
    data: TrainingData,
    rows: CellRows,
    mapped: LinearMap | None,
    rng: Generators,
    ends: float,
) -> Chosen:
    """Return settings with values, those left open chosen by a cell of median size."""
    shares = None
    if settings.chooses:
        pilot = rows.of(rows.usual, data)
        choice = choose(settings, pilot, landmarks=None, rng=rng.choice, ends=ends, mapped=mapped)
        settings, shares = choice.settings, choice.shares
        if asked.chooses_penalty:  # the ridge is that of the cell that it was chosen by
            shift = settings.one_penalty * pilot.total
            settings = replace(settings, penalty=shift / data.total)
    choice = choose(settings, data, landmarks=None, rng=rng.choice, ends=ends)
    return replace(choice, shares=shares)


def _all(problems: CellProblems, coef: Float[Tensor, "m t"]) -> list[tuple[Row, StopReason]]:
    """Solve all cells, write their coefficients, and return how the solver came to them."""
    callbacks, rows = problems.settings.callbacks, problems.rows
    announce(callbacks, stages.CELLS)
    saved = [callback for callback in callbacks if isinstance(callback, Checkpoint)]
    outcomes = []
    journal = problems.journal(saved[0]) if saved else None
    for number, cell in enumerate(problems.solved(journal)):
        coef[rows.bounds(number)] = cell.coef
        outcomes.append((cell.row, cell.reason))
        announce_part(callbacks, number + 1, len(rows))
    return outcomes
