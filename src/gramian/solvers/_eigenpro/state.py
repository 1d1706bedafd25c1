"""EigenProState and EigenPro3State: enough to resume EigenPro bit for bit, and when it must end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from ..minibatches import BatchErrors
from ..state import State
from ..stopping import StopReason

STALLED_EPOCHS, STALLED_RATIO = 10, 0.999
"""Epochs after which the error of the batches has to be below this part of the first one."""

DIVERGED_ERROR = 100.0
"""Error of the batches, in units of their targets and of the first error, of a diverged run."""


@dataclass(kw_only=True)
class EigenProState(State):
    """Coefficients, and what it takes to go on.

    Attributes
    ----------
    seed : int
        From which, with the number of the iteration, each batch is drawn.
    settings : dict of str to float
        What was chosen: subsample, rank, tail, top, beta, batch, step.
    first, least : float
        The mean squared error of the batches on the way to the second state, -1 before, and the
        least since.
    epochs : float
        Epochs since the first state.
    lost : bool
        Whether the error of the last batches is far above their targets.
    """

    seed: int = 0
    settings: dict[str, int | float] = field(default_factory=dict)
    first: float = -1.0
    least: float = math.inf
    epochs: float = 0.0
    lost: bool = False

    @property
    def verdict(self) -> StopReason | None:
        if self.lost:
            return "diverged"
        late = self.epochs >= STALLED_EPOCHS
        stalled = late and self.first > 0 and self.least > STALLED_RATIO * self.first
        return "no_progress" if stalled else None

    def progress(self, seen: BatchErrors, epochs: float) -> dict[str, Any]:
        """Return the fields that follow from part of an epoch with these errors."""
        if self.first < 0:  # none yet
            return {"first": seen.mse, "least": math.inf, "epochs": epochs}
        grown = not seen.mse <= DIVERGED_ERROR**2 * self.first
        return {
            "first": self.first,
            "least": min(self.least, seen.mse),
            "epochs": self.epochs + epochs,
            "lost": grown and not seen.relative <= DIVERGED_ERROR,
        }


@dataclass(kw_only=True)
class EigenPro3State(EigenProState):
    """The mean of the iterates as `coef`, and what it takes to go on.

    Attributes
    ----------
    last : Tensor of shape (p, t)
        The iterate itself.
    count : int
        Iterates that are in the mean.
    """

    last: Float[Tensor, "p t"]
    count: int = 0
