"""AllCells: all rows divided into cells, and the fits of these in the time that is left."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..._linalg.threads import one_thread_if_small
from ..._processes import processes_pay, run_apart
from ..._workers import default_threads, run
from ...cells import Cells, MedianSplits, divided
from ...data import LinearMap
from ...engines import Engine
from ...kernels import Kernel
from ...paths.sample import Sample, squared_loss
from ..all_rows.full_fit import FullFit
from ..clock import Clock
from ..material import Material
from ..samples.sampled_fit import Stem
from . import cell_sizes
from .cell_fit import CellFit
from .cell_solver import CellSolver, CellTask

logger = logging.getLogger("gramian")

LOOKED_AT = 100
"""Rows of a cell without held-out ones that it is looked at on."""

RESTARTS = 2
"""How often all rows are divided anew, as a cell has shown how long it takes."""

SPARE = 0.7
"""Of the time that is left: cells that need less become larger.

Measured on rows held out of the training rows, 0.7 beside 0.4: nycflights with 30 s 30.53 and
30.75, bathy_celt 19.6 and 20.9, beijing_pm25 with 150 s 17.9 and 18.2, all within the budget.
"""

SHARE = 2.0
"""Of the time that is left, a cell may take so many times its part: the last ones need theirs."""


@dataclass(frozen=True, eq=False)
class Division:
    """Cells of mapped rows, and the numbers of the rows that each is fitted to."""

    cells: Cells
    members: list[Tensor]

    @property
    def rows(self) -> int:
        """The rows of all cells, those of bands counted twice."""
        return sum(map(len, self.members))


@dataclass(frozen=True, eq=False)
class CellFits:
    """All cells, fitted.

    Attributes
    ----------
    fit : FullFit
        Of the cells that lengthscale and penalty were chosen by.
    kernel : Kernel
    map : LinearMap or None
        Of the rows with the inputs of the recipe.
    cells : Cells
    centers : Tensor of shape (m, k)
        Mapped rows of one cell after the other.
    coef : Tensor of shape (m, t)
        In float64.
    starts : Tensor of shape (c + 1,)
        Where those of each cell begin.
    shifts : tuple of float
        Of each cell: larger ones where the chosen one failed.
    values : Tensor of shape (v, t)
        Predictions of the held-out rows.
    loss : float
        Of these.
    """

    fit: FullFit
    kernel: Kernel
    map: LinearMap | None
    cells: Cells
    centers: Float[Tensor, "m k"]
    coef: Float[Tensor, "m t"]
    starts: Int[Tensor, " s"]
    shifts: tuple[float, ...]
    values: Float[Tensor, "v t"]
    loss: float


Routed = dict[int, tuple[Tensor, Tensor]]
"""Which held-out rows belong to each cell, and how much."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A cell that was fitted before the others, and the seconds that it took."""

    found: CellFit
    seconds: float


@dataclass(frozen=True, eq=False)
class AllCells:
    """What divides rows into cells, and fits them.

    Attributes
    ----------
    material : Material
        With a single split.
    clock : Clock
    engine : str or Engine
    apart : bool, default=True
        Whether there is memory for processes.
    """

    material: Material
    clock: Clock
    engine: str | Engine
    apart: bool = True

    def divided(self, stem: Stem, rows: int, most: int | None = None) -> Division:
        """Return cells of so many rows as a stem maps them.

        Of some rows, if there is no time for more than `most` of them.
        """
        learn, rng = self.material.splits[0].learn, self.material.rng
        if most is not None and most < len(learn):
            logger.info("time for %d of %d rows", most, len(learn))
            learn = learn[torch.randperm(len(learn), generator=rng)[:most].sort().values]
        Z = self._mapped(stem)[learn]
        cells, members = divided(MedianSplits(rows, cell_sizes.OVERLAP), Z, rng=rng)
        return Division(cells, [learn[index] for index in members])

    def fitted(self, fit: FullFit, rows: int, most: int) -> CellFits:
        """Fit all cells at the lengthscale and the shift of a fit.

        Parameters
        ----------
        fit : FullFit
        rows : int
            Of a cell, at most.
        most : int
            Of all cells together.

        Notes
        -----
        The first one is measured: if all of its size would take longer than there is time, or much
        less, rows are divided anew. Then several are fitted at once, each on one thread.
        """
        Z = self._mapped(fit.stem)
        division, first = self._in_time(fit, Z, rows, most)
        seed = int(torch.randint(2**62, (), generator=self.material.rng))
        routed = self._routed(division, Z)
        workers = min(default_threads(), len(division.members))
        with one_thread_if_small(0 if workers > 1 else math.inf):
            found = list(self._each(fit, Z, division, routed, first, seed, workers))
        return self._joined(fit, Z, division, found, routed)

    def _each(
        self,
        fit: FullFit,
        Z: Float[Tensor, "n k"],
        division: Division,
        routed: Routed,
        first: Measured | None,
        seed: int,
        workers: int,
    ) -> Iterator[CellFit]:
        """Yield the cells: the first one, and what several workers find."""
        count, solver = len(division.members), self._solver(fit)
        cells = range(0 if first is None else 1, count)

        def task(cell: int) -> CellTask:
            left = self.clock.left * min(1.0, SHARE * workers / (count - cell))
            rng = torch.Generator().manual_seed(seed ^ cell)
            return self._task(Z, division.members[cell], routed[cell][0], left, rng)

        def compute(numbers: Sequence[int]) -> Iterator[tuple[CellFit, int]]:
            waiting = [cells[number] for number in numbers]
            if workers == 1:
                return (solver.counted(task(cell)) for cell in waiting)
            if first is not None and self._processes_pay(first.seconds, len(cells), workers):
                return run_apart(workers, solver.counted, map(task, waiting), logger=logger)
            return run(workers, lambda cell: solver.counted(task(cell)), waiting)

        if first is not None:
            yield first.found
        steps, meter = self.clock.steps, self.clock.meter
        yield from steps.run_each(f"cell of {count}", len(cells), compute, meter)

    def _processes_pay(self, seconds: float, cells: int, workers: int) -> bool:
        """Return whether processes solve cells faster than threads, and may."""
        counted = math.isfinite(self.clock.budget.evaluations)
        return self.apart and not counted and processes_pay(seconds, cells, workers)

    def solved(self, fit: FullFit, sample: Sample, left: float, rng: torch.Generator) -> CellFit:
        """Return the fit of a cell in so many seconds."""
        order = torch.arange(len(sample.X))
        return self._solver(fit)(CellTask(sample, order, time.monotonic() + left, rng))

    def _solver(self, fit: FullFit) -> CellSolver:
        return CellSolver(middle(fit.kernels), fit.shift, self.clock, self.engine)

    def _in_time(
        self, fit: FullFit, Z: Float[Tensor, "n k"], rows: int, most: int
    ) -> tuple[Division, Measured | None]:
        """Return a division for which there is time, with the first of its cells."""
        division = self.divided(fit.stem, rows, most)
        if math.isinf(self.clock.budget.seconds):
            return division, None
        n, shrunk = len(self.material.splits[0].learn), False
        for _ in range(RESTARTS):
            started, index = self.clock.steps.read_clock(), division.members[0]
            held = self._routed(division, Z)[0][0]
            cell_fit = self.clock.steps.run(
                f"cell of {len(index)} rows", partial(self._first, fit, Z, index, held)
            )
            seconds = self.clock.steps.read_clock() - started
            needed = seconds * (division.rows / len(index) - 1)
            better = cell_sizes.rows_measured(self.clock, n, seconds, len(index))
            larger = needed < SPARE * self.clock.left and better > (rows, most) and not shrunk
            shrunk = needed > self.clock.left and better < (rows, most)
            if not (larger or shrunk):
                return division, Measured(cell_fit, seconds)
            logger.info(
                "cells of %d of %d rows take %.3g s: now %d of %d", rows, most, needed, *better
            )
            rows, most = better
            division = self.divided(fit.stem, rows, most)
        return division, None

    def _first(
        self, fit: FullFit, Z: Float[Tensor, "n k"], index: Int[Tensor, " c"], held: Tensor
    ) -> CellFit:
        """Return the cell that is measured."""
        return self._solver(fit)(self._task(Z, index, held, self.clock.left, self.material.rng))

    def _task(
        self,
        Z: Float[Tensor, "n k"],
        index: Int[Tensor, " c"],
        seen: Int[Tensor, " v"],
        left: float,
        rng: torch.Generator,
    ) -> CellTask:
        """Return a cell in random order: the first rows of its sample are columns and parts."""
        order = torch.randperm(len(index), generator=rng)
        held = self.material.splits[0].held[seen]
        sample = self._sample(Z, index[order], held)
        return CellTask(sample, order, time.monotonic() + left, rng)

    def _routed(self, division: Division, Z: Float[Tensor, "n k"]) -> Routed:
        """Return which held-out rows belong to each cell, and how much."""
        none = (torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64))
        found = dict.fromkeys(range(len(division.members)), none)
        for share in division.cells.route(Z[self.material.splits[0].held]):
            found[share.cell] = (share.index, share.weight)
        return found

    def _joined(
        self,
        fit: FullFit,
        Z: Float[Tensor, "n k"],
        division: Division,
        found: Sequence[CellFit],
        routed: Routed,
    ) -> CellFits:
        """Return all cells, and what they predict together at held-out rows."""
        held, members = self.material.splits[0].held, division.members
        values = torch.zeros(len(held), self.material.Y.shape[1], dtype=torch.float64)
        for cell, one in enumerate(found):
            seen, weight = routed[cell]
            if len(seen):
                values[seen] += weight[:, None] * one.values
        sizes = torch.tensor([0, *map(len, members)])
        loss = squared_loss(values, self.material.truth, self.material.held_weights)
        return CellFits(
            fit, middle(fit.kernels), fit.stem.maps[0], division.cells, Z[torch.cat(members)],
            torch.cat([one.coef for one in found]), sizes.cumsum(dim=0),
            tuple(one.shift for one in found), values, loss,
        )  # fmt: skip

    def _mapped(self, stem: Stem) -> Float[Tensor, "n k"]:
        X = self.material.inputs(stem.recipe.inputs)
        return X if stem.maps[0] is None else stem.maps[0].forth(X)

    def _sample(
        self, Z: Float[Tensor, "n k"], index: Int[Tensor, " c"], held: Int[Tensor, " v"]
    ) -> Sample:
        """Return the rows of a cell; without held-out ones, some of its own say when to end."""
        Y, w = self.material.Y, self.material.weights
        held = held if len(held) else index[:LOOKED_AT]
        return Sample(
            Z[index], Y[index], Z[held], Y[held],
            None if w is None else w[index], None if w is None else w[held],
        )  # fmt: skip


def middle(kernels: Sequence[Kernel]) -> Kernel:
    """Return the kernel whose lengthscale is the median of those of several cells."""
    ordered = sorted(kernels, key=lambda kernel: float(getattr(kernel, "lengthscale", 1.0)))
    return ordered[len(ordered) // 2]
