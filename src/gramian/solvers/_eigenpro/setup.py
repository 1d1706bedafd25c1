"""Setup: what stays the same in the loop of EigenPro 3, and its minibatches, augmented or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...data import EPOCH_STRIDE, Augmentation, Batches, as_rows
from ...operators import DenseBlock, KernelOperator, materialize
from ...preconditioners import EigenProFactor
from ...problems import NystromProblem
from ..minibatches import EpochPart
from ..state import State
from .projection import Projection
from .state import EigenPro3State
from .temporary_centers import TemporaryCenters

CHUNK_ROWS = 1024
"""Rows whose kernel entries are evaluated at once: calls for fewer cost more than the entries."""

Minibatch = tuple[int, Tensor, Tensor, Tensor]
"""Its number among all, and its row numbers, rows and targets."""


@dataclass(frozen=True)
class Step:
    """A batch of a chunk.

    Attributes
    ----------
    rows : slice
        Where its rows are in the chunk.
    index : Tensor of shape (m,)
        Their row numbers.
    y : Tensor of shape (m, t)
    number : int
        Of the batch, among all.
    due : bool
        Whether a projection follows.
    """

    rows: slice
    index: Tensor
    y: Tensor
    number: int
    due: bool


@dataclass(frozen=True)
class Chunk:
    """Some batches, one after the other, whose kernel entries are evaluated at once.

    Attributes
    ----------
    x : Tensor of shape (c, d)
        Their rows.
    steps : list of Step
    """

    x: Tensor
    steps: list[Step]

    @classmethod
    def of(cls, batches: list[tuple[Minibatch, bool]]) -> Chunk:
        """Put batches together, each with whether a projection follows."""
        steps, stop = [], 0
        for (number, index, x, y), due in batches:
            start, stop = stop, stop + len(x)
            steps.append(Step(slice(start, stop), index, y, number, due))
        rows = [x for (_, _, x, _), _ in batches]
        return cls(rows[0] if len(rows) == 1 else torch.cat(rows), steps)

    @property
    def inner(self) -> bool:
        """Whether a batch has temporary centers among the rows of the chunk."""
        return not all(step.due for step in self.steps[:-1])


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

    def chunks(self, part: EpochPart) -> Iterator[Chunk]:
        """Yield the batches of part of an epoch, some at once: dense ones of few rows."""
        last, steps = part.numbers(len(self.batches))[-1], 0
        waiting: list[tuple[Minibatch, bool]] = []
        most = self._chunk_rows
        for batch in self.minibatches(part):
            number, _, x, _ = batch
            steps += 1
            due = number == last or steps == self.delay
            waiting.append((batch, due))
            steps = 0 if due else steps
            full = (len(waiting) + 1) * len(x) > most or x.layout != torch.strided
            if full or number == last:
                yield Chunk.of(waiting)
                waiting = []

    @property
    def _chunk_rows(self) -> int:
        """Rows of a chunk at most: their kernel entries are to fit into memory."""
        numbers = self.K.memory_bytes // self.K.dtype.itemsize
        fits = min(numbers // (2 * self.K.shape[1]), numbers // (4 * len(self.P.index)))
        return min(CHUNK_ROWS, fits, math.isqrt(numbers // 4))

    def kernel_blocks(self, chunk: Chunk) -> tuple[KernelOperator | DenseBlock, ...]:
        """Return K(x, Z), K(x, X_s), K(x, x), in memory where they fit into a half and quarters.

        The last one only where it is used: for several batches between two projections.
        """
        K = replace(self.K, rows=as_rows(chunk.x))
        room = K.memory_bytes // 4
        K_x = replace(K, cols=K.rows)
        if chunk.inner:
            return materialize(K, 2 * room), self._K_s(K, room), materialize(K_x, room)
        return materialize(K, 2 * room), self._K_s(K, room), K_x

    def _K_s(self, K: KernelOperator, room: int) -> KernelOperator | DenseBlock:
        return materialize(replace(K, cols=self.P.points), room)

    def temporary_centers(self, t: int) -> TemporaryCenters:
        """Return room for the temporary centers between two projections, of t targets."""
        return TemporaryCenters(self.K, self.P, self.K_Zs_U, t, self.delay, self.batches)


def change_of_rows(
    augment: Augmentation | None, t: int, rng: torch.Generator
) -> Callable[[Tensor], Tensor] | None:
    """Return the augmentation of rows alone, without t targets; None if there is none."""
    if augment is None:
        return None
    return lambda x: augment(x, x.new_zeros(len(x), t), rng)[0]
