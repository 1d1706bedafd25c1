"""Predictions of held-out rows by the result of a search."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _arrays as xp
from ..._arrays import Array, Int
from ...data import subset
from ...model import Model
from ...search import CellSearch, Member, SearchState
from ..held_out.values import HeldValues
from .data import ScaledData


def held_out(
    found: SearchState,
    by_cells: CellSearch | None,
    members: Sequence[Member],
    model: Model,
    scaled: ScaledData,
    index: Int[Array, " s"] | None,
) -> HeldValues:
    """Return predictions of the held-out rows, in the units of the targets.

    Parameters
    ----------
    members : sequence of Member
        Members of the result.
    model : Model
        The model of these members.
    index : Array of shape (s,), or None
        Indices of the rows of the search; None if the search has all rows.

    Notes
    -----
    If the model learned from the held-out rows, or has cells, the result is the search's own
    predictions, by fits that did not learn from the rows. Otherwise the model predicts the
    validation rows of the first split, from which it did not learn. Cost: nothing, or one
    prediction of these rows.
    """
    scale, material = scaled.of_targets, found.material
    if by_cells is not None and members[0].cells is not None:
        values, material = by_cells.predict_held_out(), by_cells.material
    elif any(member.all_rows for member in members):
        values = found.predict_held_out()
    else:
        # The model was fitted without these rows, and can predict them itself.
        validation = material.splits[0].validation
        rows = subset(scaled.data.rows, validation if index is None else index[validation])
        v, weights = len(validation), material.held_weights
        truth = xp.to_float64(material.truth[:v]) * scale.scale + scale.mean
        return HeldValues(model.predict(rows), truth, None if weights is None else weights[:v])
    predictions, truth = (
        xp.to_float64(part) * scale.scale + scale.mean for part in (values, material.truth)
    )
    return HeldValues(predictions, truth, material.held_weights)
