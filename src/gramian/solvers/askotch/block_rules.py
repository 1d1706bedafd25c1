"""Blocks of ASkotch: one random partition of the rows, or new random rows in each iteration."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from .blocks import Block, Blocks
from .state import ASkotchState

PRECONDITIONER_NUMBERS = 1 << 40
"""Offset between the seeds of iterations and of preconditioners."""


@dataclass(frozen=True)
class BlockRule(ABC):
    """Rule that draws blocks and updates the momentum.

    - `seed`: seeds the draw of a block, together with the number of the iteration.
    """

    blocks: Blocks
    seed: int

    most_convexity: ClassVar[float] = math.inf
    """Limit of convexity times excess: from there on, steps have no momentum."""

    @abstractmethod
    def smoothness(self) -> Float[Array, " B"]:
        """Return the constants L of all blocks, for the state; empty if blocks are not fixed."""

    @abstractmethod
    def draw(self, iteration: int, smoothness: Float[Array, " B"]) -> Block:
        """Return the block of an iteration."""

    @abstractmethod
    def momentum(
        self,
        s: ASkotchState,
        x: Float[Array, "n t"],
        B: Block,
        d: Float[Array, "b t"],
        mu: float,
    ) -> tuple[Array, Array]:
        r"""Return the next w, at which a gradient is computed, and the next momentum z.

        - `s`: the state before the step, with a finite `ASkotchState.excess`, which enlarges nu.
        - `x`: the next coefficients.
        - `d`: the step on the block.
        - `mu`: the strong convexity.
        """

    def scale(self, smoothness: Float[Array, " B"]) -> float:
        r"""Return c such that the error falls by :math:`\sqrt{\mu / c}` per pass."""
        return 1.0

    def generator(self, number: int) -> RandomStream:
        """Return the random generator for the block with this number."""
        # A prime stride keeps the seeds of consecutive numbers apart.
        return RandomStream(self.seed + 7919 * (number + 1))


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
    P and L are computed once per block at the start, n b kernel evaluations. Each visit computes P
    again from the same random numbers, to save memory. Departures: the printed step starts x from
    the last x; this class starts x from w, like NU_ACDM and the code of the authors. The printed
    algorithm uses the ridge for :math:`\mu`: ``convexity=ridge`` selects it, also above 1. The
    theory uses for :math:`\mu` the least curvature of the system in the metric of all P, which may
    be far below: differences between similar rows in different blocks, small in K, are large in
    each P.

    Attributes
    ----------
    sampling_power : float
        :math:`\alpha`. The norms that measure smoothness and convexity have the exponent
        :math:`\beta = 1 - 2 \alpha`; the theory of the paper has :math:`\beta = 1`.
    """

    sampling_power: float = 0.5

    @cached_property
    def partition(self) -> tuple[Array, ...]:
        """Indices of the rows of each block; all blocks have nearly equal sizes."""
        rows = self.generator(-1).permutation(self.blocks.n)
        count = math.ceil(self.blocks.n / self.blocks.b)
        return tuple(xp.sort(part) for part in xp.array_split(rows, count))

    def smoothness(self) -> Float[Array, " B"]:
        constants = [self.block(number).L for number in range(len(self.partition))]
        return xp.array(constants, dtype=xp.float64)

    def block(self, number: int) -> Block:
        """Build a block with its preconditioner P, which is the same at each call."""
        B = self.blocks.build(
            self.partition[number], self.generator(number + PRECONDITIONER_NUMBERS)
        )
        # The curvature of one block bounds nothing across two fixed blocks.
        return replace(B, curvature=0.0)

    def draw(self, iteration: int, smoothness: Array) -> Block:
        rng = self.generator(iteration)
        return self.block(rng.choose(xp.to_host(smoothness) ** self.sampling_power))

    def scale(self, smoothness: Array) -> float:
        return float((smoothness**self.sampling_power).mean()) ** 2

    def momentum(
        self,
        s: ASkotchState,
        x: Float[Array, "n t"],
        B: Block,
        d: Float[Array, "b t"],
        mu: float,
    ) -> tuple[Array, Array]:
        """Return the next gradient point w and the next momentum z."""
        w, z = s.ahead, s.momentum
        S = float((s.smoothness**self.sampling_power).sum())
        nu = s.excess(mu) * S**2
        tau = 2 / (1 + math.sqrt(4 * nu / mu + 1))
        # The paper has S² here. A larger value after a restart weakens the momentum.
        gamma = 1 / (tau * nu)
        # The probability of this draw, by which the step is divided: its expectation over all
        # blocks is then the step of the full gradient.
        p = B.L**self.sampling_power / S
        rows = xp.to_device(B.index, d.device)
        z = xp.add_at(
            z + gamma * mu * w, rows, d, alpha=-gamma * B.L ** (2 * self.sampling_power) / p
        )
        z /= 1 + gamma * mu
        return xp.lerp(x, z, tau), z


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
        rows = xp.sort(rng.sample(self.blocks.n, self.blocks.b))
        return self.blocks.build(rows, rng)

    def momentum(
        self,
        s: ASkotchState,
        W: Float[Array, "n t"],
        B: Block,
        d: Float[Array, "b t"],
        mu: float,
    ) -> tuple[Array, Array]:
        """Return the next Y and V of the paper, the gradient point and the momentum."""
        # The convexity counts per pass and the excess per block: both are converted to one
        # iteration, which is the share b / n of a pass.
        Y, V, share = s.ahead, s.momentum, self.blocks.b / self.blocks.n
        mu, nu = min(mu, 1.0) * share, s.excess(mu) / share
        beta, gamma = 1 - math.sqrt(mu / nu), 1 / math.sqrt(mu * nu)
        alpha = 1 / (1 + gamma * nu)
        V = xp.add_at(xp.lerp(Y, V, beta), xp.to_device(B.index, d.device), d, alpha=-gamma)
        return xp.lerp(W, V, alpha), V


BLOCK_RULES: dict[str, type[BlockRule]] = {"fresh": FreshBlocks, "fixed": FixedBlocks}
