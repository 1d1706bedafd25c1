"""Search by cells: fits in which each cell is a full problem, with all its rows as centers.

Fits of some cells choose the lengthscale and the penalty, by the walks of a search with all rows,
because few landmarks and thinned rows prefer wide kernels. Few landmarks also prefer metrics of few
features, so flatter metrics are tried. Then all cells are fitted with the best choice.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ...paths.sample import squared_loss
from ..all_rows.average import average_fits
from ..all_rows.fits import fits
from ..all_rows.full_fit import DIRECT_ROWS, PATH_SHIFTS, FullFit
from ..clock import Budget, Clock
from ..cost import seconds_of_fit
from ..folds import Split
from ..material import Material
from ..recipe import L1_KERNEL, Trial
from ..samples.sampled_fit import Stem
from ..search_state import Score, SearchState, beats_mean
from . import cell_sizes
from .all_cells import AllCells, CellFits
from .cell_fit import is_precise

logger = logging.getLogger("gramian")

PILOT_ROWS = 5000
"""Largest number of rows of a pilot cell: the best choice depends on density, not on size."""

PILOT_FITS = 5
"""Number of fits of the pilot cells that must fit in their time."""

PILOT_CELLS = 3
"""Random cells that choose the lengthscale and the penalty: no cell represents all others."""

CLOSE_LOSS_RATIO = 1.05
"""Cells of a second distance are fitted, too, up to this ratio of its pilot loss to the best.

Measured with 120 to 300 s: on airs_co2 (1.01) the mean of both has 0.3 % less error than the best;
on nycflights (1.11) it has no less.
"""

LARGE_ENOUGH = 0.5
"""Least size of cells of a second distance, as a fraction of the largest cell so far."""

PILOT_HELD = 1000
"""Largest number of held-out rows of a pilot cell; a smaller cell holds out a fifth."""

LEAST_HELD, LEAST_SHARE = 30, 0.25
"""Least held-out rows of a cell in a fold, and least fraction of rows to fit."""


@dataclass(eq=False)
class CellSearch:
    """Search by cells, after a search on a sample has chosen inputs, metrics and kernels.

    Attributes
    ----------
    search : SearchState
    material : Material
        All rows, with a single split into training and held-out rows. The first held-out rows are
        the ones of the search on a sample, in the same order.
    folds : sequence of Split
        User-defined folds for the pilot cells (cells that choose lengthscale and penalty), as row
        indices of the material.
    pilot : SearchState or None
        Search state of the pilot cells.
    models : list of CellFits
        The result: the best recipe, and the best of the other distance if time allows.
    weights : list of float
        Weights of the models.
    seconds : float
        Seconds of the last model.
    """

    search: SearchState
    material: Material
    folds: Sequence[Split] = ()
    pilot: SearchState | None = None
    models: list[CellFits] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def steps(self) -> Iterator[Trial]:
        """Choose lengthscale and penalty by pilot cells, fit all cells, and yield each trial."""
        stems = self._stems()
        if not stems:
            return
        # The pilot must be as large as the cells will be: the best lengthscale and penalty depend
        # on the density of the rows.
        rows = cell_sizes.rows_expected(self.search, stems[0], len(self.material.splits[0].train))
        self.pilot = self._timely_pilot(stems, min(rows, PILOT_ROWS))
        for trial in fits(self.pilot):
            # The pilot's clock started late. Watchers expect the time since the search began.
            clock = self.search.clock
            yield replace(trial, elapsed=clock.seconds, evaluations=clock.meter.evaluations)
        for fit in self._candidates():
            started = self.search.clock.steps.read_clock()
            fit, size = self._with_size(fit, rows)
            # The first model is fitted at any cost: without it there is no result by cells.
            if self.models and not self._has_time(size):
                return
            model = self.cells.fit_all(fit, *size)
            self.seconds = self.search.clock.steps.read_clock() - started
            self._add(model)
            values, penalty = model.values, fit.shift / self.total
            yield self.search.trial(
                "cells", fit.recipe, penalty, self._loss(values), (), values, started
            )
        if len([w for w in self.weights if w > 0]) > 1:
            values, main = self.predict_held_out(), self.models[0].fit
            yield self.search.trial(
                "average", main.recipe, main.shift / self.total, self._loss(values), (), values,
                self.search.clock.steps.read_clock(),
            )  # fmt: skip

    def _candidates(self) -> list[FullFit]:
        """Return the best pilot fit, and the best with the other distance if its loss is close."""
        if self.pilot is None or not self.pilot.fits:
            return []
        loss = self.pilot.loss
        best_fits: list[FullFit] = []
        # The best fit of each distance: kernels of one distance give similar functions, whose mean
        # gains little.
        for fit in sorted(self.pilot.fits, key=loss):
            if not any(same_distance(fit, chosen) for chosen in best_fits):
                best_fits.append(fit)
        worth = [fit for fit in best_fits if loss(fit) <= CLOSE_LOSS_RATIO * loss(best_fits[0])]
        return worth if self.search.space.averages else worth[:1]

    def _with_size(self, fit: FullFit, rows: int) -> tuple[FullFit, tuple[int, int]]:
        """Return the fit, with a higher penalty if needed, the rows of a cell and of all cells.

        The rows are the affordable ones. Small cells are factorised, with any penalty. Larger cells
        are solved by iterations, whose number grows with the cell if float32 products do not
        resolve the shift (N times the penalty, for N rows): the shift is then raised to 0.01. On
        beijing_pm25 0.001 instead gains 0.3 %, for 120 iterations and three times the seconds.
        """
        size = self._affordable(fit, rows)
        if size[0] > DIRECT_ROWS and is_precise(fit.shift):
            # The penalty per row scales with the shift.
            fit = replace(
                fit, shift=PATH_SHIFTS[-1], penalty=PATH_SHIFTS[-1] / fit.shift * fit.penalty
            )
        return fit, size

    def _has_time(self, size: tuple[int, int]) -> bool:
        """Return whether another model with cells of this size is affordable and worthwhile."""
        largest = max(int(xp.diff(model.starts).max()) for model in self.models)
        return self.search.clock.allows(self.seconds) and size[0] >= LARGE_ENOUGH * largest

    def _add(self, found: CellFits) -> None:
        """Add a model, and choose all weights by the held-out rows."""
        self.models.append(found)
        self.weights = average_fits([model.values for model in self.models], self._loss)

    @property
    def cells(self) -> AllCells:
        """Division of all rows into cells, and their fits."""
        search = self.search
        return AllCells(self.material, search.clock, search.engine, search.apart)

    @property
    def total(self) -> float:
        """Total weight of the training rows."""
        learn, w = self.material.splits[0].train, self.material.weights
        return float(len(learn) if w is None else w[learn].sum())

    def predict_held_out(self) -> Float[Array, "v t"]:
        """Return the predictions of the held-out rows."""
        pairs = zip(self.weights, self.models, strict=True)
        return xp.stack([w * model.values for w, model in pairs if w > 0]).sum(axis=0)

    def predicts(self) -> bool:
        """Return whether the models predict the held-out rows better than the mean."""
        truth, weights = self.material.truth, self.material.held_weights
        return bool(self.models) and beats_mean(self.predict_held_out(), truth, weights)

    def squared_error(self) -> float:
        """Return the squared error on the held-out rows of the sample."""
        # Comparable with the loss of the search on a sample, which has only these held-out rows.
        return self._of_sample(self.predict_held_out(), self.search.squared_error)

    def _loss(self, values: Float[Array, "v t"]) -> float:
        """Return the loss that compares fits, on the held-out rows of the sample."""
        return self._of_sample(values, self.search.loss_of)

    def _of_sample(self, values: Float[Array, "v t"], loss: Score) -> float:
        """Return the loss on the rows that both the sample and the cells hold out."""
        # Of several folds, only the first one's held-out rows are held out from the cells, too.
        if len(self.search.material.splits) > 1:
            return squared_loss(values, self.material.truth, self.material.held_weights)
        return loss(values[: len(self.search.material.held_out_index)])

    def _stems(self) -> list[Stem]:
        """Return the best stem of each distance with the map of the sample, best first."""
        return [
            replace(stem, maps=stem.maps[:1], fits=stem.fits[:1]) for stem in self.search.heads()
        ]

    def _affordable(self, fit: FullFit, rows: int) -> tuple[int, int]:
        """Return the affordable rows of a cell, and in total, by the seconds of a measured cell."""
        clock, n = self.search.clock, len(self.material.splits[0].train)
        if math.isinf(clock.budget.seconds) or self.pilot is None:
            return rows, n
        pilot = self.pilot.material
        sample = pilot.sample(fit.recipe.inputs, pilot.splits[0]).with_map(fit.stem.maps[0])
        started = self.search.clock.steps.read_clock()
        clock.steps.run(
            "seconds of a cell",
            lambda: (
                # Only the time matters. The step returns a number, so that the journal stores no
                # coefficients.
                self.cells.solve_cell(fit, sample, clock.remaining_seconds, self.material.rng).shift
            ),
        )
        seconds = self.search.clock.steps.read_clock() - started
        return cell_sizes.rows_measured(clock, n, seconds, len(sample.X))

    def _timely_pilot(self, stems: Sequence[Stem], rows: int) -> SearchState:
        """Return the search state of pilot cells, whose size allows several fits in time."""
        while True:
            members = self.cells.divide(stems[0], rows).members
            pilot = self._pilot(stems, members)
            seconds = self.search.clock.steps.run(
                f"seconds of a fit of {rows} rows",
                partial(seconds_of_fit, pilot.material, pilot.stems[0], pilot.engine),
            )
            if (
                PILOT_FITS * seconds <= pilot.clock.remaining_seconds
                or rows <= cell_sizes.LEAST_ROWS
            ):
                return pilot
            rows = max(cell_sizes.LEAST_ROWS, rows // 2)

    def _pilot(self, stems: Sequence[Stem], members: Sequence[Array]) -> SearchState:
        """Return the search state of random pilot cells, each with some held-out rows.

        Pilot cells learn no metric, which would not suit all rows, and try no penalties below the
        resolution of float32; see `_with_size`.
        """
        search, rng = self.search, self.material.rng
        # 1. Choose random cells, without cells of less than half the median size.
        usual = sorted(map(len, members))[len(members) // 2]
        alike = [index for index in members if usual <= 2 * len(index)]
        pilot = rng.sample(len(alike), PILOT_CELLS).tolist()
        cells = [alike[c][rng.permutation(len(alike[c]))] for c in pilot]
        # 2. Hold out some rows of each.
        cell_splits = [self._part_rows(cell, number) for number, cell in enumerate(cells)]
        cells = [xp.concat([part.train, part.validation]) for part in cell_splits]
        # 3. Number the rows as they follow each other in the material of the pilot.
        splits, first = [], 0
        for part in cell_splits:
            learn, held_count = len(part.train), len(part.validation)
            numbers = xp.arange(first, first + learn + held_count)
            splits.append(Split(numbers[:learn], numbers[learn:]))
            first += learn + held_count
        # 4. A share of the remaining budget. Seconds count from the start of the pilot's own
        # clock, but evaluations on the common meter, so their limit includes the evaluations
        # spent before.
        budget = search.clock.budget
        if math.isfinite(budget.seconds):
            budget = replace(
                budget, seconds=cell_sizes.PILOT_SHARE * search.clock.remaining_seconds
            )
        if math.isfinite(budget.evaluations):
            evaluations_left = cell_sizes.PILOT_SHARE * search.clock.evaluations_left
            budget = replace(budget, evaluations=search.clock.meter.evaluations + evaluations_left)
        return SearchState(
            self.material.part(xp.concat(cells), splits),
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

    def _part_rows(self, cell: Int[Array, " c"], number: int) -> Split:
        """Split a cell into training and held-out rows.

        Use a user-defined fold, a different one for each cell, if it has enough rows of both parts
        in the cell; otherwise split at random.
        """
        held_count = min(PILOT_HELD, len(cell) // 5)
        # Start each cell at another fold, so that all folds take part in the choice.
        turn = number % max(1, len(self.folds))
        for fold in (*self.folds[turn:], *self.folds[:turn]):
            learn, held_rows = (cell[xp.isin(cell, part)] for part in (fold.train, fold.validation))
            if len(held_rows) >= LEAST_HELD and len(learn) >= LEAST_SHARE * len(cell):
                return Split(learn, held_rows[:held_count])
        return Split(cell[held_count:], cell[:held_count])


def same_distance(one: FullFit, other: FullFit) -> bool:
    """Return whether the kernels of two fits use the same distance: l1, or Euclidean."""
    return (one.recipe.kernel == L1_KERNEL) == (other.recipe.kernel == L1_KERNEL)
