"""PCG: conjugate gradient on the full problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..problems import FullProblem
from .base import Solver, State, solvers
from .conjugate_gradient import CGState, conjugate_gradient


@solvers.register("pcg")
@dataclass(frozen=True)
class PCG(Solver[FullProblem, CGState]):
    """Conjugate gradient on (K + N penalty W⁻¹) coef = y, K never stored.

    Products run in the dtype of the rows. With float32 rows the iterate is float64 and the true
    residual is computed in float64 each time the recursive one has dropped tenfold.

    Notes
    -----
    Cost per iteration: n² kernel evaluations; memory: four vectors of n numbers per target. The
    number of iterations grows like the square root of the condition number,
    lambda_max(K) / (n penalty) + 1: without a preconditioner this is a method for large
    penalties.
    """

    problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)
    state_type: ClassVar[type] = CGState

    def iterate(
        self,
        problem: FullProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[CGState]:
        exact = problem.double()

        def residual(x: Tensor) -> Tensor:
            return exact.rhs - exact.apply(x)

        lower = problem.K.dtype != torch.float64
        return conjugate_gradient(
            problem.apply,
            problem.rhs.to(problem.K.dtype),
            state=state,
            exact_residual=residual if lower else None,
        )
