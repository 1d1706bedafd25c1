"""Importances of the columns of a table, as sums of the importances of their encoded features.

`KernelModel.feature_importances` computes the importances of features.
"""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array, Float
from ..data import Encoding
from .base import Model

MOST_IMPORTANT = 10
"""Number of features in a report."""


def sum_by_column(encoding: Encoding, shares: Float[Array, " d"]) -> dict[str, float]:
    """Return, by name of the column, the sum of the importances of its features."""
    widths = [len(column.features) for column in encoding.used_columns]
    sums = [float(part.sum()) for part in xp.split(shares, widths)]
    return dict(zip(encoding.names, sums, strict=True))


def largest_importances(model: Model, *, measured: bool = False) -> dict[str, float] | None:
    """Return the largest importances; None if the model has none.

    - `measured`: whether to compute importances from gradients of predictions if the model has not
      learned them with a metric.
    """
    if not measured and any(part.importances is None for part in model.parts):
        return None
    try:
        shares = model.feature_importances()
    except ValueError:  # a kernel without gradients, or a constant prediction
        return None
    if model.encoding is not None:
        shares_by_name = sum_by_column(model.encoding, shares)
    else:
        names = model.feature_names or [f"feature {i}" for i in range(len(shares))]
        shares_by_name = dict(zip(names, shares.tolist(), strict=True))
    ordered = sorted(shares_by_name.items(), key=lambda item: -item[1])
    return dict(ordered[:MOST_IMPORTANT])
