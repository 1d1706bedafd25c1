"""FullPath: the full problem at several penalties side by side, by conjugate gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..lowrank import columns_factor
from ..operators import DenseBlock
from ..preconditioners import LowRankInverse
from ..problems import FullProblem

STORED_FEATURES = 48
"""Features from which on entries are stored, if there is memory for them."""

RANK = 1000
"""Columns of the preconditioner at most: r² memory and r³ work stay out of sight."""


@dataclass(frozen=True)
class Stage:
    """The iterates of all penalties after some iterations.

    Attributes
    ----------
    iteration : int
    coef : Tensor of shape (p, n, t)
        In float64.
    residual : Tensor of shape (p,)
        Relative to the right-hand side, the largest over the targets: as the recursion has it.
    """

    iteration: int
    coef: Float[Tensor, "p n t"]
    residual: Float[Tensor, " p"]


@dataclass(frozen=True)
class FullPath:
    r"""The systems (K + N penalty W⁻¹) coef = y for p penalties, which share their products.

    A product with K of p t columns costs little more than one of a single column: the entries are
    computed once. Each penalty has its own preconditioner, of the same columns of K.

    Attributes
    ----------
    problem : FullProblem
        Its own penalty is not used. Products run in the dtype of its rows.
    inverses : sequence of LowRankInverse
        A preconditioner for each penalty.
    entries : DenseBlock or None
        Those of K, if they are stored.

    Notes
    -----
    Cost: n r kernel evaluations, n r² operations and p r³ / 3 to build; per iteration n² / 2
    kernel evaluations, and 4 n r + 4 n operations for each column.

    With float32 rows the recursive residual is not refined by a true one: penalties below
    1e-2 / N are not for such rows, see `least_penalty`.

    References
    ----------
    .. [1] Hestenes & Stiefel, *Methods of conjugate gradients for solving linear systems*, 1952.
    """

    problem: FullProblem
    penalties: tuple[float, ...]
    inverses: tuple[LowRankInverse, ...]
    entries: DenseBlock | None = None

    @classmethod
    def build(
        cls,
        problem: FullProblem,
        penalties: Sequence[float],
        *,
        rng: torch.Generator,
        rank: int = RANK,
        store_bytes: int = 0,
        stored_features: int = STORED_FEATURES,
    ) -> FullPath:
        """Return the path with preconditioners from random columns of K, at most half of them.

        Parameters
        ----------
        problem : FullProblem
        penalties : sequence of float
        rng : torch.Generator
            Draws the columns.
        rank : int, default=1000
        store_bytes : int, default=0
            Memory for entries of K, which are stored if they fit and rows have many features.
        stored_features : int, default=48
            So many: computing entries anew then costs more seconds than reading them.
        """
        n, d = problem.K.rows.shape
        stored = d >= stored_features and n * n * problem.K.dtype.itemsize <= store_bytes
        entries = DenseBlock(problem.K.dense()) if stored else None
        factor = columns_factor(
            problem.K,
            max(1, min(rank, n // 2)),
            rng=rng,
            entries=None if entries is None else entries.entries,
        )
        unit = 1.0 if problem.weights is None else 1 / problem.weights.double()[:, None]
        shifts = [problem.total * penalty for penalty in penalties]
        inverses = LowRankInverse.path(factor, unit, shifts)
        return cls(problem, tuple(penalties), tuple(inverses), entries)

    def stages(self, start: Float[Tensor, "p n t"] | None = None) -> Iterator[Stage]:
        """Yield the iterates after 0, 1, 2, ... iterations, for ever; `start` is where they begin.

        Columns whose residual is zero to rounding, or whose curvature is not positive, stay.
        """
        Y = self.problem.targets.double()
        p, t = len(self.inverses), Y.shape[1]
        B = Y.repeat(1, p)
        ridge = torch.cat([self._ridge(inverse, t) for inverse in self.inverses], dim=1)
        norm = B.norm(dim=0)
        X = torch.zeros_like(B) if start is None else start.transpose(0, 1).reshape(len(Y), p * t)
        R = B if start is None else B - self._apply(X, ridge)
        Z = self._precondition(R, t, ridge)
        P, rz, iteration = Z, (R * Z).sum(dim=0), 0
        while True:
            coef = X.reshape(len(Y), p, t).transpose(0, 1)
            relative = R.norm(dim=0) / torch.where(norm > 0, norm, 1.0)
            yield Stage(iteration, coef, relative.reshape(p, t).amax(dim=1))
            Q = self._apply(P, ridge)
            pq = (P * Q).sum(dim=0)
            moves = (pq > 0) & (rz > 0) & (relative > EPS)
            a = torch.where(moves, rz / torch.where(moves, pq, 1.0), 0.0)
            X, R = X + a * P, R - a * Q
            Z = self._precondition(R, t, ridge)
            before, rz = rz, (R * Z).sum(dim=0)
            P = Z + torch.where(moves, rz / torch.where(moves, before, 1.0), 0.0) * P
            iteration += 1

    def _ridge(self, inverse: LowRankInverse, t: int) -> Tensor:
        n = len(self.problem.targets)
        return inverse.ridge.reshape(-1, 1).expand(n, t)

    def _apply(self, P: Tensor, ridge: Tensor) -> Tensor:
        """Return (K + ridge) P, with entries and P in the dtype of the rows."""
        if self.entries is not None:
            return (self.entries @ P.to(self.problem.K.dtype)).double() + ridge * P
        K = self.problem.K
        return (K @ P.to(K.dtype)).double() + ridge * P

    def _precondition(self, R: Tensor, t: int, ridge: Tensor) -> Tensor:
        """Return the inverses times R, each times its t columns: two products with F for all."""
        F = self.inverses[0].factor
        scaled = R / ridge
        # rows times F are six times as fast as F' times a few columns
        small = (scaled.t().to(F.dtype).contiguous() @ F).double().t().split(t, dim=1)
        inner = [
            la.solve_cholesky(M.inner, each) for M, each in zip(self.inverses, small, strict=True)
        ]
        back = torch.cat(inner, dim=1).t().to(F.dtype).contiguous() @ F.t()
        return scaled - back.t().double() / ridge


EPS = 1e-7
"""A residual of float32 products is rounding from here on."""


def least_penalty(problem: FullProblem) -> float:
    """Return the least penalty for which products in the dtype of the rows are precise enough.

    A shift of 1e-2 for float32 rows and a kernel of diagonal 1: measured, 3e-3 converged on 8,000
    rows of a real set and diverged on 10,000.
    """
    single = problem.K.dtype == torch.float32
    return (1e-2 if single else 1e-9) / problem.total
