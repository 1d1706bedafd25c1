"""What solvers that stream mini-batches share: where in an epoch they are, and what they saw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..data import EPOCH_STRIDE, ArrayRows, Batches, gathered
from ..operators import KernelOperator
from ..problems import FullProblem, NystromProblem

LEAST_BATCH = 128
LARGEST_BATCH = 4096
"""Rows of an automatic batch: below, calls cost more than numbers; above, nothing is saved."""


@dataclass(frozen=True)
class Stretch:
    """The batches between two states.

    Attributes
    ----------
    epoch : int
    start, stop : int
        Numbers of batches within the epoch.
    done : float
        Epochs after it.
    length : float
        Epochs that it is, of stretches of equal length.
    """

    epoch: int
    start: int
    stop: int
    done: float
    length: float

    @classmethod
    def after(cls, iteration: int, batches: int, per_epoch: int) -> Stretch:
        """Return the stretch that follows a state, with so many batches and states per epoch."""
        parts = min(per_epoch, batches)
        epoch, part = divmod(iteration, parts)
        start, stop = (-(-k * batches // parts) for k in (part, part + 1))
        return cls(epoch, start, stop, (iteration + 1) / parts, 1 / parts)


def drawn_batches(batches: Batches, part: Stretch) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield row numbers and rows of batches drawn independently, where rows can be drawn.

    If they cannot, or if a batch is all rows: of those of a shuffled pass.
    """
    n, b = batches.rows.shape[0], batches.size
    if b >= n or not batches.rows.random_access:
        yield from batches.epoch(part.epoch, part.start, part.stop)
        return
    for number in range(part.start, part.stop):
        batch = part.epoch * len(batches) + number
        rng = torch.Generator().manual_seed(batches.seed + EPOCH_STRIDE * (batch + 1))
        index = torch.randint(n, (b,), generator=rng).unique()
        yield index, batches.rows.take(index)


class BatchErrors:
    """The mean squared residual of batches, each at the time it was drawn, which costs nothing."""

    def __init__(self) -> None:
        self._squares: Tensor | None = None
        self._targets: Tensor | None = None
        self._rows = 0

    def add(self, residual: Tensor, targets: Tensor) -> None:
        """Count a batch: residuals and targets of shape (b, t)."""
        squares = residual.double().square().sum(dim=0)
        size = targets.double().square().sum(dim=0)
        self._squares = squares if self._squares is None else self._squares + squares
        self._targets = size if self._targets is None else self._targets + size
        self._rows += len(residual)

    @property
    def mse(self) -> float:
        """The mean over rows and targets."""
        return 0.0 if self._squares is None else float(self._squares.mean() / self._rows)

    @property
    def relative(self) -> float:
        """The residual relative to the targets, largest over the targets."""
        if self._squares is None or self._targets is None:
            return 0.0
        return float(
            (self._squares / torch.where(self._targets > 0, self._targets, 1)).sqrt().max()
        )


def held_centers(K: KernelOperator) -> KernelOperator:
    """Return the operator with its columns dense and at hand: they are needed in each batch.

    They are in memory or, if they exceed the budget, in a file that is mapped.
    """
    if isinstance(K.cols, ArrayRows):
        points = next(K.cols.blocks(K.shape[1]))[1]
        there = K.at_hand(points)
        return K if there is points else K.against(there)
    points = gathered(K.cols, torch.arange(K.shape[1]), K.host_bytes, dense=True)
    return K.against(K.at_hand(points))


def relative_weights(problem: FullProblem | NystromProblem) -> Float[Tensor, " n"] | None:
    """Return the observation weights relative to their mean, None if there are none."""
    weights = problem.weights
    return None if weights is None else weights.double() / weights.double().mean()
