"""Fits of all rows by cells: each is a full problem of its own, at full density.

Lengthscale and penalty are chosen by fits of one cell, by walking as a search does with all rows:
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

from ..cells import Cells, MedianSplits
from ..data import LinearMap
from ..kernels import Kernel
from ..operators import KernelOperator
from ..paths import FullPath
from ..paths.full import RANK
from ..paths.sample import Sample, squared_loss
from ..problems import FullProblem
from .clock import Budget, Clock
from .cost import ITERATIONS, seconds_of_evaluation
from .findings import Findings, handicapped
from .full_fit import DIRECT_ROWS, MEMORY, STORED, FullFit, factorised, watched
from .material import Material, Split
from .on_all_rows import HOPELESS, fits
from .recipe import Trial
from .sampled import Stem

logger = logging.getLogger("gramian")

OVERLAP = 0.1
"""Share of the rows of a split that both sides keep."""

USUAL_ROWS, LEAST_ROWS, MOST_ROWS = 10_000, 1_000, 20_000
"""Rows of a cell without a budget, and bounds of what a budget asks for."""

PILOT_SHARE = 0.25
"""Of what is left, the fits of one cell that choose may take so much."""

ALL_SHARE = 0.85
"""Of what is left then, all cells may take so much: predictions of held-out rows follow."""

TREE_ROWS = 100_000
"""Rows that the tree is grown from."""

PILOT_HELD = 2000
"""Rows of the pilot cell that are held out, at most; else a fifth."""

SINGLE = 0.6
"""Seconds of a fit with one penalty, in those of one with a path of them."""

WORSE = 1.5
"""A cell whose loss is so many times that of its mean, or whose iterations diverge, is bad."""

LARGER = 10.0
"""Factor of the shift with which a bad cell is fitted again."""

TRIES = 4


@dataclass(frozen=True, eq=False)
class CellFits:
    """All cells, fitted.

    Attributes
    ----------
    fit : FullFit
        Of the cell that lengthscale and penalty were chosen by.
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
        Of the cell by which lengthscale and penalty are chosen.
    found : CellFits or None
        The result.
    """

    search: Findings
    material: Material
    pilot: Findings | None = None
    found: CellFits | None = None

    def steps(self) -> Iterator[Trial]:
        """Choose by one cell, fit all of them, and yield each trial."""
        stems = self._stems()
        if not stems:
            return
        rows = self._rows(stems[0])
        _, members = self._divided(stems[0], rows)
        self.pilot = self._pilot(stems, members)
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
        search, stems = self.search, self.search.stems
        heads = [search.best_of(stems, group) for group in search.in_order(stems)]
        least = min((handicapped(stem) for stem in heads), default=math.inf)
        heads = [stem for stem in heads if handicapped(stem) <= HOPELESS * least]
        return [replace(stem, maps=stem.maps[:1], fits=stem.fits[:1]) for stem in heads]

    def _rows(self, stem: Stem) -> int:
        """Return how many rows a cell may have, for all of them to be fitted in time."""
        clock, n = self.search.clock, len(self.material.splits[0].learn)
        most = min(MOST_ROWS, n)
        finite = math.isfinite(clock.budget.seconds), math.isfinite(clock.budget.evaluations)
        if not any(finite):
            return min(USUAL_ROWS, most)
        each = seconds_of_evaluation(self.search.material, stem, self.search.engine)
        left = ALL_SHARE * (1 - PILOT_SHARE)
        for rows in range(most, LEAST_ROWS, -500):
            pairs = _pairs(n, rows)
            if clock.allows(pairs * each / left, pairs / left):
                return rows
        return min(LEAST_ROWS, most)

    def _affordable(self, fit: FullFit, rows: int) -> int:
        """Return the rows of a cell, now that the seconds of one are known."""
        clock, n = self.search.clock, len(self.material.splits[0].learn)
        if not math.isfinite(clock.budget.seconds):
            return rows
        trained = len(fit.coefs[0])
        single = max(f.seconds for f in self.pilot.fits) * SINGLE if self.pilot else fit.seconds
        most = min(MOST_ROWS, n)
        for size in range(most, LEAST_ROWS, -500):
            scale = (size / trained) ** 2
            if clock.allows(inflated(n, size) / size * single * scale / ALL_SHARE):
                return size
        return min(LEAST_ROWS, most)

    def _divided(self, stem: Stem, rows: int) -> tuple[Cells, list[Tensor]]:
        """Return cells of so many rows, and the rows that each is fitted to."""
        learn = self.material.splits[0].learn
        Z = self._mapped(stem)
        some = learn[torch.randperm(len(learn), generator=self.material.rng)[:TREE_ROWS]]
        cells = MedianSplits(rows, OVERLAP).grow(Z[some], len(learn), rng=self.material.rng)
        members = cells.members(Z[learn], rng=self.material.rng)
        return cells, [learn[index] for index in members]

    def _mapped(self, stem: Stem) -> Float[Tensor, "n k"]:
        X = self.material.inputs(stem.recipe.inputs)
        return X if stem.maps[0] is None else stem.maps[0].forth(X)

    def _pilot(self, stems: Sequence[Stem], members: Sequence[Tensor]) -> Findings:
        """Return findings of the cell of median size, of which some rows are held out."""
        search, rng = self.search, self.material.rng
        cell = sorted(members, key=len)[len(members) // 2]
        cell = cell[torch.randperm(len(cell), generator=rng)]
        held = min(PILOT_HELD, len(cell) // 5)
        split = Split(torch.arange(held, len(cell)), torch.arange(held))
        budget = search.clock.budget
        if math.isfinite(budget.seconds):
            budget = replace(budget, seconds=PILOT_SHARE * search.clock.left)
        if math.isfinite(budget.evaluations):
            left = PILOT_SHARE * search.clock.evaluations_left
            budget = replace(budget, evaluations=search.clock.meter.evaluations + left)
        return Findings(
            self.material.part(cell, [split]),
            search.space,
            Clock(Budget(budget.seconds, budget.evaluations), meter=search.clock.meter),
            search.engine,
            search.effort,
            stems=list(stems),
        )

    def _fitted(self, fit: FullFit, rows: int) -> CellFits:
        """Fit all cells at the lengthscale and the shift of a fit."""
        stem, kernel = fit.stem, fit.kernels[0]
        cells, members = self._divided(stem, rows)
        Z, held = self._mapped(stem), self.material.splits[0].held
        shares = {share.cell: share for share in cells.route(Z[held])}
        values = torch.zeros(len(held), self.material.Y.shape[1], dtype=torch.float64)
        coefs, shifts = [], []
        for number, index in enumerate(members):
            share = shares.get(number)
            seen = torch.empty(0, dtype=torch.int64) if share is None else share.index
            coef, found, shift = self._cell(kernel, Z, index, held[seen], fit.shift, len(members))
            coefs.append(coef)
            shifts.append(shift)
            if share is not None:
                values[seen] += share.weight[:, None] * found
            logger.info("cell %d of %d: %d rows", number + 1, len(members), len(index))
        sizes = torch.tensor([0, *map(len, members)])
        loss = squared_loss(values, self.material.truth, self.material.held_weights)
        return CellFits(
            fit, kernel, stem.maps[0], cells, Z[torch.cat(members)], torch.cat(coefs),
            sizes.cumsum(dim=0), tuple(shifts), values, loss,
        )  # fmt: skip

    def _cell(
        self,
        kernel: Kernel,
        Z: Float[Tensor, "n k"],
        index: Int[Tensor, " c"],
        held: Int[Tensor, " v"],
        shift: float,
        cells: int,
    ) -> tuple[Tensor, Tensor, float]:
        """Return coefficients and held-out values of a cell, with a larger shift if it is bad."""
        Y, w = self.material.Y, self.material.weights
        order = torch.randperm(len(index), generator=self.material.rng)
        index = index[order]
        # without a held-out row, some of its own say when iterations end
        look = held if len(held) else index[:100]
        sample = Sample(
            Z[index], Y[index], Z[look], Y[look],
            None if w is None else w[index], None if w is None else w[look],
        )  # fmt: skip
        least = sample.loss(sample.Y.double().mean(dim=0).expand_as(sample.held_Y))
        for _ in range(TRIES):
            coef, values, loss = self._solved(kernel, sample, shift)
            if math.isfinite(loss) and loss <= WORSE * max(least, TINY):
                break
            shift *= LARGER
            logger.warning(
                "a cell of %d rows has a loss of %.3g: shift %.3g", len(index), loss, shift
            )
        else:
            coef, values = torch.zeros_like(coef), torch.zeros_like(values)
        back = torch.empty_like(coef)
        back[order] = coef
        return back, values[: len(held)], shift

    def _solved(self, kernel: Kernel, sample: Sample, shift: float) -> tuple[Tensor, Tensor, float]:
        meter, clock = self.search.clock.meter, self.search.clock
        K = KernelOperator(kernel, sample.X, sample.X, self.search.engine, meter=meter, **MEMORY)
        problem = FullProblem(K, sample.Y, 0.0, sample.weights)
        if len(sample.X) <= DIRECT_ROWS:
            point = factorised(problem, sample, [shift])[shift]
        else:
            path = FullPath.build(problem, [shift / problem.total], rng=self.material.rng, **STORED)
            ends = (time.monotonic() + clock.left, clock.budget.evaluations)
            point = watched(path, [shift], sample, ends)[shift]
        return point.coef, point.values.double(), point.loss


TINY = 1e-12


def inflated(n: int, rows: int) -> float:
    """Return the rows of all cells, of so many each, those of bands counted twice."""
    cells = MedianSplits(min(rows, n), OVERLAP).number_of_cells(n)
    return float(n * (1 + OVERLAP) ** math.log2(cells))


def _pairs(n: int, rows: int) -> float:
    """Return the kernel evaluations of all cells."""
    total = inflated(n, rows)
    return total * (min(RANK, rows / 2) + ITERATIONS * rows / 2)
