"""Rows in temporary and memory-mapped files."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._files.atomic import write_atomically
from ..rows.base import RowSource, default_block_size, slices
from ..rows.views import Subset
from .npy import NpyWriter, open_npy

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
