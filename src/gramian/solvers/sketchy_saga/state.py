"""State of SketchySAGA: iterate, residuals, halvings of the step, and estimated errors."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from itertools import islice

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...preconditioners import FalkonFactor, LowRankInverse
from ...problems import NystromProblem
from ..conjugate_gradient import conjugate_gradient
from ..loop.state import BATCH_ERROR, EPOCH_KEY, PREDICTION_ERROR, RESIDUAL_KEY, State, StopReason
from .sketch import SKETCH_ROWS, Hessian

logger = logging.getLogger("gramian")

HALVING_GROWTH = 4.0
"""Growth of the squared residual over its minimum from which the step is halved."""

MOST_HALVINGS = 40
"""Halvings after which the step is negligible."""


@dataclass(kw_only=True)
class SagaState(State):
    """State of SketchySAGA, enough to resume exactly.

    Attributes
    ----------
    table : Array of shape (n, t)
        Psi: the weighted residual of each row at its last visit.
    average : Array of shape (m, t)
        x: the gradient of the rows over n, from the residuals in the table.
    size : Array of shape (t,)
        Norms of the right-hand side over n, in the metric of the certificate.
    least : float
        Least mean squared residual of a part of an epoch so far.
    halvings : int
        Number of halvings of the step.
    halved_last : bool
        Whether the last iteration halved the step.
    seed : int
    settings : dict of str to float
        Chosen settings: rank, rho, smoothness, batch, step, and whether the ridge is in the rows.
    """

    table: Float[Array, "n t"]
    average: Float[Array, "m t"]
    size: Float[Array, " t"]
    least: float = math.inf
    halvings: int = 0
    halved_last: bool = False
    seed: int = 0
    settings: dict[str, int | float] = field(default_factory=dict)

    @property
    def verdict(self) -> StopReason | None:
        return "diverged" if self.halvings >= MOST_HALVINGS else None

    def has_diverged(self, mse: float, w: Float[Array, "m t"]) -> bool:
        """Return whether part of an epoch has a large squared residual or infinite iterates."""
        # The negated comparison is also true for NaN.
        return not mse <= HALVING_GROWTH * self.least or not bool(xp.isfinite(w).all())

    def halve_step(self, epoch: float, mse: float) -> SagaState:
        """Return the state before this part of the epoch, with half the step."""
        logger.warning(
            "SketchySAGA: the squared residual grew from %.2e to %.2e; the step is halved",
            self.least,
            mse,
        )
        halvings = self.halvings + 1
        metrics = {**self.metrics, EPOCH_KEY: epoch, "halvings": halvings}
        return replace(
            self, iteration=self.iteration + 1, metrics=metrics, halvings=halvings, halved_last=True
        )

    def after(
        self,
        epoch: float,
        mse: float,
        w: Float[Array, "m t"],
        x: Float[Array, "m t"],
        table: Float[Array, "n t"],
        gradient: Float[Array, " t"],
        error: float,
    ) -> SagaState:
        """Return the state after part of an epoch, with the gradient norms at its two ends.

        `error` is the error of predictions that these norms imply.
        """
        relative = gradient / xp.where(self.size > 0, self.size, 1.0)
        metrics = {
            EPOCH_KEY: epoch,
            BATCH_ERROR: mse,
            RESIDUAL_KEY: float(relative.max()),
            PREDICTION_ERROR: error,
            "halvings": self.halvings,
        }
        return replace(
            self,
            iteration=self.iteration + 1,
            coef=w,
            halved_last=False,
            metrics=metrics,
            table=table,
            average=x,
            least=min(self.least, mse),
        )


FACTOR_EPOCHS = 300
"""Largest ratio of m² to n for which a factor of K_mm costs no more than some epochs."""

LANCZOS_STEPS = 30
"""Lanczos steps that estimate the least eigenvalue of the Hessian in that metric."""


def is_factor_cheap(n: int, m: int) -> bool:
    """Return whether a factor of K_mm costs no more than some epochs."""
    return m * m <= FACTOR_EPOCHS * n


@dataclass(frozen=True)
class Certificate:
    r"""Metric M near the Hessian H over n, for the norm :math:`\|g\|_{M^{-1}}` of gradients g.

    The distance of coefficients from the solution is :math:`\|g\|_{H^{-1}}` in the norm of H. Its
    square is the mean squared error on the rows plus the penalty of the error. It is at most
    :math:`\|g\|_{M^{-1}}` over the root of the least eigenvalue of :math:`M^{-1} H`.

    - `inverse`: the inverse of M: B B' of FALKON, or the preconditioner of the steps if m² numbers
      do not fit or the penalty is 0. The latter does not resolve directions outside of the sketch.
    - `smallest_eigenvalue`: the least eigenvalue of :math:`M^{-1} H`, estimated from a sample of
      rows.
    """

    inverse: FalkonFactor | LowRankInverse
    smallest_eigenvalue: float

    @classmethod
    def build(
        cls, problem: NystromProblem, H: Hessian, P: LowRankInverse, rng: RandomStream
    ) -> Certificate:
        """Factorise K_mm as M, or take P if a factor costs too much. Cost: m³ operations."""
        n, m = problem.K.shape
        fits = 8 * m * m <= problem.K.memory_bytes // 4 and is_factor_cheap(n, m)
        factored = fits and H.K_mm is not None and problem.penalty > 0
        inverse = FalkonFactor.build(problem, "auto") if factored else P
        # A sample with fewer rows than landmarks would miss directions of the Hessian.
        rows = H.sample(max(SKETCH_ROWS, 2 * m if factored else 0), rng)
        noise = rng.standard_normal((len(rows.omega), 1), xp.float64)
        rhs = rows.K.T @ (xp.sqrt(rows.omega) * xp.cast_like(noise, rows.omega)) / len(rows.omega)
        metric = cls(inverse, 1.0)
        # The solution is not used: conjugate gradient records the Lanczos steps on the way.
        states = conjugate_gradient(rows.product, rhs, precondition=metric.solve)
        for s in islice(states, LANCZOS_STEPS):
            if s.verdict is not None:
                break
        return cls(inverse, s.extremes[0])

    def solve(self, gradient: Float[Array, "m t"]) -> Float[Array, "m t"]:
        """Return the product of the inverse of M with gradients."""
        if isinstance(self.inverse, LowRankInverse):
            return self.inverse @ gradient
        return self.inverse.to_coef(self.inverse.solve_At(self.inverse.solve_Tt(gradient)))

    def norm(self, gradient: Float[Array, "m t"]) -> Float[Array, " t"]:
        """Return the norm of gradients in the inverse of M, per target."""
        # Rounding may make the square of a small norm negative.
        return xp.sqrt((gradient * self.solve(gradient)).sum(axis=0).clip(min=0.0))

    def error(self, norm: Float[Array, " t"]) -> Float[Array, " t"]:
        """Return the error of predictions that these gradient norms imply."""
        return norm / math.sqrt(self.smallest_eigenvalue)
