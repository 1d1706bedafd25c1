"""Changes of arrays in their memory, which return the array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._kinds import is_tensor
from .elementwise import exp, negative, sqrt


def multiply_(x: Any, y: Any) -> Any:
    """Multiply x by y."""
    x *= y
    return x


def add_(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Add y, or a multiple of it, to x."""
    if is_tensor(x):
        return x.add_(y, alpha=alpha)
    x += y if alpha == 1 else alpha * y
    return x


def subtract_(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Subtract y, or a multiple of it, from x."""
    return add_(x, y, alpha=-alpha)


def divide_(x: Any, y: Any) -> Any:
    """Divide x by y."""
    x /= y
    return x


def negative_(x: Any) -> Any:
    """Change all signs."""
    return negative(x, out=x)


def exp_(x: Any) -> Any:
    """Replace numbers by their exponentials."""
    return exp(x, out=x)


def sqrt_(x: Any) -> Any:
    """Replace numbers by their roots."""
    return sqrt(x, out=x)


def clip_(x: Any, min: Any = None, max: Any = None) -> Any:
    """Limit numbers from below and above."""
    if is_tensor(x):
        return x.clamp_(min, max)
    # With one limit NumPy takes twice as long.
    return np.clip(x, -np.inf if min is None else min, np.inf if max is None else max, out=x)


def lerp_(x: Any, end: Any, weight: float) -> Any:
    """Move x towards another array, by a part of the way."""
    if is_tensor(x):
        return x.lerp_(end, weight)
    x += weight * (end - x)
    return x


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


def zero_(x: Any) -> Any:
    """Replace the numbers by zeros."""
    return fill_(x, 0)


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
