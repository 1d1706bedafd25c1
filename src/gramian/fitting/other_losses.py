"""fit_loss: a fit with another loss than the square, by Newton's method at landmarks."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from .. import losses
from .._errors import SETTING_FORM, ParameterError
from ..callbacks import announce, stages
from ..data import gathered
from ..landmarks import Landmarks
from ..losses import Logistic, Loss, Softmax
from ..losses.links import IDENTITY
from ..model import LogOdds
from ..operators import KernelOperator
from ..problems import LossProblem
from ..solvers import Result, deadline, max_iterations, tolerance
from .choice import loss_penalty
from .choice.landmarks import centers_on_host, chosen, kept_in_file, nystrom_problem
from .choice.prepared import prepare
from .inputs.training_data import TrainingData
from .plans.placed_data import PlacedData
from .result import Fitted, run, saved_state
from .settings import resolve
from .settings.generators import Generators
from .settings.settings import FitSettings

TOLERANCE = 1e-4
"""``tol="auto"``: the objective is then too large by about its square of what was gained."""


def fit_loss(settings: FitSettings, data: TrainingData, *, rng: Generators) -> Fitted:
    """Fit a model by another loss than the square.

    Parameters
    ----------
    settings : FitSettings
        With ``loss``.
    data : TrainingData
    rng : Generators

    Raises
    ------
    ValueError
        If the loss is not defined for the targets, or the settings do not suit the data.
    FloatingPointError
        If the solver diverged.
    InterruptedFit
        If it is interrupted when the solver has a state; of another error see `model_until`.

    Notes
    -----
    Kernel and lengthscale that are "auto" are chosen by squared errors, of codes of classes or of
    `Loss.surrogate` of the targets, as in a fit with that loss. A penalty that is "auto" is chosen
    by the loss itself on rows that are held out of a sample, from fits with decreasing penalties
    that start from each other.
    """
    ends = settings.deadline()
    data = data.without_zero_weights()
    loss = loss_for(settings.loss, data)
    given = data.targets.double()
    loss.check(given)
    weights = ones_or(data)
    unit = loss.unit(given, weights)
    loss, y = loss.for_unit(unit), given / unit
    surrogate = None if data.coded else loss.surrogate(given, weights)
    p = prepare(settings, data, rng, ends=ends, surrogate=surrogate)
    p = replace(p, data=replace(p.data, targets=y))
    announce(settings.callbacks, stages.CHOOSING)
    placed = PlacedData.place(p.data, p.kernel, p.engine, p.solver, p.size, p.settings.limit)
    landmarks = chosen(placed.K, p.settings.landmarks, rng.landmarks) or all_rows(placed.K)
    placed = placed.with_landmarks(len(landmarks.weight))
    K, landmarks = placed.K, kept_in_file(landmarks, settings.centers_file) or landmarks
    offset = loss.constant(placed.data.targets.double(), ones_or(placed.data)).to(K.device)
    penalty = p.settings.one_penalty
    if settings.chooses_penalty:
        penalty = loss_penalty.chosen(
            K, placed.data, loss, penalty, len(landmarks.weight), rng.choice, ends
        )
    problem = loss_problem(K, placed.data, landmarks, penalty, loss, offset)
    announce(settings.callbacks, stages.PREPARING)
    tol = TOLERANCE if isinstance(settings.tol, str) else float(settings.tol)

    def fitted(result: Result) -> Fitted:
        target = data.target if data.coded or data.target is None else loss.names(data.target)
        model = data.model(
            K.kernel,
            centers_on_host(landmarks, p.data.rows),
            result.state.coef.cpu(),
            target_shift=unit * offset.cpu(),
            target_scale=torch.full((len(offset),), unit, dtype=torch.float64),
            target=target,
            probabilities=LogOdds() if data.coded else None,
            link=None if data.coded or loss.link is IDENTITY else loss.link,
        )
        return Fitted.of(
            result,
            p.scaling.features.model(model),
            replace(settings, tol=tol),
            p.solver,
            K.engine,
            penalty=penalty,
            index=landmarks.index,
            learned=p.scaling.features.learned,
        )

    stop = [tolerance(tol), max_iterations(settings.max_iter), deadline(ends)]
    state = saved_state(settings.callbacks, problem, p.solver)
    callbacks = settings.callbacks
    return fitted(
        run(problem, p.solver, fitted, stop=stop, callbacks=callbacks, state=state, rng=rng.solver)
    )


def loss_for(given: str | Loss, data: TrainingData) -> Loss:
    """Return the loss that a parameter means for these data.

    Raises
    ------
    ValueError
        If it is one of classes and targets are numbers, or the other way round.
    """
    loss = resolve.loss(given)
    if loss.of_classes is not data.coded:
        known = [
            name for name in losses.names() if type(losses.make(name)).of_classes is data.coded
        ]
        what = "classes" if data.coded else "numbers"
        problem = f"is not for {what}; known: squared, {', '.join(known)}"
        raise ParameterError("loss", given, problem, form=SETTING_FORM)
    t = data.targets.shape[1]
    if isinstance(loss, Logistic) and t > 1:
        return Softmax()
    if isinstance(loss, Softmax) and t == 1:
        return Logistic()
    return loss


def loss_problem(
    K: KernelOperator,
    data: TrainingData,
    found: Landmarks,
    penalty: float,
    loss: Loss,
    offset: Float[Tensor, " q"],
) -> LossProblem:
    """Return the problem with these landmarks as centers."""
    at = nystrom_problem(K, data, found, penalty)
    return LossProblem(
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


def all_rows(K: KernelOperator) -> Landmarks:
    """Return all rows as landmarks."""
    index = torch.arange(K.shape[0])
    taken = gathered(K.rows, index, K.host_bytes)
    return Landmarks(taken, torch.ones(len(index), dtype=torch.float64), index)


def ones_or(data: TrainingData) -> Float[Tensor, " n"]:
    """Return the weights of rows, ones if there are none."""
    if data.weights is not None:
        return data.weights.double()
    return data.targets.new_ones(len(data.targets), dtype=torch.float64)
