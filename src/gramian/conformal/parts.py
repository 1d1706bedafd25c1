"""Parts of a calibration: sorted scores, and models that did not learn from the scored rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .. import _arrays as xp
from .._arrays import Array, Float, Int
from .protocols import Predictor


@dataclass(frozen=True, eq=False)
class CalibratedPart:
    """Scores of calibration rows, and functions that were fitted without these rows.

    Attributes
    ----------
    scores : Array of float64 of shape (c, t)
        Increasing along columns.
    functions : mapping of str to Model
        The functions of the method, by names of its choice. ``"values"`` replaces the predictions
        of the model.
    groups : Array of int64 of shape (c, t), or None
        Index of the group of each score.
    """

    scores: Float[Array, "c t"]
    functions: Mapping[str, Predictor] = field(default_factory=dict)
    groups: Int[Array, "c t"] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: Float[Array, "c t"],
        functions: Mapping[str, Predictor],
        codes: Int[Array, " c"] | None,
    ) -> CalibratedPart:
        """Sort the scores of rows, together with the indices of their groups."""
        ordered, order = xp.sort_with_order(xp.to_float64(scores), 0)
        return cls(xp.contiguous(ordered), functions, None if codes is None else codes[order])

    def of_group(self, code: int) -> CalibratedPart:
        """Return the part with the scores of one group."""
        if self.groups is None:
            return self
        columns = [
            column[codes == code]
            for column, codes in zip(self.scores.T, self.groups.T, strict=True)
        ]
        return replace(self, scores=xp.stack(columns, axis=1), groups=None)
