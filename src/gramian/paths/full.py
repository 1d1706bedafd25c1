"""Conjugate gradient on the full problem at several penalties together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from ..lowrank import columns_factor
from ..preconditioners import InverseOfEach
from ..problems import FullProblem
from .work import Work

STORED_FEATURES = 96
"""Least features for which entries are stored, if memory suffices. Of 14,000 rows, a product with
seven columns takes 0.07 s from stored entries and 0.08, 0.10, 0.14 and 0.24 s with 40, 64, 100 and
200 features from computed ones; storing them takes 0.1 to 0.3 s, and seconds for new memory of a
virtual machine."""

PATH_RANK = 1000
"""Most columns of the preconditioner, for which r² memory and r³ work are negligible."""


@dataclass(frozen=True)
class Stage:
    """Iterates of all penalties after some iterations.

    - `coef`: coefficients in float64.
    - `residual`: recursive residual relative to the right-hand side, largest over the targets.
    """

    iteration: int
    coef: Float[Array, "p n t"]
    residual: Float[Array, " p"]


@runtime_checkable
class Inverse(Protocol):
    """Preconditioner of the residuals of all penalties, whose columns are grouped by penalty."""

    def __matmul__(self, g: Float[Array, "n c"], /) -> Float[Array, "n c"]: ...


@dataclass(frozen=True)
class FullPath:
    r"""Systems (K + N penalty W⁻¹) coef = y for p penalties, which share products with K.

    A product of K with p t columns costs little more than with one column, because the entries are
    computed once.

    Attributes
    ----------
    problem : FullProblem
        The problem, whose own penalty is not used. Products run in the dtype of its rows; its K may
        store entries.
    inverse : Inverse
        Preconditioner of all penalties.

    Notes
    -----
    Cost per iteration: n² / 2 kernel evaluations, 4 n operations per column, and the cost of the
    preconditioner.

    The residual is updated, never recomputed, and accumulates rounding: float32 rows do not support
    penalties below 1e-2 / N, see `least_penalty`.

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
        rng: RandomStream,
        rank: int = PATH_RANK,
        store_bytes: int = 0,
        stored_features: int = STORED_FEATURES,
    ) -> FullPath:
        """Build the path with preconditioners from at most n / 2 random columns of K.

        - `rng`: draws the columns.
        - `store_bytes`: memory for the lower triangle of K, stored if it fits and rows have many
          features.
        - `stored_features`: least number of features for which reading entries is faster than
          computing them.

        Notes
        -----
        Cost: n r kernel evaluations, n r² operations and p r³ / 3; per iteration, 4 n r operations
        for each column.
        """
        n = len(problem.K.rows)
        factor = columns_factor(problem.K, max(1, min(rank, n // 2)), rng=rng)
        # The factor needs columns of K, which the stored triangle does not serve.
        problem = _store_entries(problem, store_bytes, stored_features)
        t = problem.targets.shape[1]
        shifts = [problem.total * penalty for penalty in penalties for _ in range(t)]
        inverse = InverseOfEach.build(factor, _inverse_weights(problem), shifts)
        return cls(problem, tuple(penalties), inverse)

    @staticmethod
    def work(n: int, penalties: int, targets: int, iterations: int, itemsize: int = 4) -> Work:
        """Return the work of `build` and of some iterations."""
        r, columns, double = min(PATH_RANK, n // 2), penalties * targets, itemsize == 8
        # In float32, columns of the factor and products with entries take half as long.
        setup = (1 + itemsize / 8) * n * r**2 + penalties * r**3 / 3
        products = iterations * columns * (4.0 * n * r + n**2 * itemsize / 8)
        pairs = float(n) * r + iterations * float(n) ** 2 / 2
        return Work(
            evaluations=0.0 if double else pairs,
            double_evaluations=pairs if double else 0.0,
            operations=setup + products,
            # Products with few columns wait for the factor, which each of two reads.
            moved_bytes=iterations * 2.0 * itemsize * n * r,
            # Columns of the factor pass through strips.
            peak_bytes=itemsize * (n * r + 3072.0 * r)
            + 8 * (1 + penalties) * r**2
            + 64.0 * n * columns,
        )

    @classmethod
    def with_inverse(
        cls,
        problem: FullProblem,
        inverse: Inverse,
        *,
        store_bytes: int = 0,
        stored_features: int = STORED_FEATURES,
    ) -> FullPath:
        """Return the path of the problem's own penalty alone, with a given preconditioner."""
        problem = _store_entries(problem, store_bytes, stored_features)
        return cls(problem, (problem.penalty,), inverse)

    def stages(self, start: Float[Array, "p n t"] | None = None) -> Iterator[Stage]:
        """Yield the iterates after 0, 1, 2, ... iterations, without end, starting from `start`.

        Columns whose residual is zero to rounding, or whose curvature is not positive, do not move.
        """
        Y = xp.to_float64(self.problem.targets)
        p, t = len(self.penalties), Y.shape[1]
        # Conjugate gradient for all penalties at once: each column is a system of its own, and they
        # share the product with K, which is nearly the whole cost.
        B = xp.concat([Y] * p, axis=1)
        penalties = xp.repeat(xp.array(self.penalties, dtype=xp.float64), t)
        # Each penalty has its own diagonal, but one product with K serves all columns.
        ridge = self.problem.total * penalties * _inverse_weights(self.problem)
        ridge = xp.expand(ridge, (len(Y), p * t))
        norm = xp.norm(B, axis=0)
        # The columns are penalty by penalty, t for each.
        X = xp.zeros_like(B) if start is None else xp.swapaxes(start, 0, 1).reshape(len(Y), p * t)
        R = B if start is None else B - self._apply(X, ridge)
        Z = self.inverse @ R
        P, rz, iteration = Z, (R * Z).sum(axis=0), 0
        while True:
            coef = xp.swapaxes(X.reshape(len(Y), p, t), 0, 1)
            # A column of zeros has no scale: its residual is zero from the start.
            relative = xp.norm(R, axis=0) / xp.where(norm > 0, norm, 1.0)
            yield Stage(iteration, coef, xp.max(relative.reshape(p, t), axis=1))
            Q = self._apply(P, ridge)
            pq = (P * Q).sum(axis=0)
            # Columns freeze one by one: to divide by their curvature would spread rounding.
            moves = (pq > 0) & (rz > 0) & (relative > ROUNDING_RESIDUAL)
            a = xp.where(moves, rz / xp.where(moves, pq, 1.0), 0.0)
            X, R = X + a * P, R - a * Q
            Z = self.inverse @ R
            previous_rz, rz = rz, (R * Z).sum(axis=0)
            # Both branches of `where` are computed, so that the divisor of a frozen column is 1.
            P = Z + xp.where(moves, rz / xp.where(moves, previous_rz, 1.0), 0.0) * P
            iteration += 1

    def _apply(self, P: Array, ridge: Array) -> Array:
        """Return (K + ridge) P, with entries and P in the dtype of the rows."""
        K = self.problem.K
        # The ridge is added in float64, because it may be below the rounding of the product.
        return xp.to_float64(K @ xp.cast(P, K.dtype)) + ridge * P


def _store_entries(problem: FullProblem, most_bytes: int, features: int) -> FullProblem:
    """Return a problem whose K stores its entries, if they fit and rows have many features."""
    if problem.K.rows.shape[1] < features:
        return problem
    return replace(problem, K=problem.K.keeping(most_bytes, whole=False))


def _inverse_weights(problem: FullProblem) -> Array:
    """Return W⁻¹, of shape (n, 1), or () without weights."""
    w = problem.weights
    return xp.ones((), xp.float64) if w is None else 1 / xp.to_float64(w)[:, None]


ROUNDING_RESIDUAL = 1e-7
"""Relative residual of float32 products that counts as rounding."""


def least_penalty(problem: FullProblem) -> float:
    """Return the least penalty for which products in the dtype of the rows are precise enough.

    The limit for float32 rows is a shift of 1e-2 for a kernel of diagonal 1. Measured: 3e-3
    converged on 8,000 rows of a real set and diverged on 10,000.
    """
    single = problem.K.dtype == xp.float32
    return (1e-2 if single else 1e-9) / problem.total
