"""Rows of an array in memory or in a memory-mapped file: NumPy in any layout, or a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._sparse import WIDE_FEATURES
from .base import RowSource, check_index, slices
from .dtypes import WIDE_INTEGERS, float_for, rounded_numbers, warn_of_rounding
from .file_stamp import MappedFile


class ArrayRows(RowSource):
    """Rows of a two-dimensional array, converted block by block and never copied as a whole.

    Parameters
    ----------
    data : ndarray or Array of shape (n, d)
        NumPy arrays may have any strides, byte order and alignment, be read-only or
        memory-mapped. Tensors may be on any device, and so are their blocks, without gradients.
    feature_names : sequence of str, optional
        One name per column.

    Notes
    -----
    Blocks of a C-contiguous native float array are views and cost nothing; otherwise a block
    costs one conversion of its rows. A file that is mapped for reading must not be written to: each
    pass compares its size and time. It may be moved, removed or replaced: the map stays valid.
    """

    def __init__(
        self, data: np.ndarray | Array, *, feature_names: Sequence[str] | None = None
    ) -> None:
        name = xp.dtype_name(data.dtype)
        # Tensors without their graph: blocks would otherwise collect gradients of a whole fit.
        # NumPy's as a plain view: slices of a memmap are memmaps, each of which costs an object to
        # set up, and subclasses such as `np.matrix` slice in their own way.
        self._data: Array = xp.detach(data) if xp.is_tensor(data) else np.asarray(data)
        # Found from the array given, because the view above is no memmap any more.
        self._file = MappedFile.of(data)
        self.shape = check_matrix(tuple(data.shape))
        self.dtype, self._wide = float_for(name), name in WIDE_INTEGERS
        self.feature_names = check_names(feature_names, self.shape[1])

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        self._check_file()
        for rows in slices(self.shape[0], size):
            # A slice is a view; only the conversion may copy.
            yield rows, self._convert(self._data[rows])
        self._check_file()

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        self._check_file()
        if xp.is_tensor(self._data):
            return self._convert(self._data[xp.to_device(index, xp.device_of(self._data))])
        return self._convert(np.take(self._data, xp.to_host(index), axis=0))

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _convert(self, part: np.ndarray | Array) -> Array:
        if self._wide:
            # Only integers of 64 bits can lose digits in float64, and only they are searched for
            # these.
            for j, column in enumerate(xp.to_host(part).T):
                warn_of_rounding(column, self.feature_names[j] if self.feature_names else j)
        if xp.is_tensor(part):
            return xp.contiguous(xp.cast(part, self.dtype))
        # One step for byte order, strides and alignment, and the array itself where they are right.
        return np.require(part, self.dtype, ["C", "ALIGNED"])


def check_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape of the user's data; raise ValueError unless it has rows and columns."""
    if len(shape) == 1:
        raise ValueError(
            f"expected a 2-D array of shape (rows, features), got a 1-D array of {shape[0]} "
            "numbers; reshape your data: x.reshape(-1, 1) for one feature, "
            "x.reshape(1, -1) for one row"
        )
    if len(shape) != 2:
        raise ValueError(f"expected a 2-D array of shape (rows, features), got shape {shape}")
    if shape[0] == 0:
        raise ValueError(f"found 0 rows (shape {shape}), but at least one is needed")
    if shape[1] == 0:
        raise ValueError(f"found 0 columns (shape {shape}), but at least one feature is needed")
    return shape[0], shape[1]


def check_names(names: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    """Raise ValueError if the numbers of feature names and of columns differ."""
    if names is not None and len(names) != d:
        raise ValueError(f"got {len(names)} feature names for {d} columns")
    return None if names is None else tuple(names)


ENTRY_NUMBERS = 3
"""Numbers that an entry takes: its value, and its column in 64 bits."""


class SparseRows(RowSource):
    """Rows of a sparse matrix; blocks are compressed sparse rows, `CsrArray`.

    Parameters
    ----------
    matrix : SciPy sparse matrix or array of shape (n, d)
        Any format; the caller's matrix is not changed. A CSR matrix in canonical form (sorted
        indices, no duplicates) is used as it is, everything else is converted once.
    feature_names : sequence of str, optional
        One name per column.

    Notes
    -----
    The entries keep their type (counts in ``uint8`` stay so) and are converted per block. Positions
    are ``int64``.
    """

    sparse = True

    def __init__(self, matrix: Any, *, feature_names: Sequence[str] | None = None) -> None:
        self.shape = check_matrix(tuple(matrix.shape))
        self.dtype = float_for(matrix.dtype.name, "the sparse matrix")
        self.feature_names = check_names(feature_names, self.shape[1])
        self._matrix = canonical(matrix)
        if matrix.dtype.name in WIDE_INTEGERS:
            m = self._matrix
            # Only columns with such numbers are collected: a matrix may have a million of them.
            for j in np.unique(m.indices[rounded_numbers(m.data)]):
                column = self.feature_names[j] if self.feature_names else int(j)
                warn_of_rounding(m.data[m.indices == j], column)
        n, d = self.shape
        if d > WIDE_FEATURES:
            # Rows of more features are never made dense: memory is planned by their entries, and by
            # 1 for the start of a row.
            self.entries = min(d, 1 + ENTRY_NUMBERS * self._matrix.nnz // n)

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        m = self._matrix
        for rows in slices(self.shape[0], size):
            start, stop = m.indptr[rows.start], m.indptr[rows.stop]
            # Row starts count from the first entry of the block; the other arrays are views.
            crow = m.indptr[rows.start : rows.stop + 1] - start
            yield rows, self._block(crow, m.indices[start:stop], m.data[start:stop])

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        part = self._matrix[xp.to_host(index)]
        return self._block(part.indptr, part.indices, part.data)

    def _block(self, crow: np.ndarray, column: np.ndarray, values: np.ndarray) -> Array:
        return csr_block(crow, column, values, self.shape[1], self.dtype)


def csr_block(
    crow: np.ndarray, column: np.ndarray, values: np.ndarray, d: int, dtype: xp.DType
) -> Array:
    """Build compressed sparse rows of d features from entries that SciPy has checked."""
    return xp.csr(
        np.require(crow, np.int64),
        np.require(column, np.int64),
        np.require(values, dtype, ["C", "ALIGNED"]),
        (len(crow) - 1, d),
    )


def canonical(matrix: Any) -> Any:
    """Return a sparse matrix by rows, each with sorted and distinct columns."""
    csr = matrix.tocsr()
    if not csr.has_canonical_format:
        # `sum_duplicates` works in place, and `tocsr` of a CSR matrix is the caller's matrix
        # itself.
        csr = csr.copy() if csr is matrix else csr
        csr.sum_duplicates()  # sorts, too
    return csr
