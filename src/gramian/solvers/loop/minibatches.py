"""Base of mini-batch solvers and of their states, parts of an epoch, batch errors and centers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...data import ArrayRows, as_rows, gather_rows
from ...operators import DenseBlock, KernelOperator, materialize
from ...problems import FullProblem, NystromProblem
from ..base import ProblemType, Solver, StateType
from .state import BATCH_ERROR, State, StopReason, draw_seed, refuse_beyond, starting_coef

LEAST_BATCH = 128
LARGEST_BATCH = 4096
"""Bounds of an automatic batch: fewer rows cost more in calls, more rows save nothing."""


DIVERGED_ERROR = 100.0
"""Batch error of a diverged run, relative to the targets and to the first error."""


class MiniBatchSolver(Solver[ProblemType, StateType]):
    """Solver with constants of the loop, a first state, and one step from state to state.

    A state has the seed of all random numbers, so that a resumed run draws the same ones.
    """

    @abstractmethod
    def setup(self, problem: ProblemType, seed: int) -> Any:
        """Return the constants of the loop."""

    @abstractmethod
    def start(self, S: Any, coef: Float[Array, "m t"], state: State | None) -> StateType:
        """Return the state before the first step, from the coefficients of a plain state."""

    @abstractmethod
    def next(self, S: Any, s: StateType) -> StateType:
        """Return the state after the next part of an epoch."""

    def iterate(
        self,
        problem: ProblemType,
        state: State | None = None,
        *,
        rng: RandomStream | None = None,
    ) -> Iterator[StateType]:
        saved_state: Any = state if isinstance(state, self.state_type) else None
        seed = draw_seed(rng) if saved_state is None else saved_state.seed
        shape = problem.K.shape[1], problem.targets.shape[1]
        # Coefficients of a wrong shape are refused before the setup, which may take long.
        coef = starting_coef(state, xp.zeros(shape, xp.float64, like=problem.targets))
        S = self.setup(problem, seed)
        s = self.start(S, coef, state) if saved_state is None else saved_state
        yield s
        while True:
            s = self.next(S, s)
            yield s


@dataclass(kw_only=True)
class MiniBatchState(State):
    """State after a part of an epoch, enough to resume exactly.

    - `seed`: seeds the draw of each batch, together with the number of the iteration.
    - `settings`: chosen settings, such as the batch and the step.
    - `first`: mean squared batch error before the second state, -1 at first.
    - `lost`: whether the error of the last batches is far above that error and their targets.
    """

    seed: int = 0
    settings: dict[str, int | float] = field(default_factory=dict)
    first: float = -1.0
    lost: bool = False

    @property
    def verdict(self) -> StopReason | None:
        return "diverged" if self.lost else None

    def progress(self, errors: BatchErrors, epochs: float) -> dict[str, Any]:
        """Return the fields of the next state, from the batch errors since the last state."""
        if self.first < 0:
            return {"first": errors.mse}
        # The negated comparison is also true for NaN.
        grown = not errors.mse <= DIVERGED_ERROR**2 * self.first
        return {"first": self.first, "lost": grown and not errors.relative <= DIVERGED_ERROR}


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


def kernel_block(K: KernelOperator, x: Array) -> KernelOperator | DenseBlock:
    """Return the kernel matrix of rows and landmarks, stored if it fits half of the memory."""
    return materialize(replace(K, rows=as_rows(x)), K.memory_bytes // 2)


def check_batch_error(problem: NystromProblem, state: State, coefs: Sequence[Array]) -> None:
    """Raise ValueError if errors of coefficients are far above the errors of the last batches.

    Cost: n m kernel evaluations for each of `coefs`.
    """
    batch_error = state.metrics.get(BATCH_ERROR)
    if batch_error is None:
        return
    for coef in coefs:
        r = problem.K @ coef - xp.to_float64(problem.targets)
        refuse_beyond("an error", math.sqrt(batch_error), float(xp.sqrt(xp.square(r).mean())))
