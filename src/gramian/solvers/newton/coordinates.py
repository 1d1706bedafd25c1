"""Preconditioned Newton system of a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...preconditioners import FalkonFactor
from ...preconditioners._root import Root
from ...preconditioners.falkon import FEW_ROWS, root_of
from ...problems import LossProblem, NystromProblem
from ..conjugate_gradient import conjugate_gradient
from ..loop.state import RESIDUAL_KEY
from .point import slope_sum

LEAST_RELATIVE_CURVATURE = 1e-6
"""Rows below this share of the largest curvature are left out of a factor built from rows."""

ROW_FACTOR_COST = 300
"""Most curved rows times landmarks, divided by n, for a factor built from rows.

It applies near a kink, where few landmarks are curved, and after difficult steps. Up to this
number the factor takes the time of about 25 iterations, no more than it saves.
"""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates beta, coef = B beta, in which the second derivative at f is near the identity.

    - `problem`: the problem of a stage.
    - `factors`: one per output.
    """

    problem: LossProblem
    f: Float[Array, "n q"]
    factors: list[FalkonFactor]

    @classmethod
    def at(
        cls,
        problem: LossProblem,
        root: Root,
        f: Float[Array, "n q"],
        penalty: float | Literal["auto"] | None,
        hard: bool = False,
    ) -> Coordinates:
        """Return the coordinates at values f; the root of K_mm is not modified.

        `hard` is True if a factor built from landmarks was poor before. Cost for each output: 2/3
        m³ operations, and s m² if only s rows are curved.
        """
        # For coupled outputs only the diagonal of the second derivative: the factors then separate
        # by output, and conjugate gradient takes care of the rest.
        curved = problem.loss.curvatures(f, xp.to_float64(problem.targets))
        factors = [_factor(problem, root, column, penalty, hard) for column in curved.T]
        return cls(problem, f, factors)

    def to_coef(self, beta: Float[Array, "r q"]) -> Float[Array, "m q"]:
        """Return the coefficients B beta."""
        return self._without_mean(self._apply_each(FalkonFactor.to_coef, beta))

    def gradient(
        self,
        data: Float[Array, "m q"],
        values: Float[Array, "m q"],
        penalty: float | None = None,
    ) -> Float[Array, "r q"]:
        """Return B' (data + penalty values), for the values of the function at the landmarks.

        By default `penalty` is the penalty of the stage.
        """
        g = data + (self.problem.penalty if penalty is None else penalty) * values
        return self._apply_each(FalkonFactor.solve_At, self._apply_each(FalkonFactor.solve_Tt, g))

    def apply(self, beta: Float[Array, "r q"]) -> Float[Array, "r q"]:
        """Return B' H B beta. Cost: n m kernel evaluations, 2 n m for several outputs."""
        w = self._apply_each(FalkonFactor.solve_A, beta)
        inside = self._apply_each(
            FalkonFactor.solve_Tt, self._apply_curvature(self._apply_each(FalkonFactor.solve_T, w))
        )
        return self._apply_each(
            FalkonFactor.solve_At, inside + self.problem.penalty * self._without_mean(w)
        )

    def _without_mean(self, x: Array) -> Array:
        """Remove the mean over the outputs if the loss is invariant to it.

        The penalty applies to the remainder, so that the system is singular along the mean. The
        preconditioner, which is diagonal over outputs, suits all directions except the mean.
        """
        return x - x.mean(axis=1, keepdims=True) if self.problem.loss.invariant else x

    def _apply_curvature(self, v: Float[Array, "m q"]) -> Float[Array, "m q"]:
        """Return the second derivative of the mean loss times v."""
        problem, y, w = self.problem, xp.to_float64(self.problem.targets), self.problem.weights
        # One output has a diagonal second derivative, so that one pass does both products.
        if v.shape[1] == 1:
            h = problem.loss.curvatures(self.f, y)[:, 0]
            return problem.K.normal(v, h if w is None else w * h) / problem.total
        z = problem.loss.curvature_product(self.f, y, problem.K @ v)
        return slope_sum(problem, z if w is None else xp.to_float64(w)[:, None] * z)

    def direction(
        self, gradient: Float[Array, "r q"], accuracy: float, max_iterations: int
    ) -> tuple[Float[Array, "r q"], int]:
        """Solve B' H B beta = -gradient to a relative residual; return beta and the iterations."""
        shape = gradient.shape
        coupled = self.problem.loss.coupled

        def apply(x: Array) -> Array:
            return self.apply(x.reshape(shape)).reshape(x.shape)

        # Coupled outputs form one system, so conjugate gradient must see one column.
        rhs = -gradient.reshape(-1, 1) if coupled else -gradient
        for state in conjugate_gradient(apply, rhs):
            done = state.metrics[RESIDUAL_KEY] <= accuracy or state.verdict is not None
            if done or state.iteration >= max_iterations:
                break
        return state.coef.reshape(shape), state.iteration

    def _apply_each(self, method: Callable[[FalkonFactor, Array], Array], x: Array) -> Array:
        """Apply a method of the factors, each to the column of its output."""
        pairs = zip(self.factors, xp.split(x, 1, axis=1), strict=True)
        return xp.concat([method(B, column) for B, column in pairs], axis=1)


def root_at(problem: LossProblem) -> Root:
    """Factorise K_mm, and return its triangular root."""
    return root_of(_least_squares(problem, None))


def _least_squares(problem: LossProblem, curvature: Array | None) -> NystromProblem:
    """Return the least-squares problem that has the preconditioner of a Newton system."""
    weight = problem.landmark_weight
    if weight is None:
        weight = xp.ones(problem.K.shape[1], xp.float64, like=problem.targets)
    if curvature is not None:
        # Centers that are not rows have no curvature of their own.
        factor = curvature.mean() if problem.index is None else curvature[problem.index]
        weight = weight * factor
    return NystromProblem(
        problem.K, problem.targets, problem.penalty, None, weight, problem.coverage, problem.index
    )


def _factor(
    problem: LossProblem,
    root: Root,
    curvature: Array,
    penalty: float | Literal["auto"] | None,
    hard: bool,
) -> FalkonFactor:
    # Copies in the memory layout of the root, because the factor overwrites them.
    copy = replace(root, T=xp.copy(root.T.T).T, S=xp.copy(root.S.T).T)
    least_squares = _least_squares(problem, curvature)
    curved = xp.flatnonzero(curvature > LEAST_RELATIVE_CURVATURE * curvature.max())
    if not (_uses_rows(problem, len(curved), hard) and problem.K.rows.random_access):
        return FalkonFactor.from_root(copy, least_squares, penalty)
    weights = curvature[curved] / problem.total
    if problem.weights is not None:
        weights = weights * problem.weights[curved]
    # The curved rows are few, so that their entries are one matrix instead of strips.
    K = problem.K[xp.to_host(curved)].double().dense()
    return FalkonFactor.from_rows(copy, least_squares, [(K, weights)], problem.penalty)


def _uses_rows(problem: LossProblem, rows: int, hard: bool) -> bool:
    """Return whether to build the factor from the curved rows instead of landmarks."""
    n, m = problem.K.shape
    is_small = rows <= FEW_ROWS * m
    is_cheap = rows * m <= ROW_FACTOR_COST * n and 16 * rows * m <= problem.K.memory_bytes
    return rows > 0 and (is_small or ((hard or problem.loss.kink is not None) and is_cheap))
