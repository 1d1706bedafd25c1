"""State of ASkotch: current and best coefficients, restarts, and the estimated convexity."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._messages.errors import Text
from ..loop.state import ADDED_LATER, State, StopReason
from .blocks import Block

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

    - `mu`: the convexity of the momentum in these iterations.
    - `squares`: mean squares of the block residuals, one per iteration.
    - `passes`: passes since the start.
    - `blocks`: iterations per pass.
    - `scale`: the constant c of the rule; see `BlockRule.scale`.
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


logger = logging.getLogger("gramian")

SINGULAR_BLOCKS = "singular_blocks"
"""Name of the metric that counts blocks that are singular to rounding."""

ADDED_FIELD = {ADDED_LATER: True}

MOST_RESTARTS = 2
"""Restarts at the best coefficients: the first weakens the momentum, the second removes it."""


@dataclass(kw_only=True)
class ASkotchState(State):
    """State of ASkotch, enough to resume exactly.

    Attributes
    ----------
    ahead, momentum : Array of shape (n, t)
        The point of the next gradient, and the momentum: w and z of the paper, whose x is `coef`;
        Y, V and W in later versions.
    recent : Array of shape (k, t)
        Mean squared residuals of the last blocks: about one pass, at least 20.
    weighted : Array of shape (k, t)
        Mean squared residuals with the weights of the rows, without the rows of `Blocks.heavy`.
    best : Array of shape (n, t)
        The coefficients with the least mean of `recent`, the start at first.
    least : float
        The least mean of `recent`.
    convexity : float
        The estimate of the strong convexity.
    curvature : float
        The mean curvature bound of the blocks.
    squares : Array of shape (j,)
        Mean squared block residuals for the next estimate of the convexity.
    first : int
        The iteration at which the run began.
    smoothness : Array of shape (B,)
        L of each block, if blocks are fixed.
    restarts : int
        Number of restarts at `best`.
    lost : bool
        Whether the run has diverged after all restarts.
    seed : int
        Seeds the draw of each block, together with the number of the iteration.
    """

    ahead: Float[Array, "n t"]
    momentum: Float[Array, "n t"]
    recent: Float[Array, "k t"]
    best: Float[Array, "n t"]
    least: float = math.inf
    convexity: float = FIRST_CONVEXITY
    curvature: float = field(default=0.0, metadata=ADDED_FIELD)
    squares: Float[Array, " j"] = field(
        default_factory=lambda: xp.empty(0, xp.float64), metadata=ADDED_FIELD
    )
    weighted: Float[Array, "i u"] = field(
        default_factory=lambda: xp.empty((0, 0), xp.float64), metadata=ADDED_FIELD
    )
    first: int = field(default=0, metadata=ADDED_FIELD)
    smoothness: Float[Array, " B"]
    restarts: int = 0
    lost: bool = False
    seed: int = 0

    @property
    def verdict(self) -> StopReason | None:
        return "diverged" if self.lost else None

    def excess(self, mu: float) -> float:
        r"""Return the factor that enlarges :math:`\nu` for a strong convexity.

        The factor is 1 at first, :math:`\mu^{-1/2}` after one restart, infinite after the second. A
        factor of :math:`\mu^{-1}`, the largest possible, already removes the momentum.
        """
        if self.restarts >= MOST_RESTARTS:
            return math.inf
        return float(min(mu, 1.0) ** (-self.restarts / MOST_RESTARTS))

    def count_singular(self, B: Block) -> ASkotchState:
        """Return the state with one more singular block; log the first singular block."""
        if not B.singular:
            return self
        count = int(self.metrics[SINGULAR_BLOCKS]) + 1
        if count == 1:
            logger.warning(
                "ASkotch: a block of K + ridge is singular to rounding, and is solved with the "
                "least jitter on its diagonal. The history counts such blocks as %s. Raise the "
                "penalty, or use block_solver='nystrom'",
                SINGULAR_BLOCKS,
            )
        return replace(self, metrics=self.metrics | {SINGULAR_BLOCKS: count})

    def restart(self, residual: float) -> ASkotchState:
        """Return the state that restarts at the best coefficients, or ends there as diverged."""
        lost = self.restarts >= MOST_RESTARTS
        if lost:
            logger.warning(
                Text(
                    f"ASkotch: diverged at iteration {self.iteration}: the residual has grown to "
                    f"{residual:.1e}, even without momentum and in float64. The best coefficients "
                    "are kept. Raise the penalty, use larger blocks, or use {solver='pcg'}"
                )
            )
        else:
            logger.info(
                "ASkotch: at iteration %d the residual has grown to %.1e; restarting from the best "
                "coefficients with %s momentum",
                self.iteration,
                residual,
                "less" if self.restarts + 1 < MOST_RESTARTS else "no",
            )
        restarts = self.restarts + (not lost)
        return replace(
            self,
            coef=self.best,
            metrics=self.metrics | {"restarts": restarts},
            ahead=self.best,
            momentum=self.best,
            # The old residuals belong to another trajectory, and would trigger the next restart at
            # once.
            recent=self.recent[:0],
            weighted=self.weighted[:0],
            squares=self.squares[:0],
            least=math.inf,
            restarts=restarts,
            lost=lost,
        )
