"""Tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..base import slices
from .base import Table


class MemoryTable(Table):
    """An Arrow table.

    Parameters
    ----------
    table : pyarrow.Table
    where : str
        Subject of error messages.

    Raises
    ------
    ValueError
        If there is no row or no column, or two columns of one name.
    """

    def __init__(self, table: pa.Table, where: str = "the table") -> None:
        twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
        if twice:
            raise ValueError(f"{where} has several columns named {', '.join(twice)}: rename them")
        if table.num_columns == 0 or table.num_rows == 0:
            raise ValueError(
                f"{where} has {table.num_rows} rows of {table.num_columns} columns, but at least "
                "one of each is needed"
            )
        self.where, self.schema, self.num_rows = where, table.schema, table.num_rows
        self._table = table

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Slice the columns; see `Table.batches`."""
        chosen = self._table.select(list(columns))
        for part in slices(self.num_rows, size):
            yield one_batch(chosen.slice(part.start, part.stop - part.start))

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Gather rows; see `Table.take`."""
        return one_batch(self._table.select(list(columns)).take(pa.array(index)))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one batch."""
    columns = [
        column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for column in table.columns
    ]
    return pa.record_batch(columns, schema=table.schema)
