"""Comparison of kernels by leave-one-out errors, for few rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ..._sparse import dense
from ...data import RowSource, Subset, as_rows
from ...engines import Engine
from ...kernels import Kernel, medians
from ...kernels._lengthscale import lengthscale_of
from ...operators import KernelOperator
from ...paths.leave_one_out_formula import Spectrum
from ..held_out.validation import HeldValues
from ..inputs.training_data import TrainingData
from .comparison import Scored, failed_score, first_of_ties, has_scale, walk

SCREEN_ROWS = 400
"""Rows by which kernels are compared; lengthscale and penalty are chosen with all."""

PENALTY_GRID = tuple(10.0 ** (-e / 2) for e in range(-4, 23))
"""Penalties per row, in units of the diagonal of the kernel, decreasing."""

FINE_STEPS = (2**0.5, 2**0.25)
"""Ratios of lengthscales that are tried last."""

MOST_NUMBERS = 1 << 24
"""Rows of more numbers are not compared with each other to find those that are equal."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Comparison of kernels by their leave-one-out loss at the best penalty, in closed form.

    The loss does not measure a kernel away from the rows: functions that nearly interpolate, with
    equal losses, may differ much in a gap of the data. If all rows are centers and targets are
    numbers, the criterion is therefore the geometric mean of the loss and the spread of
    one-step-ahead predictions, which the marginal likelihood measures; see `Spectrum.spreads`. A
    fit with landmarks is not the Gaussian process of its kernel, and codes of classes have no
    Gaussian noise: in both cases the criterion is the loss.

    Equal rows are merged into one row, with the sum of their weights and the mean of their targets:
    an integer weight then equals repeated rows for the choice, too.

    Attributes
    ----------
    rows : RowSource of shape (n, d)
    scatter : float
        Sum of squared differences of the targets of equal rows. The coefficients of such rows
        differ by these differences over the shift, and cancel.
    centers : int
        Number of centers, which are the first rows; n if all rows are centers.
    penalties : sequence of float, or None
        Penalties that may be chosen.
    coded : bool, default=False
        Whether targets are codes of classes.
    moves : bool, default=True
        Whether other lengthscales may be tried.
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

    def __call__(self, kernel: Kernel, near: Scored | None = None) -> Scored:
        """Return the best penalty of a kernel."""
        X = as_rows(self._everything)
        # In float64: the rounding of float32 entries exceeds small penalties.
        K = KernelOperator(self._resolve_kernel(kernel), X, X, self.engine).double()
        # A linear kernel of rows that are all zero has the diagonal 0.
        scale = float(xp.to_float64(K.diag()).mean()) or 1.0
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

    @property
    def fine_steps(self) -> tuple[float, ...]:
        """Return the factors of the best lengthscale to try last; none without an evidence."""
        return FINE_STEPS if self._has_evidence else ()

    @property
    def _has_evidence(self) -> bool:
        return self.centers == len(self.rows) and not self.coded

    @functools.cached_property
    def _everything(self) -> Array:
        return self.rows.take(xp.arange(len(self.rows)))

    @functools.cached_property
    def _median_of(self) -> Callable[[Kernel], float]:
        """Cached function that returns the median distance of the rows as a kernel measures it."""
        sample = dense(self._everything)
        return functools.cache(lambda kernel: _lengthscale(kernel.resolve(sample)))

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
        K_nm = xp.to_host(K.dense())
        # The eigensolver would raise an error, which would end the comparison of kernels.
        if not bool(xp.isfinite(K_nm).all()):
            return None
        if self.centers == len(self.rows):
            return Spectrum.of(K_nm, self.weights)
        return Spectrum.of_landmarks(K_nm, self.weights)

    def _losses(self, spectrum: Spectrum, shifts: Sequence[float]) -> list[float]:
        """Return the loss at each shift (N times a penalty), including rounding errors."""
        eps = xp.finfo(self.rows.dtype).eps
        losses = spectrum.losses(self.Y, shifts, eps=eps)
        # Equal rows were merged, but in the fit their coefficients differ by their targets over the
        # shift, and cancel only up to rounding.
        within = eps**2 * self.scatter / self.Y.shape[1]
        return [loss + within / s**2 for loss, s in zip(losses, shifts, strict=True)]

    def beyond(self, scored: Scored) -> Scored:
        """Return `scored` unchanged: all penalties were tried."""
        return scored

    def of_all_targets(self, scored: Scored) -> HeldValues | None:
        """Return the leave-one-out predictions of all rows."""
        return scored.held_values

    def screen(self, kernel: Kernel) -> Scored:
        """Return the best lengthscale and penalty of a kernel on some of the rows."""
        # The kernels of classes differ less than a search costs: they
        # are compared at the first lengthscale.
        moves = self.moves and has_scale(kernel) and not self.coded
        return walk(kernel, self.first(SCREEN_ROWS), moves=moves, fine=False)


def _lengthscale(kernel: Kernel) -> float:
    lengthscale = lengthscale_of(kernel)
    if not isinstance(lengthscale, float):
        raise TypeError(f"{kernel!r} has no single lengthscale")
    return lengthscale


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
