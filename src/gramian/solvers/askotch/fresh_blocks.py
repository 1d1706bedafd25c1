"""A new random block of rows in each iteration of ASkotch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from .blocks import Block, BlockRule


@dataclass(frozen=True)
class FreshBlocks(BlockRule):
    r"""Momentum of ASkotch over b rows drawn without replacement in each iteration.

    .. math:: W = Y - I_B d, \quad V \leftarrow \beta V + (1 - \beta) Y - \gamma I_B d, \quad
        Y = \alpha V + (1 - \alpha) W

    with :math:`\beta = 1 - \sqrt{\mu / \nu}`, :math:`\gamma = 1 / \sqrt{\mu \nu}`, :math:`\alpha =
    1 / (1 + \gamma \nu)`, :math:`\nu = n / b`, and the strong convexity over :math:`\nu` for
    :math:`\mu`. W, Y and V are the x, w and z of `ASkotch`.

    Notes
    -----
    Source: the later versions of the paper of `ASkotch`, as implemented by its authors.
    """

    most_convexity: ClassVar[float] = 1.0

    def smoothness(self) -> Float[Array, " B"]:
        return xp.empty(0, xp.float64)

    def draw(self, iteration: int, smoothness: Array) -> Block:
        rng = self.generator(iteration)
        # Sorted rows are read from memory in order.
        rows = xp.sort(rng.permutation(self.blocks.n)[: self.blocks.b])
        return self.blocks.build(rows, rng)

    def momentum(
        self,
        W: Float[Array, "n t"],
        Y: Float[Array, "n t"],
        V: Float[Array, "n t"],
        B: Block,
        d: Float[Array, "b t"],
        smoothness: Array,
        mu: float,
        excess: float,
    ) -> tuple[Array, Array]:
        """Return the next Y and V of the paper, the gradient point and the momentum."""
        # The convexity counts per pass and the excess per block: both are converted to one
        # iteration, which is the share b / n of a pass.
        mu, share = min(mu, 1.0), self.blocks.b / self.blocks.n
        mu, nu = mu * share, excess / share
        beta, gamma = 1 - math.sqrt(mu / nu), 1 / math.sqrt(mu * nu)
        alpha = 1 / (1 + gamma * nu)
        V = xp.add_at(xp.lerp(Y, V, beta), xp.to_device(B.index, d.device), d, alpha=-gamma)
        return xp.lerp(W, V, alpha), V
