"""FreshBlocks: a new random block in each iteration of ASkotch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

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

    def smoothness(self) -> Float[Tensor, " B"]:
        return torch.empty(0, dtype=torch.float64)

    def draw(self, iteration: int, smoothness: Tensor) -> Block:
        rng = self.generator(iteration)
        # Sorted rows are read from memory in order.
        rows = torch.randperm(self.blocks.n, generator=rng)[: self.blocks.b].sort().values
        return self.blocks.build(rows, rng)

    def momentum(
        self,
        W: Float[Tensor, "n t"],
        Y: Float[Tensor, "n t"],
        V: Float[Tensor, "n t"],
        B: Block,
        d: Float[Tensor, "b t"],
        smoothness: Tensor,
        mu: float,
        excess: float,
    ) -> tuple[Tensor, Tensor]:
        """Return the next Y and V."""
        mu, share = min(mu, 1.0), self.blocks.b / self.blocks.n
        mu, nu = mu * share, excess / share
        beta, gamma = 1 - math.sqrt(mu / nu), 1 / math.sqrt(mu * nu)
        alpha = 1 / (1 + gamma * nu)
        V = torch.lerp(Y, V, beta).index_add_(0, B.index.to(d.device), d, alpha=-gamma)
        return torch.lerp(W, V, alpha), V
