"""Errors of predicted quantiles: the pinball loss of each level, and the targets below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._parameters.types import LossLike
from ...losses import Quantile

LEVELS_KEY = "levels"
"""Key of the quantile levels in `Model.info`."""


def levels_of(loss: LossLike) -> list[float] | None:
    """Return the quantile levels of a loss; None if it is not a quantile loss."""
    if not isinstance(loss, Quantile):
        return [0.5] if loss == "quantile" else None
    levels = loss.levels
    return [float(levels)] if isinstance(levels, int | float) else list(levels)


def errors_of_quantiles(
    sums: np.ndarray, rows: int, levels: Sequence[float]
) -> dict[str, dict[str, float]]:
    """Return the mean pinball loss of each level, and the share of targets at most its quantile.

    Parameters
    ----------
    sums : ndarray of shape (q, 2)
        Sums of `Pinball`.
    rows : int
    levels : sequence of float, of length q

    Returns
    -------
    dict of str to dict
        One entry for each level.
    """
    return {
        f"quantile_{level:g}": {"pinball": loss / rows, "below": below / rows}
        for level, (loss, below) in zip(levels, sums.tolist(), strict=True)
    }
