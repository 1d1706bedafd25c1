"""Creation of arrays, on the host or on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._kinds import is_tensor, loaded_torch, numpy_dtype, torch_dtype
from .places import as_tensor, device_of, is_host, to_host


def _target(like: Any, device: Any) -> Any:
    """Return the device of torch on which to make an array; None for NumPy's arrays."""
    device = device_of(like) if like is not None else device
    return None if device is None or is_host(device) else device


def _make(name: str, args: tuple[Any, ...], dtype: Any, like: Any, device: Any) -> Any:
    """Return an array that a function of NumPy or torch makes."""
    target = _target(like, device)
    if target is None:
        return getattr(np, name)(*args, dtype=None if dtype is None else numpy_dtype(dtype))
    import torch

    return getattr(torch, name)(*args, dtype=torch_dtype(dtype), device=target)


def _dtype_like(dtype: Any, like: Any) -> Any:
    """Return a given dtype, or the dtype of another array if None is given."""
    return like.dtype if dtype is None and like is not None else dtype


def zeros(shape: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array of zeros."""
    return _make("zeros", (shape,), _dtype_like(dtype, like), like, device)


def ones(shape: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array of ones."""
    return _make("ones", (shape,), _dtype_like(dtype, like), like, device)


def empty(shape: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array whose numbers are not initialised."""
    return _make("empty", (shape,), _dtype_like(dtype, like), like, device)


def full(shape: Any, value: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array of one number."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return _make("full", (shape, value), dtype, like, device)


def eye(n: int, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return the identity matrix."""
    return _make("eye", (n,), _dtype_like(dtype, like), like, device)


def arange(*limits: Any, dtype: Any = None, like: Any = None, device: Any = None) -> Any:
    """Return evenly spaced numbers."""
    return _make("arange", limits, dtype, like, device)


def linspace(start: Any, stop: Any, count: int, dtype: Any = None) -> Any:
    """Return numbers from start to stop, both included."""
    return _make("linspace", (start, stop, count), dtype, None, None)


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Return zeros in the shape of an array, and in its dtype if none is given."""
    if is_tensor(x):
        return loaded_torch().zeros_like(x, dtype=torch_dtype(dtype))
    return np.zeros_like(x, dtype=dtype)


def ones_like(x: Any, dtype: Any = None) -> Any:
    """Return ones in the shape of an array, and in its dtype if none is given."""
    if is_tensor(x):
        return loaded_torch().ones_like(x, dtype=torch_dtype(dtype))
    return np.ones_like(x, dtype=dtype)


def empty_like(x: Any, dtype: Any = None) -> Any:
    """Return unset numbers in the shape of an array, and in its dtype if none is given."""
    if is_tensor(x):
        return loaded_torch().empty_like(x, dtype=torch_dtype(dtype))
    return np.empty_like(x, dtype=dtype)


def full_like(x: Any, value: Any) -> Any:
    """Return one number in the shape and dtype of an array."""
    if is_tensor(x):
        return loaded_torch().full_like(x, value)
    return np.full_like(x, value)


def array(values: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array of numbers or lists of numbers."""
    target = _target(like, device)
    if target is None:
        return np.array(values, dtype=None if dtype is None else numpy_dtype(dtype))
    import torch

    return torch.tensor(values, dtype=torch_dtype(dtype), device=target)


def asarray(values: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array that shares the memory of another where it can."""
    target = _target(like, device_of(values) if device is None else device)
    if target is None:
        return np.asarray(to_host(values), None if dtype is None else numpy_dtype(dtype))
    values = as_tensor(values, target)
    return values if dtype is None else values.to(torch_dtype(dtype))
