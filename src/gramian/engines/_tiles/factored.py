"""Products with a kernel matrix that is a product of two factors, L R', without its entries."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from ..._sparse import Columns, is_sparse, times, transposed_times
from .ranges import steps
from .tiles import PREPARED_NUMBERS, Tiles

PART_ROWS = 1 << 12
"""Rows of a part at least, which has a sum of its own over all columns of the factors."""


def pays(tiles: Tiles, t: int) -> bool:
    """Return whether products of t columns by factors are cheaper: (n + m) d t < n m (d + t).

    Sparse rows on a device have no factors: SciPy multiplies them.
    """
    is_cheap = tiles.device.type == "cpu" or not is_sparse(tiles.left[0])
    return tiles.kernel.bilinear and is_cheap and t < min(tiles.n, tiles.m)


def multiply_down(x: Tensor, v: Float[Tensor, "n t"]) -> Float[Tensor, "d t"]:
    """Return x' v in float64, for dense or sparse rows x."""
    if is_sparse(x):
        return transposed_times(x, v.double())
    total = torch.zeros(x.shape[1], v.shape[1], dtype=torch.float64, device=x.device)
    # A conversion of all rows to float64 would double their memory.
    for i, i_end in steps(0, x.shape[0], max(PREPARED_NUMBERS // x.shape[1], 1)):
        total.addmm_(x[i:i_end].double().t(), v[i:i_end].double())
    return total


def across(x: Tensor, w: Float[Tensor, "d t"]) -> Float[Tensor, "n t"]:
    """Return x w in float64, for dense or sparse rows x."""
    if is_sparse(x):
        return times(x, w)
    size = max(PREPARED_NUMBERS // x.shape[1], 1)
    parts = [x[i:i_end].double() @ w for i, i_end in steps(0, x.shape[0], size)]
    return torch.cat(parts)


def residual_down(
    x: Tensor,
    w: Float[Tensor, "d t"] | None,
    weights: Float[Tensor, " n"] | None,
    targets: Float[Tensor, "n t"] | None,
    known: Columns | None = None,
) -> Float[Tensor, "d t"]:
    """Return x' W (x w - y) in float64; see `Engine.normal` for the optional arguments.

    Sparse rows are reduced to the columns in `known`, if given.
    """
    if known is not None:
        return known.normal(x, w, weights, targets)
    terms = [] if w is None else [across(x, w)]
    terms += [] if targets is None else [targets.double().neg()]
    u = torch.stack(terms).sum(dim=0)
    return multiply_down(x, u if weights is None else u * weights.double()[:, None])
