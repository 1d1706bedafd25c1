"""Tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..rows.base import slices
from .base import Table
from .frames import plain_table
from .sequential import one_batch


class MemoryTable(Table):
    """An Arrow table.

    Parameters
    ----------
    table : pyarrow.Table
    where : str
        Subject of error messages.

    Attributes
    ----------
    table : pyarrow.Table
        The columns, in plain types.

    Raises
    ------
    ValueError
        If there is no row or no column, or two columns of one name.
    """

    def __init__(self, table: pa.Table, where: str = "the table") -> None:
        self.table = plain_table(table, where)
        self.where, self.schema, self.num_rows = where, self.table.schema, table.num_rows

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Slice the columns; see `Table.batches`."""
        chosen = self.table.select(list(columns))
        for part in slices(self.num_rows, size):
            # A slice may cross chunks of the table; a batch has one array per column.
            yield one_batch(chosen.slice(part.start, part.stop - part.start))

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Gather rows; see `Table.take`."""
        return one_batch(self.table.select(list(columns)).take(pa.array(index)))
