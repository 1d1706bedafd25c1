"""Folds of remote numbers, and `LookedUp`: rows of a table in place of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..rows.base import RowSource
from ..rows.reduce import BlockReduction
from ..rows.transform import Blockwise

MOST_VALUES = 10_000
"""Distinct values up to which numbers may be labels."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Extremes and sums of all numbers, by column.

    Attributes
    ----------
    finite : bool
    smallest, largest, total : Tensor of shape (t,)
        Extremes and sums of the columns, in float64.
    """

    finite: bool
    smallest: Float[Tensor, " t"]
    largest: Float[Tensor, " t"]
    total: Float[Tensor, " t"]


@dataclass(frozen=True)
class Look(BlockReduction[Facts]):
    """Fold of `RemoteColumns.facts`."""

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Facts:
        """Measure one block."""
        x = block.double()
        low, high = torch.aminmax(x, dim=0)
        return Facts(bool(x.isfinite().all()), low, high, x.sum(dim=0))

    def merge(self, a: Facts, b: Facts) -> Facts:
        """Merge the facts of two parts."""
        smallest, largest = (
            torch.minimum(a.smallest, b.smallest),
            torch.maximum(a.largest, b.largest),
        )
        return Facts(a.finite and b.finite, smallest, largest, a.total + b.total)


@dataclass(frozen=True)
class Count(BlockReduction[tuple[Tensor, Tensor]]):
    """Fold of `RemoteColumns.counts`: values in excess of the limit for labels are dropped."""

    def __call__(self, start: int, block: Tensor, *weights: Any) -> tuple[Tensor, Tensor]:
        """Count one block."""
        x = block[:, 0].double()
        x = x[weights[0] > 0] if weights else x
        values, counts = x.unique(return_counts=True)
        # Cut off, because numbers of a continuous range would all come back; one more than allowed
        # shows that there were more.
        return values[: MOST_VALUES + 1], counts[: MOST_VALUES + 1]

    def merge(self, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Add the counts of equal values."""
        values, place = torch.cat([a[0], b[0]]).unique(return_inverse=True)
        counts = torch.zeros(len(values), dtype=torch.int64)
        counts.index_add_(0, place, torch.cat([a[1], b[1]]))
        return values[: MOST_VALUES + 1], counts[: MOST_VALUES + 1]


@dataclass(frozen=True)
class Positive(BlockReduction[Tensor]):
    """Fold of `RemoteColumns.positive`."""

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Tensor:
        """Return the row numbers of one block."""
        return start + (block[:, 0] > 0).nonzero()[:, 0]

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Concatenate the row numbers."""
        return torch.cat([a, b])


class LookedUp(Blockwise):
    """Rows of a table that replace labels, looked up as labels are read.

    Parameters
    ----------
    rows : RowSource of shape (n, 1)
    values : Tensor of shape (k,)
        Labels, increasing.
    table : Tensor of shape (k, t)
    unknown : float, optional
        Value for any other number; the first row of the table by default.
    """

    def __init__(
        self,
        rows: RowSource,
        values: Float[Tensor, " k"],
        table: Float[Tensor, "k t"],
        unknown: float | None = None,
    ) -> None:
        super().__init__(rows)
        self.shape, self.dtype = (rows.shape[0], table.shape[1]), table.dtype
        self.feature_names = None
        self._values, self._table, self._unknown = values, table, unknown

    def change(self, block: Float[Tensor, "b 1"]) -> Float[Tensor, "b t"]:
        """Look up the labels of a block; see `Blockwise.change`."""
        numbers = block[:, 0].double().contiguous()
        # A number beyond the last value would index past the end.
        place = torch.searchsorted(self._values, numbers).clamp(max=len(self._values) - 1)
        is_known = self._values[place] == numbers
        # The place of an unknown number times 0 is the first row.
        values = self._table[place * is_known]
        return values if self._unknown is None else values.where(is_known[:, None], self._unknown)
