"""FixedBlocks: one random partition into blocks, as the first version of ASkotch has it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from .blocks import Block, BlockRule

BETA = 0.0
"""Of the norms in which smoothness and convexity are measured; the paper's theory has 1."""

ALPHA = (1 - BETA) / 2
"""Power of L in the probability of a block."""

PRECONDITIONER_NUMBERS = 1 << 40
"""Between the numbers of the iterations and those of the preconditioners."""


@dataclass(frozen=True)
class FixedBlocks(BlockRule):
    r"""Algorithm 1 (without momentum: 4) of the paper of `ASkotch`: NU_ACDM over fixed blocks.

    Block B has the probability :math:`p_B = L_B^\alpha / S`, :math:`S = \sum_B L_B^\alpha`. With
    the strong convexity :math:`\mu`, :math:`\tau = 2 / (1 + \sqrt{4 S^2 / \mu + 1})` and
    :math:`\gamma = 1 / (\tau S^2)`, and :math:`v = L_B d`:

    .. math:: x = w - I_B d, \quad z \leftarrow \frac{z + \gamma \mu w - I_B\, \gamma v /
        (p_B L_B^\beta)}{1 + \gamma \mu}, \quad w = \tau z + (1 - \tau) x

    Notes
    -----
    P and L are found once for each block at the start, n b kernel evaluations, and P again at each
    visit, from the same random numbers, to save memory. Departures: the printed step starts x from
    the last x, here and in the authors' code it starts from w, as in NU_ACDM; alpha = 1/2 and
    beta = 0 as the paper recommends. The printed algorithm has the ridge for :math:`\mu`:
    ``convexity=ridge`` is that choice, above 1 as well. The least curvature of the system in the
    metric of all P, which :math:`\mu` stands for in the theory, may be far below: differences
    between like rows in different blocks, which K hardly sees, are large to each P.
    """

    @cached_property
    def partition(self) -> tuple[Tensor, ...]:
        """The blocks: rows of each, of nearly equal numbers."""
        rows = torch.randperm(self.blocks.n, generator=self.generator(-1))
        count = math.ceil(self.blocks.n / self.blocks.b)
        return tuple(part.sort().values for part in torch.tensor_split(rows, count))

    def smoothness(self) -> Float[Tensor, " B"]:
        found = [self.block(number).L for number in range(len(self.partition))]
        return torch.tensor(found, dtype=torch.float64)

    def block(self, number: int) -> Block:
        """Return a block with its P, the same each time."""
        B = self.blocks.build(
            self.partition[number], self.generator(number + PRECONDITIONER_NUMBERS)
        )
        return replace(B, curvature=0.0)

    def draw(self, iteration: int, smoothness: Tensor) -> Block:
        rng = self.generator(iteration)
        return self.block(int(torch.multinomial(smoothness.cpu() ** ALPHA, 1, generator=rng)))

    def scale(self, smoothness: Tensor) -> float:
        return float((smoothness**ALPHA).mean()) ** 2

    def momentum(
        self,
        x: Float[Tensor, "n t"],
        w: Float[Tensor, "n t"],
        z: Float[Tensor, "n t"],
        B: Block,
        d: Float[Tensor, "b t"],
        smoothness: Float[Tensor, " B"],
        mu: float,
        excess: float,
    ) -> tuple[Tensor, Tensor]:
        """Return the next w and z."""
        S = float((smoothness**ALPHA).sum())
        nu = excess * S**2
        tau = 2 / (1 + math.sqrt(4 * nu / mu + 1))
        gamma = 1 / (tau * nu)
        p = B.L**ALPHA / S
        at = B.index.to(d.device)
        z = (z + gamma * mu * w).index_add_(0, at, d, alpha=-gamma * B.L ** (1 - BETA) / p)
        z /= 1 + gamma * mu
        return torch.lerp(x, z, tau), z
