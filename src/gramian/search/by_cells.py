"""Fits of all rows by cells: each is a full problem of its own, at full density.

Lengthscale and penalty are chosen by fits of some cells, by walking as a search does with all rows:
few landmarks, and thinned rows, prefer wide kernels. Then all cells are fitted with them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..cells import Cells, MedianSplits, divided
from ..data import LinearMap
from ..kernels import Kernel
from ..paths.sample import Sample, squared_loss
from . import cell_sizes
from .cell_fit import CellFit, fit_cell
from .clock import Budget, Clock
from .cost import seconds_of_fit
from .findings import Findings
from .full_fit import FullFit
from .material import Material, Split
from .on_all_rows import fits
from .recipe import Trial
from .sampled import Stem

logger = logging.getLogger("gramian")

PILOT_ROWS = 5000
"""Rows of a cell that is chosen by, at most: what is chosen depends on density, not on size."""

PILOT_FITS = 5
"""Fits of them that there is to be time for."""

PILOT_CELLS = 3
"""Cells by which lengthscale and penalty are chosen: at random, as no cell is like all others."""

PILOT_HELD = 1000
"""Rows of each that are held out, at most; else a fifth."""

LOOKED_AT = 100
"""Rows of a cell without held-out ones that it is looked at on."""


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


@dataclass(eq=False)
class CellSearch:
    """A search by cells, after one on a sample that has chosen inputs, metrics and kernels.

    Attributes
    ----------
    search : Findings
    material : Material
        All rows, with a single split: those to fit, and those that are held out from all fits; the
        first of these are those that the search holds out, in their order.
    pilot : Findings or None
        Of the cells by which lengthscale and penalty are chosen.
    found : CellFits or None
        The result.
    """

    search: Findings
    material: Material
    pilot: Findings | None = None
    found: CellFits | None = None

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
        if not self.pilot.fits:
            return
        started = time.monotonic()
        fit = min(self.pilot.fits, key=self.pilot.loss)
        self.found = self._fitted(fit, self._affordable(fit, rows))
        penalty = fit.shift / self.total
        loss, values = self._loss(self.found), self.found.values
        yield self.search.trial("cells", fit.recipe, penalty, loss, (), values, started)

    @property
    def total(self) -> float:
        """The weight of the rows to fit."""
        learn, w = self.material.splits[0].learn, self.material.weights
        return float(len(learn) if w is None else w[learn].sum())

    def _loss(self, found: CellFits) -> float:
        """Return what fits are compared by: of the rows that the search on a sample held out."""
        if len(self.search.material.splits) > 1:
            return found.loss
        return self.search.loss_of(found.values[: len(self.search.material.held)])

    def _stems(self) -> list[Stem]:
        """Return the best stem of each distance, the best first, with the map of the sample."""
        return [
            replace(stem, maps=stem.maps[:1], fits=stem.fits[:1]) for stem in self.search.heads()
        ]

    def _affordable(self, fit: FullFit, rows: int) -> int:
        """Return the rows of a cell, now that the seconds of one can be measured."""
        clock = self.search.clock
        if math.isinf(clock.budget.seconds) or self.pilot is None:
            return rows
        pilot = self.pilot.material
        sample = pilot.sample(fit.recipe.inputs, pilot.splits[0]).mapped(fit.stem.maps[0])
        started = time.monotonic()
        self._fit_cell(_middle(fit.kernels), sample, fit.shift)
        seconds, n = time.monotonic() - started, len(self.material.splits[0].learn)
        return cell_sizes.rows_measured(clock, n, seconds, len(sample.X))

    def _divided(self, stem: Stem, rows: int) -> tuple[Cells, list[Tensor]]:
        """Return cells of so many rows, and the numbers of those that each is fitted to."""
        learn = self.material.splits[0].learn
        Z, rng = self._mapped(stem)[learn], self.material.rng
        cells, members = divided(MedianSplits(rows, cell_sizes.OVERLAP), Z, rng=rng)
        return cells, [learn[index] for index in members]

    def _mapped(self, stem: Stem) -> Float[Tensor, "n k"]:
        X = self.material.inputs(stem.recipe.inputs)
        return X if stem.maps[0] is None else stem.maps[0].forth(X)

    def _timely_pilot(self, stems: Sequence[Stem], rows: int) -> Findings:
        """Return findings of cells of which several fits have time: of smaller ones if need be."""
        while True:
            _, members = self._divided(stems[0], rows)
            pilot = self._pilot(stems, members)
            seconds = seconds_of_fit(pilot.material, pilot.stems[0], pilot.engine)
            if PILOT_FITS * seconds <= pilot.clock.left or rows <= cell_sizes.LEAST_ROWS:
                return pilot
            rows = max(cell_sizes.LEAST_ROWS, rows // 2)

    def _pilot(self, stems: Sequence[Stem], members: Sequence[Tensor]) -> Findings:
        """Return findings of some random cells, of each of which some rows are held out.

        They have no machine, as a metric of theirs would be none for all rows; and no penalties
        below what float32 tells, with which all cells would take twice the seconds.
        """
        search, rng = self.search, self.material.rng
        usual = sorted(map(len, members))[len(members) // 2]
        alike = [index for index in members if usual <= 2 * len(index)]
        some = torch.randperm(len(alike), generator=rng)[:PILOT_CELLS].tolist()
        cells = [alike[c][torch.randperm(len(alike[c]), generator=rng)] for c in some]
        splits, first = [], 0
        for cell in cells:
            held = min(PILOT_HELD, len(cell) // 5)
            numbers = torch.arange(first, first + len(cell))
            splits.append(Split(numbers[held:], numbers[:held]))
            first += len(cell)
        budget = search.clock.budget
        if math.isfinite(budget.seconds):
            budget = replace(budget, seconds=cell_sizes.PILOT_SHARE * search.clock.left)
        if math.isfinite(budget.evaluations):
            left = cell_sizes.PILOT_SHARE * search.clock.evaluations_left
            budget = replace(budget, evaluations=search.clock.meter.evaluations + left)
        return Findings(
            self.material.part(torch.cat(cells), splits),
            replace(search.space, machine=None, precise=False),
            Clock(Budget(budget.seconds, budget.evaluations), meter=search.clock.meter),
            search.engine,
            search.effort,
            stems=[replace(s, maps=s.maps * len(cells), fits=s.fits * len(cells)) for s in stems],
        )

    def _fitted(self, fit: FullFit, rows: int) -> CellFits:
        """Fit all cells at the lengthscale and the shift of a fit."""
        stem, kernel = fit.stem, _middle(fit.kernels)
        cells, members = self._divided(stem, rows)
        Z, held = self._mapped(stem), self.material.splits[0].held
        shares = {share.cell: share for share in cells.route(Z[held])}
        values = torch.zeros(len(held), self.material.Y.shape[1], dtype=torch.float64)
        coefs, shifts, none = [], [], torch.empty(0, dtype=torch.int64)
        for number, index in enumerate(members):
            order = torch.randperm(len(index), generator=self.material.rng)
            share = shares.get(number)
            seen = none if share is None else share.index
            sample = self._sample(Z, index[order], held[seen])
            found = self._fit_cell(kernel, sample, fit.shift)
            coefs.append(found.coef[order.argsort()])
            shifts.append(found.shift)
            if share is not None:
                values[seen] += share.weight[:, None] * found.values
            logger.debug("cell %d of %d: %d rows", number + 1, len(members), len(index))
        sizes = torch.tensor([0, *map(len, members)])
        loss = squared_loss(values, self.material.truth, self.material.held_weights)
        return CellFits(
            fit, kernel, stem.maps[0], cells, Z[torch.cat(members)], torch.cat(coefs),
            sizes.cumsum(dim=0), tuple(shifts), values, loss,
        )  # fmt: skip

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

    def _fit_cell(self, kernel: Kernel, sample: Sample, shift: float) -> CellFit:
        search, rng = self.search, self.material.rng
        return fit_cell(kernel, sample, shift, clock=search.clock, engine=search.engine, rng=rng)


def _middle(kernels: Sequence[Kernel]) -> Kernel:
    """Return the kernel whose lengthscale is the median of those of several cells."""
    ordered = sorted(kernels, key=lambda kernel: float(getattr(kernel, "lengthscale", 1.0)))
    return ordered[len(ordered) // 2]
