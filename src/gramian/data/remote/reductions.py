"""Folds of remote numbers, and `LookedUp`: rows of a table in place of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Array, Float
from ..rows.base import RowSource
from ..rows.reduce import BlockReduction
from ..rows.transform import Blockwise

MOST_VALUES = 10_000
"""Distinct values up to which numbers may be labels."""


@dataclass(frozen=True)
class Look(BlockReduction[Array]):
    """Reduction to smallest and largest numbers and sums of columns, (3, t), in float64.

    NaN where a number is NaN.
    """

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Float[Array, "3 t"]:
        """Measure one block."""
        x = block.astype(np.float64, copy=False)
        # Sums of numbers that are not finite are of no use, and the extremes tell.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([x.min(axis=0), x.max(axis=0), x.sum(axis=0)])

    def merge(self, a: Float[Array, "3 t"], b: Float[Array, "3 t"]) -> Float[Array, "3 t"]:
        """Merge the measures of two parts."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] + b[2]])


@dataclass(frozen=True)
class Count(BlockReduction[tuple[Array, Array]]):
    """Reduction of `RemoteColumns.counts`, which drops values beyond the limit for labels."""

    def __call__(self, start: int, block: Array, *weights: Any) -> tuple[Array, Array]:
        """Count one block."""
        x = block[:, 0].astype(np.float64, copy=False)
        x = x[weights[0] > 0] if weights else x
        values, counts = np.unique(x, return_counts=True)
        # Cut off, because numbers of a continuous range would all come back; one more than allowed
        # shows that there were more.
        return values[: MOST_VALUES + 1], counts[: MOST_VALUES + 1]

    def merge(self, a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        """Add the counts of equal values."""
        values, place = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, np.concatenate([a[1], b[1]]))
        return values[: MOST_VALUES + 1], counts[: MOST_VALUES + 1]


class LookedUp(Blockwise):
    """Rows of a table that replace labels, looked up as labels are read.

    - `rows`, RowSource of shape (n, 1).
    - `values`, ndarray of shape (k,): labels, increasing.
    - `table`, ndarray of shape (k, t).
    - `unknown`: value for any other number; the first row of the table by default.
    """

    def __init__(
        self,
        rows: RowSource,
        values: Float[Array, " k"],
        table: Float[Array, "k t"],
        unknown: float | None = None,
    ) -> None:
        super().__init__(rows)
        self.shape, self.dtype = (rows.shape[0], table.shape[1]), table.dtype
        self.feature_names = None
        self._values, self._table, self._unknown = values, table, unknown

    def change(self, block: Float[Array, "b 1"]) -> Float[Array, "b t"]:
        numbers = block[:, 0].astype(np.float64, copy=False)
        # A number beyond the last value would index past the end.
        place = np.searchsorted(self._values, numbers).clip(max=len(self._values) - 1)
        is_known = self._values[place] == numbers
        # The place of an unknown number times 0 is the first row.
        values = self._table[place * is_known]
        if self._unknown is not None:
            values[~is_known] = self._unknown
        return values
