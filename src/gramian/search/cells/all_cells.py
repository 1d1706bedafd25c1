"""Division of all rows into cells, and fits of the cells in the remaining time."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._parallel.machine import read_seconds
from ..._parallel.processes import processes_pay, run_apart
from ..._parallel.workers import default_threads, one_thread_if_small, run
from ...cells import Cells, MedianSplits, divide_rows
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

MAX_VALIDATION_ROWS = 100
"""Validation rows of a cell that has no held-out rows."""

MAX_RESTARTS = 2
"""Limit on new divisions of all rows after the seconds of a cell have been measured."""

SPARE_TIME_FRACTION = 0.7
"""Fraction of the remaining time: cells that need less become larger.

Measured on rows held out of the training rows, for 0.7 and 0.4: nycflights with 30 s 30.53 and
30.75, bathy_celt 19.6 and 20.9, beijing_pm25 with 150 s 17.9 and 18.2, all within the budget.
"""

CELL_TIME_RATIO = 2.0
"""Time limit of one cell, as a multiple of its fair share: the last cells need theirs."""


@dataclass(frozen=True, eq=False)
class Division:
    """Cells of mapped rows, with the indices of the training rows of each cell."""

    cells: Cells
    members: list[Array]

    @property
    def rows(self) -> int:
        """Rows of all cells; rows in overlap bands count twice."""
        return sum(map(len, self.members))


@dataclass(frozen=True, eq=False)
class CellFits:
    """Fitted cells of all rows.

    Attributes
    ----------
    fit : FullFit
        Fit of the pilot cells, which chose the lengthscale and the penalty.
    kernel : Kernel
    map : LinearMap or None
        Map of the rows with the inputs of the recipe.
    cells : Cells
    centers : Array of shape (m, k)
        Mapped rows, cell by cell.
    coef : Array of shape (m, t)
        Coefficients in float64.
    starts : Array of shape (c + 1,)
        Offsets of the cells in `centers`.
    shifts : tuple of float
        Shift (N times the penalty) of each cell: the chosen one, or a larger one if it failed.
    values : Array of shape (v, t)
        Predictions of the held-out rows.
    loss : float
        Loss of `values`.
    """

    fit: FullFit
    kernel: Kernel
    map: LinearMap | None
    cells: Cells
    centers: Float[Array, "m k"]
    coef: Float[Array, "m t"]
    starts: Int[Array, " s"]
    shifts: tuple[float, ...]
    values: Float[Array, "v t"]
    loss: float


Routed = dict[int, tuple[Array, Array]]
"""Held-out rows of each cell, and their weights."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The first fitted cell, with the seconds that its fit took."""

    fit: CellFit
    seconds: float


@dataclass(frozen=True, eq=False)
class AllCells:
    """Divider of rows into cells, which also fits the cells.

    Attributes
    ----------
    material : Material
        Rows with a single split.
    clock : Clock
    engine : str or Engine
    apart : bool, default=True
        Whether there is enough memory to fit cells in worker processes.
    """

    material: Material
    clock: Clock
    engine: str | Engine
    apart: bool = True

    def divide(self, stem: Stem, rows: int, most: int | None = None) -> Division:
        """Divide the rows, mapped by a stem, into cells of `rows` rows.

        If time suffices only for `most` rows, divide a random subset.
        """
        learn, rng = self.material.splits[0].train, self.material.rng
        if most is not None and most < len(learn):
            logger.info("the budget allows cells of %d of %d rows", most, len(learn))
            learn = learn[xp.sort(rng.sample(len(learn), most))]
        Z = self._mapped_rows(stem)[learn]
        cells, members = divide_rows(MedianSplits(rows, cell_sizes.OVERLAP_FRACTION), Z, rng=rng)
        return Division(cells, [learn[index] for index in members])

    def fit_all(self, fit: FullFit, rows: int, most: int) -> CellFits:
        """Fit all cells at the lengthscale and the shift of a fit.

        Parameters
        ----------
        fit : FullFit
        rows : int
            Largest number of rows of a cell.
        most : int
            Number of rows of all cells together.

        Notes
        -----
        The first fit is timed. If all cells of its size would exceed the remaining time, or use
        little of the remaining time, the rows are divided again. Then cells are fitted in parallel,
        on one thread
        each.
        """
        Z = self._mapped_rows(fit.stem)
        division, first = self._in_time(fit, Z, rows, most)
        seed = int(self.material.rng.integers(2**62, size=()))
        routed = self._route_rows(division, Z)
        # One LAPACK thread for each of several workers, whatever the size of their matrices; a
        # single worker keeps all threads.
        workers = min(default_threads(), len(division.members))
        with one_thread_if_small(0 if workers > 1 else math.inf):
            cell_fits = list(self._cell_fits(fit, Z, division, routed, first, seed, workers))
        return self._join_fits(fit, Z, division, cell_fits, routed)

    def _cell_fits(
        self,
        fit: FullFit,
        Z: Float[Array, "n k"],
        division: Division,
        routed: Routed,
        first: Measured | None,
        seed: int,
        workers: int,
    ) -> Iterator[CellFit]:
        """Yield the fits: the first cell, then the cells that the workers solve."""
        count, solver = len(division.members), self._solver(fit)
        cells = range(0 if first is None else 1, count)

        def task(cell: int) -> CellTask:
            # The limit is computed when a worker takes the cell. It shares the remaining time
            # among the remaining cells, so that one slow cell does not use up the time of all
            # others.
            seconds_left = self.clock.remaining_seconds * min(
                1.0, CELL_TIME_RATIO * workers / (count - cell)
            )
            # A generator per cell: results depend neither on the number of workers nor on their
            # order.
            rng = RandomStream(seed ^ cell)
            return self._task(Z, division.members[cell], routed[cell][0], seconds_left, rng)

        def compute(numbers: Sequence[int]) -> Iterator[tuple[CellFit, int]]:
            waiting = [cells[number] for number in numbers]
            if workers == 1:
                return (solver.fit_and_count(task(cell)) for cell in waiting)
            # `map` makes the tasks on demand: their limits are then up to date, and only the rows
            # of the current cells are copied.
            if first is not None and self._processes_pay(first.seconds, len(cells), workers):
                return run_apart(workers, solver.fit_and_count, map(task, waiting), logger=logger)
            return run(workers, lambda cell: solver.fit_and_count(task(cell)), waiting)

        if first is not None:
            yield first.fit
        steps, meter = self.clock.steps, self.clock.meter
        yield from steps.run_each(f"cell of {count}", len(cells), compute, meter)

    def _processes_pay(self, seconds: float, cells: int, workers: int) -> bool:
        """Return whether processes are allowed and solve cells faster than threads."""
        counted = math.isfinite(self.clock.budget.evaluations)
        return self.apart and not counted and processes_pay(seconds, cells, workers)

    def solve_cell(self, fit: FullFit, sample: Sample, left: float, rng: RandomStream) -> CellFit:
        """Fit a cell within `left` seconds."""
        order = xp.arange(len(sample.X))
        return self._solver(fit)(CellTask(sample, order, read_seconds() + left, rng))

    def _solver(self, fit: FullFit) -> CellSolver:
        return CellSolver(middle(fit.kernels), fit.shift, self.clock, self.engine)

    def _in_time(
        self, fit: FullFit, Z: Float[Array, "n k"], rows: int, max_rows: int
    ) -> tuple[Division, Measured | None]:
        """Return a division that fits the remaining time, with its first cell."""
        division = self.divide(fit.stem, rows, max_rows)
        if math.isinf(self.clock.budget.seconds):
            return division, None
        n, shrunk = len(self.material.splits[0].train), False
        for _ in range(MAX_RESTARTS):
            started, index = self.clock.steps.read_clock(), division.members[0]
            held_rows = self._route_rows(division, Z)[0][0]
            cell_fit = self.clock.steps.run(
                f"cell of {len(index)} rows", partial(self._first, fit, Z, index, held_rows)
            )
            seconds = self.clock.steps.read_clock() - started
            # The first cell is fitted already.
            needed = seconds * (division.rows / len(index) - 1)
            better = cell_sizes.rows_measured(self.clock, n, seconds, len(index))
            # After shrinking, cells do not grow again, or the sizes could alternate until the
            # last restart.
            larger = (
                needed < SPARE_TIME_FRACTION * self.clock.remaining_seconds
                and better > (rows, max_rows)
                and not shrunk
            )
            shrunk = needed > self.clock.remaining_seconds and better < (rows, max_rows)
            if not (larger or shrunk):
                return division, Measured(cell_fit, seconds)
            logger.info(
                "cells of at most %d rows (%d in total) would take another %.3g s; the new limits "
                "are %d rows (%d in total)",
                rows,
                max_rows,
                needed,
                *better,
            )
            rows, max_rows = better
            division = self.divide(fit.stem, rows, max_rows)
        # The last division is accepted without a measurement; its first cell is fitted with the
        # others.
        return division, None

    def _first(
        self, fit: FullFit, Z: Float[Array, "n k"], index: Int[Array, " c"], held: Array
    ) -> CellFit:
        """Fit the first cell, whose seconds are measured."""
        return self._solver(fit)(
            self._task(Z, index, held, self.clock.remaining_seconds, self.material.rng)
        )

    def _task(
        self,
        Z: Float[Array, "n k"],
        index: Int[Array, " c"],
        seen: Int[Array, " v"],
        left: float,
        rng: RandomStream,
    ) -> CellTask:
        """Return a cell with rows in random order, because the first rows serve as samples."""
        # The rows of a cell are in the order of the data, where the first ones may be a poor
        # sample: medians and landmarks come from the first rows.
        order = rng.permutation(len(index))
        held_rows = self.material.splits[0].validation[seen]
        sample = self._sample(Z, index[order], held_rows)
        return CellTask(sample, order, read_seconds() + left, rng)

    def _route_rows(self, division: Division, Z: Float[Array, "n k"]) -> Routed:
        """Return the held-out rows of each cell, and their weights."""
        # Some cells have no held-out rows, and `route` skips them.
        none = (xp.empty(0, xp.int64), xp.empty(0, xp.float64))
        routed = dict.fromkeys(range(len(division.members)), none)
        for share in division.cells.route(Z[self.material.splits[0].validation]):
            routed[share.cell] = (share.index, share.weight)
        return routed

    def _join_fits(
        self,
        fit: FullFit,
        Z: Float[Array, "n k"],
        division: Division,
        found: Sequence[CellFit],
        routed: Routed,
    ) -> CellFits:
        """Join the cells and their predictions of the held-out rows."""
        held_rows, members = self.material.splits[0].validation, division.members
        values = xp.zeros((len(held_rows), self.material.Y.shape[1]), xp.float64)
        for cell, cell_fit in enumerate(found):
            held_index, weight = routed[cell]
            if len(held_index):
                # A row in an overlap band belongs to several cells, whose weights add up to one.
                values[held_index] += weight[:, None] * cell_fit.values
        sizes = xp.array([0, *map(len, members)], xp.int64)
        loss = squared_loss(values, self.material.truth, self.material.held_weights)
        return CellFits(
            fit, middle(fit.kernels), fit.stem.maps[0], division.cells, Z[xp.concat(members)],
            xp.concat([cell_fit.coef for cell_fit in found]), sizes.cumsum(axis=0),
            tuple(cell_fit.shift for cell_fit in found), values, loss,
        )  # fmt: skip

    def _mapped_rows(self, stem: Stem) -> Float[Array, "n k"]:
        X = self.material.inputs(stem.recipe.inputs)
        return X if stem.maps[0] is None else stem.maps[0].forth(X)

    def _sample(
        self, Z: Float[Array, "n k"], index: Int[Array, " c"], held_index: Int[Array, " v"]
    ) -> Sample:
        """Return the sample of a cell; without held-out rows, validate on some training rows."""
        Y, w = self.material.Y, self.material.weights
        held_index = held_index if len(held_index) else index[:MAX_VALIDATION_ROWS]
        return Sample(
            Z[index], Y[index], Z[held_index], Y[held_index],
            None if w is None else w[index], None if w is None else w[held_index],
        )  # fmt: skip


def middle(kernels: Sequence[Kernel]) -> Kernel:
    """Return the kernel with the median lengthscale."""
    ordered = sorted(kernels, key=lambda kernel: float(getattr(kernel, "lengthscale", 1.0)))
    return ordered[len(ordered) // 2]
