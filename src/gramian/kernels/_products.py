"""Inner products of prepared rows, sums over the columns of a tile, and checks of rows."""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array, Float
from .._sparse import is_sparse, product, slice_rows


def matmul(left: Array, right: Array, out: Array) -> Array:
    """Write ``left @ right.T`` into `out`, rounding at the end if `out` has fewer digits.

    A sparse `right` is passed transposed: the product is then ``left @ right``.
    """
    if is_sparse(right):
        return product(left, right, out)
    # Only a dense product of one dtype can write to `out` without a temporary matrix.
    if not xp.is_sparse(left) and left.dtype == out.dtype:
        return xp.matmul(left, right.T, out=out)
    rows = max(left.shape[0] // 4, 32)  # the product in float64 is twice as large as `out`
    for i in range(0, left.shape[0], rows):
        out[i : i + rows] = slice_rows(left, i, i + rows) @ right.T
    return out


PRODUCT_COLUMNS = 256
"""Columns of a product that are made at once, of all features and some columns of v."""


def sums_of_rows(
    S: Float[Array, "b m"], v: Float[Array, "m t"], rows: Float[Array, "m p"]
) -> Float[Array, "b t p"]:
    """Return sum_j S_ij v_jc rows_j: a matrix product for some columns of v at a time."""
    (m, t), p = v.shape, rows.shape[1]
    out = xp.empty((S.shape[0], t, p), like=S)
    # The product of v and all features would take t p numbers per row, far more than the tile.
    step = max(PRODUCT_COLUMNS // p, 1)
    for c in range(0, t, step):
        weighted = v[:, c : c + step, None] * rows[:, None]
        out[:, c : c + step] = xp.matmul(S, weighted.reshape(m, -1)).reshape(S.shape[0], -1, p)
    return out


def with_ones(rows: Array) -> Array:
    """Return rows with a last column of ones, whose weighted sum is the sum of the weights."""
    return xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1)


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
