"""The strong convexity that the momentum is for, from the rate at which residuals fall."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

FIRST_CONVEXITY = 0.3
"""Estimate before the first rate is measured: the momentum then looks two passes back."""

WINDOW_PASSES, WINDOW_SHARE = 2.0, 0.1
"""Passes that a rate is measured over at least, and as a share of all passes so far: later rates
are averaged over more blocks, since each random one that is too low weakens the momentum."""

RATE_MARGIN = 1.2
"""Factor of the estimate. Any convexity that is too small falls at its own rate, and so confirms
itself; with the margin it grows until residuals fall at a lower rate than the momentum allows."""

LARGEST_CHANGE = 4.0
"""Factor by which one rate changes the estimate at most."""

LEAST_CONVEXITY = 1e-12
"""Least estimate: residuals that are at their rounding errors do not fall any more."""


def next_estimate(
    mu: float, squares: Float[Tensor, " k"], passes: float, blocks: float, scale: float
) -> tuple[float, Float[Tensor, " j"]]:
    r"""Return the next estimate of the convexity, and the residuals that its successor begins with.

    With momentum for a convexity :math:`\mu` above the least curvature h of the error, residuals
    fall by the rate :math:`h / \sqrt{\mu c}` per pass, below by :math:`\sqrt{\mu / c}`. So
    :math:`\sqrt{\mu c}` times the rate is h, or :math:`\mu` itself.

    Parameters
    ----------
    mu : float
        The convexity of the momentum in these iterations.
    squares : Tensor of shape (k,)
        Mean squares of the residuals of blocks, one an iteration.
    passes : float
        Since the start.
    blocks : float
        Iterations of a pass.
    scale : float
        c.
    """
    window = round(max(WINDOW_PASSES, WINDOW_SHARE * passes) * blocks)
    if len(squares) < 2 * window or not math.isfinite(scale):
        return mu, squares
    before, after = (float(part.sum()) for part in squares[-2 * window :].split(window))
    rate = blocks / (2 * window) * math.log(before / after) if before > after > 0 else 0.0
    estimate = RATE_MARGIN * rate * math.sqrt(mu * scale)
    estimate = min(max(estimate, mu / LARGEST_CHANGE, LEAST_CONVEXITY), LARGEST_CHANGE * mu, 1.0)
    return estimate, squares[-window:]
