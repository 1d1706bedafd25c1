"""Tables that are read from front to back: Parquet, Feather, and text that was rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..base import check_size
from ..pieces import Pieces, batch_rows, exactly, joined, taken
from .base import Table
from .plain import plain_batch, plain_schema


class PiecesTable(Table):
    """A table in files, never loaded as a whole.

    Parameters
    ----------
    pieces : Pieces
    where : str
        Subject of error messages.

    Raises
    ------
    ValueError
        If there is no row or no column, or two columns of one name.

    Notes
    -----
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
        schema = self._chosen(columns)
        try:
            read = self._pieces.read(columns, min(size, batch_rows(columns)))
            yield from exactly((plain_batch(batch, schema) for batch in read), schema, size)
        finally:  # Arrow would keep some 50 MB for a next time
            pa.default_memory_pool().release_unused()

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Gather rows; see `Table.take`."""
        schema = self._chosen(columns)
        wanted, back = np.unique(np.asarray(index, np.int64), return_inverse=True)
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < self.num_rows:
            raise IndexError(
                f"row numbers must lie in 0 .. {self.num_rows - 1}, got some between {wanted[0]} "
                f"and {wanted[-1]}"
            )
        found = [plain_batch(batch, schema) for _, batch in taken(self._pieces, columns, wanted)]
        return joined(found, schema).take(pa.array(back))

    def _chosen(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in columns])
