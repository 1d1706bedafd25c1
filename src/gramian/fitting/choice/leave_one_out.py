"""Comparison of kernels by leave-one-out errors, for few rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, RandomStream
from ..._sparse import dense
from ...data import RowSource, Subset, as_rows
from ...engines import Engine
from ...kernels import Kernel, medians
from ...kernels._lengthscale import lengthscale_of
from ...operators import KernelOperator
from ...paths.leave_one_out_formula import Spectrum, leave_one_out, leave_one_out_work
from ...paths.work import Work
from ...solvers import ProblemSize
from ..held_out.validation import HeldValues
from ..inputs.training_data import TrainingData
from .comparison import (
    ROUNDING_LOSS,
    TYPICAL_LENGTHSCALES,
    Comparison,
    Scored,
    descend,
    failed_score,
    first_of_ties,
    has_scale,
    times,
    walk,
)

FEW_ROWS = 400
"""Rows up to which eigendecompositions of all rows serve every lengthscale."""

SCREEN_ROWS = 250
"""Rows that choose each kernel's lengthscale and penalty if there are more than `FEW_ROWS`."""

MIDDLE_ROWS = 500
"""Rows that then compare kernels, and move lengthscale and penalty before all rows do.

A step with 500 rows takes an eighth of the time of a step with 1,000.
"""

PENALTY_GRID = tuple(10.0 ** (-e / 2) for e in range(-4, 23))
"""Penalties per row, in units of the diagonal of the kernel, decreasing."""

FINE_STEPS = (2**0.5, 2**0.25)
"""Ratios of lengthscales that are tried last."""

PENALTY_STEP = 10.0**0.5
"""Ratio of penalties from one factor of all rows to the next."""

TYPICAL_STEPS = 3
"""Typical number of factorisations to move a lengthscale by one ratio, or a penalty."""

MOST_NUMBERS = 1 << 24
"""Rows of more numbers are not compared with each other to find those that are equal."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut(Comparison):
    """Comparison of kernels by their leave-one-out loss at the best penalty, in closed form.

    The loss does not measure a kernel away from the rows: functions that nearly interpolate, with
    equal losses, may differ much in a gap of the data. If all rows are centers and targets are
    numbers, the criterion is therefore the geometric mean of the loss and the spread of
    one-step-ahead predictions, which the marginal likelihood measures; see `Spectrum.spreads`. A
    fit with landmarks is not the Gaussian process of its kernel, and codes of classes have no
    Gaussian noise: in both cases the criterion is the loss.

    Equal rows are merged into one row, with the sum of their weights and the mean of their targets:
    an integer weight then equals repeated rows for the choice, too.

    - `scatter`: sum of squared differences of the targets of equal rows. The coefficients of such
      rows differ by these differences over the shift, and cancel.
    - `centers`: number of centers, which are the first rows; n if all rows are centers.
    - `penalties`: penalties that may be chosen.
    - `coded`: whether targets are codes of classes.
    - `moves`: whether other lengthscales may be tried.
    """

    rows: RowSource
    Y: Float[Array, "n t"]
    weights: Float[Array, " n"]
    scatter: float
    centers: int
    engine: str | Engine
    penalties: tuple[float, ...] | None = None
    coded: bool = False
    moves: bool = True

    @classmethod
    def of(
        cls,
        data: TrainingData,
        centers: int | None,
        engine: str | Engine,
        penalties: tuple[float, ...] | None,
        rng: RandomStream,
        *,
        moves: bool = True,
    ) -> LeaveOneOut:
        """Return the comparison on the merged rows; `centers` is None if all rows are centers."""
        data = data.with_local_numbers()
        rows, Y, weights = merge_rows(data)
        scatter = _weighted_squares(data.targets, data.weights) - _weighted_squares(Y, weights)
        # In random order, because the first rows serve as landmarks
        # and as the sample of the screen.
        order = rng.permutation(len(rows))
        n = len(rows)
        m = n if centers is None else min(centers, n)
        return cls(
            Subset(rows, order), Y[order], weights[order], max(scatter, 0.0), m, engine, penalties,
            data.coded, moves,
        )  # fmt: skip

    def first(self, n: int) -> LeaveOneOut:
        """Return the comparison on the first n rows."""
        if n >= len(self.rows):
            return self
        index = xp.arange(n)
        return replace(
            self,
            rows=Subset(self.rows, index),
            Y=self.Y[:n],
            weights=self.weights[:n],
            centers=min(self.centers, n),
        )

    @functools.cached_property
    def _sample(self) -> LeaveOneOut:
        """The comparison on the rows that try all penalties."""
        return self if len(self.rows) <= FEW_ROWS else self.first(SCREEN_ROWS)

    @functools.cached_property
    def _middle(self) -> LeaveOneOut:
        """The comparison on the rows that compare kernels."""
        return self.first(MIDDLE_ROWS)

    def __call__(self, kernel: Kernel, near: Scored | None = None) -> Scored:
        K, scale = self._operator(kernel)
        spectrum = self._spectrum(K.against(self.rows.take(xp.arange(self.centers))))
        if spectrum is None:
            return failed_score(kernel)
        penalties = self.penalties or tuple(scale * p for p in PENALTY_GRID)
        shifts = [float(self.weights.sum()) * penalty for penalty in penalties]
        losses = self._losses(spectrum, shifts)
        spreads: Sequence[float | None] = [None] * len(shifts)
        if self._has_evidence:
            spreads = spectrum.spreads(self.Y, shifts)
        scores = [Scored(kernel, *s) for s in zip(penalties, losses, strict=True)]
        scores = [replace(score, spread=s) for score, s in zip(scores, spreads, strict=True)]
        best = first_of_ties([score.criterion for score in scores])
        # Only for the best penalty: predictions at all of them would be thrown away.
        values = HeldValues(spectrum.predict_left_out(self.Y, shifts[best]), self.Y, self.weights)
        return replace(scores[best], held_values=values)

    def search(self, kernel: Kernel, screened: Scored | None, *, moves: bool) -> Scored:
        """Return the best lengthscale and penalty of a kernel, by all rows.

        A sample of the rows chooses both from a grid. All rows then move from there, if they are
        more and are the centers: an eigendecomposition for all penalties costs as much as ten
        Cholesky factors, each for one penalty.
        """
        if self._sample is self or self.centers < len(self.rows):
            fine_steps = FINE_STEPS if self._has_evidence else ()
            return walk(kernel, self, moves=moves, fine_steps=fine_steps)
        if screened is None or self.coded:
            screened = self._walk_sample(kernel, moves=moves)
        # The best penalty depends on the lengthscale, in the sample as for all rows.
        slope = self._sample._slope(screened.kernel) if moves else 0.0
        middle = self._middle
        best = middle._descend(screened, slope, (2.0, *FINE_STEPS[:1]) if moves else ())
        if middle is self:
            return best
        best = self._score_again(best, middle)
        return self._descend(best, slope, FINE_STEPS[:1] if moves else ())

    def _slope(self, kernel: Kernel) -> float:
        """Return the power of the lengthscale with which the best penalty grows."""
        step = FINE_STEPS[0]
        smaller, larger = (self(times(kernel, factor)).penalty for factor in (1 / step, step))
        return math.log(larger / smaller) / math.log(step**2)

    def _score_again(self, scored: Scored, by: LeaveOneOut) -> Scored:
        """Return the score for these rows of a kernel and penalty that fewer rows have chosen."""
        # The same ridge belongs to a smaller penalty of more rows.
        ratio = float(by.weights.sum() / self.weights.sum())
        return self._score_at(scored.kernel, ratio * scored.penalty)

    def _descend(self, best: Scored, slope: float, steps: Sequence[float]) -> Scored:
        """Move lengthscale and penalty by steps while the criterion falls.

        - `best`: a score for these rows.
        - `slope`: see `_slope`.
        - `steps`: ratios of lengthscales.
        """

        def next_lengthscale(before: Scored, step: float) -> Scored:
            return self._score_at(times(before.kernel, step), before.penalty * step**slope)

        for step in steps if best.criterion > ROUNDING_LOSS else ():
            best = descend(best, (1 / step, step), next_lengthscale)
        # Move the penalty by steps while the criterion falls, to larger ones first.
        if self.penalties is not None:
            return best

        def next_penalty(before: Scored, step: float) -> Scored | None:
            return self._score_at(before.kernel, before.penalty * step)

        return descend(best, (PENALTY_STEP, 1 / PENALTY_STEP), next_penalty)

    def _score_at(self, kernel: Kernel, penalty: float) -> Scored:
        """Return the score of a kernel at one penalty, by all rows as centers."""
        K, scale = self._entries(kernel)
        if K is None:
            return failed_score(kernel)
        penalty = min(max(penalty, scale * PENALTY_GRID[-1]), scale * PENALTY_GRID[0])
        if self.penalties is not None:
            penalty = self.penalties[0]
        shift = float(self.weights.sum()) * penalty
        eps = xp.finfo(self.rows.dtype).eps
        errors = leave_one_out(K, self.weights, self.Y, shift, eps=eps)
        loss = errors.loss + self._scatter_loss(eps, shift)
        spread = errors.spread if self._has_evidence else None
        values = HeldValues(errors.predicted, self.Y, self.weights)
        return Scored(kernel, penalty, loss, held_values=values, spread=spread)

    @property
    def _has_evidence(self) -> bool:
        return self.centers == len(self.rows) and not self.coded

    @functools.cached_property
    def _everything(self) -> Array:
        return self.rows.take(xp.arange(len(self.rows)))

    @functools.cached_property
    def _entries(self) -> Callable[[Kernel], tuple[Array | None, float]]:
        """Function that returns the kernel matrix, or None, and the mean of its diagonal.

        The matrix of the last kernel is kept for further penalties.
        """

        def entries(kernel: Kernel) -> tuple[Array | None, float]:
            K, scale = self._operator(kernel)
            matrix = self._dense(K)
            if matrix is not None:
                # Tiny entries become denormal numbers, which slow LAPACK down.
                la.flush_tiny_(matrix)
            return matrix, scale

        return functools.lru_cache(maxsize=1)(entries)

    @functools.cached_property
    def _median_of(self) -> Callable[[Kernel], float]:
        """Cached function that returns the median distance of the rows as a kernel measures it."""
        sample = dense(self._everything)
        # A median distance is a single number.
        return functools.cache(lambda k: cast("float", lengthscale_of(k.resolve(sample))))

    def _operator(self, kernel: Kernel) -> tuple[KernelOperator, float]:
        """Return the kernel operator of the rows, and the mean of its diagonal."""
        X = as_rows(self._everything)
        # In float64: the rounding of float32 entries exceeds small penalties.
        K = KernelOperator(self._resolve_kernel(kernel), X, X, self.engine).double()
        # A linear kernel of rows that are all zero has the diagonal 0.
        return K, float(xp.to_float64(K.diag()).mean()) or 1.0

    def _resolve_kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel with a numeric lengthscale in place of a multiple of the median."""
        # A search tries many multiples of the median, which itself
        # is computed once for each kernel.
        factor = medians(getattr(kernel, "lengthscale", None))
        if factor is None:
            return kernel.resolve(dense(self._everything))
        median = self._median_of(kernel.set_params(lengthscale="median"))
        return kernel.set_params(lengthscale=factor * median)

    def _spectrum(self, K: KernelOperator) -> Spectrum | None:
        """Return the eigendecomposition for all penalties; None if a kernel entry is not finite."""
        K_nm = self._dense(K)
        if K_nm is None:
            return None
        if self.centers == len(self.rows):
            return Spectrum.of(K_nm, self.weights)
        return Spectrum.of_landmarks(K_nm, self.weights)

    def _dense(self, K: KernelOperator) -> Array | None:
        """Return the kernel matrix on the host; None if an entry is not finite."""
        matrix = xp.to_float64(xp.to_host(K.dense()))
        # LAPACK would raise an error, which would end the comparison of kernels.
        return matrix if bool(xp.isfinite(matrix).all()) else None

    def _losses(self, spectrum: Spectrum, shifts: Sequence[float]) -> list[float]:
        """Return the loss at each shift (N times a penalty), including rounding errors."""
        eps = xp.finfo(self.rows.dtype).eps
        losses = spectrum.losses(self.Y, shifts, eps=eps)
        return [loss + self._scatter_loss(eps, s) for loss, s in zip(losses, shifts, strict=True)]

    def _scatter_loss(self, eps: float, shift: float) -> float:
        """Return the loss by rounding of the coefficients of equal rows at a shift."""
        # Equal rows were merged, but in the fit their coefficients differ by their targets over the
        # shift, and cancel only up to rounding.
        return eps**2 * self.scatter / self.Y.shape[1] / shift**2

    def screen(self, kernel: Kernel) -> Scored:
        """Return the best lengthscale and penalty of a kernel on some of the rows."""
        # The kernels of classes differ less than a search costs: they
        # are compared at the first lengthscale.
        moves = self.moves and has_scale(kernel) and not self.coded
        return self._walk_sample(kernel, moves=moves)

    def _walk_sample(self, kernel: Kernel, *, moves: bool) -> Scored:
        """Choose lengthscale and penalty by a sample, and return their score for more rows."""
        best = walk(kernel, self._sample, moves=moves)
        if self._sample is self or self.centers < len(self.rows):
            return best
        return self._middle._score_again(best, self._sample)


def _weighted_squares(Y: Float[Array, "n t"], weights: Float[Array, " n"] | None) -> float:
    squares = xp.square(xp.to_host(xp.to_float64(Y))).sum(axis=1)
    return float(squares.sum() if weights is None else xp.to_host(xp.to_float64(weights)) @ squares)


def merge_rows(
    data: TrainingData,
) -> tuple[RowSource, Float[Array, "n t"], Float[Array, " n"]]:
    """Merge equal rows; return the distinct rows, mean targets, and sums of weights.

    The rows are sorted by their first targets, so that the order of the data changes nothing.
    """
    rows, Y = data.rows, xp.to_host(xp.to_float64(data.targets))
    n, d = rows.shape
    weights = xp.ones(n, xp.float64)
    if data.weights is not None:
        weights = xp.to_host(xp.to_float64(data.weights))
    X = rows.take(xp.arange(n))
    # Finding equal rows sorts them, which would take longer than a fit to that many numbers.
    if n * d > MOST_NUMBERS:
        return as_rows(X), Y, weights
    dense = xp.to_dense(X) if rows.sparse else X
    # 1. `unique` sorts rows by their features, in the order of the columns.
    distinct, place = xp.unique(dense, axis=0, return_inverse=True)
    sums = xp.add_at(xp.zeros(len(distinct), xp.float64), place, weights)
    means = xp.zeros((len(distinct), Y.shape[1]), xp.float64)
    xp.add_at(means, place, weights[:, None] * Y)
    means /= sums[:, None]
    # 2. Sort by the first occurrence, so that the order of the columns has no effect.
    first = xp.minimum_at(xp.full((len(distinct),), n), place, xp.arange(n))
    order = first.argsort(stable=True)
    # 3. Sort by the first target, so that the order of the rows
    # has none, except among equal targets.
    order = order[means[order, 0].argsort(stable=True)]
    return as_rows(distinct[order]), means[order], sums[order]


def all_rows_work(n: int, size: ProblemSize, kernels: int, *, moves: bool, has_path: bool) -> Work:
    """Return the work of `LeaveOneOut` on n rows: of the screen of kernels, and of the search."""
    m = n if size.full else min(size.m, n)
    sample, middle = (n if n <= FEW_ROWS else SCREEN_ROWS), min(n, MIDDLE_ROWS)
    lengthscales = TYPICAL_LENGTHSCALES if moves else 1
    walk_sample = Spectrum.work(sample, min(m, sample)) * lengthscales
    work = walk_sample * (kernels if kernels > 1 else 0)
    if sample == n or m < n:
        fine_steps = 2 * len(FINE_STEPS) * (moves and m == n)
        return work + Spectrum.work(n, m) * (lengthscales + fine_steps)
    # Two steps of the lengthscale, then of the penalty, by the middle rows and by all rows.
    if kernels == 1:
        work += walk_sample
    if moves:
        work += Spectrum.work(sample, sample) * 2
    work += leave_one_out_work(middle) * (kernels + TYPICAL_STEPS * (2 * moves + has_path))
    steps = 1 + TYPICAL_STEPS * (moves + has_path)
    return work if middle == n else work + leave_one_out_work(n) * steps
