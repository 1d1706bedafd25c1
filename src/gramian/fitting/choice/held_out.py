"""Comparison of kernels by fits to a sample, and their errors on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, RandomStream
from ..._sparse import cast, dense, slice_rows
from ...data import RowSource, as_columns, subset
from ...engines import Engine
from ...kernels import Kernel
from ...metric.base import HELD_SHARE, MOST_HELD, split_held_out
from ...paths.sample import PATH_PENALTIES, SampleFit, fit_sample, sample_work
from ...paths.work import Work
from ...search import Budget, Clock, Material, Split
from ...search.all_rows.full_fit import (
    DIRECT_ROWS,
    DIRECT_SHIFTS,
    PATH_SHIFTS,
    SMALL_SHIFTS,
    FullFit,
    full_fit,
    full_work,
)
from ...search.recipe import Recipe
from ...search.samples.sampled_fit import Stem
from ...solvers import ProblemSize
from ..held_out.validation import HeldValues
from ..inputs.training_data import TrainingData
from .comparison import (
    TYPICAL_LENGTHSCALES,
    Comparison,
    Scored,
    failed_score,
    first_of_ties,
    walk,
)

SCREEN_ROWS = 4000
SCREEN_LANDMARKS = 500
"""Rows and landmarks of the comparison of kernels; the best kernel hardly depends on them."""

MOST_LANDMARKS = 1000
"""Landmarks by which lengthscale and penalty are chosen for a fit with more of them."""

MOST_TARGETS = 8
"""Random combinations that replace a larger number of targets; their mean error is the same."""

NOISE_PENALTY = 3e-2
"""Best penalty above which larger ones are tried with all rows as centers, too."""

FALLING_RATIO = 0.9
"""Ratio of successive losses below which smaller penalties are tried."""

WINDOW_RATIO = 3.5
"""Largest ratio of a penalty, or its inverse, to the best penalty of the last lengthscale."""

MOST_DIRECT = 10_000
"""Rows of a fit up to which penalties are tried for which float32 is too coarse."""

SAMPLE_PENALTIES = (100.0, 10.0, *PATH_PENALTIES)
"""Penalties of fits with landmarks, in units of the diagonal of the kernel."""

WINDOW_SHIFTS = 3
"""Typical number of penalties in a window; see `WINDOW_RATIO`."""

SMALLER_PROBABILITY = 0.5
"""Assumed probability that smaller penalties are tried, as for targets without noise."""

LARGE_SHIFTS = (1e6, 1e4, 1e3, 1e2, 10.0, 1.0)


@dataclass(frozen=True)
class Given(Recipe):
    """A recipe with a kernel object in place of a name; the kernel keeps its lengthscale."""

    object: Kernel = field(kw_only=True)

    def make_kernel(self) -> Kernel:
        """Return the kernel object of the recipe."""
        return self.object


@dataclass(frozen=True, eq=False)
class HeldOutChoice(Comparison):
    """Comparison of kernels by loss and best penalty on held-out rows of a sample.

    - `landmarks`: number of landmarks of the fit; None if all rows are centers.
    - `penalties`: penalties that may be chosen, per row of the fit.
    - `rows`: number of rows of the fit.
    - `total`: sum of the weights of these rows.
    - `ends`: the time of `time.monotonic` at which iterations end.
    - `inputs`: "standard" or "quantile".
    - `all_targets`: all targets, if `material` has combinations of targets.
    """

    material: Material
    landmarks: int | None
    engine: str | Engine
    penalties: tuple[float, ...] | None
    rows: int
    total: float
    ends: float
    clock: Clock = field(default_factory=lambda: Clock(Budget()))
    inputs: str = "standard"
    all_targets: Float[Array, "n t"] | None = None

    @classmethod
    def of(
        cls,
        data: TrainingData,
        index: Array | None,
        landmarks: int | None,
        engine: str | Engine,
        penalties: tuple[float, ...] | None,
        splits: Sequence[Split] | None,
        rng: RandomStream,
        ends: float,
    ) -> HeldOutChoice:
        """Return a comparison of kernels on the rows `index`, or on all rows if None.

        These rows are divided by `splits`, or at random if None, into rows to learn from and
        held-out rows.
        """
        n = len(data.rows)
        rows: RowSource = data.rows if index is None else subset(data.rows, index)
        X = dense(rows.take(xp.arange(len(rows))))
        sampled_data = data if index is None else data.part(index, rows)
        Y = xp.to_host(as_columns(sampled_data.targets).gather())
        weights = (
            None
            if sampled_data.weights is None
            else xp.to_host(as_columns(sampled_data.weights).gather())
        )
        if splits is None:
            order = rng.permutation(len(X))
            validation, learn = split_held_out(Y[order], data.coded)
            splits = [Split(order[learn], order[validation])]
        # float32 suffices, except for the penalties of `SMALL_SHIFTS`, and takes half the memory.
        X = cast(X, xp.float32)
        material = Material(
            X, xp.cast(narrow_penalties(Y, rng), xp.float32), weights, data.coded, splits, rng
        )
        total = float(n) if data.weights is None else float(xp.sum_float64(data.weights))
        all_targets = xp.cast(Y, xp.float32) if material.Y.shape[1] < Y.shape[1] else None
        return cls(material, landmarks, engine, penalties, n, total, ends, all_targets=all_targets)

    def screen(self, kernel: Kernel) -> Scored:
        """Return the best penalty of a kernel with few landmarks."""
        try:
            return self._score_sample(kernel, SCREEN_LANDMARKS, SCREEN_ROWS)
        # A kernel that fails loses against all others; if it is the only one, the fit says why.
        except (FloatingPointError, la.NotPositiveDefinite):
            return failed_score(kernel)

    def __call__(self, kernel: Kernel, near: Scored | None = None) -> Scored:
        try:
            return self._score_fits(kernel, near)
        except (FloatingPointError, la.NotPositiveDefinite):
            return failed_score(kernel)

    def _score_fits(self, kernel: Kernel, near: Scored | None) -> Scored:
        if self.landmarks is not None:
            m = min(self.landmarks, MOST_LANDMARKS)
            return self._score_sample(kernel, m, len(self.material.X))
        fit = self._full(kernel, self._shifts(kernel, near))
        # Losses are in the order of decreasing penalties, so that the last one is at the smallest.
        falling = len(fit.losses) > 1 and fit.loss < FALLING_RATIO * fit.losses[-2][1]
        at_end = fit.penalty == fit.losses[-1][0]
        penalty, falling = fit.shift / self.total, at_end and falling
        return Scored(
            kernel, penalty, fit.loss, self.inputs, falling, self._held_values([fit.values])
        )

    def search(self, kernel: Kernel, screened: Scored | None, *, moves: bool) -> Scored:
        """Return the best lengthscale and penalty of a kernel, and try smaller penalties last."""
        scored = walk(kernel, self, moves=moves)
        # For many rows smaller penalties are not tried: float64 would take too long.
        has_few_rows = self.rows <= MOST_DIRECT and len(self.material.splits[0].train) > DIRECT_ROWS
        if self.landmarks is not None or self.penalties is not None or not has_few_rows:
            return scored
        least_shift = self._diagonal(scored.kernel) * PATH_SHIFTS[-1]
        # Only where the loss still fell clearly at the smallest penalty that float32 resolves.
        if not (scored.falling and scored.penalty * self.total < 1.5 * least_shift):
            return scored
        smaller = [least_shift * s / PATH_SHIFTS[-1] for s in SMALL_SHIFTS]
        fit = self._full(scored.kernel, smaller, small=True)
        if not fit.loss < scored.loss:
            return scored
        held_values = self._held_values([fit.values])
        return Scored(
            scored.kernel, fit.shift / self.total, fit.loss, self.inputs, held_values=held_values
        )

    def _full(self, kernel: Kernel, shifts: Sequence[float], *, small: bool = False) -> FullFit:
        # The fits of a search, with a recipe that holds the kernel itself: a user's kernel has no
        # name.
        recipe = Given("", self.inputs, object=kernel)
        stem = Stem(recipe, (None,) * len(self.material.splits), None, 0.0, 0.0, (), ())
        return full_fit(
            self.material, stem, 1.0, clock=self.clock, engine=self.engine, ends=self.ends,
            small=small, shifts=shifts,
        )  # fmt: skip

    def _shifts(self, kernel: Kernel, near: Scored | None) -> tuple[float, ...]:
        """Return the ridges to try: the diagonal of the kernel matrix times numbers of a grid."""
        if self.penalties is not None:
            return tuple(p * self.total for p in self.penalties)
        scale = self._diagonal(kernel)
        least_rows = min(len(split.train) for split in self.material.splits)
        shifts: Sequence[float] = DIRECT_SHIFTS if least_rows <= DIRECT_ROWS else PATH_SHIFTS[1:]
        # The first lengthscale has no neighbour: a cheap screen
        # shows if the target is mostly noise.
        if near is None and self.screen(kernel).penalty >= NOISE_PENALTY * scale:
            shifts = LARGE_SHIFTS
        scaled = tuple(scale * s for s in shifts)
        if near is None:
            return scaled
        # The best penalty changes little from one lengthscale to the next: a
        # window around it saves most of the columns.
        at = near.penalty * self.total
        return tuple(s for s in scaled if at / WINDOW_RATIO <= s <= at * WINDOW_RATIO) or (at,)

    def _score_sample(self, kernel: Kernel, landmarks: int, rows: int) -> Scored:
        """Return the best penalty of a kernel, by the mean loss of fits with landmarks."""
        fits, sizes, totals = [], [], []
        for split in self.material.splits:
            sample = self.material.sample(self.inputs, split, rows)
            n = len(sample.X) if sample.weights is None else float(sample.weights.sum())
            if self.penalties is None:
                scale = self._diagonal(kernel)
                penalties = [scale * p for p in SAMPLE_PENALTIES]
            else:
                # The ridge is N times the penalty, and the same for fewer rows.
                penalties = [p * self.total / n for p in self.penalties]
            fits.append(
                fit_sample(
                    sample, kernel, landmarks=landmarks, penalties=penalties,
                    engine=self.engine, meter=self.clock.meter,
                )
            )  # fmt: skip
            sizes.append(len(split.validation))
            totals.append(n)
        # The best one by the mean over the splits, as each alone is noisy.
        best, loss = _best_of_all(fits, sizes)
        held_values = self._held_values([fit.values for fit in fits])
        # Splits have as many rows as their folds leave: the ridge is the mean of theirs.
        ridges = [fit.losses[best][0] * n for fit, n in zip(fits, totals, strict=True)]
        penalty = sum(ridges) / len(ridges) / self.total
        return Scored(kernel, penalty, loss, self.inputs, held_values=held_values)

    def of_all_targets(self, scored: Scored) -> HeldValues | None:
        """Return predictions of all targets; by one more fit if combinations were compared."""
        if self.all_targets is None:
            return scored.held_values
        choice_of_all = replace(
            self,
            # With the quantiles that the choice has used, as these are from a random sample.
            material=replace(self.material, Y=self.all_targets).mapped_as(self.material),
            penalties=(scored.penalty,),
            all_targets=None,
        )
        return choice_of_all(scored.kernel).held_values

    def _held_values(self, values: Sequence[Array]) -> HeldValues:
        """Return the concatenated predictions of the held-out rows of all splits."""
        return HeldValues(xp.concat(list(values)), self.material.truth, self.material.held_weights)

    def _diagonal(self, kernel: Kernel) -> float:
        """Return the mean diagonal entry of the kernel matrix; 1 for kernels of a distance."""
        X = slice_rows(self.material.inputs(self.inputs), 0, 1000)
        return float(xp.to_float64(kernel.resolve(X).diag(X)).mean()) or 1.0


def _best_of_all(fits: Sequence[SampleFit], sizes: Sequence[int]) -> tuple[int, float]:
    """Return the place on the paths of the least mean loss of the splits, and this loss."""
    paths = [list(fit.losses) for fit in fits]
    # Each path may end early, where its loss rises: only penalties that all of them have reached.
    shared = min(len(path) for path in paths)
    losses = [
        sum(v * path[i][1] for v, path in zip(sizes, paths, strict=True)) / sum(sizes)
        for i in range(shared)
    ]
    best = first_of_ties(losses)
    return best, losses[best]


def narrow_penalties(Y: Float[Array, "n t"], rng: RandomStream) -> Float[Array, "n _"]:
    """Return the targets, or fewer random combinations of them if there are many.

    The expected squared error of the combinations is the squared error of all targets.
    """
    t = Y.shape[1]
    if t <= MOST_TARGETS:
        return Y
    # The expected square of a random combination is the sum of the squares of all errors.
    signs = xp.cast(rng.integers(2, size=(t, MOST_TARGETS)), Y.dtype) * 2 - 1
    return xp.matmul(Y, signs) / math.sqrt(MOST_TARGETS)


def held_out_work(
    n: int, size: ProblemSize, screens: int, *, moves: bool, has_path: bool, splits: int | None
) -> Work:
    """Return the work of `HeldOutChoice` on n of the rows of a fit.

    - `screens`: kernels times inputs that are compared; no screen for a single one.
    - `moves`, `has_path`: whether lengthscales and penalties are chosen.
    - `splits`: number of folds; None for one random split.
    """
    v = n // splits if splits else min(MOST_HELD, n // HELD_SHARE)
    train, t = n - v, min(size.t, MOST_TARGETS)
    sample_count, path_count = (len(SAMPLE_PENALTIES), len(PATH_SHIFTS) - 1) if has_path else (1, 1)
    lengthscales = TYPICAL_LENGTHSCALES if moves else 1
    screen = sample_work(min(train, SCREEN_ROWS), v, SCREEN_LANDMARKS, sample_count)
    work = screen * (screens if screens > 1 else 0)
    if not size.full:
        work += sample_work(train, v, min(size.m, MOST_LANDMARKS), sample_count) * lengthscales
    else:
        # The first lengthscale has all penalties, after a screen that shows noise; the others have
        # a window of them.
        work += full_work(train, v, path_count, t) + screen * float(has_path)
        work += full_work(train, v, min(path_count, WINDOW_SHIFTS), t) * (lengthscales - 1)
        if has_path and size.n <= MOST_DIRECT and train > DIRECT_ROWS:
            work += full_work(train, v, len(SMALL_SHIFTS), t, itemsize=8) * SMALLER_PROBABILITY
    return work * (splits or 1)
