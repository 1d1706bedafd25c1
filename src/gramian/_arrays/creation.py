"""Creation of arrays, on the host or on a device, and changes in their memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._kinds import is_tensor, loaded_torch, namesake, numpy_dtype, torch_dtype
from .elementwise import exp, negative, sqrt
from .places import as_tensor, device_of, is_host, to_host

__all__ = [
    "add_", "add_at", "addmm_", "arange", "array", "asarray", "assign_", "clip_", "divide_",
    "empty", "empty_like", "exp_", "eye", "fill_", "fill_where_", "full", "full_like",
    "linspace", "minimum_at", "multiply_", "negative_", "ones", "ones_like", "sqrt_",
    "subtract_", "zeros", "zeros_like",
]  # fmt: skip


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


def _creator(name: str) -> Any:
    def create(shape: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
        dtype = like.dtype if dtype is None and like is not None else dtype
        return _make(name, (shape,), dtype, like, device)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"Return an array by `{name}` of NumPy or torch; by default in like's dtype."
    return create


zeros, ones, empty, eye = map(_creator, ("zeros", "ones", "empty", "eye"))


def full(shape: Any, value: Any, dtype: Any = None, *, like: Any = None, device: Any = None) -> Any:
    """Return an array of one number."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return _make("full", (shape, value), dtype, like, device)


def arange(*limits: Any, dtype: Any = None, like: Any = None, device: Any = None) -> Any:
    """Return evenly spaced numbers."""
    return _make("arange", limits, dtype, like, device)


def linspace(start: Any, stop: Any, count: int, dtype: Any = None) -> Any:
    """Return numbers from start to stop, both included."""
    return _make("linspace", (start, stop, count), dtype, None, None)


def _creator_like(name: str) -> Any:
    def create(x: Any, dtype: Any = None) -> Any:
        if is_tensor(x):
            return getattr(loaded_torch(), name)(x, dtype=torch_dtype(dtype))
        return getattr(np, name)(x, dtype=dtype)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"Return `{name}` of an array, in its dtype if none is given."
    return create


zeros_like, ones_like, empty_like = map(_creator_like, ("zeros_like", "ones_like", "empty_like"))
full_like = namesake("full_like", np.full_like)


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


multiply_: Any = operator.imul
divide_: Any = operator.itruediv


def add_(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Add y, or a multiple of it, to x."""
    if is_tensor(x):
        return x.add_(y, alpha=alpha)
    x += y if alpha == 1 else alpha * y
    return x


def subtract_(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Subtract y, or a multiple of it, from x."""
    return add_(x, y, alpha=-alpha)


def _in_place(function: Any) -> Any:
    def change(x: Any) -> Any:
        return function(x, out=x)

    change.__name__ = change.__qualname__ = f"{function.__name__}_"
    change.__doc__ = f"Replace x by its `{function.__name__}`."
    return change


negative_, exp_, sqrt_ = map(_in_place, (negative, exp, sqrt))


def clip_(x: Any, min: Any = None, max: Any = None) -> Any:
    """Limit numbers from below and above."""
    if is_tensor(x):
        return x.clamp_(min, max)
    # With one limit NumPy takes twice as long.
    return np.clip(x, -np.inf if min is None else min, np.inf if max is None else max, out=x)


def addmm_(C: Any, A: Any, B: Any, *, alpha: Any = 1) -> Any:
    """Add alpha A B to C."""
    if is_tensor(C):
        return C.addmm_(A, B, alpha=alpha)
    product = A @ B
    C += product if alpha == 1 else alpha * product
    return C


def assign_(x: Any, values: Any) -> Any:
    """Copy the numbers of another array into x."""
    x[...] = values
    return x


def fill_(x: Any, value: Any) -> Any:
    """Set all numbers to one value."""
    x[...] = value
    return x


def fill_where_(x: Any, mask: Any, value: Any) -> Any:
    """Replace the numbers where a mask is set."""
    x[mask] = value
    return x


def add_at(x: Any, index: Any, values: Any, alpha: Any = 1) -> Any:
    """Add values, times a factor, to the rows of x at given indices, one after the other."""
    if is_tensor(x):
        return x.index_add_(0, index, values, alpha=alpha)
    values = values if alpha == 1 else alpha * values
    if x.ndim == 2 and x.flags.c_contiguous:
        # NumPy adds single numbers five times as fast as rows.
        d = x.shape[1]
        places = (index[:, None] * d + np.arange(d)).reshape(-1)
        np.add.at(x.reshape(-1), places, np.broadcast_to(values, (len(index), d)).reshape(-1))
    else:
        np.add.at(x, index, values)
    return x


def minimum_at(x: Any, index: Any, values: Any) -> Any:
    """Replace entries of a vector by smaller values, one by one."""
    if is_tensor(x):
        return x.scatter_reduce_(0, index, values, "amin")
    np.minimum.at(x, index, values)
    return x
