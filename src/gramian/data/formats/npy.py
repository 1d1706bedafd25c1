"""The format of NumPy's files: a mapped matrix, whose columns are numbered, written by rows."""

from __future__ import annotations

import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy_format

from ..rows.array import ArrayRows
from ..rows.arrow import choose_columns, to_numpy
from ..rows.base import RowSource, slices
from ..rows.file_stamp import FileStamp
from ..rows.views import Select, column_numbers
from ..tables.base import Table
from ..tables.read_options import ReadOptions
from .base import Column, WritableFormat, formats


@formats.register("npy")
class Npy(WritableFormat):
    """A ``.npy`` file: numbers of one type, or text; an array of shape (n,) is one column."""

    suffixes = (".npy",)
    named = False

    def open(self, path: Path, where: str, options: ReadOptions) -> Table:
        """Map the file; see `TableFormat.open`."""
        return NpyTable(path, where)

    def rows(self, path: Path, columns: Sequence[str] | None = None) -> RowSource:
        """Map the file; see `TableFormat.rows`."""
        rows = ArrayRows(open_npy(path))
        return rows if columns is None else Select(rows, columns)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> MatrixWriter:
        return MatrixWriter(path, schema, dtype)

    def write(self, path: Path, columns: Mapping[str, Column]) -> None:
        """Write a single column of numbers or text as it is, several as a matrix."""
        arrays: list[Any] = [np.asarray(column) for column in columns.values()]
        with path.open("wb") as file:
            np.save(file, arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1))


class MatrixWriter:
    """Writer of the columns of record batches as a matrix in a ``.npy`` file.

    - `schema`: schema of numeric columns.
    - `dtype`: float32 or float64; by default float64 if any column needs it.
    """

    def __init__(self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None) -> None:
        columns = choose_columns(schema, schema.names, "the table")
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


class NpyTable(Table):
    """A ``.npy`` file.

    - `where`: subject of error messages.
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
        self.where, self.num_rows, self.schema = where, n, _schema(self._array)

    def rows(self, columns: Sequence[str]) -> RowSource:
        """Map the file; see `Table.rows`."""
        rows = ArrayRows(open_npy(self._path))
        # The file is opened a second time, and may be another one by now. From here on `ArrayRows`
        # compares its own stamp.
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
        # Converted to the byte order of this machine, which is the only one that Arrow takes.
        kind = native(self._array.dtype)
        arrays = [pa.array(np.asarray(self._array[rows, j], kind)) for j in chosen]
        return pa.record_batch(arrays, schema=pa.schema([self.schema.field(c) for c in columns]))


UNREADABLE_ERRORS = (
    *(ValueError, OSError, EOFError),
    # The header is a dictionary in Python's syntax, and NumPy tries Python 2's syntax as well.
    *(SyntaxError, TypeError, KeyError, OverflowError, RecursionError, tokenize.TokenError),
)
"""Errors that NumPy raises for files that it cannot read."""


def open_npy(path: Path) -> np.ndarray:
    """Memory-map a ``.npy`` file for reading; raise readable errors."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        # Never loads objects, which would be unpickled and could run code.
        array: np.ndarray = np.lib.format.open_memmap(path, mode="r")
    except UNREADABLE_ERRORS as error:
        raise ValueError(
            f"{path} cannot be read as a NumPy array of numbers: it is cut off, empty, damaged or "
            f"contains Python objects; write it again with numpy.save (NumPy reports: {error})"
        ) from error
    return array


def open_columns(path: Path) -> np.ndarray:
    """Memory-map a ``.npy`` file as a table: numbers or text of shape (n, d), from (n,) as well.

    Raise ValueError if the array has another shape or type.
    """
    array = open_npy(path)
    if array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise ValueError(
            f"{path} has shape {array.shape}, but a table must have shape (rows, columns), with at "
            "least one column; reshape it and write it again with numpy.save"
        )
    if array.dtype.kind not in "biufU" or (array.dtype.itemsize > 8 and array.dtype.kind == "f"):
        raise ValueError(
            f"{path} has type {array.dtype}, but a table must hold numbers of up to 64 bits, or "
            "text; write it again with numpy.save(path, x.astype('float64'))"
        )
    # One column, as `numpy.save` of a vector writes it.
    return array[:, None] if array.ndim == 1 else array


def _schema(columns: np.ndarray) -> pa.Schema:
    """Return the numbers of columns as names, and their type."""
    kind = native(columns.dtype)
    column_type = pa.string() if kind.kind == "U" else pa.from_numpy_dtype(kind)
    return pa.schema([(str(j), column_type) for j in range(columns.shape[1])])


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type in the byte order of this machine."""
    return dtype.newbyteorder("=")


class NpyWriter:
    """Writer of a ``.npy`` file row by row; the number of rows is known at the end.

    - `d`: number of columns.
    """

    def __init__(self, path: Path, d: int, dtype: np.dtype[Any]) -> None:
        self._file = path.open("wb")
        self._dtype = dtype
        self._shape = (0, d)
        self._start = self._header()

    def append(self, rows: np.ndarray) -> None:
        """Write rows of shape (b, d), C-contiguous and of the file's type."""
        self._file.write(rows.data)
        self._shape = (self._shape[0] + len(rows), self._shape[1])

    def close(self) -> None:
        """Write the true number of rows into the header: NumPy leaves room for it to grow."""
        with self._file:
            self._file.seek(0)
            # A header that ends at another place has overwritten data, or left a gap before them.
            if self._header() != self._start:
                raise RuntimeError("the header of the .npy file grew over the data")

    def _header(self) -> int:
        # Version 1.0 of the format pads the header for a growing number of rows, and is read by
        # every NumPy.
        facts = {"descr": self._dtype.str, "fortran_order": False, "shape": self._shape}
        npy_format.write_array_header_1_0(self._file, facts)
        return self._file.tell()
