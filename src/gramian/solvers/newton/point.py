"""Coefficients with the values of their function, and the Newton step to the next point."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...problems import LossProblem
from .line import Line


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients with the values of their function.

    Attributes
    ----------
    f : Array of shape (n, q)
        Values at the rows.
    on_centers : Array of shape (m, q)
        Values at the centers, without the constant.
    """

    coef: Float[Array, "m q"]
    f: Float[Array, "n q"]
    on_centers: Float[Array, "m q"]

    @classmethod
    def of(cls, problem: LossProblem, coef: Float[Array, "m q"]) -> Point:
        """Evaluate the function of given coefficients.

        Cost: n m kernel evaluations, and m² in float64.
        """
        return cls(coef, problem.values(coef), problem.K_mm.double() @ coef)

    def slopes(self, problem: LossProblem) -> Float[Array, "m q"]:
        """Return the gradient of the mean loss. Cost: n m kernel evaluations."""
        u = problem.loss.slopes(self.f, xp.to_float64(problem.targets))
        if problem.weights is not None:
            u = xp.to_float64(problem.weights)[:, None] * u
        return slope_sum(problem, u)

    def objectives(self, problem: LossProblem) -> Float[Array, " k"]:
        """Return mean loss plus penalty for each output, or for all outputs if coupled."""
        norms = (self.coef * self.on_centers).sum(axis=0)
        norms = norms.sum(axis=0, keepdims=True) if problem.loss.coupled else norms
        return problem.mean_loss(self.f) + problem.penalty / 2 * norms


def slope_sum(problem: LossProblem, u: Float[Array, "n q"]) -> Float[Array, "m q"]:
    """Return K' u / N in float64. Cost: n m kernel evaluations."""
    # Without v the normal product is -K' u.
    return -problem.K.normal(None, None, u) / problem.total


def take_step(
    problem: LossProblem, at: Point, step: Float[Array, "m q"], slope: Float[Array, " q"]
) -> tuple[Point, float]:
    """Take a Newton step by line search; return the point and the least step length.

    Parameters
    ----------
    slope : Array of shape (q,)
        Derivative of the objective along the step, per output.
    """
    # Values are linear in the coefficients, so the full step yields the values of all lengths.
    full = Point.of(problem, at.coef + step)
    change = full.on_centers - at.on_centers
    inner = [(at.coef, at.on_centers), (step, at.on_centers), (step, change)]
    squares = xp.stack([(a * b).sum(axis=0) for a, b in inner])
    if problem.loss.coupled:
        squares, slope = squares.sum(axis=1, keepdims=True), slope.sum(axis=0, keepdims=True)
    length = Line(problem, at.f, full.f - at.f, squares, slope).search()
    if bool((length == 1).all()):
        return full, 1.0
    # The values are evaluated again, so that rounding of interpolated values does not add up.
    return Point.of(problem, at.coef + length * step), float(length.min())
