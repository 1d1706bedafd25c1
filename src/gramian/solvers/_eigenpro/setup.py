"""Setup: what stays the same in the loop of EigenPro 3, and its minibatches, augmented or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...data import EPOCH_STRIDE, Augmentation, Batches, as_rows
from ...operators import DenseBlock, KernelOperator, materialize
from ...preconditioners import EigenProFactor
from ...problems import NystromProblem
from ..base import State
from ..minibatches import EpochPart
from .projection import Projection
from .state import EigenPro3State
from .temporary_centers import TemporaryCenters

Minibatch = tuple[int, Tensor, Tensor, Tensor]
"""Its number among all, and its row numbers, rows and targets."""


@dataclass(frozen=True)
class Setup:
    """Constants of the loop of `EigenPro3`, in the symbols of its paper.

    Attributes
    ----------
    problem : NystromProblem
    K : KernelOperator of shape (n, p)
        K(X, Z), the centers in memory or in a file that is mapped.
    P : EigenProFactor
        The subsample X_s and U, with Q_s = U U'.
    K_Zs_U : Tensor of shape (p, q)
        K(Z, X_s) U.
    projection : Projection
    batches : Batches
    omega : Tensor of shape (n,), or None
        Observation weights relative to their mean.
    eta : float
        Step per row.
    delay : int
        T, the batches between two projections.
    augment : Augmentation, or None
    settings : dict of str to float
        What was chosen, for the eye.
    """

    problem: NystromProblem
    K: KernelOperator
    P: EigenProFactor
    K_Zs_U: Float[Tensor, "p q"]
    projection: Projection
    batches: Batches
    omega: Float[Tensor, " n"] | None
    eta: float
    delay: int
    augment: Augmentation | None
    settings: dict[str, int | float]

    def start(self, coef: Float[Tensor, "p t"], state: State | None) -> EigenPro3State:
        """Return the state before the first step, from these coefficients."""
        iteration = 0 if state is None else state.iteration
        return EigenPro3State(
            iteration, coef, seed=self.batches.seed, settings=self.settings, last=coef, count=0
        )

    def minibatches(self, part: EpochPart) -> Iterator[Minibatch]:
        """Yield the batches of part of an epoch; augmentation has a generator for each of them."""
        batches = self.batches.epoch(part.epoch, part.start, part.stop)
        for number, (index, x) in zip(part.numbers(len(self.batches)), batches, strict=True):
            y = self.problem.targets[index]
            if self.augment is not None:
                seed = self.batches.seed + EPOCH_STRIDE * (number + 1)
                x, y = self.augment(x, y, torch.Generator().manual_seed(seed))
            yield number, index, x, y.double()

    def kernel_blocks(self, x: Tensor) -> tuple[KernelOperator | DenseBlock, ...]:
        """Return K(x, Z) and K(x, X_s), in memory where they fit into a half and a quarter."""
        K = replace(self.K, rows=as_rows(x))
        K_s = replace(K, cols=self.P.points)
        return materialize(K, K.memory_bytes // 2), materialize(K_s, K.memory_bytes // 4)

    def temporary_centers(self, t: int) -> TemporaryCenters:
        """Return room for the temporary centers between two projections, of t targets."""
        return TemporaryCenters(self.K, self.P, t, self.delay, self.batches)


def change_of_rows(
    augment: Augmentation | None, t: int, rng: torch.Generator
) -> Callable[[Tensor], Tensor] | None:
    """Return the augmentation of rows alone, without t targets; None if there is none."""
    if augment is None:
        return None
    return lambda x: augment(x, x.new_zeros(len(x), t), rng)[0]
