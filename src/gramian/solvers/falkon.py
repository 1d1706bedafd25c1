"""FALKON: conjugate gradient on the Nystrom problem in preconditioned coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..preconditioners import FalkonFactor
from ..problems import NystromProblem
from .base import Solver, State, solvers
from .conjugate_gradient import CGState, conjugate_gradient

PROBES = 8
"""Directions in which the residual of a state to go on from is compared."""


@dataclass
class FalkonState(State):
    r"""Coefficients, and the state of conjugate gradient in the coordinates beta.

    Attributes
    ----------
    cg : CGState
        Its ``coef`` is beta, with coef = T⁻¹ A⁻¹ beta.
    penalty : float
        The :math:`\lambda` inside A: under another one beta means something else.
    """

    cg: CGState = field(default_factory=lambda: CGState(0, torch.empty(0, 0)))
    penalty: float = 0.0


@solvers.register("falkon")
@dataclass(frozen=True)
class Falkon(Solver[NystromProblem, FalkonState]):
    r"""FALKON [1]_, algorithm 1: two Cholesky factors of the landmarks precondition CG.

    With :math:`T^\top T = K_{mm}` and :math:`A^\top A = T D^2 T^\top / m + \lambda I`, conjugate
    gradient solves :math:`B^\top H B \beta = B^\top K_{nm}^\top W y / N` for :math:`B = T^{-1}
    A^{-1}`, where :math:`H = K_{nm}^\top W K_{nm} / N + \lambda K_{mm}`.

    Parameters
    ----------
    preconditioner_penalty : float, "auto" or None, default="auto"
        The :math:`\lambda` inside A; that of the problem if None, as in the paper. The solution
        does not depend on it. With fewer landmarks than the theory asks for (about 1 / penalty) a
        larger one converges faster: "auto" takes the smallest for which the effective dimension
        of the landmarks is at most 0.3 m / (1 - m / n).
    refine : bool, default=False
        Compute the true residual in float64 each time the recursive one has dropped tenfold, so
        that float32 rows reach float64 accuracy, at about two more passes a time.

    Notes
    -----
    Cost: the factor, m² kernel evaluations and about m³ operations in float64, once; then n m
    kernel evaluations per iteration. Memory: 8 m² bytes, and a block of rows.

    The split form is not a matter of taste: with float32 rows, CG on coef with B B' as
    preconditioner diverges. Vectors of m numbers and both factors are float64; kernel entries
    have the dtype of the rows.

    Departures: the penalty inside A. On three real sets (16,512 to 40,000 rows, m = 1,000,
    penalties 1e-3 to 1e-8) the penalty of fewest iterations had an effective dimension of 265 to
    512, and with "auto" 20 iterations came within 1 % of the final test error in each case, where
    the paper's choice was up to 43 % above it. See `FalkonFactor` for the jitter; landmark weights
    :math:`D^2` and observation weights W enter as in the docstring of `NystromProblem`.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017.
    """

    preconditioner_penalty: float | Literal["auto"] | None = "auto"
    refine: bool = False
    problem_types: ClassVar[tuple[type, ...]] = (NystromProblem,)
    state_type: ClassVar[type] = FalkonState

    def __post_init__(self) -> None:
        lam = self.preconditioner_penalty
        if isinstance(lam, str):
            valid = lam == "auto"
        else:
            valid = lam is None or (math.isfinite(lam) and lam > 0)
        if not valid:
            raise ValueError(
                f"preconditioner_penalty must be positive and finite, 'auto' or None, not {lam!r}"
            )

    def factor(self, problem: NystromProblem) -> FalkonFactor:
        """Return the preconditioner; a subclass may have it from elsewhere."""
        return FalkonFactor.build(problem, self.preconditioner_penalty)

    def iterate(
        self,
        problem: NystromProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[FalkonState]:
        B = self.factor(problem)
        N, lam = problem.total, problem.penalty

        def pull_back(g: Tensor) -> Tensor:
            return B.solve_At(B.solve_Tt(g))

        def apply(beta: Tensor) -> Tensor:
            w = B.solve_A(beta)
            g = problem.K.normal(B.solve_T(w), problem.weights) / N  # one pass over the rows
            return B.solve_At(B.solve_Tt(g) + lam * w)

        exact = problem.double() if self.refine else problem  # copies the targets

        def residual(beta: Tensor) -> Tensor:
            w = B.solve_A(beta)
            g = exact.K.normal(B.solve_T(w), exact.weights, exact.targets) / N
            return -B.solve_At(B.solve_Tt(g) + lam * w)

        for cg in conjugate_gradient(
            apply,
            pull_back(problem.rhs / N),
            state=_in_coordinates(B, state),
            exact_residual=residual if self.refine else None,
            probes=_probes(B, problem),
            rounding=1e-5 if problem.K.dtype == torch.float64 else 0.05,
        ):
            yield FalkonState(cg.iteration, B.to_coef(cg.coef), dict(cg.metrics), cg, B.penalty)


def _probes(B: FalkonFactor, problem: NystromProblem) -> Tensor:
    """Return directions in which a residual is seen as it is without preconditioner.

    Rounding makes 1e-5 of the right-hand side there, where beta amplifies it to a half; with
    float32 rows on a line, and a jitter far above the penalty, 0.03.
    """
    rng = torch.Generator().manual_seed(0)
    some = torch.randn(problem.K.shape[1], PROBES, generator=rng, dtype=torch.float64)
    return B.from_coef(some.to(problem.targets.device))


def _in_coordinates(B: FalkonFactor, state: State | None) -> State | None:
    if state is None:
        return None
    # an automatic penalty ends differently where it is computed differently
    if isinstance(state, FalkonState) and math.isclose(state.penalty, B.penalty, rel_tol=1e-6):
        return state.cg
    return State(state.iteration, B.from_coef(state.coef.double()))
