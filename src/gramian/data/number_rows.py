"""Rows of the columns of a table that are numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .array import check_matrix
from .arrow import Columns, fill
from .base import RowSource, check_index
from .prefetch import prefetch
from .tables import Table


class NumberRows(RowSource):
    """Columns of numbers of a table, converted as they are read.

    Parameters
    ----------
    table : Table of n rows
    columns : sequence of d str, optional
        The columns to use, in this order; all of them by default.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, or it holds no numbers.

    Notes
    -----
    Missing values become NaN.
    """

    def __init__(self, table: Table, columns: Sequence[str] | None = None) -> None:
        chosen = Columns.choose(table.schema, columns, table.where)
        self.shape = check_matrix((len(table), len(chosen.names)))
        self.dtype = chosen.dtype
        self.feature_names: tuple[str, ...] | None = chosen.names
        self.random_access = table.random_access
        self._table, self._names = table, chosen.names

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        blocks = self._blocks(size)
        return blocks if self.random_access or size >= len(self) else prefetch(blocks)

    def _blocks(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        start = 0
        for batch in self._table.batches(self._names, size):
            yield slice(start, start + batch.num_rows), self._matrix(batch)
            start += batch.num_rows

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        return self._matrix(self._table.take(self._names, index.cpu().numpy()))

    def _matrix(self, batch: pa.RecordBatch) -> Tensor:
        out = torch.empty((batch.num_rows, self.shape[1]), dtype=self.dtype)
        fill(out, batch, self._names)
        return out
