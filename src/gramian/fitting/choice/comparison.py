"""Comparison of kernels, lengthscales and penalties."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...kernels import Kernel, medians
from ...kernels._lengthscale import lengthscale_of
from ..held_out.validation import HeldValues

LEAST_GAIN = 2e-3
"""Share of the loss that a further lengthscale has to gain."""

ROUNDING_LOSS = 1e-12
"""Loss, as a share of the targets' mean square, below which rounding decides between kernels."""

LENGTHSCALE_STEP = 2.0
"""Ratio of lengthscales that are tried one after the other."""

TYPICAL_LENGTHSCALES = 4
"""Typical number of lengthscales: the first one, one on each side, and one further."""

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


class Comparison(ABC):
    """Comparison of kernels, first by cheap fits to a sample, then by fits like the final fit."""

    @abstractmethod
    def screen(self, kernel: Kernel) -> Scored:
        """Return the best penalty of a kernel, by cheap fits to a sample."""

    @abstractmethod
    def __call__(self, kernel: Kernel, near: Scored | None = None) -> Scored:
        """Return the best penalty of a kernel, with as many centers as the fit will have.

        `near` is the result of the nearest lengthscale: penalties far from its best penalty may be
        left out.
        """

    @abstractmethod
    def search(self, kernel: Kernel, screened: Scored | None, *, moves: bool) -> Scored:
        """Return the best lengthscale and penalty of a kernel, by fits like the final fit.

        `screened` is the result of the screen, if there was one, and `moves` is whether other
        lengthscales may be tried.
        """

    def of_all_targets(self, scored: Scored) -> HeldValues | None:
        """Return predictions of all targets for the held-out rows; None if the fit failed."""
        return scored.held_values


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


def best_of(
    kernels: Sequence[Kernel], by: Sequence[Comparison]
) -> tuple[Kernel, Comparison, Scored | None]:
    """Return the kernel with the smallest criterion, the comparison that found it, and the score.

    The kernel has its first lengthscale; the score may have another one. It is None for a single
    kernel, which needs no screen. If the criteria of several kernels are only rounding errors, the
    first kernel is best.
    """
    # Nothing to compare: a screen would only cost time.
    if len(kernels) == len(by) == 1:
        return kernels[0], by[0], None
    scores = [(comparison.screen(kernel), comparison) for comparison in by for kernel in kernels]
    best, comparison = min(scores, key=lambda pair: max(pair[0].criterion, ROUNDING_LOSS))
    return best.kernel, comparison, best


def walk(
    kernel: Kernel, score: Comparison, *, moves: bool = True, fine_steps: Sequence[float] = ()
) -> Scored:
    """Try smaller lengthscales while the criterion falls, else larger ones, and return the best.

    - `kernel`: kernel with the first lengthscale.
    - `moves`: whether other lengthscales may be tried.
    - `fine_steps`: ratios of lengthscales, below `LENGTHSCALE_STEP`, that are tried last, on both
      sides of the best lengthscale.
    """
    best = score(kernel)
    # An error of rounding alone cannot be improved.
    if not (moves and best.criterion > ROUNDING_LOSS):
        return best
    first = _multiple(kernel)

    def next_lengthscale(before: Scored, step: float) -> Scored | None:
        # The penalties are near the best of the last lengthscale.
        ratio = _multiple(before.kernel) / first * step
        within = 1 / FARTHEST_RATIO <= ratio <= FARTHEST_RATIO
        return score(times(before.kernel, step), before) if within else None

    best = descend(best, (1 / LENGTHSCALE_STEP, LENGTHSCALE_STEP), next_lengthscale)
    for step in fine_steps:
        sides = [score(times(best.kernel, factor), best) for factor in (1 / step, step)]
        best = min((best, *sides), key=lambda scored: scored.criterion)
    return best


def descend(
    best: Scored, steps: Sequence[float], score_next: Callable[[Scored, float], Scored | None]
) -> Scored:
    """Take one of the steps while the criterion falls, or the next one if it never falls.

    `score_next` returns the score after a step from a score, or None at the end of the range.
    """
    for step in steps:
        first = best
        while (candidate := score_next(best, step)) is not None:
            if not candidate.criterion < (1 - LEAST_GAIN) * best.criterion:
                break
            best = candidate
        # The criterion fell in this direction, so that it need not be tried in the other.
        if best is not first:
            break
    return best


def times(kernel: Kernel, factor: float) -> Kernel:
    """Return a kernel whose lengthscale, a multiple of the median, is multiplied by a factor."""
    return kernel.set_params(lengthscale=f"{_multiple(kernel) * factor!r} median")


def _multiple(kernel: Kernel) -> float:
    multiple = medians(lengthscale_of(kernel))
    if multiple is None:
        raise ValueError(f"the lengthscale of {kernel!r} is no multiple of the median")
    return multiple
