"""Comparison of kernels, lengthscales and penalties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ...kernels import Kernel, medians
from ...kernels._lengthscale import lengthscale_of
from ..held_out.validation import HeldValues

LEAST_GAIN = 2e-3
"""Share of the loss that a further lengthscale has to gain."""

ROUNDING_LOSS = 1e-12
"""Loss, as a share of the targets' mean square, below which rounding decides between kernels."""

LENGTHSCALE_STEP = 2.0
"""Ratio of lengthscales that are tried one after the other."""

FARTHEST_RATIO = 32.0
"""Largest ratio of a lengthscale, or its inverse, to the first one."""


@dataclass(frozen=True)
class Scored:
    """A kernel with its best penalty, and the held-out error at this penalty.

    - `kernel`: a kernel, whose lengthscale may be a multiple of the median.
    - `penalty`: best penalty, per row of the fit.
    - `loss`: mean squared error on held-out rows.
    - `inputs`: "standard", or "quantile" for rows made normal by their quantiles.
    - `falling`: whether the error was smallest, by a clear margin, at the smallest penalty.
    - `held_values`: predictions of the compared targets for these rows.
    - `spread`: geometric mean variance of one-step-ahead predictions, which measures the marginal
      likelihood. None if the choice does not use it.
    """

    kernel: Kernel
    penalty: float
    loss: float
    inputs: str = "standard"
    falling: bool = False
    held_values: HeldValues | None = None
    spread: float | None = None

    @property
    def criterion(self) -> float:
        """Squared error by which kernels are compared.

        The loss, or its geometric mean with `spread`. Kernels with equal losses may differ far from
        the rows; a kernel that is implausible there has a large spread.
        """
        return self.loss if self.spread is None else math.sqrt(self.loss * self.spread)


@runtime_checkable
class Comparison(Protocol):
    """Comparison of kernels, first by cheap fits to a sample, then by fits like the final fit.

    Attributes
    ----------
    fine_steps : tuple of float
        Ratios of lengthscales, below `LENGTHSCALE_STEP`, that are tried around the best one.
    """

    @property
    def fine_steps(self) -> tuple[float, ...]:
        """Return the factors of the best lengthscale with which to try further lengthscales."""

    def screen(self, kernel: Kernel) -> Scored:
        """Return the best penalty of a kernel, by cheap fits to a sample."""

    def __call__(self, kernel: Kernel, near: Scored | None = None) -> Scored:
        """Return the best penalty of a kernel, with as many centers as the fit will have.

        `near` is the result of the nearest lengthscale: penalties far from its best penalty may be
        left out.
        """

    def beyond(self, scored: Scored) -> Scored:
        """Return `scored`, or a better score of its kernel with a smaller penalty.

        Fits with smaller penalties cost more.
        """

    def of_all_targets(self, scored: Scored) -> HeldValues | None:
        """Return predictions of all targets for the held-out rows; None if the fit failed."""


UNKNOWN_PENALTY = 1e-6
"""The penalty of a kernel whose matrix could not be computed: the fit then says why."""


def failed_score(kernel: Kernel) -> Scored:
    """Return the score of a kernel whose matrix overflows, or is not definite."""
    return Scored(kernel, UNKNOWN_PENALTY, math.inf)


def has_scale(kernel: Kernel) -> bool:
    """Return whether a kernel has a lengthscale that matters, unlike a linear kernel."""
    scaled = medians(getattr(kernel, "lengthscale", None)) is not None
    return scaled and not kernel.scale_free


def first_of_ties(criteria: Sequence[float]) -> int:
    """Return the position of the first criterion within `LEAST_GAIN` of the smallest criterion."""
    # Of decreasing penalties, the first one is the largest: rounding must not decide among equals,
    # and a larger penalty is safer away from the rows.
    limit = (1 + LEAST_GAIN) * min(criteria)
    return next(k for k, value in enumerate(criteria) if value <= limit)


def best_of(kernels: Sequence[Kernel], by: Sequence[Comparison]) -> tuple[Kernel, Comparison]:
    """Return the kernel with the smallest criterion, and the comparison that found it.

    If the criteria of several kernels are only rounding errors, the first kernel is best.
    """
    # Nothing to compare: a screen would only cost time.
    if len(kernels) == len(by) == 1:
        return kernels[0], by[0]
    scores = [(comparison.screen(kernel), comparison) for comparison in by for kernel in kernels]
    best, comparison = min(scores, key=lambda pair: max(pair[0].criterion, ROUNDING_LOSS))
    return best.kernel, comparison


def walk(kernel: Kernel, score: Comparison, *, moves: bool = True, fine: bool = True) -> Scored:
    """Try smaller lengthscales while the criterion falls, else larger ones, and return the best.

    - `kernel`: kernel with the first lengthscale.
    - `moves`: whether other lengthscales may be tried.
    - `fine`: whether `fine_steps` are tried last, on both sides of the best lengthscale.
    """
    best = score(kernel)
    # An error of rounding alone cannot be improved.
    if not (moves and best.criterion > ROUNDING_LOSS):
        return best
    for step in (1 / LENGTHSCALE_STEP, LENGTHSCALE_STEP):
        first, factor = best, step
        while 1 / FARTHEST_RATIO <= factor <= FARTHEST_RATIO:
            # The factor is of the first lengthscale, the penalties
            # are near the best of the last one.
            candidate = score(times(kernel, factor), best)
            if not candidate.criterion < (1 - LEAST_GAIN) * best.criterion:
                break
            best, factor = candidate, factor * step
        # The criterion fell in this direction, so that it need not be tried in the other.
        if best is not first:
            break
    for step in score.fine_steps if fine else ():
        sides = [score(times(best.kernel, factor), best) for factor in (1 / step, step)]
        best = min((best, *sides), key=lambda scored: scored.criterion)
    return best


def times(kernel: Kernel, factor: float) -> Kernel:
    """Return a kernel whose lengthscale, a multiple of the median, is multiplied by a factor."""
    multiple = medians(lengthscale_of(kernel))
    if multiple is None:
        raise ValueError(f"the lengthscale of {kernel!r} is no multiple of the median")
    return kernel.set_params(lengthscale=f"{multiple * factor!r} median")
