"""Shapes of arrays, and their order in memory."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._kinds import is_tensor, loaded_torch, namesake

__all__ = [
    "array_split", "chunk", "concat", "contiguous", "copy", "copy_by_rows", "diag_embed",
    "diagonal", "expand", "flip", "put_along", "repeat", "size", "split", "stack", "strides",
    "swapaxes", "take_along", "take_columns", "transpose", "tril", "triu", "triu_",
    "triu_indices", "with_strides",
]  # fmt: skip


def size(x: Any) -> int:
    """Return the number of elements."""
    return math.prod(x.shape)


def concat(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Return arrays joined along an axis."""
    arrays = list(arrays)
    if is_tensor(arrays[0]):
        return loaded_torch().cat(arrays, dim=axis)
    return np.concatenate(arrays, axis=axis)


def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Return arrays joined along a new axis."""
    arrays = list(arrays)
    if is_tensor(arrays[0]):
        return loaded_torch().stack(arrays, dim=axis)
    return np.stack(arrays, axis=axis)


def split(x: Any, sizes: Any, axis: int = 0) -> Any:
    """Return parts of given sizes, or parts of one size, of which the last may be shorter."""
    if is_tensor(x):
        return x.split(sizes if isinstance(sizes, int) else list(sizes), dim=axis)
    n = x.shape[axis]
    if isinstance(sizes, int):
        limits = list(range(sizes, n, sizes))
    else:
        limits = np.cumsum(sizes)[:-1].tolist()
    return tuple(np.split(x, limits, axis=axis))


def chunk(x: Any, count: int, axis: int = 0) -> Any:
    """Return parts of equal length along an axis; the last part may be shorter."""
    if is_tensor(x):
        return x.chunk(count, dim=axis)
    return split(x, -(-x.shape[axis] // count), axis)


def copy(x: Any) -> Any:
    """Return a copy with the order of the original in memory."""
    return x.clone() if is_tensor(x) else np.copy(x, order="K")


def copy_by_rows(x: Any) -> Any:
    """Return a contiguous copy."""
    if is_tensor(x):
        return x.clone(memory_format=loaded_torch().contiguous_format)
    return np.array(x, order="C")


def contiguous(x: Any) -> Any:
    """Return the array with contiguous rows, without a copy if the rows are contiguous."""
    if is_tensor(x):
        return x.contiguous()
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def flip(x: Any, axis: int) -> Any:
    """Return the array in reverse order along an axis, in new memory."""
    return x.flip(axis) if is_tensor(x) else np.ascontiguousarray(np.flip(x, axis))


def expand(x: Any, shape: Any) -> Any:
    """Return a view in which axes of length one are repeated; -1 keeps a length."""
    if is_tensor(x):
        return x.expand(shape)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    lead = len(shape) - x.ndim
    full_shape = [x.shape[i - lead] if length == -1 else length for i, length in enumerate(shape)]
    return np.broadcast_to(x, full_shape)


def diagonal(x: Any, offset: int = 0) -> Any:
    """Return a writable view of the diagonal."""
    if not isinstance(x, np.ndarray):
        return x.diagonal(offset)
    view = np.diagonal(x, offset)
    view.flags.writeable = x.flags.writeable
    return view


def triu_(x: Any) -> Any:
    """Set the entries below the diagonal to zero."""
    if is_tensor(x):
        return x.triu_()
    for i in range(1, len(x)):
        x[i, :i] = 0
    return x


def diag_embed(x: Any, offset: int = 0) -> Any:
    """Return matrices that have the last axis of x on a diagonal, and are zero elsewhere."""
    if is_tensor(x):
        return loaded_torch().diag_embed(x, offset)
    n = x.shape[-1] + builtins.abs(offset)
    matrices = np.zeros((*x.shape[:-1], n, n), x.dtype)
    at = np.arange(x.shape[-1])
    matrices[..., at + builtins.max(-offset, 0), at + builtins.max(offset, 0)] = x
    return matrices


def triu_indices(rows: int, columns: int, offset: int = 0) -> Any:
    """Return the positions of the upper triangle, as two rows."""
    return np.stack(np.triu_indices(rows, offset, columns))


def take_columns(x: Any, numbers: Any) -> Any:
    """Return the columns at given indices, with rows contiguous, unlike an index of NumPy."""
    return x[:, numbers] if is_tensor(x) else np.take(x, numbers, axis=1)


def strides(x: Any) -> tuple[int, ...]:
    """Return the steps between neighbours along each axis, in numbers."""
    return x.stride() if is_tensor(x) else tuple(step // x.itemsize for step in x.strides)


def with_strides(x: Any, steps: Sequence[int]) -> Any:
    """Return a copy of a dense array with given steps between neighbours, in numbers."""
    if is_tensor(x):
        return loaded_torch().empty_strided(x.shape, steps, dtype=x.dtype).copy_(x)
    count = 1 + sum((length - 1) * step for length, step in zip(x.shape, steps, strict=True))
    memory = np.empty(count if x.size else 0, x.dtype)
    placed = np.lib.stride_tricks.as_strided(memory, x.shape, [s * x.itemsize for s in steps])
    placed[...] = x
    return placed


def put_along(x: Any, index: Any, values: Any, axis: int) -> Any:
    """Write values at positions along an axis."""
    if is_tensor(x):
        return x.scatter_(axis, index, values)
    np.put_along_axis(x, index, values, axis)
    return x


swapaxes = namesake("swapaxes", np.swapaxes)
triu = namesake("triu", np.triu)
tril = namesake("tril", np.tril)
array_split = namesake("tensor_split", np.array_split)
transpose = namesake("permute", np.transpose)
repeat = namesake("repeat_interleave", np.repeat)
take_along = namesake("take_along_dim", np.take_along_axis)
