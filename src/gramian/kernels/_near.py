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
    reach = left[:, -2].to(s.dtype) * (2 * NEAR * torch.finfo(s.dtype).eps)
    rows = (s.amin(dim=1) < reach).nonzero()[:, 0]  # few: one pass over s, no mask of its size
    if len(rows) == 0:
        return s
    i, j = (s[rows] < reach[rows, None]).nonzero(as_tuple=True)
    i = rows[i]
    if len(i) > FEW * s.numel() and left.dtype != torch.float64:
        return s.copy_(left.double() @ right.double().t())
    difference = left[i, :-2] / (-2 * scale) - right[j, :-2]
    s[i, j] = (scale * (difference * difference).sum(dim=1)).to(s.dtype)
    return s
