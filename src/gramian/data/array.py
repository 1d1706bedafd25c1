"""Rows of an array in memory or in a memory-mapped file: NumPy in any layout, or torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .base import RowSource, check_index, slices
from .dtypes import NUMPY_OF, WIDE_INTEGERS, float_for, warn_of_rounding
from .file_stamp import MappedFile


class ArrayRows(RowSource):
    """Rows of a two-dimensional array, converted block by block and never copied as a whole.

    Parameters
    ----------
    data : ndarray or Tensor of shape (n, d)
        NumPy arrays may have any strides, byte order and alignment, be read-only or
        memory-mapped. Tensors may live on any device; blocks stay there, without gradients.
    feature_names : sequence of str, optional
        One name per column.

    Notes
    -----
    Blocks of a C-contiguous native float array are views and cost nothing; otherwise a block
    costs one conversion of its rows. A file that is mapped for reading must not be written to: each
    pass compares its size and time. It may be moved, removed or replaced: the map stays valid.
    """

    def __init__(
        self, data: np.ndarray | Tensor, *, feature_names: Sequence[str] | None = None
    ) -> None:
        if isinstance(data, Tensor):
            name = str(data.dtype).removeprefix("torch.")
            self._data: np.ndarray | Tensor = data.detach()
        else:
            name = data.dtype.name
            self._data = np.asarray(data)
        self._file = MappedFile.of(data)
        self.shape = check_matrix(tuple(data.shape))
        self.dtype, self._wide = float_for(name), name in WIDE_INTEGERS
        self.feature_names = check_names(feature_names, self.shape[1])

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        self._check_file()
        for rows in slices(self.shape[0], size):
            yield rows, self._convert(self._data[rows])
        self._check_file()

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        self._check_file()
        if isinstance(self._data, Tensor):
            return self._convert(self._data[index.to(self._data.device)])
        return self._convert(np.take(self._data, index.cpu().numpy(), axis=0))

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _convert(self, part: np.ndarray | Tensor) -> Tensor:
        if self._wide:
            numbers = part.cpu().numpy() if isinstance(part, Tensor) else part
            for j, column in enumerate(numbers.T):
                warn_of_rounding(column, self.feature_names[j] if self.feature_names else j)
        if isinstance(part, Tensor):
            return part.to(self.dtype).contiguous()
        return as_tensor(np.require(part, NUMPY_OF[self.dtype], ["C", "ALIGNED"]))


def check_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Refuse anything but a matrix with rows and columns, in words.

    Parameters
    ----------
    shape : tuple of int
        Shape of the user's data.

    Returns
    -------
    tuple of int
        The same shape ``(n, d)``.
    """
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
    """Refuse a list of feature names that does not fit the number of columns."""
    if names is not None and len(names) != d:
        raise ValueError(f"got {len(names)} feature names for {d} columns")
    return None if names is None else tuple(names)


class _Alias:
    """The memory of an array, offered as writable."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array  # keeps the memory alive
        interface: dict[str, Any] = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def as_tensor(array: np.ndarray) -> Tensor:
    """Share the memory of a native, contiguous array with a tensor, also of a read-only one.

    torch warns about read-only arrays because someone could write through the tensor. Blocks are
    never written to, so such an array is presented as writable here: that concerns this one
    array, where a warnings filter would concern the process and all its threads.

    Parameters
    ----------
    array : ndarray

    Returns
    -------
    Tensor
        Not to be written to.
    """
    return torch.from_numpy(array if array.flags.writeable else np.asarray(_Alias(array)))
