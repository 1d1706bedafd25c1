"""States from which EigenPro resumes exactly, and the conditions at which EigenPro ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..._arrays import Array, Float
from ..loop.minibatches import BatchErrors
from ..loop.state import State
from ..loop.stopping import StopReason

STALLED_EPOCHS, STALLED_RATIO = 10, 0.999
"""Epochs, and ratio to the first batch error below which the error must be after them."""

DIVERGED_ERROR = 100.0
"""Batch error of a diverged run, relative to the targets and to the first error."""


@dataclass(kw_only=True)
class EigenProState(State):
    """State of EigenPro, enough to resume exactly.

    Attributes
    ----------
    seed : int
        Seeds the draw of each batch, together with the number of the iteration.
    settings : dict of str to float
        Chosen settings: subsample, rank, tail, top, beta, batch, step.
    first, least : float
        Mean squared batch error before the second state, -1 at first, and the least error since.
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

    def progress(self, errors: BatchErrors, epochs: float) -> dict[str, Any]:
        """Return the fields of the next state, from the batch errors since the last state."""
        if self.first < 0:
            return {"first": errors.mse, "least": math.inf, "epochs": epochs}
        # The negated comparison is also true for NaN.
        grown = not errors.mse <= DIVERGED_ERROR**2 * self.first
        return {
            "first": self.first,
            "least": min(self.least, errors.mse),
            "epochs": self.epochs + epochs,
            "lost": grown and not errors.relative <= DIVERGED_ERROR,
        }


@dataclass(kw_only=True)
class EigenPro3State(EigenProState):
    """State of EigenPro 3, with the mean of the iterates as `coef`.

    Attributes
    ----------
    last : Array of shape (p, t)
        The iterate itself.
    count : int
        Number of iterates in the mean.
    """

    last: Float[Array, "p t"]
    count: int = 0
