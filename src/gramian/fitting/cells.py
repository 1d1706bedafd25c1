"""fit_cells: a fit by cells, each a full problem of its own with the same kernel and ridge."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from .._checks import readable_bytes
from ..callbacks import announce, stages
from ..cells import MedianSplits, Partition, divided, partitions
from ..data import RowSource, as_rows
from ..kernels import Kernel
from ..model import CellCenters, KernelModel
from ..operators import Engine
from ..solvers import Result, Solver, solve
from ..solvers.metrics import RESIDUAL
from ..solvers.stopping import Row, StopReason
from . import resolve
from .data import TrainingData
from .defaults import chosen
from .fitted import Fitted, check_not_diverged
from .generators import Generators
from .landmarks import problem_of
from .parameters import CellsLike
from .placed import PlacedData
from .scaling import Scaling
from .settings import FitSettings, is_integer
from .start import stopping

logger = logging.getLogger("gramian")

LARGER, TRIES = 10.0, 4
"""Factor of the ridge of a cell whose solver has diverged, and how often it is tried."""

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
        return MedianSplits(rows=int(given))
    if isinstance(given, str):
        return partitions.make(given)
    raise ValueError(
        f"cells={given!r} is none of: None, the rows of a cell, the name of a partition "
        f"({', '.join(partitions)}), an object of gramian.cells"
    )


def rows_bytes(partition: Partition, rows: RowSource, targets: int) -> int:
    """Return the bytes of all rows, as they are and by cells, and of their coefficients."""
    n, d = rows.shape
    return int((n + partition.inflated(n)) * (d * rows.dtype.itemsize + 8 * targets))


def check_rows(settings: FitSettings, partition: Partition, rows: RowSource, targets: int) -> None:
    """Raise ValueError if all rows do not fit in ``memory_limit``."""
    need = rows_bytes(partition, rows, targets)
    if settings.limit is not None and need > settings.limit:
        raise ValueError(
            f"a fit by cells holds all rows, in {readable_bytes(need)}, and memory_limit is "
            f"{readable_bytes(settings.limit)}; raise it, or use landmarks"
        )


@dataclass(frozen=True, eq=False)
class _Solved:
    """A cell: its coefficients, and how the solver came to them."""

    result: Result
    solver: Solver[Any, Any]
    engine: Engine
    kernel: Kernel
    shift: float


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
    ends = math.inf if settings.time_limit is None else time.monotonic() + settings.time_limit
    partition = partition_of(settings.cells)
    asked = replace(settings, landmarks=None).with_plain_inputs()
    if data.rows.sparse:
        raise ValueError("cells divide dense rows; give X.toarray(), or leave cells out")
    data = data.without_zero_weights()
    check_rows(settings, partition, data.rows, data.targets.shape[1])
    kernel = resolve.kernel(asked.kernel, asked.lengthscale)
    scaling = Scaling.of(asked, data, kernel=kernel, rng=rng.maps)
    settings, data = scaling.apply(asked, data)
    X = data.rows.take(torch.arange(len(data.rows)))
    data = replace(data, rows=as_rows(X))
    announce(settings.callbacks, stages.CHOOSING)
    cells, members = divided(partition, X, rng=rng.landmarks)
    total = _total(data)
    if settings.chooses:
        pilot = data.part(members[_usual(members)])
        mapped = scaling.features.metric
        settings = chosen(settings, pilot, landmarks=None, rng=rng.choice, ends=ends, mapped=mapped)
        if asked.chooses_penalty:  # the ridge is that of the cell that it was chosen by
            shift = float(settings.penalty) * _total(pilot)
            settings = replace(settings, penalty=shift / total)
    settings = chosen(settings, data, landmarks=None, rng=rng.choice, ends=ends)
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    kernel = resolve.kernel_for(kernel, data.rows, rng.kernel)
    shift = float(settings.penalty) * total
    announce(settings.callbacks, stages.PREPARING)
    solved = []
    for number, index in enumerate(members):
        part = data.part(index, as_rows(X[index]))
        left = (ends - time.monotonic()) / (len(members) - number)
        solved.append(_cell(settings, asked, part, kernel, shift, rng, time.monotonic() + left))
        logger.debug("cell %d of %d: %d rows", number + 1, len(members), len(index))
    model = KernelModel(
        solved[0].kernel,
        X[torch.cat(members)],
        torch.cat([one.result.state.coef.cpu() for one in solved]),
        feature_names=data.feature_names,
        classes=data.classes,
        encoding=data.encoding,
        target=data.target,
        cells=CellCenters(cells, torch.tensor([0, *map(len, members)]).cumsum(dim=0)),
    )
    history = sorted(
        (_row(one, index) for one, index in zip(solved, members, strict=True)),
        key=lambda row: float(row.get(RESIDUAL, 0.0)),
    )
    last = max(solved, key=lambda one: WORST.index(one.result.reason))
    return Fitted(
        model=scaling.model(model),
        settings=replace(asked, callbacks=(), tol=settings.tol),
        solver=solved[0].solver,
        engine=solved[0].engine,
        penalty=float(settings.penalty),
        path=None,
        path_ended_at_best=False,
        index=None,
        iteration=max(one.result.state.iteration for one in solved),
        reason=last.result.reason,
        history=history,
        solver_settings={},
        metrics=history[-1],
        learned=scaling.features.learned,
    )


def _usual(members: Sequence[Int[Tensor, " _"]]) -> int:
    """Return the number of a cell of median size."""
    order = sorted(range(len(members)), key=lambda cell: len(members[cell]))
    return order[len(order) // 2]


def _total(data: TrainingData) -> float:
    return float(len(data.rows)) if data.weights is None else float(data.weights.sum())


def _cell(
    settings: FitSettings,
    asked: FitSettings,
    data: TrainingData,
    kernel: Kernel,
    shift: float,
    rng: Generators,
    ends: float,
) -> _Solved:
    """Solve a cell, with a larger ridge where its solver diverges."""
    n, total = len(data.rows), _total(data)
    for _ in range(TRIES):
        own = replace(settings, penalty=shift / total)
        _, size = resolve.solver_and_size(own, data.rows, data.targets.shape[1])
        solver = resolve.solver_for(own, asked, size)
        engine = resolve.engine_for(own, data.rows, kernel)
        placed = PlacedData.place(data, kernel, engine, solver, size, own.limit)
        problem = problem_of(placed.K, placed.data, None, shift / total)
        result = solve(problem, solver, stop=stopping(own, solver, n, ends), rng=rng.solver)
        if result.reason != "diverged":
            return _Solved(result, solver, engine, placed.K.kernel, shift)
        shift *= LARGER
        logger.warning("the solver diverged in a cell of %d rows: ridge %.3g", n, shift)
    check_not_diverged(result)
    raise FloatingPointError("the solver diverged in a cell")


def _row(one: _Solved, index: Int[Tensor, " c"]) -> Row:
    """Return the row of a cell in the history."""
    last = one.result.history[-1]
    row: dict[str, Any] = {"iteration": one.result.state.iteration, "rows": len(index)}
    row |= {"ridge": one.shift}
    return row | ({RESIDUAL: last[RESIDUAL]} if RESIDUAL in last else {})
