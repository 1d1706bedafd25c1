"""Picklable solver of the cells of a search, for worker processes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..._arrays import Array, Int, RandomStream
from ..._parallel.machine import read_seconds
from ...engines import Engine
from ...kernels import Kernel
from ...operators import CostMeter
from ...paths.sample import Sample
from ..clock import Clock
from .cell_fit import CellFit, fit_cell


@dataclass(frozen=True, eq=False)
class CellTask:
    """Rows of a cell in random order, its deadline, and a random generator."""

    sample: Sample
    order: Int[Array, " c"]
    ends: float
    rng: RandomStream


@dataclass(frozen=True, eq=False)
class CellSolver:
    """Picklable solver of cells at a given kernel and shift."""

    kernel: Kernel
    shift: float
    clock: Clock
    engine: str | Engine

    def __call__(self, task: CellTask) -> CellFit:
        """Fit a cell, and return its coefficients in the original order of the rows."""
        fit = fit_cell(
            self.kernel, task.sample, self.shift, clock=self.clock,
            # A deadline instead of a duration: a task may have waited for a worker, in another
            # process.
            left=task.ends - read_seconds(), engine=self.engine, rng=task.rng,
        )  # fmt: skip
        # The inverse permutation.
        return CellFit(fit.coef[task.order.argsort(stable=True)], fit.values, fit.shift)

    def fit_and_count(self, task: CellTask) -> tuple[CellFit, int]:
        """Fit a cell with a separate meter, and return the fit and its kernel evaluations."""
        before = self.clock.meter.evaluations
        # The meter starts at the evaluations spent before, so that the limit of the budget holds.
        # Cells in parallel would each count the evaluations of the others on a shared one.
        own = replace(self.clock, meter=CostMeter(before, self.clock.meter.largest_block))
        return replace(self, clock=own)(task), own.meter.evaluations - before
