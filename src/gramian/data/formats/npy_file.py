"""Files of NumPy: mapped for reading, written row by row."""

from __future__ import annotations

import tokenize
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

UNREADABLE_ERRORS = (
    *(ValueError, OSError, EOFError),
    # The header is a dictionary in Python's syntax, and NumPy tries Python 2's syntax as well.
    *(SyntaxError, TypeError, KeyError, OverflowError, RecursionError, tokenize.TokenError),
)
"""Errors that NumPy raises for files that it cannot read."""


def open_npy(path: Path) -> np.ndarray:
    """Memory-map a ``.npy`` file for reading; raise readable errors.

    Parameters
    ----------
    path : Path

    Returns
    -------
    memmap
    """
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

    Raises
    ------
    ValueError
        If the array has another shape or type.
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


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type in the byte order of this machine."""
    return dtype.newbyteorder("=")


class NpyWriter:
    """Writer of a ``.npy`` file row by row; the number of rows is known at the end.

    Parameters
    ----------
    path : Path
    d : int
        Number of columns.
    dtype : numpy.dtype
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
