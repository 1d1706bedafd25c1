"""The abstract table, and rows of its numeric columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..rows.array import check_matrix
from ..rows.arrow import choose_columns, fill
from ..rows.base import RowSource, check_index
from ..rows.columns import Columns
from ..rows.prefetch import prefetch
from .column_reading import ColumnReading
from .read_options import ReadOptions


class Table(ABC):
    """Named columns of n values each, which can be read repeatedly.

    Attributes
    ----------
    where : str
        Subject of error messages: the path, or "the table".
    schema : pyarrow.Schema
        Distinct names, and Arrow types, which hold for every value.
    num_rows : int
        n, at least one.
    named : bool
        False if columns have numbers only, as in a matrix.
    random_access : bool
        False if `take` costs a pass over the table.
    remote : bool
        True if its rows are read on other machines; see `RowSource`.
    takes_encoding : bool
        Whether its columns may be of any type, which an encoding makes numbers.
    column_readings : mapping of str to ColumnReading
        How columns of text were read.
    first_row : int
        Number of the first row in messages: 0, or its place in a file with a header line.
    reading : ReadOptions or None
        Options with which new files are read alike.
    """

    where: str
    schema: pa.Schema
    num_rows: int
    named: bool = True
    random_access: bool = True
    remote: bool = False
    takes_encoding: bool = True
    column_readings: Mapping[str, ColumnReading] = MappingProxyType({})
    first_row: int = 0
    reading: ReadOptions | None = None

    @property
    def row_numbers(self) -> str:
        """Text that says how messages number the rows."""
        return "the header line is row 1" if self.first_row else "the first row is row 0"

    @abstractmethod
    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Read some columns of all rows, in order.

        Parameters
        ----------
        columns : sequence of str
            Names that are in the schema.
        size : int
            Exact number of rows of each batch except the last, so that results do not depend on the
            storage of the table.

        Yields
        ------
        pyarrow.RecordBatch
        """

    def remote_columns(self, columns: Sequence[str]) -> Columns | None:
        """Return numbers or labels that stay with remote rows; None if rows are local."""
        return None

    def name_row(self, index: int) -> str:
        """Return the number of a row as messages name it."""
        return f" in row {self.first_row + index:,} ({self.row_numbers})"

    @abstractmethod
    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Gather rows of some columns, in any order and with repeats.

        Parameters
        ----------
        columns : sequence of str
        index : ndarray of int64 of shape (k,)
            Row numbers in ``0 .. n-1``.

        Returns
        -------
        pyarrow.RecordBatch with k rows
        """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.schema.names)

    def spread(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns behind names; a column of lists becomes one column per number."""
        return tuple(names)

    def rows(self, columns: Sequence[str]) -> RowSource:
        """Return a row source whose features are numeric columns of the table."""
        return NumberRows(self, columns)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, in memory."""
        parts = [batch.column(0) for batch in self.batches([name], 1 << 16)]
        return pa.chunked_array(parts, self.schema.field(name).type)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.num_rows


class DerivedTable(Table):
    """Base of tables that change the batches of another local table, `source`, as they are read."""

    def __init__(self, source: Table, schema: pa.Schema) -> None:
        self.source, self.schema = source, schema
        self.where, self.num_rows, self.named = source.where, source.num_rows, source.named
        self.random_access, self.first_row = source.random_access, source.first_row
        self.column_readings, self.reading = source.column_readings, source.reading

    def change(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return some columns of some rows, changed."""
        return batch

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        yield from map(self.change, self.source.batches(columns, size))

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        return self.change(self.source.take(columns, index))

    def spread(self, names: Sequence[str]) -> tuple[str, ...]:
        return self.source.spread(names)


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
        chosen = choose_columns(table.schema, columns, table.where)
        self.shape = check_matrix((len(table), len(chosen.names)))
        self.dtype = chosen.dtype
        self.feature_names: tuple[str, ...] | None = chosen.names
        self.random_access = table.random_access
        self._table, self._names = table, chosen.names

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        blocks = self._blocks(size)
        # Rows of random access need no decoding that a thread could do in advance, and a single
        # block has no next one.
        return blocks if self.random_access or size >= len(self) else prefetch(blocks)

    def _blocks(self, size: int) -> Iterator[tuple[slice, Array]]:
        start = 0
        for batch in self._table.batches(self._names, size):
            yield slice(start, start + batch.num_rows), self._matrix(batch)
            start += batch.num_rows

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        return self._matrix(self._table.take(self._names, xp.to_host(index)))

    def _matrix(self, batch: pa.RecordBatch) -> Array:
        out = np.empty((batch.num_rows, self.shape[1]), self.dtype)
        fill(out, batch, self._names)
        return out
