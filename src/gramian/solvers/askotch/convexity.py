"""Estimate of the strong convexity for the momentum, from the decay rate of the residuals."""

from __future__ import annotations

import math

from ... import _arrays as xp
from ..._arrays import Array, Float

FIRST_CONVEXITY = 0.3
"""Estimate before the first rate is measured: the momentum then spans two passes."""

WINDOW_PASSES, WINDOW_SHARE = 2.0, 0.1
"""Least passes of a rate, and least share of all passes so far. Later rates average over more
blocks, because each random rate that is too low weakens the momentum."""

RATE_MARGIN = 1.2
"""Factor of the estimate. A convexity that is too small limits the decay to its own rate, and so
confirms itself. With the margin it grows until residuals decay more slowly than momentum allows."""

LARGEST_CHANGE = 4.0
"""Largest factor by which one rate changes the estimate."""

LEAST_CONVEXITY = 1e-12
"""Least estimate: residuals at the level of rounding errors do not decrease any more."""


def next_estimate(
    mu: float, squares: Float[Array, " k"], passes: float, blocks: float, scale: float
) -> tuple[float, Float[Array, " j"]]:
    r"""Return the next estimate of the strong convexity, and the residuals that a later one needs.

    Let h be the least curvature of the error. With momentum for a convexity :math:`\mu > h`
    residuals fall by the rate :math:`h / \sqrt{\mu c}` per pass, and for :math:`\mu \le h` by
    :math:`\sqrt{\mu / c}`. So :math:`\sqrt{\mu c}` times the rate is h, or :math:`\mu` itself.

    Parameters
    ----------
    mu : float
        The convexity of the momentum in these iterations.
    squares : Array of shape (k,)
        Mean squares of the block residuals, one per iteration.
    passes : float
        Passes since the start.
    blocks : float
        Iterations per pass.
    scale : float
        The constant c of the rule; see `BlockRule.scale`.
    """
    window = round(max(WINDOW_PASSES, WINDOW_SHARE * passes) * blocks)
    # The rate compares two windows of equal length. An infinite scale means no momentum to
    # estimate.
    if len(squares) < 2 * window or not math.isfinite(scale):
        return mu, squares
    before, after = (float(part.sum()) for part in xp.split(squares[-2 * window :], window))
    # Squares fall twice as fast as residuals, and the windows are `window` blocks apart.
    rate = blocks / (2 * window) * math.log(before / after) if before > after > 0 else 0.0
    estimate = RATE_MARGIN * rate * math.sqrt(mu * scale)
    estimate = min(max(estimate, mu / LARGEST_CHANGE, LEAST_CONVEXITY), LARGEST_CHANGE * mu, 1.0)
    return estimate, squares[-window:]
