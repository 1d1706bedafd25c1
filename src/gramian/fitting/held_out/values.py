"""HeldValues: predictions and true values of rows that a fit did not see."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ...model import Shares


@dataclass(frozen=True, eq=False)
class HeldValues:
    """Predictions of rows that a fit did not see, as decision values and codes of classes.

    Attributes
    ----------
    values, truth : Tensor of shape (v, t)
        The truth of a row that stands for several is the mean of their codes.
    weights : Tensor of shape (v,), or None
    """

    values: Float[Tensor, "v t"]
    truth: Float[Tensor, "v t"]
    weights: Float[Tensor, " v"] | None = None

    def shares(self) -> Shares:
        """Return the map to probabilities that these rows ask for."""
        return Shares.fit(self.values, self.truth, self.weights)
