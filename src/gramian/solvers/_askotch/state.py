"""ASkotchState: where ASkotch is, the best it has seen, and how it goes on or back."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..._errors import Text
from ..state import ADDED_LATER, State
from ..stopping import StopReason
from .blocks import Block
from .convexity import FIRST_CONVEXITY

logger = logging.getLogger("gramian")

SINGULAR_BLOCKS = "singular_blocks"
"""Name of the metric that counts blocks which are singular to rounding."""

ADDED_FIELD = {ADDED_LATER: True}

MOST_RESTARTS = 2
"""Returns to the best coefficients: the first weakens the momentum, the second ends it."""


@dataclass(kw_only=True)
class ASkotchState(State):
    """All that the method needs to go on.

    Attributes
    ----------
    ahead, momentum : Tensor of shape (n, t)
        Where the next gradient is taken and what carries the momentum: w and z of the paper, whose
        x is `coef`; Y, V and W in later versions of it.
    recent : Tensor of shape (k, t)
        Mean squares of the last block residuals: those of about one pass, 20 at least.
    weighted : Tensor of shape (k, t)
        The same with the weights of the rows, without the rows of `Blocks.heavy`.
    best : Tensor of shape (n, t)
        The coefficients at the least mean of them, the start before there is one.
    least : float
        That mean.
    convexity : float
        The estimate of the strong convexity.
    curvature : float
        The mean of the least curvatures of the blocks.
    squares : Tensor of shape (j,)
        Mean squares of the residuals of blocks, from which the next estimate follows.
    first : int
        The iteration at which it began.
    smoothness : Tensor of shape (B,)
        L of each block, if blocks are fixed.
    restarts : int
        How often it went back to `best`.
    lost : bool
        Whether nothing is left to try: the solver says "diverged".
    seed : int
        From which, with the number of the iteration, each block is drawn.
    """

    ahead: Float[Tensor, "n t"]
    momentum: Float[Tensor, "n t"]
    recent: Float[Tensor, "k t"]
    best: Float[Tensor, "n t"]
    least: float = math.inf
    convexity: float = FIRST_CONVEXITY
    curvature: float = field(default=0.0, metadata=ADDED_FIELD)
    squares: Float[Tensor, " j"] = field(
        default_factory=lambda: torch.empty(0, dtype=torch.float64), metadata=ADDED_FIELD
    )
    weighted: Float[Tensor, "i u"] = field(
        default_factory=lambda: torch.empty(0, 0, dtype=torch.float64), metadata=ADDED_FIELD
    )
    first: int = field(default=0, metadata=ADDED_FIELD)
    smoothness: Float[Tensor, " B"]
    restarts: int = 0
    lost: bool = False
    seed: int = 0

    @property
    def verdict(self) -> StopReason | None:
        return "diverged" if self.lost else None

    def excess(self, mu: float) -> float:
        r"""Return the factor by which :math:`\nu` is taken larger for a strong convexity.

        1 at first, :math:`\mu^{-1/2}` after one restart, infinite from the second one on: from
        :math:`\mu^{-1}` on, the largest value there can be, the step has no momentum.
        """
        if self.restarts >= MOST_RESTARTS:
            return math.inf
        return float(min(mu, 1.0) ** (-self.restarts / MOST_RESTARTS))

    def count_singular(self, B: Block) -> ASkotchState:
        """Return the state with the block counted if it is singular; the first one is logged."""
        if not B.singular:
            return self
        count = int(self.metrics[SINGULAR_BLOCKS]) + 1
        if count == 1:
            logger.warning(
                "ASkotch: a block of K + ridge is singular to rounding, and is solved with a "
                "diagonal that is raised by the least jitter; so are others like it, and the "
                "history counts them as %s. Raise the penalty, or take block_solver='nystrom'",
                SINGULAR_BLOCKS,
            )
        return replace(self, metrics=self.metrics | {SINGULAR_BLOCKS: count})

    def back(self, residual: float) -> ASkotchState:
        """Return the state that starts again from the best coefficients, or gives up there."""
        lost = self.restarts >= MOST_RESTARTS
        if lost:
            logger.warning(
                Text(
                    f"ASkotch: diverged at iteration {self.iteration}, the residual has grown to "
                    f"{residual:.1e} without momentum and in float64; the best coefficients are "
                    "kept. Raise the penalty, take larger blocks, or use {solver='pcg'}"
                )
            )
        else:
            logger.info(
                "ASkotch: iteration %d, the residual has grown to %.1e: back to the best "
                "coefficients, with %s momentum",
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
            recent=self.recent[:0],
            weighted=self.weighted[:0],
            squares=self.squares[:0],
            least=math.inf,
            restarts=restarts,
            lost=lost,
        )
