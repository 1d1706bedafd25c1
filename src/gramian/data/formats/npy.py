"""The format of NumPy's files: a mapped matrix, whose columns are numbered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..rows.array import ArrayRows
from ..rows.arrow import Columns, to_numpy
from ..rows.base import RowSource, slices
from ..rows.views import Select, column_numbers
from ..tables.base import Table
from .base import Column, WritableFormat, formats
from .memory_map import NpyTable
from .npy_file import NpyWriter, native, open_columns, open_npy


@formats.register("npy")
class Npy(WritableFormat):
    """A ``.npy`` file: numbers of one type, or text; an array of shape (n,) is one column."""

    suffixes = (".npy",)
    named = False

    def schema(self, path: Path) -> pa.Schema:
        """Return one type for the columns ``"0", "1", ...``; see `TableFormat.schema`."""
        array = open_columns(path)
        column_type = (
            pa.string() if array.dtype.kind == "U" else pa.from_numpy_dtype(native(array.dtype))
        )
        return pa.schema([(str(j), column_type) for j in range(array.shape[1])])

    def batches(self, path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        """Copy `size` rows at a time; see `TableFormat.batches`."""
        array = open_columns(path)
        chosen = column_numbers(schema.names, None, array.shape[1])
        for part in slices(len(array), size):
            # Copies, in native byte order: Arrow would otherwise share pages of the mapped file.
            columns = [array[part, j].astype(native(array.dtype)) for j in chosen]
            yield pa.record_batch([pa.array(column) for column in columns], schema=schema)

    def table(self, path: Path, where: str | None = None) -> Table:
        """Map the file; see `TableFormat.table`."""
        return NpyTable(path, str(path) if where is None else where)

    def rows(self, path: Path, columns: Sequence[str] | None = None) -> RowSource:
        """Map the file; see `TableFormat.rows`."""
        rows = ArrayRows(open_npy(path))
        return rows if columns is None else Select(rows, columns)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> MatrixWriter:
        """Return a `MatrixWriter`; see `WritableFormat.writer`."""
        return MatrixWriter(path, schema, dtype)

    def write(self, path: Path, columns: Mapping[str, Column]) -> None:
        """Write a single column of numbers or text as it is, several as a matrix."""
        arrays: list[Any] = [np.asarray(column) for column in columns.values()]
        with path.open("wb") as file:
            np.save(file, arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1))


class MatrixWriter:
    """Writer of the columns of record batches as a matrix in a ``.npy`` file.

    Parameters
    ----------
    path : Path
    schema : pyarrow.Schema
        Schema of numeric columns.
    dtype : numpy.dtype, optional
        float32 or float64; by default float64 if any column needs it.
    """

    def __init__(self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None) -> None:
        columns = Columns.choose(schema, schema.names, "the table")
        self._dtype = columns.dtype if dtype is None else dtype
        self._file = NpyWriter(path, len(schema), self._dtype)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        out = np.empty((batch.num_rows, batch.num_columns), self._dtype)
        for j, (column, name) in enumerate(zip(batch.columns, batch.schema.names, strict=True)):
            values = to_numpy(column)
            _check_exact(values, self._dtype, name)
            out[:, j] = values
        self._file.append(out)

    def close(self) -> None:
        """Complete the file."""
        self._file.close()


def _check_exact(values: np.ndarray, dtype: np.dtype[Any], name: str) -> None:
    # Whole numbers up to 2**24 in float32 and 2**53 in float64 are exact. The negation is of a
    # Python integer, because the smallest int64 has no positive counterpart in its type.
    limit = 2 ** (np.finfo(dtype).nmant + 1)
    if values.dtype.kind in "iu" and len(values) and max(values.max(), -int(values.min())) > limit:
        raise ValueError(
            f"column '{name}' has integers beyond {limit:,}, which {dtype} would round: "
            "convert with dtype float64, or leave the column out"
        )
