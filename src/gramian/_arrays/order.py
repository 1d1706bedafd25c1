"""Order, positions and counts of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._kinds import is_tensor, loaded_torch, namesake
from .shapes import take_along

__all__ = [
    "argsort", "array_equal", "bincount", "diff", "find_insertions", "flatnonzero", "isin",
    "kth_smallest", "max_with_index", "median", "min_with_index", "nonzero", "quantile", "sort",
    "sort_with_order", "topk", "unique",
]  # fmt: skip

MANY_NUMBERS = 1 << 16
"""Numbers from which comparing them with a sample is faster than dividing them at their median."""

SAMPLED_NUMBERS = 2000
"""Size of that sample, of which a tenth, around the middle, contains the median nearly always."""


def sort(x: Any, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Return sorted numbers."""
    if is_tensor(x):
        return x.sort(dim=axis, descending=descending, stable=stable).values
    return np.flip(np.sort(x, axis=axis), axis) if descending else np.sort(x, axis=axis)


def argsort(x: Any, axis: int = -1, *, descending: bool = False) -> Any:
    """Return the stable order of the numbers."""
    if is_tensor(x):
        return x.argsort(dim=axis, descending=descending, stable=True)
    return np.argsort(-x if descending else x, axis=axis, stable=True)


def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
    """Return the k largest or smallest numbers, in order, and their positions."""
    if is_tensor(x):
        values, positions = x.topk(k, dim=axis, largest=largest)
        return values, positions
    n = x.shape[axis]
    if 0 < k < n:
        at = np.argpartition(x, n - k if largest else k - 1, axis=axis)
    else:
        at = argsort(x, axis)
    at = np.take(at, np.arange(n - k, n) if largest else np.arange(k), axis=axis)
    values, order = sort_with_order(np.take_along_axis(x, at, axis), axis, descending=largest)
    return values, np.take_along_axis(at, order, axis)


def median(x: Any) -> Any:
    """Return the lower median."""
    if is_tensor(x):
        return x.median()
    flat = x.reshape(-1)
    if np.isnan(flat).any():
        return flat.dtype.type(np.nan)
    middle = (len(flat) - 1) // 2
    below, near = _narrow(flat) if len(flat) > MANY_NUMBERS else (0, flat)
    # A sample in an order of its own, such as a sorted one, may miss the middle.
    if not below <= middle < below + len(near):
        below, near = 0, flat
    return np.partition(near, middle - below)[middle - below]


def _narrow(flat: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the numbers near the median of a sample, and how many others are below them."""
    sample = np.sort(flat[:: len(flat) // SAMPLED_NUMBERS])
    half, share = len(sample) // 2, len(sample) // 20
    low, high = sample[half - share], sample[half + share]
    return int(np.count_nonzero(flat < low)), flat[(flat >= low) & (flat <= high)]


def quantile(x: Any, q: Any) -> Any:
    """Return quantiles of all numbers, interpolated."""
    return loaded_torch().quantile(x, q) if is_tensor(x) else np.quantile(x, q).astype(x.dtype)


def unique(
    x: Any, axis: int | None = None, *, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """Return the distinct values in increasing order, or the distinct rows with axis=0."""
    kinds: dict[str, Any] = {"return_inverse": return_inverse, "return_counts": return_counts}
    if is_tensor(x):
        return loaded_torch().unique(x, dim=axis, **kinds)
    unique_parts = np.unique(x, axis=axis, **kinds)
    if axis is None or not return_inverse:
        return unique_parts
    # The inverse of rows has a second axis in NumPy 2.0.
    return (unique_parts[0], unique_parts[1].reshape(-1), *unique_parts[2:])


def nonzero(x: Any) -> tuple[Any, ...]:
    """Return the positions of nonzero entries, one array for each axis."""
    return x.nonzero(as_tuple=True) if is_tensor(x) else x.nonzero()


def flatnonzero(x: Any) -> Any:
    """Return the positions of nonzero entries of a vector."""
    return x.nonzero()[:, 0] if is_tensor(x) else np.flatnonzero(x)


def find_insertions(limits: Any, values: Any, right: bool = False) -> Any:
    """Return the positions at which values keep limits sorted."""
    if is_tensor(limits):
        return loaded_torch().searchsorted(limits, values, right=right)
    return np.searchsorted(limits, values, side="right" if right else "left")


def diff(x: Any, axis: int = -1) -> Any:
    """Return the differences of neighbours along an axis."""
    return x.diff(dim=axis) if is_tensor(x) else np.diff(x, axis=axis)


def sort_with_order(x: Any, axis: int = -1, *, descending: bool = False) -> tuple[Any, Any]:
    """Return sorted numbers and their stable order."""
    order = argsort(x, axis, descending=descending)
    return take_along(x, order, axis), order


def _with_index(name: str) -> Any:
    def extreme(x: Any, axis: int) -> tuple[Any, Any]:
        if is_tensor(x):
            values, positions = getattr(x, name)(dim=axis)
            return values, positions
        positions = getattr(x, f"arg{name}")(axis=axis)
        return take_along(x, np.expand_dims(positions, axis), axis).squeeze(axis), positions

    extreme.__name__ = extreme.__qualname__ = f"{name}_with_index"
    extreme.__doc__ = f"Return `{name}` along an axis, and the positions of these numbers."
    return extreme


max_with_index, min_with_index = map(_with_index, ("max", "min"))


def kth_smallest(x: Any, k: int, axis: int = -1) -> Any:
    """Return the k-th smallest numbers along an axis, counted from 1."""
    if is_tensor(x):
        return x.kthvalue(k, dim=axis).values
    return np.take(np.partition(x, k - 1, axis=axis), k - 1, axis=axis)


isin = namesake("isin", np.isin)
bincount = namesake("bincount", np.bincount)
array_equal = namesake("equal", np.array_equal)
