"""fit_loss: a fit with another loss than the square, by Newton's method at landmarks."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from .. import losses
from .._errors import SETTING_FORM, ParameterError
from ..callbacks import Checkpoint, announce, stages
from ..data import gathered
from ..landmarks import Landmarks
from ..losses import Logistic, Loss, Softmax
from ..losses.links import IDENTITY
from ..model import KernelModel, LogOdds
from ..operators import KernelOperator
from ..problems import LossProblem
from ..solvers import Result, deadline, max_iterations, solve, tolerance
from . import loss_penalty, resolve
from .data import TrainingData
from .fitted import Fitted, check_not_diverged, keeping_model
from .generators import Generators
from .landmarks import centers_on_host, chosen, kept_in_file, nystrom_problem
from .loss_settings import SQUARED
from .placed import PlacedData
from .seen import as_seen
from .settings import FitSettings

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
    ends = math.inf if settings.time_limit is None else time.monotonic() + settings.time_limit
    data = data.without_zero_weights()
    loss = loss_for(settings.loss, data)
    given = data.targets.double()
    loss.check(given)
    weights = ones_or(data)
    unit = loss.unit(given, weights)
    loss, y = loss.for_unit(unit), given / unit
    asked = replace(settings, tol=TOLERANCE if isinstance(settings.tol, str) else settings.tol)
    settings = resolve.automatic(settings, len(data.rows))
    solver, size = resolve.solver_and_size(settings, data.rows, y.shape[1])
    plain = replace(settings, loss=SQUARED, solver="auto")
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    shown = data if data.coded else replace(data, targets=loss.surrogate(given, weights))
    seen = as_seen(plain, shown, size, kernel, rng, ends, None)
    kernel = resolve.kernel(seen.settings.kernel, seen.settings.lengthscale)
    kernel = resolve.kernel_for(kernel, seen.data.rows, rng.kernel)
    engine = resolve.engine_for(seen.settings, seen.data.rows, kernel)
    announce(settings.callbacks, stages.CHOOSING)
    prepared = replace(seen.data, targets=y)
    placed = PlacedData.place(prepared, kernel, engine, solver, seen.size, seen.settings.limit)
    found = chosen(placed.K, seen.settings.landmarks, rng.landmarks)
    found = all_rows(placed.K) if found is None else found
    placed = placed.with_landmarks(len(found.weight))
    K, found = placed.K, kept_in_file(found, settings.centers_file) or found
    offset = loss.constant(placed.data.targets.double(), ones_or(placed.data)).to(K.device)
    penalty = seen.settings.one_penalty
    if settings.chooses_penalty:
        penalty = loss_penalty.chosen(
            K, placed.data, loss, penalty, len(found.weight), rng.choice, ends
        )
    problem = loss_problem(K, placed.data, found, penalty, loss, offset)
    announce(settings.callbacks, stages.PREPARING)

    def fitted(result: Result) -> Fitted:
        model = KernelModel(
            K.kernel,
            centers_on_host(found, prepared.rows),
            result.state.coef.cpu(),
            target_shift=unit * offset.cpu(),
            target_scale=torch.full((len(offset),), unit, dtype=torch.float64),
            feature_names=data.feature_names,
            classes=data.classes,
            encoding=data.encoding,
            target=data.target if data.coded or data.target is None else loss.names(data.target),
            probabilities=LogOdds() if data.coded else None,
            link=None if data.coded or loss.link is IDENTITY else loss.link,
        )
        return Fitted.of(
            result,
            seen.scaling.features.model(model),
            asked,
            solver,
            K.engine,
            penalty=penalty,
            index=found.index,
            learned=seen.scaling.features.learned,
        )

    saved = [c for c in settings.callbacks if isinstance(c, Checkpoint)]
    with keeping_model(fitted):
        result = solve(
            problem,
            solver,
            stop=[tolerance(float(asked.tol)), max_iterations(settings.max_iter), deadline(ends)],
            callbacks=settings.callbacks,
            state=saved[0].restore(problem, solver) if saved else None,
            rng=rng.solver,
        )
    check_not_diverged(result)
    return fitted(result)


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
