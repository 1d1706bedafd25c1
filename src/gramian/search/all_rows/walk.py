"""Fits of one stem at one lengthscale after the other, as long as the error falls."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..samples.sampled_fit import Stem
from ..space import Space
from .full_fit import PATH_SHIFTS, FullFit

LEAST_GAIN = 2e-3
"""Share of the loss by which a lengthscale is better, so that the walk continues from it."""


@dataclass(frozen=True)
class Step:
    """A planned fit: a multiple of the median lengthscale, and whether penalties are very small."""

    multiple: float
    small: bool = False


@dataclass(eq=False)
class Walk:
    """Completed and planned fits of a stem.

    A walk starts at the usual lengthscale, and continues with the neighbours of the best
    lengthscale, the smaller one first. If the least penalty is the best in the end, a fit with
    smaller penalties follows, with products in float64.

    Attributes
    ----------
    stem : Stem
    space : Space
    waiting : list of Step
    losses : dict
        Loss of each tried lengthscale.
    smallest_error : float
        Smallest loss of all tried lengthscales.
    shift : float or None
        Best shift of the best lengthscale; None before the first fit.
    """

    stem: Stem
    space: Space
    waiting: list[Step] = field(default_factory=list)
    losses: dict[float, float] = field(default_factory=dict)
    smallest_error: float = math.inf
    shift: float | None = None
    _small: bool = False
    _at: float = 1.0

    def __post_init__(self) -> None:
        self.waiting.append(Step(self.space.first(self.stem.recipe.kernel)))

    def add(self, step: Step, fit: FullFit, loss: float) -> None:
        """Record the loss of a fit, and plan fits at the neighbouring lengthscales."""
        # A user-defined score may be negative.
        gain = self.smallest_error - loss
        better = not self.losses or gain > LEAST_GAIN * abs(self.smallest_error)
        if gain > 0:
            self.smallest_error, self.shift = loss, fit.shift
        # Smaller penalties at a known lengthscale add no neighbours to try.
        if step.small:
            return
        self.losses[step.multiple] = loss
        if better:
            # Only neighbours of the best lengthscale so far remain planned.
            near = self._find_neighbours(step.multiple)
            self.waiting = [Step(multiple) for multiple in near]
            # A residual of 0 marks a factorisation, which has already tried smaller penalties.
            self._small = self.space.precise and fit.shift == PATH_SHIFTS[-1] and fit.residual > 0
            self._at = step.multiple
        if not self.waiting and self._small:
            self.waiting, self._small = [Step(self._at, small=True)], False

    def restart(self, stem: Stem, multiple: float, loss: float) -> None:
        """Continue with another metric, from the lengthscale of the first fit with this metric."""
        self.stem, self.smallest_error, self.losses = stem, loss, {multiple: loss}
        self.waiting = [Step(near) for near in self._find_neighbours(multiple)]
        self._at, self._small = multiple, False

    def _find_neighbours(self, multiple: float) -> list[float]:
        # A similarity such as Tanimoto's is the same for each lengthscale.
        if not self.stem.recipe.has_lengthscale:
            return []
        return self.space.beside(multiple, list(self.losses))
