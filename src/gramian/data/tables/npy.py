"""A matrix that is mapped, as a table whose columns have numbers for names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..array import ArrayRows
from ..base import RowSource, slices
from ..file_stamp import FileStamp
from ..npy import native, open_columns, open_npy
from ..parts import Select, column_numbers
from .base import Table


class NpyTable(Table):
    """A ``.npy`` file.

    Parameters
    ----------
    path : Path
    where : str
        Subject of error messages.
    """

    named = False

    def __init__(self, path: Path, where: str) -> None:
        self._path, self._array = path, open_columns(path)
        self._stamp = FileStamp.of(path)
        n, d = self._array.shape
        if n == 0:
            raise ValueError(
                f"{where} has 0 rows of {d} columns, but at least one of each is needed"
            )
        self._type = native(self._array.dtype)
        text = self._type.kind == "U"
        one = pa.string() if text else pa.from_numpy_dtype(self._type)
        self.where, self.num_rows = where, n
        self.schema = pa.schema([(str(j), one) for j in range(d)])

    def rows(self, columns: Sequence[str]) -> RowSource:
        """Map the file; see `Table.rows`."""
        rows = ArrayRows(open_npy(self._path))
        self._stamp.check(self._path)
        return rows if tuple(columns) == self.names else Select(rows, columns)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Copy rows of the file; see `Table.batches`."""
        with self._stamp.require_unchanged(self._path):
            for part in slices(self.num_rows, size):
                yield self._batch(columns, part)

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Copy rows; see `Table.take`."""
        with self._stamp.require_unchanged(self._path):
            return self._batch(columns, index)

    def _batch(self, columns: Sequence[str], rows: Any) -> pa.RecordBatch:
        chosen = column_numbers(list(columns), None, self._array.shape[1])
        arrays = [pa.array(np.asarray(self._array[rows, j], self._type)) for j in chosen]
        return pa.record_batch(arrays, schema=pa.schema([self.schema.field(c) for c in columns]))
