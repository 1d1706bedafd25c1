"""CellSolver: what fits a cell of a search, as a value that can be sent to another process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from ...engines import Engine
from ...kernels import Kernel
from ...operators import CostMeter
from ...paths.sample import Sample
from ..clock import Clock
from .cell_fit import CellFit, fit_cell


@dataclass(frozen=True, eq=False)
class CellTask:
    """The rows of a cell in a random order, the time at which it is to end, and a generator."""

    sample: Sample
    order: Int[Tensor, " c"]
    ends: float
    rng: torch.Generator


@dataclass(frozen=True, eq=False)
class CellSolver:
    """What fits a cell at the lengthscale and the shift of a fit: a value that can be sent."""

    kernel: Kernel
    shift: float
    clock: Clock
    engine: str | Engine

    def __call__(self, task: CellTask) -> CellFit:
        """Fit it; coefficients in the order of the rows."""
        found = fit_cell(
            self.kernel, task.sample, self.shift, clock=self.clock,
            left=task.ends - time.monotonic(), engine=self.engine, rng=task.rng,
        )  # fmt: skip
        return CellFit(found.coef[task.order.argsort()], found.values, found.shift)

    def counted(self, task: CellTask) -> tuple[CellFit, int]:
        """Fit it with a meter of its own, and return its kernel evaluations, too."""
        before = self.clock.meter.evaluations
        own = replace(self.clock, meter=CostMeter(before, self.clock.meter.largest_block))
        return replace(self, clock=own)(task), own.meter.evaluations - before
