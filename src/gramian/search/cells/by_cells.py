"""Fits of all rows by cells: each is a full problem of its own, at full density.

Lengthscale and penalty are chosen by fits of some cells, by walking as a search does with all rows:
few landmarks, and thinned rows, prefer wide kernels. They also prefer metrics of few features, and
flatter ones are tried. Then all cells are fitted with what was chosen.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...paths.sample import squared_loss
from ..all_rows.average import averaged
from ..all_rows.fits import fits
from ..all_rows.full_fit import DIRECT_ROWS, SHIFTS, FullFit
from ..clock import Budget, Clock
from ..cost import seconds_of_fit
from ..findings import Findings, Score
from ..material import Material, Split
from ..recipe import L1, Trial
from ..samples.sampled_fit import Stem
from . import cell_sizes
from .all_cells import AllCells, CellFits
from .cell_fit import is_precise

logger = logging.getLogger("gramian")

PILOT_ROWS = 5000
"""Rows of a cell that is chosen by, at most: what is chosen depends on density, not on size."""

PILOT_FITS = 5
"""Fits of them that there is to be time for."""

PILOT_CELLS = 3
"""Cells by which lengthscale and penalty are chosen: at random, as no cell is like all others."""

CLOSE = 1.05
"""Cells of another distance are fitted, too, if it is so close to the best in some of them.

Measured with 120 to 300 s: on airs_co2 (1.01) the mean of both has 0.3 % less error than the best;
on nycflights (1.11) it has no less.
"""

LARGE_ENOUGH = 0.5
"""Share of the rows of the largest cell so far that cells of another distance have at least."""

PILOT_HELD = 1000
"""Rows of each that are held out, at most; else a fifth."""

LEAST_HELD, LEAST_SHARE = 30, 0.25
"""Rows of a cell that a fold holds out, and share of those that it is fitted to, at least."""


@dataclass(eq=False)
class CellSearch:
    """A search by cells, after one on a sample that has chosen inputs, metrics and kernels.

    Attributes
    ----------
    search : Findings
    material : Material
        All rows, with a single split: those to fit, and those that are held out from all fits; the
        first of these are those that the search holds out, in their order.
    folds : sequence of Split
        How rows are held out from the cells by which lengthscale and penalty are chosen, if that
        was given: numbers of rows of the material, of each fold.
    pilot : Findings or None
        Of these cells.
    models : list of CellFits
        The result: the best recipe, and where time allows that of the other distance.
    weights : list of float
        Of the models.
    seconds : float
        That the last of them took.
    """

    search: Findings
    material: Material
    folds: Sequence[Split] = ()
    pilot: Findings | None = None
    models: list[CellFits] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def steps(self) -> Iterator[Trial]:
        """Choose by some cells, fit all of them, and yield each trial."""
        stems = self._stems()
        if not stems:
            return
        rows = cell_sizes.rows_expected(self.search, stems[0], len(self.material.splits[0].learn))
        self.pilot = self._timely_pilot(stems, min(rows, PILOT_ROWS))
        for trial in fits(self.pilot):
            clock = self.search.clock
            yield replace(trial, elapsed=clock.seconds, evaluations=clock.meter.evaluations)
        for fit in self._candidates():
            started = self.search.clock.steps.read_clock()
            fit, size = self._with_size(fit, rows)
            if self.models and not self._has_time(size):
                return
            found = self.cells.fitted(fit, *size)
            self.seconds = self.search.clock.steps.read_clock() - started
            self._add(found)
            values, penalty = found.values, fit.shift / self.total
            yield self.search.trial(
                "cells", fit.recipe, penalty, self._loss(values), (), values, started
            )
        if len([w for w in self.weights if w > 0]) > 1:
            values, main = self.expected(), self.models[0].fit
            yield self.search.trial(
                "average", main.recipe, main.shift / self.total, self._loss(values), (), values,
                self.search.clock.steps.read_clock(),
            )  # fmt: skip

    def _candidates(self) -> list[FullFit]:
        """Return the best fit of some cells, and that of the other distance if it is close."""
        if self.pilot is None or not self.pilot.fits:
            return []
        loss = self.pilot.loss
        found: list[FullFit] = []
        for fit in sorted(self.pilot.fits, key=loss):
            if not any(same_distance(fit, other) for other in found):
                found.append(fit)
        worth = [fit for fit in found if loss(fit) <= CLOSE * loss(found[0])]
        return worth if self.search.space.averages else worth[:1]

    def _with_size(self, fit: FullFit, rows: int) -> tuple[FullFit, tuple[int, int]]:
        """Return a fit, and the rows of a cell and of all that there is time for.

        Small cells are factorised, with any penalty. Those that are not have one that products in
        float32 tell: a smaller one takes the more iterations, the larger a cell is. On beijing_pm25
        a shift of 0.001 instead of 0.01 gains 0.3 % for three times the seconds, 120 iterations.
        """
        size = self._affordable(fit, rows)
        if size[0] > DIRECT_ROWS and is_precise(fit.shift):
            fit = replace(fit, shift=SHIFTS[-1], penalty=SHIFTS[-1] / fit.shift * fit.penalty)
        return fit, size

    def _has_time(self, size: tuple[int, int]) -> bool:
        """Return whether another model of cells of such a size is worth its time, and has it."""
        largest = max(int(model.starts.diff().max()) for model in self.models)
        return self.search.clock.allows(self.seconds) and size[0] >= LARGE_ENOUGH * largest

    def _add(self, found: CellFits) -> None:
        """Take a further model, with the weights that are best for the held-out rows."""
        self.models.append(found)
        self.weights = averaged([model.values for model in self.models], self._loss)

    @property
    def cells(self) -> AllCells:
        """What divides and fits them."""
        search = self.search
        return AllCells(self.material, search.clock, search.engine, search.apart)

    @property
    def total(self) -> float:
        """The weight of the rows to fit."""
        learn, w = self.material.splits[0].learn, self.material.weights
        return float(len(learn) if w is None else w[learn].sum())

    def expected(self) -> Float[Tensor, "v t"]:
        """Return predictions of the held-out rows by the result."""
        pairs = zip(self.weights, self.models, strict=True)
        return torch.stack([w * model.values for w, model in pairs if w > 0]).sum(dim=0)

    def squared(self) -> float:
        """Return the squared error that the result has where fits of the sample have theirs."""
        return self._of_sample(self.expected(), self.search.squared)

    def _loss(self, values: Float[Tensor, "v t"]) -> float:
        """Return what fits are compared by: of the rows that the search on a sample held out."""
        return self._of_sample(values, self.search.loss_of)

    def _of_sample(self, values: Float[Tensor, "v t"], loss: Score) -> float:
        """Return a loss of the rows that the search on a sample held out, of several folds all."""
        if len(self.search.material.splits) > 1:
            return squared_loss(values, self.material.truth, self.material.held_weights)
        return loss(values[: len(self.search.material.held)])

    def _stems(self) -> list[Stem]:
        """Return the best stem of each distance, the best first, with the map of the sample."""
        return [
            replace(stem, maps=stem.maps[:1], fits=stem.fits[:1]) for stem in self.search.heads()
        ]

    def _affordable(self, fit: FullFit, rows: int) -> tuple[int, int]:
        """Return the rows of a cell, and of all, now that the seconds of one can be measured."""
        clock, n = self.search.clock, len(self.material.splits[0].learn)
        if math.isinf(clock.budget.seconds) or self.pilot is None:
            return rows, n
        pilot = self.pilot.material
        sample = pilot.sample(fit.recipe.inputs, pilot.splits[0]).mapped(fit.stem.maps[0])
        started = self.search.clock.steps.read_clock()
        clock.steps.run(
            "seconds of a cell",
            lambda: self.cells.solved(fit, sample, clock.left, self.material.rng).shift,
        )
        seconds = self.search.clock.steps.read_clock() - started
        return cell_sizes.rows_measured(clock, n, seconds, len(sample.X))

    def _timely_pilot(self, stems: Sequence[Stem], rows: int) -> Findings:
        """Return findings of cells of which several fits have time: of smaller ones if need be."""
        while True:
            members = self.cells.divided(stems[0], rows).members
            pilot = self._pilot(stems, members)
            seconds = self.search.clock.steps.run(
                f"seconds of a fit of {rows} rows",
                partial(seconds_of_fit, pilot.material, pilot.stems[0], pilot.engine),
            )
            if PILOT_FITS * seconds <= pilot.clock.left or rows <= cell_sizes.LEAST_ROWS:
                return pilot
            rows = max(cell_sizes.LEAST_ROWS, rows // 2)

    def _pilot(self, stems: Sequence[Stem], members: Sequence[Tensor]) -> Findings:
        """Return findings of some random cells, of each of which some rows are held out.

        They have no machine, as a metric of theirs would be none for all rows, and no penalties
        below what float32 tells; see `_with_size`.
        """
        search, rng = self.search, self.material.rng
        usual = sorted(map(len, members))[len(members) // 2]
        alike = [index for index in members if usual <= 2 * len(index)]
        some = torch.randperm(len(alike), generator=rng)[:PILOT_CELLS].tolist()
        cells = [alike[c][torch.randperm(len(alike[c]), generator=rng)] for c in some]
        parts = [self._parted(cell, number) for number, cell in enumerate(cells)]
        cells = [torch.cat([part.learn, part.held]) for part in parts]
        splits, first = [], 0
        for part in parts:
            learn, held = len(part.learn), len(part.held)
            numbers = torch.arange(first, first + learn + held)
            splits.append(Split(numbers[:learn], numbers[learn:]))
            first += learn + held
        budget = search.clock.budget
        if math.isfinite(budget.seconds):
            budget = replace(budget, seconds=cell_sizes.PILOT_SHARE * search.clock.left)
        if math.isfinite(budget.evaluations):
            left = cell_sizes.PILOT_SHARE * search.clock.evaluations_left
            budget = replace(budget, evaluations=search.clock.meter.evaluations + left)
        return Findings(
            self.material.part(torch.cat(cells), splits),
            replace(search.space, machine=None, precise=False),
            Clock(
                Budget(budget.seconds, budget.evaluations),
                search.clock.steps.read_clock(),
                search.clock.meter,
                search.clock.steps,
            ),
            search.engine,
            search.effort,
            flattens=True,
            stems=[replace(s, maps=s.maps * len(cells), fits=s.fits * len(cells)) for s in stems],
        )

    def _parted(self, cell: Int[Tensor, " c"], number: int) -> Split:
        """Return a cell without those of its rows that are held out.

        These are of one of the folds that were given, another one for each cell, if it has enough
        rows of both parts in the cell; else at random.
        """
        most = min(PILOT_HELD, len(cell) // 5)
        turn = number % max(1, len(self.folds))
        for fold in (*self.folds[turn:], *self.folds[:turn]):
            learn, held = (cell[torch.isin(cell, part)] for part in (fold.learn, fold.held))
            if len(held) >= LEAST_HELD and len(learn) >= LEAST_SHARE * len(cell):
                return Split(learn, held[:most])
        return Split(cell[most:], cell[:most])


def same_distance(one: FullFit, other: FullFit) -> bool:
    """Return whether the kernels of two fits measure distances alike: by l1, or not."""
    return (one.recipe.kernel == L1) == (other.recipe.kernel == L1)
