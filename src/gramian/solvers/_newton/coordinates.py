"""Coordinates: the Newton system of a stage, preconditioned as FALKON's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ...preconditioners import FalkonFactor
from ...preconditioners._root import Root
from ...preconditioners.falkon import FEW_ROWS, root_of
from ...problems import LossProblem, NystromProblem
from ..conjugate_gradient import conjugate_gradient
from ..metrics import RESIDUAL
from .point import slope_sum

FLAT = 1e-6
"""Rows of so small a share of the largest curvature are left out of a factor made of rows."""

CHEAP = 300
"""Near a kink, which few landmarks are, and where steps are hard: rows times landmarks, by n.

Up to so many a factor made of rows takes the time of some 25 iterations, no more than it saves.
"""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The second derivative at f in coordinates beta, coef = B beta, where it is near the identity.

    Attributes
    ----------
    problem : LossProblem
        That of a stage.
    f : Tensor of shape (n, q)
    factors : list of FalkonFactor
        One for each output.
    """

    problem: LossProblem
    f: Float[Tensor, "n q"]
    factors: list[FalkonFactor]

    @classmethod
    def at(
        cls,
        problem: LossProblem,
        root: Root,
        f: Float[Tensor, "n q"],
        penalty: float | Literal["auto"] | None,
        hard: bool = False,
    ) -> Coordinates:
        """Return the coordinates at values f; the root of K_mm stays as it is.

        `hard` says that landmarks have made a bad factor before.
        Cost: (2/3 m³ operations, and where few rows are curved s m²) for each output.
        """
        curved = problem.loss.curvatures(f, problem.targets.double())
        factors = [_factor(problem, root, column, penalty, hard) for column in curved.T]
        return cls(problem, f, factors)

    def to_coef(self, beta: Float[Tensor, "r q"]) -> Float[Tensor, "m q"]:
        """Return coefficients."""
        return self._without_mean(self._each(FalkonFactor.to_coef, beta))

    def gradient(
        self,
        data: Float[Tensor, "m q"],
        values: Float[Tensor, "m q"],
        penalty: float | None = None,
    ) -> Float[Tensor, "r q"]:
        """Return B' (data + penalty values), `values` those of the function at the landmarks.

        The penalty is that of the stage unless another one is given.
        """
        g = data + (self.problem.penalty if penalty is None else penalty) * values
        return self._each(FalkonFactor.solve_At, self._each(FalkonFactor.solve_Tt, g))

    def apply(self, beta: Float[Tensor, "r q"]) -> Float[Tensor, "r q"]:
        """Return B' H B beta. Cost: n m kernel evaluations, twice as many for several outputs."""
        w = self._each(FalkonFactor.solve_A, beta)
        inside = self._each(
            FalkonFactor.solve_Tt, self._curved(self._each(FalkonFactor.solve_T, w))
        )
        return self._each(
            FalkonFactor.solve_At, inside + self.problem.penalty * self._without_mean(w)
        )

    def _without_mean(self, x: Tensor) -> Tensor:
        """Leave out what all outputs share, if the loss does not see it.

        The penalty is that of the rest, so that the system is singular there: a diagonal
        preconditioner is a good one for all other directions, and would not be for this.
        """
        return x - x.mean(dim=1, keepdim=True) if self.problem.loss.invariant else x

    def _curved(self, v: Float[Tensor, "m q"]) -> Float[Tensor, "m q"]:
        """Return the second derivative of the mean loss times v."""
        problem, y, w = self.problem, self.problem.targets.double(), self.problem.weights
        if v.shape[1] == 1:
            h = problem.loss.curvatures(self.f, y)[:, 0]
            return problem.K.normal(v, h if w is None else w * h) / problem.total
        z = problem.loss.curved(self.f, y, problem.K @ v)
        return slope_sum(problem, z if w is None else w.double()[:, None] * z)

    def direction(
        self, gradient: Float[Tensor, "r q"], accuracy: float, most: int
    ) -> tuple[Float[Tensor, "r q"], int]:
        """Return beta with B' H B beta = -gradient, to a relative residual, and the iterations."""
        shape = gradient.shape
        coupled = self.problem.loss.coupled

        def apply(x: Tensor) -> Tensor:
            return self.apply(x.reshape(shape)).reshape(x.shape)

        rhs = -gradient.reshape(-1, 1) if coupled else -gradient
        for state in conjugate_gradient(apply, rhs):
            done = state.metrics[RESIDUAL] <= accuracy or state.verdict is not None
            if done or state.iteration >= most:
                break
        return state.coef.reshape(shape), state.iteration

    def _each(self, verb: Callable[[FalkonFactor, Tensor], Tensor], x: Tensor) -> Tensor:
        """Apply a verb of the factors, each to the column of its output."""
        pairs = zip(self.factors, x.split(1, dim=1), strict=True)
        return torch.cat([verb(B, column) for B, column in pairs], dim=1)


def root_at(problem: LossProblem) -> Root:
    """Return the root of K_mm."""
    return root_of(_weighted(problem, None))


def _weighted(problem: LossProblem, curvature: Tensor | None) -> NystromProblem:
    """Return the least-squares problem whose preconditioner is that of a Newton system."""
    weight = problem.landmark_weight
    if weight is None:
        weight = torch.ones(problem.K.shape[1], dtype=torch.float64, device=problem.targets.device)
    if curvature is not None:
        there = curvature.mean() if problem.index is None else curvature[problem.index]
        weight = weight * there
    return NystromProblem(
        problem.K, problem.targets, problem.penalty, None, weight, problem.coverage, problem.index
    )


def _factor(
    problem: LossProblem,
    root: Root,
    curvature: Tensor,
    penalty: float | Literal["auto"] | None,
    hard: bool,
) -> FalkonFactor:
    copy = replace(root, T=root.T.t().clone().t(), S=root.S.t().clone().t())  # by columns, as is
    least_squares = _weighted(problem, curvature)
    curved = (curvature > FLAT * curvature.max()).nonzero()[:, 0]
    if not (_made_of_rows(problem, len(curved), hard) and problem.K.rows.random_access):
        return FalkonFactor.from_root(copy, least_squares, penalty)
    weights = curvature[curved] / problem.total
    if problem.weights is not None:
        weights = weights * problem.weights[curved]
    K = problem.K[curved.cpu()].double().dense()
    return FalkonFactor.from_rows(copy, least_squares, [(K, weights)], problem.penalty)


def _made_of_rows(problem: LossProblem, rows: int, hard: bool) -> bool:
    """Return whether so many curved rows make a factor, in place of what landmarks stand for."""
    n, m = problem.K.shape
    few = rows <= FEW_ROWS * m
    cheap = rows * m <= CHEAP * n and 16 * rows * m <= problem.K.memory_bytes
    return rows > 0 and (few or ((hard or problem.loss.kink is not None) and cheap))
