"""Solver of the full problem of a cell, in this or in another process."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...data import RowSource
from ...kernels import Kernel
from ...operators import Engine
from ...solvers import Result, Solver, solve
from ...solvers.loop.loop import Row, Stop
from ...solvers.loop.state import RESIDUAL_KEY, StopReason
from ..inputs.training_data import TrainingData
from ..methods.base import Prepared, problem_of
from ..methods.pipeline import check_not_diverged, stopping_rules
from ..plans import solver_choice
from ..plans.memory import FitSize
from ..plans.placement import PlacedData
from ..settings.settings import FitSettings

logger = logging.getLogger("gramian")

LARGER, TRIES = 10.0, 4
"""Factor of the ridge of a cell whose solver has diverged, and how often it is tried."""


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """Solution of a cell: coefficients, iterations, residual and reason of the end.

    - `coef`: coefficients in float64.
    - `shift`: the requested ridge, or a larger one.
    - `residual`: relative residual; None if the solver does not measure it.
    """

    coef: Float[Array, "k t"]
    iteration: int
    reason: StopReason
    shift: float
    residual: float | None

    @property
    def row(self) -> Row:
        """Row of the cell in the history of the fit."""
        row: Row = {"iteration": self.iteration, "rows": len(self.coef), "ridge": self.shift}
        return row if self.residual is None else row | {RESIDUAL_KEY: self.residual}


@dataclass(frozen=True, eq=False)
class CellTask:
    """Data of a cell, the time at which its fit ends, and its random generator."""

    data: TrainingData
    ends: float
    rng: RandomStream


@dataclass(frozen=True, eq=False)
class CellSolver:
    """Solver of a cell, which can be sent to other processes; it raises the ridge if it diverges.

    - `settings`, `asked`: settings with and without values in place of "auto", with the memory
      limit of one cell.
    - `rule`: a further stopping rule.
    - `workers`: number of cells that are solved at once and share the memory of the machine.
    """

    settings: FitSettings
    user_settings: FitSettings
    kernel: Kernel
    engine: Engine
    shift: float
    rule: Stop | None = None
    workers: int = 1

    @classmethod
    def of(cls, prepared: Prepared, workers: int, rule: Stop | None = None) -> CellSolver:
        """Return the solver that all cells of a fit share."""
        settings, user_settings = (
            fit_settings.with_values(callbacks=())
            for fit_settings in (prepared.settings, prepared.user_settings)
        )
        if settings.limit is not None:
            settings = settings.with_values(memory_limit=max(1, settings.limit // workers))
        shift = settings.one_penalty * prepared.data.total
        return cls(settings, user_settings, prepared.kernel, prepared.engine, shift, rule, workers)

    def __call__(self, task: CellTask) -> SolvedCell:
        """Solve a cell, and raise the ridge as long as the solver diverges."""
        shift = self.shift
        # A cell may be harder than the fit as a whole: a larger ridge is better than no model.
        for _ in range(TRIES):
            result = self._result(task, shift)
            if result.reason != "diverged":
                # Closed forms measure no residual.
                last = result.history[-1].get(RESIDUAL_KEY)
                return SolvedCell(
                    xp.to_host(result.state.coef), result.state.iteration, result.reason, shift,
                    None if last is None else float(last),
                )  # fmt: skip
            shift *= LARGER
            logger.warning(
                "the solver diverged in a cell of %d rows; its ridge is raised to %.3g",
                len(task.data.rows),
                shift,
            )
        check_not_diverged(result)
        raise FloatingPointError("the solver diverged in a cell; raise the penalty")

    def solver(self, rows: RowSource, targets: int) -> tuple[Solver[Any, Any], FitSize]:
        """Return the solver of a cell, chosen by its rows' shape and dtype, and the fit's size."""
        _, size = solver_choice.solver_and_size(self.settings, rows, targets)
        solver = solver_choice.after_choices(self.settings, self.user_settings, size)
        limit = self.settings.limit
        # A limit is the limit of one cell already.
        sharing = self.workers if limit is None else 1
        solver = solver_choice.with_stored_entries(
            solver, size, limit, self.engine, self.kernel, sharing
        )
        return solver, size

    def _result(self, task: CellTask, shift: float) -> Result:
        # All cells have the same ridge: the penalty per row depends on the number of rows.
        data = task.data
        own = self.settings.with_values(penalty=shift / data.total)
        solver, size = replace(self, settings=own).solver(data.rows, data.targets.shape[1])
        placed = PlacedData.place(data, self.kernel, self.engine, solver, size, own.limit)
        problem = problem_of(placed.K, placed.data, None, own.one_penalty)
        stop = stopping_rules(own, solver, len(data.rows), task.ends)
        if self.rule is not None:
            # First, because nobody waits for this cell any more.
            stop = [self.rule, *stop]
        return solve(problem, solver, stop=stop, rng=task.rng)
