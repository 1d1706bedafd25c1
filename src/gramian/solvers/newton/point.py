"""Coefficients with the values of their function, the Newton step, and its line search."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...problems import LossProblem


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients with the values of their function.

    - `f`: values at the rows.
    - `on_centers`: values at the centers, without the constant.
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

    - `slope`: derivative of the objective along the step, per output.
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


SUFFICIENT_DECREASE = 1e-4
"""Fraction of the decrease promised by the slope that a step must reach (Armijo's rule)."""

MAX_HALVINGS = 40
"""Halvings after which a step counts as zero."""

RELATIVE_ROUNDING = 1e-11
"""Fraction of the objective by which rounding may raise it."""


@dataclass(frozen=True, eq=False)
class Line:
    """Objective along c + s delta, for each output or for coupled outputs together.

    - `f`, `z`: values at c, and their change along delta.
    - `squares`: squared norm of the function at c, its inner product with the function of delta,
      and the squared norm of the latter.
    - `slope`: derivative of the objective at s = 0.
    """

    problem: LossProblem
    f: Float[Array, "n q"]
    z: Float[Array, "n q"]
    squares: Float[Array, "3 k"]
    slope: Float[Array, " k"]

    def objective(self, s: Float[Array, " k"]) -> Float[Array, " k"]:
        """Return the objective at step lengths s."""
        # The norm is a parabola in s, so no step length costs a kernel evaluation.
        norm = self.squares[0] + 2 * s * self.squares[1] + xp.square(s) * self.squares[2]
        return self.problem.mean_loss(self.f + s * self.z) + self.problem.penalty / 2 * norm

    def search(self) -> Float[Array, " k"]:
        """Return the largest of the step lengths 1, 1/2, 1/4, ... with sufficient decrease, or 0.

        Halving continues as long as the objective falls.
        """
        s = xp.ones_like(self.slope)
        start = self.objective(xp.zeros_like(s))
        limit = RELATIVE_ROUNDING * xp.abs(start)
        current = self.objective(s)
        for _ in range(MAX_HALVINGS):
            # The negated comparison also fails for NaN and infinity, as of an overflowing
            # exponential.
            fails = ~(current <= start + SUFFICIENT_DECREASE * s * self.slope + limit)
            half = self.objective(s / 2)
            # A step of full length is kept, because Newton's method converges fast with it.
            better = fails | ((half < current - limit) & (s < 1))
            if not bool(better.any()):
                return s
            s, current = xp.where(better, s / 2, s), xp.where(better, half, current)
        # No step is better than one that raises the objective after all halvings.
        return xp.where(current <= start + limit, s, 0.0)
