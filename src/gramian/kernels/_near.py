"""Squared distances of near-duplicates, recomputed from differences."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEAR = 4000.0
"""Pairs closer than ``NEAR * eps * (|x|² + |z|²)`` are recomputed: the rest has lost 3 digits
at most, which the square root of a kernel with a kink turns into an error near 5e-6."""

FEW = 0.02
"""Fraction of near pairs up to which single pairs beat one more matrix product."""


PAIRS = 1 << 14
"""Pairs recomputed at once: all pairs may be near, and each takes d numbers."""


def remaining_error(eps: float, norm: float) -> float:
    """Return the error of sqrt(s) that is left for two points of squared norm `norm`."""
    return math.sqrt(eps * 2 * norm / (4 * NEAR))


def recompute_near(s: Tensor, left: Tensor, right: Tensor, scale: float) -> Tensor:
    """Replace small entries of `s`, whose digits cancelled, by direct differences.

    Parameters
    ----------
    s : Tensor of shape (b, m)
        ``scale * |x - z|²``, overwritten, as the product of the two next arguments.
    left, right : Tensor of shape (b, d + 2), (m, d + 2)
        Rows as `Radial.prepare` makes them.
    scale : float

    Returns
    -------
    Tensor of shape (b, m)
        The argument `s`.
    """
    reach = left[:, -2].to(s.dtype) * (2 * NEAR * torch.finfo(left.dtype).eps)
    rows = (s.amin(dim=1) < reach).nonzero()[:, 0]  # few: one pass over s, no mask of its size
    if len(rows) == 0:
        return s
    near = s[rows] < reach[rows, None]
    if left.dtype != torch.float64 and int(near.sum()) > FEW * s.numel():
        return s.copy_(_in_float64(left, right, scale))
    i, j = near.nonzero(as_tuple=True)
    for i_part, j_part in zip(rows[i].split(PAIRS), j.split(PAIRS), strict=True):
        difference = left[i_part, :-2] / (-2 * scale) - right[j_part, :-2]
        s[i_part, j_part] = (scale * (difference * difference).sum(dim=1)).to(s.dtype)
    return s


def _in_float64(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """Return ``scale * |x - z|²`` with norms of its own: those of the rows have float32 digits."""
    x, z = left[:, :-2].double() / (-2 * scale), right[:, :-2].double()
    x_norms, z_norms = ((side * side).sum(dim=1) for side in (x, z))
    return torch.mm(x, z.t()).mul_(-2).add_(x_norms[:, None]).add_(z_norms).mul_(scale)
