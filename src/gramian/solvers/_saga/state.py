"""SagaState: where SketchySAGA is, and how it goes on or back."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..metrics import BATCH_ERROR, EPOCH, PREDICTION_ERROR, RESIDUAL
from ..state import State
from ..stopping import StopReason

logger = logging.getLogger("gramian")

HALVING_GROWTH = 4.0
"""Growth of the squared residual over its least at which the step is halved."""

MOST_HALVINGS = 40
"""Halvings after which there is nothing left of the step."""


@dataclass(kw_only=True)
class SagaState(State):
    """All that the method needs to go on.

    Attributes
    ----------
    table : Tensor of shape (n, t)
        Psi: the weighted residual of each row when it was last seen.
    average : Tensor of shape (m, t)
        x: the gradient of the rows that the table stands for, over n.
    size : Tensor of shape (t,)
        Norms of the right-hand side over n, in the metric of the certificate.
    least : float
        The least mean squared residual of a part of an epoch so far.
    halvings : int
        How often the step was halved.
    halved_last : bool
        Whether it was in the last iteration.
    seed : int
    settings : dict of str to float
        What was chosen: rank, rho, smoothness, batch, step, and whether the ridge is in the rows.
    """

    table: Float[Tensor, "n t"]
    average: Float[Tensor, "m t"]
    size: Float[Tensor, " t"]
    least: float = math.inf
    halvings: int = 0
    halved_last: bool = False
    seed: int = 0
    settings: dict[str, int | float] = field(default_factory=dict)

    @property
    def verdict(self) -> StopReason | None:
        return "diverged" if self.halvings >= MOST_HALVINGS else None

    def diverged(self, mse: float, w: Float[Tensor, "m t"]) -> bool:
        """Return whether the squared residual of part of an epoch, or its end, is too large."""
        return not mse <= HALVING_GROWTH * self.least or not bool(w.isfinite().all())

    def halved(self, epoch: float, mse: float) -> SagaState:
        """Return the state from which that part began, with half the step from here on."""
        logger.warning(
            "SketchySAGA: the squared residual grew from %.2e to %.2e; the step is halved",
            self.least,
            mse,
        )
        halvings = self.halvings + 1
        metrics = {**self.metrics, EPOCH: epoch, "halvings": halvings}
        return replace(
            self, iteration=self.iteration + 1, metrics=metrics, halvings=halvings, halved_last=True
        )

    def after(
        self,
        epoch: float,
        mse: float,
        w: Float[Tensor, "m t"],
        x: Float[Tensor, "m t"],
        table: Float[Tensor, "n t"],
        gradient: Float[Tensor, " t"],
        error: float,
    ) -> SagaState:
        """Return the state after part of an epoch, at whose ends gradients have these norms.

        `error` is the error of predictions that they mean.
        """
        relative = gradient / torch.where(self.size > 0, self.size, 1.0)
        metrics = {
            EPOCH: epoch,
            BATCH_ERROR: mse,
            RESIDUAL: float(relative.max()),
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
