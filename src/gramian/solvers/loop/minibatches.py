"""Tools of mini-batch solvers: parts of an epoch, batch errors, centers and weights."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...data import ArrayRows, gather_rows
from ...operators import KernelOperator
from ...problems import FullProblem, NystromProblem

LEAST_BATCH = 128
LARGEST_BATCH = 4096
"""Bounds of an automatic batch: fewer rows cost more in calls, more rows save nothing."""


@dataclass(frozen=True)
class EpochPart:
    """A part of an epoch: the batches between two states.

    - `start`, `stop`: range of batch indices within the epoch.
    - `done`: number of epochs at the end of the part.
    - `length`: length of the part in epochs; all parts have equal length.
    """

    epoch: int
    start: int
    stop: int
    done: float
    length: float

    @classmethod
    def after(cls, iteration: int, batches: int, per_epoch: int) -> EpochPart:
        """Return the part that follows a state, for the numbers of batches and states per epoch."""
        parts = min(per_epoch, batches)
        epoch, part = divmod(iteration, parts)
        # Rounded-up quotients spread the batches evenly over the parts.
        start, stop = (-(-k * batches // parts) for k in (part, part + 1))
        return cls(epoch, start, stop, (iteration + 1) / parts, 1 / parts)

    def numbers(self, batches: int) -> range:
        """Return the indices of the batches of the part, counted over all epochs."""
        return range(self.epoch * batches + self.start, self.epoch * batches + self.stop)


class BatchErrors:
    """Mean squared residual of batches, computed from the residuals that the steps need anyway."""

    def __init__(self) -> None:
        self._squares: Array | None = None
        self._targets: Array | None = None
        self._rows = 0

    def add(self, residual: Array, targets: Array) -> None:
        """Add the residuals and targets of a batch, both of shape (b, t)."""
        squares = xp.square(xp.to_float64(residual)).sum(axis=0)
        size = xp.square(xp.to_float64(targets)).sum(axis=0)
        self._squares = squares if self._squares is None else self._squares + squares
        self._targets = size if self._targets is None else self._targets + size
        self._rows += len(residual)

    @property
    def mse(self) -> float:
        """Mean squared residual over rows and targets."""
        return 0.0 if self._squares is None else float(self._squares.mean() / self._rows)

    @property
    def rmse(self) -> Array:
        """Root mean squared residual over the rows, per target."""
        return (
            xp.zeros(1, xp.float32)
            if self._squares is None
            else xp.sqrt(self._squares / self._rows)
        )

    @property
    def relative(self) -> float:
        """Root mean squared residual relative to the targets, the largest over the targets."""
        if self._squares is None or self._targets is None:
            return 0.0
        return float(xp.sqrt(self._squares / xp.where(self._targets > 0, self._targets, 1)).max())


def load_centers(K: KernelOperator) -> KernelOperator:
    """Return the operator with dense, loaded columns, because each batch uses them.

    The columns are in memory or, if they exceed the budget, in a memory-mapped file.
    """
    # Centers in memory are used as they are, without a copy.
    if isinstance(K.cols, ArrayRows):
        points = next(K.cols.blocks(K.shape[1]))[1]
        on_device = K.on_device(points)
        return K if on_device is points else K.against(on_device)
    points = gather_rows(K.cols, xp.arange(K.shape[1]), K.host_bytes, dense=True)
    return K.against(K.on_device(points))


def relative_weights(problem: FullProblem | NystromProblem) -> Float[Array, " n"] | None:
    """Return the observation weights relative to their mean; None without weights."""
    weights = problem.weights
    return None if weights is None else xp.to_float64(weights) / xp.to_float64(weights).mean()
