"""FullPath: the full problem at several penalties side by side, by conjugate gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..lowrank import columns_factor
from ..preconditioners import LowRankInverse
from ..problems import FullProblem

STORED_FEATURES = 32
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


@runtime_checkable
class Inverse(Protocol):
    """What is applied to the residuals of all penalties, those of a penalty side by side."""

    def __matmul__(self, g: Float[Tensor, "n c"], /) -> Float[Tensor, "n c"]: ...


@dataclass(frozen=True)
class SharedFactor:
    """The preconditioners of several penalties, of the same F: two products with it for all.

    Attributes
    ----------
    inverses : sequence of LowRankInverse
        One for each penalty.
    """

    inverses: tuple[LowRankInverse, ...]

    def __matmul__(self, g: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
        """Return the inverses times g, each times its share of the columns."""
        F, each = self.inverses[0].factor, g.shape[1] // len(self.inverses)
        ridges = [inverse.ridge.reshape(-1, 1).expand(len(g), each) for inverse in self.inverses]
        ridge = torch.cat(ridges, dim=1)
        scaled = g / ridge
        # rows times F are six times as fast as F' times a few columns
        small = (scaled.t().to(F.dtype).contiguous() @ F).double().t().split(each, dim=1)
        inner = [
            la.solve_cholesky(M.inner, one) for M, one in zip(self.inverses, small, strict=True)
        ]
        back = torch.cat(inner, dim=1).t().to(F.dtype).contiguous() @ F.t()
        return scaled - back.t().double() / ridge


@dataclass(frozen=True)
class FullPath:
    r"""The systems (K + N penalty W⁻¹) coef = y for p penalties, which share their products.

    A product with K of p t columns costs little more than one of a single column: the entries are
    computed once.

    Attributes
    ----------
    problem : FullProblem
        Its own penalty is not used. Products run in the dtype of its rows; its K may keep its
        entries.
    inverse : Inverse
        The preconditioner of each penalty.

    Notes
    -----
    Cost per iteration: n² / 2 kernel evaluations, 4 n operations for each column, and those of the
    preconditioner.

    With float32 rows the recursive residual is not refined by a true one: penalties below
    1e-2 / N are not for such rows, see `least_penalty`.

    References
    ----------
    .. [1] Hestenes & Stiefel, *Methods of conjugate gradients for solving linear systems*, 1952.
    """

    problem: FullProblem
    penalties: tuple[float, ...]
    inverse: Inverse

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
            Memory for the lower triangle of K, kept if it fits and rows have many features.
        stored_features : int, default=32
            So many: computing entries anew then costs more seconds than reading them.

        Notes
        -----
        Cost: n r kernel evaluations, n r² operations and p r³ / 3; 4 n r operations of each
        iteration for each column.
        """
        n = len(problem.K.rows)
        factor = columns_factor(problem.K, max(1, min(rank, n // 2)), rng=rng)
        problem = _keeping(problem, store_bytes, stored_features)
        shifts = [problem.total * penalty for penalty in penalties]
        inverses = LowRankInverse.path(factor, _inverse_weights(problem), shifts)
        return cls(problem, tuple(penalties), SharedFactor(tuple(inverses)))

    @classmethod
    def of_one(
        cls,
        problem: FullProblem,
        inverse: Inverse,
        *,
        store_bytes: int = 0,
        stored_features: int = STORED_FEATURES,
    ) -> FullPath:
        """Return that of the problem's own penalty alone, with a preconditioner of any kind."""
        problem = _keeping(problem, store_bytes, stored_features)
        return cls(problem, (problem.penalty,), inverse)

    def stages(self, start: Float[Tensor, "p n t"] | None = None) -> Iterator[Stage]:
        """Yield the iterates after 0, 1, 2, ... iterations, for ever; `start` is where they begin.

        Columns whose residual is zero to rounding, or whose curvature is not positive, stay.
        """
        Y = self.problem.targets.double()
        p, t = len(self.penalties), Y.shape[1]
        B = Y.repeat(1, p)
        penalties = torch.tensor(self.penalties, dtype=torch.float64).repeat_interleave(t)
        ridge = self.problem.total * penalties * _inverse_weights(self.problem)
        ridge = ridge.expand(len(Y), p * t)
        norm = B.norm(dim=0)
        X = torch.zeros_like(B) if start is None else start.transpose(0, 1).reshape(len(Y), p * t)
        R = B if start is None else B - self._apply(X, ridge)
        Z = self.inverse @ R
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
            Z = self.inverse @ R
            before, rz = rz, (R * Z).sum(dim=0)
            P = Z + torch.where(moves, rz / torch.where(moves, before, 1.0), 0.0) * P
            iteration += 1

    def _apply(self, P: Tensor, ridge: Tensor) -> Tensor:
        """Return (K + ridge) P, with entries and P in the dtype of the rows."""
        K = self.problem.K
        return (K @ P.to(K.dtype)).double() + ridge * P


def _keeping(problem: FullProblem, most_bytes: int, features: int) -> FullProblem:
    """Return a problem whose K keeps its entries, if they fit and rows have many features."""
    if problem.K.rows.shape[1] < features:
        return problem
    return replace(problem, K=problem.K.keeping(most_bytes, whole=False))


def _inverse_weights(problem: FullProblem) -> Tensor:
    """Return W⁻¹, of shape (n, 1), or () without weights."""
    w = problem.weights
    return torch.ones((), dtype=torch.float64) if w is None else 1 / w.double()[:, None]


EPS = 1e-7
"""A residual of float32 products is rounding from here on."""


def least_penalty(problem: FullProblem) -> float:
    """Return the least penalty for which products in the dtype of the rows are precise enough.

    A shift of 1e-2 for float32 rows and a kernel of diagonal 1: measured, 3e-3 converged on 8,000
    rows of a real set and diverged on 10,000.
    """
    single = problem.K.dtype == torch.float32
    return (1e-2 if single else 1e-9) / problem.total
