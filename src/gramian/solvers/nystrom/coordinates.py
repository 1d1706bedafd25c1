"""Coordinates: three parametrisations of the Nystrom problem, and its gradient in each.

The coordinates are the coefficients, coordinates whose distances are distances of functions, or
coordinates preconditioned by FALKON.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...operators import DenseBlock, KernelOperator, materialize
from ...preconditioners import FalkonFactor
from ...problems import NystromProblem
from ..conjugate_gradient import conjugate_gradient
from ..loop.state import PREDICTION_ERROR, RESIDUAL_KEY, State, starting_coef
from .state import DescentState

Form = Literal["coefficients", "functions", "falkon"]
COORDINATE_FORMS = ("coefficients", "functions", "falkon")
"""Forms, by their number in a state; the third belongs to `FalkonGD` alone."""

LANCZOS_PASSES = 10
"""Passes that estimate the largest eigenvalue."""

LANCZOS_SAFETY = 1.05
"""Factor of the estimate, which is a lower bound."""

GRADIENT_TOLERANCE = 1e-4
"""Largest difference, over the right-hand side, between a stored and a recomputed gradient."""


@dataclass(frozen=True)
class Coordinates:
    r"""Map coef = B beta, and the gradient of half the objective with respect to beta.

    With :math:`H = K_{nm}^\top W K_{nm} / N + \lambda K_{mm}` the gradient is :math:`B^\top (H B
    \beta - K_{nm}^\top W y / N)`. B is the identity ("coefficients"), :math:`T^{-1}` with
    :math:`T^\top T = K_{mm}` ("functions": distances of beta are distances of functions), or
    FALKON's :math:`T^{-1} A^{-1}` ("falkon").

    - `problem`: with entries in float64.
    - `K_mm`: stored if it fits into a quarter of the memory.
    """

    problem: NystromProblem
    factor: FalkonFactor
    form: Form
    K_mm: KernelOperator | DenseBlock

    @classmethod
    def build(
        cls,
        problem: NystromProblem,
        form: Form,
        preconditioner_penalty: float | Literal["auto"] | None = "auto",
    ) -> Coordinates:
        """Factorise K_mm. Cost: m² kernel evaluations, m³ operations, 8 m² bytes."""
        # With a factor of all rows the first step would be the solution, whatever the method.
        auto = preconditioner_penalty == "auto"
        factor = FalkonFactor.build(problem, "landmarks" if auto else preconditioner_penalty)
        # Large coefficients cancel in K coef, and rounding of entries would add up over iterations.
        problem = problem.double()
        K_mm: KernelOperator | DenseBlock = problem.K_mm
        if form == "coefficients" and isinstance(K_mm, KernelOperator):
            K_mm = materialize(K_mm, problem.K.memory_bytes // 4)
        return cls(problem, factor, form, K_mm)

    def to_coef(self, beta: Float[Array, "q t"]) -> Float[Array, "m t"]:
        """Return the coefficients B beta."""
        if self.form == "coefficients":
            return beta
        return self.factor.solve_T(beta if self.form == "functions" else self.factor.solve_A(beta))

    def from_coef(self, coef: Float[Array, "m t"]) -> Float[Array, "q t"]:
        """Return the coordinates beta of given coefficients."""
        if self.form == "coefficients":
            return coef
        # Removed landmarks may have coefficients: then the values of the function carry over.
        has_all_pivots = self.factor.order is None
        beta = (
            self.factor.from_coef(coef)
            if has_all_pivots
            else self.factor.from_values(self.K_mm @ coef)
        )
        return beta if self.form == "falkon" else self.factor.solve_A(beta)

    def pull_back(self, gradient: Float[Array, "m t"]) -> Float[Array, "q t"]:
        """Return B' times a gradient with respect to the coefficients."""
        if self.form == "coefficients":
            return gradient
        g = self.factor.solve_Tt(gradient)
        return g if self.form == "functions" else self.factor.solve_At(g)

    def ridge(self, beta: Float[Array, "q t"]) -> Float[Array, "q t"]:
        """Return the gradient of the penalty: lambda B' K_mm B beta."""
        if self.form == "coefficients":
            return self.problem.penalty * (self.K_mm @ beta)
        if self.form == "functions":
            return self.problem.penalty * beta
        return self.problem.penalty * self.factor.solve_At(self.factor.solve_A(beta))

    def gradient(self, beta: Float[Array, "q t"]) -> Float[Array, "q t"]:
        """Return the gradient at beta. Cost: a pass over the rows, n m kernel evaluations."""
        return self._product(beta, self.problem.targets)

    def hessian(self, beta: Float[Array, "q t"]) -> Float[Array, "q t"]:
        """Return B'H B beta. Cost: a pass over the rows."""
        return self._product(beta, None)

    def extreme_eigenvalues(self) -> tuple[float, float]:
        """Estimate the extreme eigenvalues of B'H B by ten iterations of the Lanczos method."""
        q = len(self.factor.diagonal) if self.form != "coefficients" else self.problem.K.shape[1]
        rng = RandomStream(0)
        start = rng.standard_normal((q, 1), xp.float64)
        states = conjugate_gradient(self.hessian, xp.to_device(start, self.problem.targets.device))
        for s in islice(states, LANCZOS_PASSES + 1):
            if s.verdict is not None:
                break
        # Ten steps approach the largest eigenvalue from below, hence the safety factor.
        smallest, largest = s.extremes
        return smallest, LANCZOS_SAFETY * largest

    def metrics(self, state: DescentState) -> dict[str, int | float]:
        r"""Return the relative gradient and a bound of the error of predictions.

        With gradient g in the coordinates of functions, the error on the rows is at most
        :math:`\|g\| / (2 \sqrt\lambda)`, because :math:`s / (s + \lambda)^2 \le 1 / (4 \lambda)`.
        After FALKON it is at most :math:`\|g\|` over the root of the least eigenvalue. Without a
        penalty the number of iterations is the choice of the user, and neither metric exists.
        """
        g, lam = state.gradient, self.problem.penalty
        size = xp.where(state.size > 0, state.size, 1.0)
        relative = float((xp.norm(g, axis=0) / size).max())
        if lam == 0:
            return {"rel_gradient": relative}
        if self.form == "falkon":
            error = xp.norm(g, axis=0) / math.sqrt(state.settings["least_eigenvalue"])
        else:
            g = self.factor.solve_Tt(g) if self.form == "coefficients" else g
            error = xp.norm(g, axis=0) / (2 * math.sqrt(lam))
        return {RESIDUAL_KEY: relative, PREDICTION_ERROR: self.problem.relative_error(error)}

    def start(self, state: State | None, step_scale: float) -> DescentState:
        """Return the state before the first step, or the given state if this solver made it.

        Cost: `LANCZOS_PASSES` passes for the step, one for the gradient, and one more if the
        coefficients are not zero.
        """
        if isinstance(state, DescentState) and self._has_form(state):
            return state
        m, t = self.problem.K.shape[1], self.problem.targets.shape[1]
        coef = starting_coef(state, xp.to_float64(xp.zeros((m, t), like=self.problem.targets)))
        smallest, largest = self.extreme_eigenvalues()
        beta = self.from_coef(coef)
        rhs = self.pull_back(self.problem.rhs / self.problem.total)
        settings = {"step": step_scale / largest, "least_eigenvalue": smallest}
        first = DescentState(
            iteration=0 if state is None else state.iteration,
            coef=coef,
            beta=beta,
            gradient=self.gradient(beta) if bool(coef.any()) else -rhs,
            size=xp.norm(rhs, axis=0),
            settings=settings,
            form=COORDINATE_FORMS.index(self.form),
            penalty=self.factor.penalty,
        )
        first.metrics = self.metrics(first)
        return first

    def step(self, s: DescentState, beta: Float[Array, "q t"]) -> DescentState:
        """Return the state after a step of constant length. Cost: a pass over the rows."""
        after = self.move(s, beta, self.gradient(beta))
        # For a quadratic and a stable step the gradient falls in each iteration, so that a norm
        # that stays is rounding.
        after.stalled = bool((xp.norm(after.gradient, axis=0) >= xp.norm(s.gradient, axis=0)).all())
        return after

    def move(
        self, s: DescentState, beta: Float[Array, "q t"], gradient: Float[Array, "q t"]
    ) -> DescentState:
        """Return the state at beta, whose gradient is known."""
        after = DescentState(
            iteration=s.iteration + 1,
            coef=self.to_coef(beta),
            beta=beta,
            gradient=gradient,
            size=s.size,
            settings=s.settings,
            form=s.form,
            penalty=s.penalty,
        )
        after.metrics = self.metrics(after)
        return after

    def check(self, state: DescentState) -> None:
        """Raise ValueError if the gradient of a state differs from the recomputed gradient."""
        size = xp.where(state.size > 0, state.size, 1.0)
        recomputed = self.gradient(state.beta)
        apart = float((xp.norm(recomputed - state.gradient, axis=0) / size).max())
        same = float(xp.norm(self.to_coef(state.beta) - state.coef)) <= 1e-6 * float(
            xp.norm(state.coef)
        )
        # The negated comparison also refuses NaN.
        if not (apart <= GRADIENT_TOLERANCE and same):
            raise ValueError(
                f"its gradient differs by {apart:.1e}, but the recomputed one should agree to "
                f"{GRADIENT_TOLERANCE:.0e}: it was changed, or belongs to other data. Delete it "
                "to start again"
            )

    def _has_form(self, s: DescentState) -> bool:
        # The last digits of an automatic penalty depend on the machine that computes it.
        close = math.isclose(s.penalty, self.factor.penalty, rel_tol=1e-6)
        return s.form == COORDINATE_FORMS.index(self.form) and (close or self.form != "falkon")

    def _product(self, beta: Array, targets: Array | None) -> Array:
        problem = self.problem
        g = problem.K.normal(self.to_coef(beta), problem.weights, targets) / problem.total
        return self.pull_back(g) + self.ridge(beta)
