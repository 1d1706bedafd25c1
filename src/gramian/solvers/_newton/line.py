"""Line: how far to go along a Newton step, without a kernel evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...problems import LossProblem

ARMIJO = 1e-4
"""Share of the decrease that the slope promises which a step must reach."""

HALVINGS = 40
"""A step halved so often leads nowhere."""

ROUNDING = 1e-11
"""Share of the objective by which rounding may raise it."""


@dataclass(frozen=True, eq=False)
class Line:
    """The objective along c + s delta: of each output, or of coupled ones together.

    Attributes
    ----------
    problem : LossProblem
    f, z : Tensor of shape (n, q)
        Values at c, and their change along delta.
    squares : Tensor of shape (3, k)
        The squared norm of the function at c, its inner product with that of delta, and the squared
        norm of the latter.
    slope : Tensor of shape (k,)
        The derivative of the objective at s = 0.
    """

    problem: LossProblem
    f: Float[Tensor, "n q"]
    z: Float[Tensor, "n q"]
    squares: Float[Tensor, "3 k"]
    slope: Float[Tensor, " k"]

    def objective(self, s: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
        """Return the objective at steps s."""
        norm = self.squares[0] + 2 * s * self.squares[1] + s.square() * self.squares[2]
        return self.problem.mean_loss(self.f + s * self.z) + self.problem.penalty / 2 * norm

    def search(self) -> Float[Tensor, " k"]:
        """Return steps 1, 1/2, 1/4, ... of sufficient decrease; 0 where there is none.

        Beyond the first of them a half is taken as long as the objective falls.
        """
        s = torch.ones_like(self.slope)
        start = self.objective(torch.zeros_like(s))
        limit = ROUNDING * start.abs()
        found = self.objective(s)
        for _ in range(HALVINGS):
            fails = ~(found <= start + ARMIJO * s * self.slope + limit)
            half = self.objective(s / 2)
            better = fails | ((half < found - limit) & (s < 1))
            if not bool(better.any()):
                return s
            s, found = torch.where(better, s / 2, s), torch.where(better, half, found)
        return torch.where(found <= start + limit, s, 0.0)
