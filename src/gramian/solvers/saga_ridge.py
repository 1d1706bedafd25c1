"""Ridge: the penalty in the gradients of SketchySAGA."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..operators import KeptBlock, KernelOperator
from ..problems import NystromProblem


@dataclass(frozen=True)
class Ridge:
    """The term lambda K_mm w of the gradient: as it is, or in the rows that are landmarks.

    Attributes
    ----------
    K_mm : KernelOperator or KeptBlock
    penalty : float
    at : Tensor of shape (n,), or None
        The number of the landmark that a row is, -1 for others; None if the term is direct.
    entry : Tensor of shape (m, 1)
        c / omega of the landmarks.
    constant : Tensor of shape (m, t)
        c y of the landmarks over n.
    """

    K_mm: KernelOperator | KeptBlock
    penalty: float
    at: Tensor | None
    entry: Tensor
    constant: Tensor

    @classmethod
    def build(
        cls, problem: NystromProblem, K_mm: KernelOperator | KeptBlock, omega: Tensor, rows: bool
    ) -> Ridge:
        """Return the term of a problem, in the rows if asked for."""
        n, m = problem.K.shape
        none = torch.empty(0, 0, dtype=torch.float64)
        if not rows or problem.index is None:
            return cls(K_mm, problem.penalty, None, none, none)
        at = torch.full((n,), -1)
        at[problem.index] = torch.arange(m)
        c = n * problem.penalty / 2
        entry = c / omega[problem.index, None]
        return cls(
            K_mm, problem.penalty, at, entry, c * problem.targets[problem.index].double() / n
        )

    @property
    def kept(self) -> KeptBlock | None:
        """The matrix, if it is there."""
        return self.K_mm if isinstance(self.K_mm, KeptBlock) else None

    def gradient(self, w: Tensor) -> Tensor:
        """Return what is left beside the sum over rows, over n."""
        if self.at is None:
            return self.penalty * (self.K_mm @ w)
        return self.constant - (self.penalty / 2) * (self.entry * w)

    def added_(self, product: Tensor, w: Tensor, B: Tensor) -> Tensor:
        """Add c / omega E_B w to K_Bm w."""
        if self.at is not None:
            place = self.at[B]
            mine = place >= 0
            product[mine] += (self.entry * w)[place[mine]]
        return product

    def added_transpose_(self, product: Tensor, v: Tensor, B: Tensor) -> Tensor:
        """Add c / omega E_B' v to K_Bm' v."""
        if self.at is not None:
            place = self.at[B]
            mine = place >= 0
            product[place[mine]] += self.entry[place[mine]] * v[mine]
        return product
