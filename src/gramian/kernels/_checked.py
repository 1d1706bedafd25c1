"""Check of the rows that a kernel receives."""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array
from .._sparse import is_sparse


def check_nonnegative(points: Array, name: str) -> None:
    """Raise ValueError, about the kernel called `name`, if a feature of a row is below 0."""
    values = xp.entries(points) if is_sparse(points) else points
    # NaN passes here, because the checks of the rows report it with a better message.
    if not bool((values < 0).any()):
        return
    at = int(xp.flatnonzero((values < 0).reshape(-1))[0])
    column = int(xp.indices(points)[at]) if is_sparse(points) else at % points.shape[1]
    raise ValueError(
        f"the {name} kernel needs features of at least 0, such as counts, but feature {column} has "
        f"{float(values.reshape(-1)[at]):.6g}; use another kernel, such as 'gaussian'"
    )
