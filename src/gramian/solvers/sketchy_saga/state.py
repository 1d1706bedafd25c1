"""State of SketchySAGA: iterate, table of residuals, and halvings of the step."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..loop.metrics import BATCH_ERROR, EPOCH_KEY, PREDICTION_ERROR, RESIDUAL_KEY
from ..loop.state import State
from ..loop.stopping import StopReason

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
