"""Tables in memory, and tables that are read from front to back, piece after piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..rows.base import check_size, slices
from .base import Table
from .frames import plain_batch, plain_schema, plain_table


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
        return one_batch(self.table.select(list(columns)).take(pa.array(index)))


BATCH_NUMBERS = 1 << 18
"""Numbers that are decoded at a time, all columns together: 2 MB of float64."""


class Pieces(ABC):
    """A table in consecutive pieces, such as the row groups of some files.

    - `counts`: rows of each piece.
    """

    schema: pa.Schema
    counts: tuple[int, ...]

    @abstractmethod
    def read(
        self, columns: Sequence[str], size: int, pieces: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read some columns of some pieces, in order.

        - `size`: largest number of rows of a batch.
        - `pieces`: indices of the pieces, increasing; all pieces by default.
        """


def batch_rows(columns: Sequence[str]) -> int:
    """Return the rows of a batch of these columns."""
    return max(1, BATCH_NUMBERS // max(1, len(columns)))


def take_pieces(
    table: Pieces, columns: Sequence[str], wanted: np.ndarray
) -> Iterator[tuple[slice, pa.RecordBatch]]:
    """Gather rows in one pass over the pieces that hold them.

    - `wanted`: row indices, increasing and distinct.

    Yields slices of `wanted`, which cover it in order, and the rows of each slice.
    """
    counts = np.asarray(table.counts)
    ends = np.cumsum(counts)
    # 1. The piece of each wanted row: the first one that ends after it, hence `right`.
    home = np.searchsorted(ends, wanted, side="right")
    pieces = np.unique(home)
    sizes = counts[pieces]
    # 2. Rows left out before each piece that is read: its start in the table less its start here.
    shift = (ends[pieces] - sizes) - (np.cumsum(sizes) - sizes)
    # 3. The place of each wanted row among the rows that are read; increasing, as `wanted` is.
    at = wanted - shift[np.searchsorted(pieces, home)]
    start = 0
    for batch in table.read(columns, batch_rows(columns), pieces.tolist()):
        # 4. The wanted rows of each batch follow each other, because both are increasing.
        low, high = (int(i) for i in np.searchsorted(at, [start, start + batch.num_rows]))
        if high > low:
            yield slice(low, high), batch.take(pa.array(at[low:high] - start))
        start += batch.num_rows


def exactly(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, size: int
) -> Iterator[pa.RecordBatch]:
    """Split batches of any length into batches of equal length; the last may be shorter."""
    parts: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while batch.num_rows:
            # Slices share memory; only batches that are put together from several are copied.
            part = batch.slice(0, size - rows)
            parts.append(part)
            rows += part.num_rows
            batch = batch.slice(part.num_rows)
            if rows == size:
                yield join_pieces(parts, schema)
                parts, rows = [], 0
    if parts:
        yield join_pieces(parts, schema)


def join_pieces(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return the concatenation of batches."""
    if len(parts) == 1 and parts[0].schema.equals(schema):
        return parts[0]
    return one_batch(pa.Table.from_batches(parts, schema))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one batch."""
    batches = table.to_batches()
    if len(batches) == 1:
        return batches[0]
    columns = [
        column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for column in table.columns
    ]
    return pa.record_batch(columns, schema=table.schema)


class PiecesTable(Table):
    """A table in files, never loaded as a whole.

    - `where`: subject of error messages.

    Raise ValueError if there is no row or no column, or two columns of one name.

    `take` is a pass over the pieces that hold wanted rows. Memory: a batch, and what decoding it
    needs.
    """

    random_access = False

    def __init__(self, pieces: Pieces, where: str) -> None:
        self.where, self.num_rows = where, sum(pieces.counts)
        self.schema = plain_schema(pieces.schema, where, self.num_rows)
        self._pieces = pieces

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Decode the columns; see `Table.batches`."""
        check_size(size)
        schema = self._choose_columns(columns)
        try:
            read = self._pieces.read(columns, min(size, batch_rows(columns)))
            yield from exactly((plain_batch(batch, schema) for batch in read), schema, size)
        finally:
            # Arrow's pool would keep about 50 MB for later use.
            pa.default_memory_pool().release_unused()

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        schema = self._choose_columns(columns)
        # The pass needs increasing, distinct numbers; order and repeats are restored at the end.
        distinct_index, inverse = np.unique(np.asarray(index, np.int64), return_inverse=True)
        if len(distinct_index) and not 0 <= distinct_index[0] <= distinct_index[-1] < self.num_rows:
            raise IndexError(
                f"row numbers must be in 0 .. {self.num_rows - 1}, got numbers from "
                f"{distinct_index[0]} to {distinct_index[-1]}"
            )
        batches = [
            plain_batch(batch, schema)
            for _, batch in take_pieces(self._pieces, columns, distinct_index)
        ]
        return join_pieces(batches, schema).take(pa.array(inverse))

    def _choose_columns(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in columns])
