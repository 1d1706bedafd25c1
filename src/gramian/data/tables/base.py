"""The abstract table: what a fit or a prediction must know of named columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..base import RowSource
from ..remote_columns import RemoteColumns


class Table(ABC):
    """Named columns of n values each, read as often as one likes.

    Attributes
    ----------
    where : str
        Subject of error messages: the path, or "the table".
    schema : pyarrow.Schema
        Names, which differ from each other, and Arrow types, which every value has.
    num_rows : int
        n, at least one.
    named : bool
        False if columns have numbers only, as in a matrix.
    random_access : bool
        False if `take` costs a pass over the table.
    remote : bool
        True if its rows are read on other machines; see `RowSource`.
    """

    where: str
    schema: pa.Schema
    num_rows: int
    named: bool = True
    random_access: bool = True
    remote: bool = False

    @abstractmethod
    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Read some columns of all rows, in order.

        Parameters
        ----------
        columns : sequence of str
            Names that are in the schema.
        size : int
            Rows of each batch but the last, exactly: what is computed from them does not depend
            on how the table is stored.

        Yields
        ------
        pyarrow.RecordBatch
        """

    def there(self, columns: Sequence[str]) -> RemoteColumns:
        """Return columns of numbers or labels that stay with remote rows."""
        raise TypeError(f"the rows of {self.where} are here: read them")

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
        """Return the columns that names stand for: of one of lists, those of its numbers."""
        return tuple(names)

    def rows(self, columns: Sequence[str]) -> RowSource:
        """Return columns of numbers as rows."""
        from ..number_rows import NumberRows

        return NumberRows(self, columns)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, in memory."""
        parts = [batch.column(0) for batch in self.batches([name], 1 << 16)]
        return pa.chunked_array(parts, self.schema.field(name).type)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.num_rows
