"""Diagonal blocks of the full problem, each with an approximate inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, Int, RandomStream
from ...lowrank import POWER_SAFETY, largest_eigenvalue, randomized_nystrom
from ...preconditioners import LowRankInverse
from ...problems import FullProblem

BLOCK_SOLVERS = ("auto", "exact", "nystrom", "none")

EXACT_ROWS = 4000
"""Largest block, in rows, that "auto" solves exactly."""

HEAVY_WEIGHT = 10.0
"""Weight, relative to the mean, from which a row may be heavy; see `Blocks.heavy`."""

CURVATURE_PROBES = 32
"""Rows of a block that estimate its curvature."""


@dataclass(frozen=True)
class Block:
    """Rows B of the problem, and a preconditioner P of H = K_BB + D_B.

    - `index`: indices of the rows B, increasing.
    - `P`: ``P @ g`` is P⁻¹ g for g of shape (b, t).
    - `L`: the largest eigenvalue of P⁻¹ H, or an upper bound.
    - `curvature`: lower bound on the curvature along a step in the metric of L P, averaged over
      random blocks: the ridge over L times the value that P uses for unresolved eigenvalues of
      K_BB. 0 for fixed blocks, which do not bound the curvature across two blocks.
    - `singular`: whether H is singular to rounding, and P is H with the least jitter that makes it
      regular.
    """

    index: Int[Array, " b"]
    P: Any
    L: float
    curvature: float
    singular: bool = False


@dataclass(frozen=True)
class Blocks:
    """Blocks of a problem, with their inverses and gradients.

    - `b`, `rank`: rows of a block; rank of its preconditioner.
    - `solver`: "exact", "nystrom" or "none".
    - `damping`: number added to the Nystrom approximation of a block, or "auto"; see `ASkotch`.
    - `test_matrix`: test matrix of the Nystrom approximation.
    """

    problem: FullProblem
    b: int
    rank: int
    solver: str
    damping: Any = "auto"  # float or "auto", checked by ASkotch
    test_matrix: str = "normal"

    @property
    def n(self) -> int:
        """Number of rows of the problem."""
        return self.problem.K.shape[0]

    @cached_property
    def heavy(self) -> Int[Array, " h"]:
        """Rows with more than 1 / b of the total weight, at most b, which few blocks contain."""
        weights = self.problem.weights
        # A block of all rows contains the heavy ones in each iteration.
        if weights is None or self.b == self.n:
            return xp.empty(0, xp.int64)
        share = xp.to_host(xp.to_float64(weights)) / self.problem.total
        return xp.flatnonzero(share > max(1 / self.b, HEAVY_WEIGHT / self.n))

    def build(self, index: Int[Array, " b"], rng: RandomStream) -> Block:
        """Build the block of some rows. Cost: b² kernel evaluations, and b² r or b³ / 3."""
        K = self.problem.K[index, index]
        ridge = self.ridge(index)
        if self.solver == "exact":
            # The ridge of an exact factor may be below the rounding of float32.
            return _exact(index, K.double().dense(), ridge, rng)
        H = K.dense()
        if self.solver == "none":
            return _plain(index, H, ridge, rng)
        return self._nystrom(index, H, ridge, rng)

    def _nystrom(self, index: Array, H: Array, ridge: Array, rng: RandomStream) -> Block:
        """Precondition by P = F F' + damping; by H at full rank."""
        trace, rank = float(xp.to_float64(xp.diagonal(H)).sum()), min(self.rank, self.b)
        low = randomized_nystrom(
            lambda x: H @ x, len(H), rank, trace, dtype=H.dtype, device=H.device,
            test_matrix=self.test_matrix, rng=rng,
        )  # fmt: skip
        full_rank, least_ridge = rank == len(H), float(ridge.min())
        # The damping of the paper: rho is the ridge plus the last eigenvalue of F F', which
        # estimates the part of the block outside of F.
        last = 0.0 if full_rank else float(low.values[-1])
        auto = self.damping == "auto"
        rho, least_rho = (ridge + last, least_ridge + last) if auto else 2 * (float(self.damping),)
        P = LowRankInverse.build(low.factor, rho)
        # Power steps approach the eigenvalue from below, and too small an L makes the step too
        # long.
        exact = full_rank and auto
        L = 1.0 if exact else max(POWER_SAFETY * _largest(H, ridge, P, rng), 1.0)
        # Outside of F the block is at least its ridge, and P the damping: their quotient bounds the
        # least eigenvalue of a step.
        return Block(index, P, L, least_ridge / (L * least_rho))

    def ridge(self, index: Array) -> Array:
        """Return the diagonal added to K in some rows: (b, 1), or a scalar."""
        ridge = self.problem.ridge
        return ridge[index] if ridge.ndim else ridge

    def gradient(self, index: Array, w: Float[Array, "n t"]) -> Float[Array, "b t"]:
        """Return K_Bn w + D_B w_B - y_B. Cost: n b kernel evaluations."""
        product = self.problem.K[index] @ w
        return product + self.ridge(index) * w[index] - xp.to_float64(self.problem.rhs[index])


def _plain(index: Array, H: Array, ridge: Array, rng: RandomStream) -> Block:
    """Use the identity as preconditioner."""
    L = POWER_SAFETY * _largest(H, ridge, _Identity(), rng)
    curvature = float(ridge.min()) / L
    return Block(index, _Identity(), L, curvature)


def _exact(index: Array, H: Array, ridge: Array, rng: RandomStream) -> Block:
    """Use H itself as preconditioner, and estimate the curvature from the diagonal of H⁻¹.

    1 / (H⁻¹)_ii is the ridge plus the part of row i that other rows of the block do not explain.
    The mean of H⁻¹ determines the mean step of random blocks; rows with a similar row in their
    block contribute most to it.
    """
    probes = rng.sample(len(H), CURVATURE_PROBES)
    # The squared norm of R'⁻¹ e_i is (H⁻¹)_ii, so that some columns of the identity estimate the
    # mean.
    units = xp.zeros((len(H), len(probes)), like=H)
    units[probes, xp.arange(len(probes))] = 1.0
    A = la.by_columns(H)
    # Subnormal entries would slow the factorisation down by an order of magnitude.
    la.flush_tiny_(A)
    xp.add_(xp.diagonal(A), ridge.reshape(-1))
    singular = la.cholesky_with_jitter_(A, xp.float64, exact=True) > 0
    diagonals = xp.square(la.solve_triangular(A, units, lower=False, transpose=True)).sum(axis=0)
    return Block(index, _Cholesky(A), 1.0, float(ridge.min() * diagonals.mean()), singular)


@dataclass(frozen=True)
class _Identity:
    def __matmul__(self, g: Array) -> Array:
        return g

    def apply(self, g: Array) -> Array:
        return g


@dataclass(frozen=True)
class _Cholesky:
    R: Array

    def __matmul__(self, g: Array) -> Array:
        return la.solve_cholesky(self.R, g)


def _largest(H: Array, ridge: Array, P: Any, rng: RandomStream) -> float:
    """Return the largest eigenvalue of P⁻¹ (H + ridge): algorithm 3 of the paper."""
    ridge = xp.cast(ridge, H.dtype)
    start = xp.cast_like(rng.standard_normal((len(H), 1), H.dtype), H)
    return largest_eigenvalue(lambda v: H @ v + ridge * v, start, P.__matmul__, P.apply)
