"""Constants of the loop of NystromSGD, with the step and the start."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...data import Batches, as_rows
from ...lowrank import POWER_SAFETY, largest_eigenvalue
from ...operators import DenseBlock, KernelOperator, materialize
from ..loop.state import State, starting_coef
from .coordinates import Coordinates
from .state import StochasticState

STEP_ROWS = 1000
"""Rows from which the step length is estimated."""


@dataclass(frozen=True)
class Setup:
    """Constants of the loop of `NystromSGD`.

    - `K`: the landmarks in memory or in a memory-mapped file.
    - `omega`: observation weights relative to their mean.
    - `tau`: step length.
    """

    C: Coordinates
    K: KernelOperator
    batches: Batches
    omega: Float[Array, " n"] | None
    tau: float = 0.0

    def kernel_block(self, x: Array) -> KernelOperator | DenseBlock:
        """Return the kernel matrix of rows and landmarks, stored if it fits half of the memory."""
        return materialize(replace(self.K, rows=as_rows(x)), self.K.memory_bytes // 2)

    def start(self, state: State | None) -> StochasticState:
        """Return the state before the first step."""
        problem = self.C.problem
        m, t = self.K.shape[1], problem.targets.shape[1]
        coef = starting_coef(state, xp.to_float64(xp.zeros((m, t), like=problem.targets)))
        beta = self.C.from_coef(coef)
        return StochasticState(
            iteration=0 if state is None else state.iteration,
            coef=coef,
            beta=beta,
            mean=beta,
            seed=self.batches.seed,
            settings={"batch": self.batches.size, "step": self.tau},
        )

    def stable_step(self) -> float:
        """Return 1 / (L + R² / b), from the rows of the first batches.

        Cost: 1,000 m kernel evaluations, and 1,000 m² operations.
        """
        sample = replace(self.batches, size=min(STEP_ROWS, self.K.shape[0]))
        B, x = next(iter(sample.epoch(0)))
        K_Bm = xp.to_float64(replace(self.K, rows=as_rows(x)).dense())
        weight = (
            xp.ones(len(B), like=K_Bm) if self.omega is None else xp.cast_like(self.omega[B], K_Bm)
        )
        features = self.C.pull_back(xp.contiguous(K_Bm.T)) * xp.sqrt(weight)

        def hessian(v: Array) -> Array:
            return features @ (features.T @ v) / len(B) + self.C.ridge(v)

        rng = RandomStream(self.batches.seed)
        start = rng.standard_normal((len(features), 1), xp.float64)
        L = POWER_SAFETY * largest_eigenvalue(hessian, xp.cast_like(start, features))
        trace = float(xp.square(features).sum(axis=0).max())
        # A kernel that vanishes at all rows leaves no curvature: any step serves.
        return 1.0 / ((L + trace / self.batches.size) or 1.0)
