"""Errors of predicted quantiles: the pinball loss of each level, and the targets below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data import RowNumbers, RowSource, default_block_size
from ..losses import Quantile
from ..model import Model
from ..model.mapped_predictions import map_predictions
from .forms import QuantileErrors
from .reductions import RowMeans

LEVELS_KEY = "levels"
"""Key of the quantile levels in `Model.info`."""


def levels_of(loss: object) -> list[float] | None:
    """Return the quantile levels of a loss; None if it is not a quantile loss."""
    if not isinstance(loss, Quantile):
        return [0.5] if loss == "quantile" else None
    levels = loss.levels
    return [float(levels)] if isinstance(levels, int | float) else list(levels)


def quantile_errors(
    model: Model,
    rows: RowSource,
    y: RowNumbers,
    levels: Sequence[float],
    settings: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """Return an entry for each level: its mean pinball loss, and the share of targets below it.

    Cost: one pass, of which means are kept.
    """
    reduction = RowMeans((QuantileErrors(tuple(levels)),))
    values = map_predictions(rows, model, **settings)
    means = values.fold(reduction, y, size=default_block_size(rows))
    return {
        f"quantile_{level:g}": {"pinball": loss, "below": share}
        for level, loss, share in zip(levels, *means.states[0].tolist(), strict=True)
    }
