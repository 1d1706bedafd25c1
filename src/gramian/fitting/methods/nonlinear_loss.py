"""Fit by another loss than the square, by Newton's method with landmarks as centers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from ... import _arrays as xp
from ... import losses
from ..._arrays import Array, Float
from ..._messages.errors import SETTING_FORM, ParameterError
from ...data import gather_rows
from ...landmarks import Landmarks
from ...losses import Logistic, Loss, Softmax
from ...losses.base import IDENTITY
from ...model import KernelModel, LogOdds
from ...operators import KernelOperator
from ...problems import LossProblem
from ..choice import loss_penalty
from ..held_out.validation import HeldValues
from ..inputs.training_data import TrainingData
from ..settings import resolve
from ..settings.checks import SQUARED_LOSS
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from .base import Method, Prepared, Start, choose_landmarks, kept_in_file, nystrom_problem

DEFAULT_TOLERANCE = 1e-4
"""``tol="auto"``: the objective then exceeds its minimum by about 1e-8 of its total decrease."""


@dataclass(frozen=True, eq=False)
class NonlinearLoss(Method):
    """Method of a fit by another loss than the square: a convex problem in the coefficients.

    - `settings`: settings of the user.
    - `loss`: loss in the unit of the targets.
    - `unit`: unit of the targets.
    - `targets`: targets divided by the unit.

    Kernel and lengthscale that are "auto" are chosen by squared errors, of codes of classes or of
    `Loss.surrogate` of the targets, as in a fit with that loss. An "auto" penalty is chosen by the
    loss itself on held-out rows of a sample, from fits with decreasing penalties, each started from
    the previous one.
    """

    settings: FitSettings
    loss: Loss
    unit: float
    targets: Float[Array, "n t"]

    @classmethod
    def of(cls, settings: FitSettings, data: TrainingData) -> NonlinearLoss:
        """Return the method for the loss of the settings, with targets divided by their unit.

        Raise ValueError if the loss is not defined for the targets.
        """
        # `after_choices` puts these targets in place of the scaled
        # ones: they must be of the same rows.
        data = data.without_zero_weights()
        loss, y = loss_for(settings.loss, data), xp.to_float64(data.targets)
        loss.check(y)
        unit = loss.unit(y, ones_or(data))
        return cls(settings, loss.for_unit(unit), unit, y / unit)

    def for_choices(
        self, settings: FitSettings, data: TrainingData
    ) -> tuple[FitSettings, TrainingData]:
        """Return settings of a fit of squared errors, and surrogate targets for the loss."""
        plain = settings.with_values(loss=SQUARED_LOSS, solver="auto")
        if data.coded:
            return plain, data
        surrogate = self.loss.surrogate(xp.to_float64(data.targets), ones_or(data))
        return plain, replace(data, targets=surrogate)

    def after_choices(
        self, settings: FitSettings, data: TrainingData
    ) -> tuple[FitSettings, TrainingData]:
        """Return the chosen settings with the loss again, and targets divided by their unit."""
        tol = DEFAULT_TOLERANCE if isinstance(self.settings.tol, str) else self.settings.tol
        own = settings.with_values(loss=self.settings.loss, solver=self.settings.solver, tol=tol)
        return own, replace(data, targets=self.targets)

    def start(self, prepared: Prepared, rng: Generators) -> Start:
        """Return the problem, with landmarks, and a penalty that the loss chooses if "auto"."""
        settings, placed = prepared.settings, prepared.place()
        landmarks = choose_landmarks(placed.K, settings.landmarks, rng.landmarks)
        # A problem of losses always has landmarks; with all rows as
        # landmarks it is the full problem.
        landmarks = all_rows(placed.K) if landmarks is None else landmarks
        placed = placed.with_landmarks(len(landmarks.weight))
        K, landmarks = placed.K, kept_in_file(landmarks, settings.centers_file) or landmarks
        data, loss, penalty = placed.data, self.loss, settings.one_penalty
        offset = xp.to_device(loss.constant(xp.to_float64(data.targets), ones_or(data)), K.device)
        if self.settings.chooses_penalty:
            m = len(landmarks.weight)
            penalty = loss_penalty.choose_penalty(
                K, data, loss, penalty, m, rng.choice, prepared.ends
            )
        at = nystrom_problem(K, data, landmarks, penalty)
        problem = LossProblem(
            at.K,
            at.targets,
            penalty,
            at.weights,
            at.landmark_weight,
            at.coverage,
            at.index,
            loss=loss,
            offset=offset,
        )
        return Start(problem, landmarks, penalty, K.engine, prepared.solver)

    def model(
        self,
        prepared: Prepared,
        start: Start,
        coef: Float[Array, "m t"],
        held_values: HeldValues | None,
    ) -> KernelModel:
        """Return the model, whose predictions pass through the link function of the loss."""
        data, loss = prepared.data, self.loss
        offset = xp.to_host(cast("LossProblem", start.problem).offset)
        model = data.model(
            prepared.kernel,
            data.rows if start.landmarks is None else xp.to_host(start.landmarks.points),
            coef,
            # The problem is in units of the loss, predictions are in units of the target.
            target_shift=self.unit * offset,
            target_scale=xp.full((len(offset),), self.unit, dtype=xp.float64),
            target=data.target if data.coded or data.target is None else loss.names(data.target),
            probabilities=LogOdds() if data.coded else None,
            link=None if data.coded or loss.link is IDENTITY else loss.link,
        )
        return prepared.scaling.features.model(model)


def loss_for(given: str | Loss, data: TrainingData) -> Loss:
    """Return the loss object for the parameter ``loss`` and the targets of these data.

    Raise ValueError if a loss of classes meets numeric targets, or the reverse.
    """
    loss = resolve.loss(given)
    if loss.of_classes is not data.coded:
        known_losses = [
            name for name in losses.names() if type(losses.make(name)).of_classes is data.coded
        ]
        what = "classes" if data.coded else "numbers"
        problem = f"is not for {what}; known: squared, {', '.join(known_losses)}"
        raise ParameterError("loss", given, problem, form=SETTING_FORM)
    t = data.targets.shape[1]
    # One name means both losses: two classes have one output, more have one each.
    if isinstance(loss, Logistic) and t > 1:
        return Softmax()
    if isinstance(loss, Softmax) and t == 1:
        return Logistic()
    return loss


def all_rows(K: KernelOperator) -> Landmarks:
    """Return all rows as landmarks."""
    index = xp.arange(K.shape[0])
    points_taken = gather_rows(K.rows, index, K.host_bytes)
    return Landmarks(points_taken, xp.ones(len(index), xp.float64), index)


def ones_or(data: TrainingData) -> Float[Array, " n"]:
    """Return the weights of the rows in float64, or ones for unweighted data."""
    if data.weights is not None:
        return xp.to_float64(data.weights)
    return xp.ones(len(data.targets), xp.float64, like=data.targets)
