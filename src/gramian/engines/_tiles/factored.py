"""Products with a kernel matrix that is a product of two factors, L R', without its entries."""

from __future__ import annotations

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import Columns, is_sparse, times, transposed_times
from .ranges import steps
from .tiles import PREPARED_NUMBERS, Tiles

PART_ROWS = 1 << 12
"""Rows of a part at least, which has a sum of its own over all columns of the factors."""


def pays(tiles: Tiles, t: int) -> bool:
    """Return whether products of t columns by factors are cheaper: (n + m) d t < n m (d + t).

    Sparse rows on a device have no factors: SciPy multiplies them.
    """
    is_cheap = xp.is_host(tiles.device) or not is_sparse(tiles.left[0])
    return tiles.kernel.bilinear and is_cheap and t < min(tiles.n, tiles.m)


def multiply_down(x: Array, v: Float[Array, "n t"]) -> Float[Array, "d t"]:
    """Return x' v in float64, for dense or sparse rows x."""
    if is_sparse(x):
        return transposed_times(x, xp.to_float64(v))
    total = xp.zeros((x.shape[1], v.shape[1]), xp.float64, like=x)
    # A conversion of all rows to float64 would double their memory.
    for i, i_end in steps(0, x.shape[0], max(PREPARED_NUMBERS // x.shape[1], 1)):
        xp.addmm_(total, xp.to_float64(x[i:i_end]).T, xp.to_float64(v[i:i_end]))
    return total


def across(x: Array, w: Float[Array, "d t"]) -> Float[Array, "n t"]:
    """Return x w in float64, for dense or sparse rows x."""
    if is_sparse(x):
        return times(x, w)
    size = max(PREPARED_NUMBERS // x.shape[1], 1)
    parts = [xp.to_float64(x[i:i_end]) @ w for i, i_end in steps(0, x.shape[0], size)]
    return xp.concat(parts)


def residual_down(
    x: Array,
    w: Float[Array, "d t"] | None,
    weights: Float[Array, " n"] | None,
    targets: Float[Array, "n t"] | None,
    known: Columns | None = None,
) -> Float[Array, "d t"]:
    """Return x' W (x w - y) in float64; see `Engine.normal` for the optional arguments.

    Sparse rows are reduced to the columns in `known`, if given.
    """
    if known is not None:
        return known.normal(x, w, weights, targets)
    terms = [] if w is None else [across(x, w)]
    terms += [] if targets is None else [xp.negative(xp.to_float64(targets))]
    u = xp.stack(terms).sum(axis=0)
    return multiply_down(x, u if weights is None else u * xp.to_float64(weights)[:, None])
