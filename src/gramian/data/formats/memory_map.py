"""Rows and tables of memory-mapped .npy files."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._files.atomic import write_atomically
from ..rows.array import ArrayRows
from ..rows.base import RowSource, default_block_size, slices
from ..rows.file_stamp import FileStamp
from ..rows.views import Select, Subset, column_numbers
from ..tables.base import Table
from .npy_file import NpyWriter, native, open_columns, open_npy

WRITE_BYTES = 1 << 22
"""Bytes that are written at once."""


def scratch(shape: tuple[int, ...], dtype: xp.DType, memory_bytes: int) -> Array:
    """Return an uninitialised array, in a temporary file if it takes more than `memory_bytes`.

    Parameters
    ----------
    shape : tuple of int
    dtype : float32 or float64
    memory_bytes : int

    Returns
    -------
    ndarray
        The file has no name, and its space is free once the array and the process's views of it
        are gone, also after a crash. It is in ``tempfile.gettempdir()``: set ``TMPDIR`` to a disk
        with free space if that folder is in memory.

    Raises
    ------
    OSError
        If the disk is full.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= memory_bytes:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            # Filled with zeros in advance: a mapped hole for which the disk has no room later would
            # end the process by a signal, and not raise an error.
            for start in range(0, size, WRITE_BYTES):
                file.write(bytes(min(WRITE_BYTES, size - start)))
            file.flush()
            # The map outlives the file object; the file has no name, and its space is free with the
            # map. A plain view of it, because each slice of a memmap is a memmap, too, which costs.
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise OSError(
            error.errno,
            f"could not write {size:,} bytes of temporary data to {tempfile.gettempdir()}: "
            f"{error.strerror or error}; set TMPDIR to a folder with free space",
        ) from error


def gather_rows(
    rows: RowSource, index: Int[Array, " k"], memory_bytes: int, *, dense: bool = False
) -> Float[Array, "k d"]:
    """Gather rows like ``rows.take``, in a temporary file if they take more than `memory_bytes`.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    index : ndarray of shape (k,)
        Row numbers, distinct if `rows` is sequential.
    memory_bytes : int
    dense : bool, default=False
        Whether sparse rows become dense. If not, they stay in memory.

    Returns
    -------
    ndarray of shape (k, d)
        A new array, see `scratch`; `CsrArray` of sparse rows.

    Notes
    -----
    Cost: one pass for a sequential source. Memory beyond `memory_bytes`: a block of rows.
    """
    k, d = len(index), rows.shape[1]
    if (rows.sparse and not dense) or k * d * rows.dtype.itemsize <= memory_bytes:
        rows_taken = rows.take(index)
        return xp.to_dense(rows_taken) if dense and rows.sparse else rows_taken
    out = scratch((k, d), rows.dtype, memory_bytes)
    if rows.random_access:
        # A block at a time: all of the rows would not fit into memory.
        for part in slices(k, default_block_size(rows)):
            block = rows.take(index[part])
            out[part] = xp.to_dense(block) if rows.sparse else block
        return out
    # A sequential source filters by increasing numbers; `order` puts its blocks in their places.
    order = index.argsort(stable=True)
    for part, block in Subset(rows, index[order]).blocks(default_block_size(rows)):
        out[order[part]] = xp.to_dense(block) if rows.sparse else block
    return out


def store_rows(rows: RowSource, path: str | Path) -> Float[Array, "n d"]:
    """Write dense rows to a ``.npy`` file, atomically, and return them mapped from there.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    path : str or Path
        Replaced once the new file is complete; maps of an old file stay valid.

    Returns
    -------
    ndarray of shape (n, d)
        The mapped rows; do not write to them.

    Raises
    ------
    ValueError
        If the rows are sparse, or the name does not end with ``.npy``.
    OSError
        If it cannot be written.
    """
    path, dtype = Path(path), rows.dtype
    if rows.sparse or path.suffix.lower() != ".npy":
        raise ValueError(f"only dense rows in a .npy file can be stored, got {rows!r} and {path}")

    def write(part: Path) -> None:
        writer = NpyWriter(part, rows.shape[1], dtype)
        for _, block in rows.blocks(default_block_size(rows)):
            writer.append(block)
        writer.close()

    write_atomically(path, write)
    # Opened again by its final name, after the rename: it is mapped for reading only.
    return np.asarray(open_npy(path))


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
        column_type = pa.string() if text else pa.from_numpy_dtype(self._type)
        self.where, self.num_rows = where, n
        self.schema = pa.schema([(str(j), column_type) for j in range(d)])

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
        arrays = [pa.array(np.asarray(self._array[rows, j], self._type)) for j in chosen]
        return pa.record_batch(arrays, schema=pa.schema([self.schema.field(c) for c in columns]))
