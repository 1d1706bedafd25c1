"""Importances of the columns of a table, from the importances of their encoded features."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from ..data import Encoding


def sum_by_column(encoding: Encoding, shares: Float[Tensor, " d"]) -> dict[str, float]:
    """Return the sum of the shares of each column's features, by its name."""
    widths = [len(column.features) for column in encoding.used_columns]
    sums = [float(part.sum()) for part in shares.split(widths)]
    return dict(zip(encoding.names, sums, strict=True))
