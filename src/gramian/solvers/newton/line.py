"""Line search along a Newton step, without kernel evaluations."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...problems import LossProblem

SUFFICIENT_DECREASE = 1e-4
"""Fraction of the decrease promised by the slope that a step must reach (Armijo's rule)."""

MAX_HALVINGS = 40
"""Halvings after which a step counts as zero."""

RELATIVE_ROUNDING = 1e-11
"""Fraction of the objective by which rounding may raise it."""


@dataclass(frozen=True, eq=False)
class Line:
    """Objective along c + s delta, for each output or for coupled outputs together.

    Attributes
    ----------
    f, z : Array of shape (n, q)
        Values at c, and their change along delta.
    squares : Array of shape (3, k)
        Squared norm of the function at c, its inner product with the function of delta, and the
        squared norm of the latter.
    slope : Array of shape (k,)
        Derivative of the objective at s = 0.
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
