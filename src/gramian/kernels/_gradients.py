"""Sums over the columns of a tile, for the gradients of a predictor."""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array, Float

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
