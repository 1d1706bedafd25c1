"""Squared distances of near-duplicates, recomputed from differences to avoid cancellation."""

from __future__ import annotations

import math

from ... import _arrays as xp
from ..._arrays import Array

NEAR_RATIO = 4000.0
"""Pairs with s below ``NEAR_RATIO`` times its error are recomputed: the rest has 3 digits at least,
which the square root of a kernel with a kink turns into an error near 5e-6."""

SLOPE_RATIO = 1e7
"""The same for slopes in float64, which at a kink have half the relative error of s."""

FEW_PAIRS = 0.02
"""Fraction of near pairs up to which single pairs beat one more matrix product."""

PAIRS_AT_ONCE = 1 << 14
"""Pairs recomputed at once: all pairs may be near, and each takes d numbers."""


def product_error(eps: float, norm: float, d: int) -> float:
    """Return the error of s between two points of squared norm `norm`, a sum of d + 2 products.

    Measured in float32 on normal and heavy-tailed points in 2 to 2,000 dimensions, the largest of
    10⁷ errors is 0.3 to 0.9 of this bound. Errors grow as a random walk until the sums are split in
    parts.
    """
    return eps * norm * max(2.0, math.sqrt(d))


def remaining_error(error: float) -> float:
    """Return the error of sqrt(s) for entries s with this `error` that are not recomputed.

    The error is half of the worst case, a pair at the limit with the largest error. Measured as for
    `product_error`, the largest error is 0.01 to 0.38 of the worst case.
    """
    return 0.5 * math.sqrt(error / (4 * NEAR_RATIO))


def recompute_near(
    s: Array, left: Array, right: Array, scale: float, ratio: float = NEAR_RATIO
) -> Array:
    """Replace small entries of `s`, whose digits cancelled, by direct differences.

    Parameters
    ----------
    s : Array of shape (b, m)
        ``scale * |x - z|²``, the product of the two next arguments; overwritten.
    left, right : Array of shape (b, d + 2), (m, d + 2)
        Rows as `Radial.prepare` makes them.
    ratio : float
        Entries below this multiple of their error are replaced.

    Returns
    -------
    Array of shape (b, m)
        The argument `s`.
    """
    eps, d = xp.finfo(left.dtype).eps, left.shape[1] - 2
    # The error grows with the norm of the row. Near pairs have equal norms, so one side is enough.
    reach = xp.cast(left[:, -2], s.dtype) * (ratio * product_error(eps, 1.0, d))
    rows = xp.flatnonzero(xp.min(s, axis=1) < reach)  # few: one pass over s, no mask of its size
    if len(rows) == 0:
        return s
    near = s[rows] < reach[rows, None]
    # Many near pairs are cheaper as one product in float64 than as gathered rows.
    if xp.dtype_of(left) != xp.float64 and int(near.sum()) > FEW_PAIRS * xp.size(s):
        return xp.assign_(s, _in_float64(left, right, scale))
    i, j = xp.nonzero(near)
    for i_part, j_part in zip(
        xp.split(rows[i], PAIRS_AT_ONCE), xp.split(j, PAIRS_AT_ONCE), strict=True
    ):
        # The left side holds -2 scale x, see `Radial.prepare`.
        difference = left[i_part, :-2] / (-2 * scale) - right[j_part, :-2]
        s[i_part, j_part] = xp.cast(scale * (difference * difference).sum(axis=1), s.dtype)
    return s


def _in_float64(left: Array, right: Array, scale: float) -> Array:
    """Return ``scale * |x - z|²`` with norms in float64 in place of the rows' float32 norms."""
    x, z = xp.to_float64(left[:, :-2]) / (-2 * scale), xp.to_float64(right[:, :-2])
    # The norms stored in the rows were rounded to float32, which would undo the precision.
    x_norms, z_norms = ((side * side).sum(axis=1) for side in (x, z))
    return xp.multiply_(
        xp.add_(xp.add_(xp.multiply_(xp.matmul(x, z.T), -2), x_norms[:, None]), z_norms), scale
    )
