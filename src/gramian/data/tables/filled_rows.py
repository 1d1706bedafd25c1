"""Rows of numbers whose gaps are filled with the medians of the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..._arrays import Array, Float, Int
from ..checks import FiniteCheck
from ..rows.base import RowSource
from ..rows.transform import Blockwise
from .new_values import NewValues


class FilledRows(Blockwise):
    """Row source whose gaps are filled when rows are read, and reported once.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense; NaN for gaps.
    medians : ndarray of shape (d,)
        In float64.
    names : sequence of d str
    where : str
        Subject of errors and of the warning.

    Notes
    -----
    An infinite number raises ValueError.
    """

    def __init__(
        self, rows: RowSource, medians: Float[Array, " d"], names: Sequence[str], where: str
    ) -> None:
        super().__init__(rows)
        self._medians = medians.astype(self.dtype, copy=False)
        self._names, self._where = tuple(names), where
        self._is_reported = False

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        new_values = NewValues(self._where)
        for part, block in self.rows.blocks(size):
            yield part, self._fill(block, part.start, new_values)
        if not self._is_reported:
            self._is_reported = True
            new_values.report()

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b d"]:
        """Fill gaps; see `Blockwise.change`."""
        return self._fill(block, 0, None)

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        """Gather rows; see `RowSource.take`."""
        return self.change(self.rows.take(index))

    def _fill(self, block: Array, start: int, new_values: NewValues | None) -> Array:
        check = FiniteCheck(self._names)
        if check.add(start, block):
            return block
        is_gap = np.isnan(block)
        if check.infinities:
            infinite = FiniteCheck(self._names)
            infinite.add(start, np.where(is_gap, self.dtype.type(0), block))
            infinite.finish(self._where)
        if new_values is not None:
            for j in np.flatnonzero(is_gap.any(axis=0)).tolist():
                new_values.add_gaps(self._names[j], is_gap[:, j])
        return np.where(is_gap, self._medians, block)
