"""Predictions of held-out rows, with the true values."""

from __future__ import annotations

from dataclasses import dataclass

from ..._arrays import Array, Float
from ...model import Shares


@dataclass(frozen=True, eq=False)
class HeldValues:
    """Predictions and true values of held-out rows; for classes, decision values and codes.

    Attributes
    ----------
    values, truth : Array of shape (v, t)
        For a merged row, the truth is the mean of the codes of its rows.
    """

    values: Float[Array, "v t"]
    truth: Float[Array, "v t"]
    weights: Float[Array, " v"] | None = None

    def shares(self) -> Shares:
        """Return the map from decision values to probabilities, fitted to the held-out rows."""
        return Shares.fit(self.values, self.truth, self.weights)
