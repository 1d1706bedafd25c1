"""Point: coefficients with the values of their function, and the step to another point."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...problems import LossProblem
from .line import Line


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients with the values of their function.

    Attributes
    ----------
    coef : Tensor of shape (m, q)
    f : Tensor of shape (n, q)
        Values at the rows.
    on_centers : Tensor of shape (m, q)
        Values at the centers, without the constant.
    """

    coef: Float[Tensor, "m q"]
    f: Float[Tensor, "n q"]
    on_centers: Float[Tensor, "m q"]

    @classmethod
    def of(cls, problem: LossProblem, coef: Float[Tensor, "m q"]) -> Point:
        """Evaluate the function. Cost: n m kernel evaluations, and m² in float64."""
        return cls(coef, problem.values(coef), problem.K_mm.double() @ coef)

    def slopes(self, problem: LossProblem) -> Float[Tensor, "m q"]:
        """Return the gradient of the mean loss. Cost: n m kernel evaluations."""
        u = problem.loss.slopes(self.f, problem.targets.double())
        if problem.weights is not None:
            u = problem.weights.double()[:, None] * u
        return slope_sum(problem, u)

    def objectives(self, problem: LossProblem) -> Float[Tensor, " k"]:
        """Return mean loss plus penalty for each output, or for all outputs if coupled."""
        norms = (self.coef * self.on_centers).sum(dim=0)
        norms = norms.sum(dim=0, keepdim=True) if problem.loss.coupled else norms
        return problem.mean_loss(self.f) + problem.penalty / 2 * norms


def slope_sum(problem: LossProblem, u: Float[Tensor, "n q"]) -> Float[Tensor, "m q"]:
    """Return K' u / N in float64. Cost: n m kernel evaluations."""
    # Without v the normal product is -K' u.
    return -problem.K.normal(None, None, u) / problem.total


def take_step(
    problem: LossProblem, at: Point, step: Float[Tensor, "m q"], slope: Float[Tensor, " q"]
) -> tuple[Point, float]:
    """Take a Newton step by line search; return the point and the least step length.

    Parameters
    ----------
    problem : LossProblem
    at : Point
    step : Tensor of shape (m, q)
    slope : Tensor of shape (q,)
        Derivative of the objective along the step, per output.
    """
    # Values are linear in the coefficients, so the full step yields the values of all lengths.
    full = Point.of(problem, at.coef + step)
    change = full.on_centers - at.on_centers
    inner = [(at.coef, at.on_centers), (step, at.on_centers), (step, change)]
    squares = torch.stack([(a * b).sum(dim=0) for a, b in inner])
    if problem.loss.coupled:
        squares, slope = squares.sum(dim=1, keepdim=True), slope.sum(dim=0, keepdim=True)
    length = Line(problem, at.f, full.f - at.f, squares, slope).search()
    if bool((length == 1).all()):
        return full, 1.0
    # The values are evaluated again, so that rounding of interpolated values does not add up.
    return Point.of(problem, at.coef + length * step), float(length.min())
