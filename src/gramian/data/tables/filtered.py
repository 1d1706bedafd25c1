"""Table of some rows of another table, such as the rows with a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from .base import Table
from .sequential import one_batch


class FilteredTable(Table):
    """Some rows of another table, in order.

    - `is_kept`: at least one.

    Notes
    -----
    A pass reads all rows of the other table.
    """

    def __init__(self, table: Table, is_kept: np.ndarray) -> None:
        self._table, self._is_kept, self._index = table, is_kept, np.flatnonzero(is_kept)
        self.where, self.schema, self.named = table.where, table.schema, table.named
        self.num_rows, self.random_access = len(self._index), table.random_access
        self.column_readings, self.first_row = table.column_readings, table.first_row
        self.reading = table.reading

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Read batches, and join batches that became short; see `Table.batches`."""
        start, waiting = 0, None
        for batch in self._table.batches(columns, size):
            is_kept = self._is_kept[start : start + batch.num_rows]
            start += batch.num_rows
            kept_rows = pa.Table.from_batches([batch.filter(pa.array(is_kept))])
            waiting = kept_rows if waiting is None else pa.concat_tables([waiting, kept_rows])
            if waiting.num_rows >= size:
                yield one_batch(waiting.slice(0, size))
                waiting = waiting.slice(size)
        if waiting is not None and waiting.num_rows:
            yield one_batch(waiting)

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Gather rows; see `Table.take`."""
        return self._table.take(columns, self._index[index])

    def spread(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `Table.spread`."""
        return self._table.spread(names)
