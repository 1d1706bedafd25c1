"""The preconditioner of SketchySAGA, its damping and the step it allows, from a few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..data import as_rows
from ..lowrank import SAFETY, RandomizedNystrom, largest_eigenvalue, randomized_nystrom
from ..operators import KeptBlock, KernelOperator, kept
from ..preconditioners import LowRankInverse

SKETCH_ROWS = 1000
"""Rows of the sketch at least; the paper's square root of n is fewer below a million."""

GRID = 8
"""Dampings that are tried, a tenth apart, from the largest eigenvalue down."""

PROBE_STEPS = 30
ROWS_AT_ONCE = 256
BATCHES = 3
"""Batches over which the smoothness is the largest."""


@dataclass(frozen=True)
class Hessian:
    """The Hessian over n, K' Omega K / n + penalty K_mm, known from samples of rows.

    Attributes
    ----------
    K : KernelOperator of shape (n, m)
    omega : Tensor of shape (n,)
    targets : Tensor of shape (n, t)
    K_mm : KeptBlock, or None
        Left out if there is none.
    penalty : float
    entry : float
        Largest c² / omega of the landmarks, if the ridge is in the rows, else 0.
    """

    K: KernelOperator
    omega: Tensor
    targets: Tensor
    K_mm: KeptBlock | None
    penalty: float
    entry: float = 0.0

    def sample(self, rows: int, rng: torch.Generator) -> Sampled:
        """Return the Hessian of some random rows."""
        n = self.K.shape[0]
        index = torch.randperm(n, generator=rng)[: min(rows, n)].sort().values
        K = KernelOperator(
            self.K.kernel,
            as_rows(self.K.rows.take(index)),
            self.K.cols,
            self.K.engine,
            self.K.memory_bytes,
            self.K.meter,
        )
        block = kept(K, self.K.memory_bytes // 2)
        return Sampled(self, block, self.omega[index, None], self.targets[index].double())


@dataclass(frozen=True)
class Sampled:
    """The Hessian and the gradient of some rows."""

    whole: Hessian
    K: KernelOperator | KeptBlock
    omega: Tensor
    y: Tensor

    def product(self, v: Tensor) -> Tensor:
        """Return H v in float64."""
        total = self.K.T @ (self.omega * (self.K @ v.double())) / len(self.omega)
        return total + self._ridge(v.double())

    def gradient(self, w: Tensor) -> Tensor:
        """Return the gradient at w."""
        residual = self.K @ w - self.y
        return self.K.T @ (self.omega * residual) / len(self.omega) + self._ridge(w)

    def error(self, w: Tensor) -> float:
        """Return the objective at w, up to a constant factor."""
        square = float((self.omega * (self.K @ w - self.y).square()).mean(dim=0).sum())
        return square + float((w * self._ridge(w)).sum())

    def trace(self, rng: torch.Generator) -> float:
        """Return an estimate of the trace, by one random vector of signs [Hutchinson]."""
        signs = torch.randint(2, (self.K.shape[1], 1), generator=rng).double() * 2 - 1
        return float((signs * self.product(signs)).sum())

    def largest_row(self, P: LowRankInverse) -> float:
        """Return the largest omega k' P⁻¹ k of the rows k: what a single one adds to a batch."""
        largest = 0.0
        for start in range(0, len(self.omega), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            one = torch.zeros(len(self.omega), len(self.omega[part]), dtype=torch.float64)
            one[part].fill_diagonal_(1.0)
            k = self.K.T @ one
            largest = max(largest, float(((k * (P @ k)).sum(dim=0) * self.omega[part, 0]).max()))
        return largest

    def _ridge(self, v: Tensor) -> Tensor:
        K_mm, penalty = self.whole.K_mm, self.whole.penalty
        return torch.zeros_like(v) if K_mm is None else penalty * (K_mm @ v)


@dataclass(frozen=True)
class Sketch:
    """The damped preconditioner and the step.

    Attributes
    ----------
    P : LowRankInverse
    rho, smoothness, step : float
    rank : int
    """

    P: LowRankInverse
    rho: float
    smoothness: float
    step: float
    rank: int

    @classmethod
    def build(
        cls,
        H: Hessian,
        rank: int,
        batch: int,
        damping: float | int | str,
        scale: float | int,
        rng: torch.Generator,
    ) -> Sketch:
        """Sketch the Hessian and choose the damping; see `SketchySAGA`."""
        n, m = H.K.shape
        first = H.sample(max(math.isqrt(n), SKETCH_ROWS, 2 * rank), rng)
        # float64: with a small damping, P⁻¹ loses the digits of Lambda_1 / rho
        low = randomized_nystrom(first.product, m, rank, first.trace(rng), rng=rng)
        batches = [H.sample(batch, rng) for _ in range(1 if batch >= n else BATCHES)]
        probe = H.sample(max(4 * batch, SKETCH_ROWS), rng)
        start = torch.randn(m, 1, dtype=torch.float64, generator=rng)
        top = float(low.values[0]) or 1.0
        grid = [top * 10.0**-j for j in range(GRID)] if damping == "auto" else [float(damping)]
        tried = [cls._at(low, rho, batches, probe, float(scale), start) for rho in grid]
        return min(tried, key=lambda sketch: sketch.probed(probe)) if len(tried) > 1 else tried[0]

    @classmethod
    def _at(
        cls,
        low: RandomizedNystrom,
        rho: float,
        batches: list[Sampled],
        probe: Sampled,
        scale: float,
        start: Tensor,
    ) -> Sketch:
        P = LowRankInverse.build(low.factor, rho)
        found = (largest_eigenvalue(B.product, start, P.__matmul__, P.apply) for B in batches)
        single = 0.0
        if len(batches) > 1:
            single = (probe.largest_row(P) + probe.whole.entry / rho) / len(batches[0].omega)
        L = SAFETY * max(max(found) + single, 1e-300)
        return cls(P, rho, L, scale / L, low.factor.shape[1])

    def probed(self, rows: Sampled) -> float:
        """Return the objective of some rows after a few steps with all of them."""
        w = torch.zeros(rows.K.shape[1], rows.y.shape[1], dtype=torch.float64)
        for _ in range(PROBE_STEPS):
            w -= self.step * (self.P @ rows.gradient(w))
        error = rows.error(w)
        return error if math.isfinite(error) else math.inf

    def settings(self) -> dict[str, int | float]:
        """Return what was chosen, for the eye."""
        return {
            "rank": self.rank,
            "rho": self.rho,
            "smoothness": self.smoothness,
            "step": self.step,
        }
