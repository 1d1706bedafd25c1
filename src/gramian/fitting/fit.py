"""fit: from settings and training data to a fitted model."""

from __future__ import annotations

import logging
import numbers
from typing import Any

from ..callbacks import Checkpoint, announce, stages
from ..landmarks import Selector
from ..model import KernelModel
from ..problems import Problem
from ..solvers import Solver, State, solve
from . import resolve
from .data import TrainingData
from .diagnosis import diagnosed
from .fitted import Fitted, check_not_diverged
from .generators import Generators
from .landmarks import centers_on_host, kept_in_file, problem_of
from .long_fits import long_fit
from .parameters import Callbacks, LandmarksLike
from .placed import PlacedData
from .scaling import Scaling
from .settings import FitSettings
from .start import start, stopping

logger = logging.getLogger("gramian")


def fit(
    settings: FitSettings, data: TrainingData, *, rng: Generators, before: Fitted | None = None
) -> Fitted:
    """Fit a model: choose solver, kernel, landmarks and penalty, place the data, and solve.

    Parameters
    ----------
    settings : FitSettings
    data : TrainingData
    rng : Generators
    before : Fitted, optional
        An earlier fit. Its landmarks and coefficients are where this one starts if
        ``settings.warm_start``, and the features and the choice of landmarks are the same.

    Returns
    -------
    Fitted

    Raises
    ------
    ValueError
        If the settings do not suit the data, or the fit does not fit in memory.
    FloatingPointError
        If the solver diverged.
    """
    asked, data = settings, data.without_zero_weights()
    settings = resolve.automatic(settings, len(data.rows))
    solver, size = resolve.solver_and_size(settings, data.rows, data.targets.shape[1])
    _warn(long_fit(settings, data.rows, solver, size))
    warm = before is not None and _starts_warm(asked, data, before)
    scaling = Scaling.of(settings, data, before.model if before and warm else None)
    settings = scaling.settings(settings, data.rows)
    data = scaling.apply(data)
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    kernel = resolve.kernel_for(kernel, data.rows, rng.kernel)
    engine = resolve.engine_for(settings, data.rows, kernel)
    announce(settings.callbacks, stages.CHOOSING)
    # nobody else may hold the data as first placed: they may have to leave the device
    begin = start(
        settings,
        PlacedData.place(data, kernel, engine, solver, size, settings.limit),
        rng,
        before if warm else None,
    )
    K = begin.placed.K
    landmarks = kept_in_file(begin.landmarks, settings.centers_file)
    problem = problem_of(K, begin.placed.data, landmarks, begin.penalty)
    announce(settings.callbacks, stages.PREPARING)
    result = solve(
        problem,
        begin.solver,
        stop=stopping(settings, begin.solver, len(data.targets)),
        callbacks=settings.callbacks,
        state=_saved(settings.callbacks, problem, solver) or _of_shape(begin.state, problem),
        rng=rng.solver,
    )
    check_not_diverged(result)
    _warn(diagnosed(problem, result, settings.callbacks, data.coded))
    model = KernelModel(
        K.kernel,
        centers_on_host(landmarks, data.rows),
        result.state.coef.cpu(),
        feature_names=data.feature_names,
        classes=data.classes,
        encoding=data.encoding,
        target=data.target,
    )
    return Fitted.of(
        result,
        scaling.model(model),
        asked,
        solver,
        K.engine,
        penalty=begin.penalty,
        index=None if begin.landmarks is None else begin.landmarks.index,
        path=scaling.path(begin.path),
        path_ended_at_best=begin.ended_at_best,
    )


def _warn(text: str | None) -> None:
    """Log a warning, if there is one: not through `warnings`, as what it says may be as meant."""
    if text is not None:
        logger.warning("%s", text)


def _starts_warm(settings: FitSettings, data: TrainingData, before: Fitted) -> bool:
    """Return whether a fit starts from an earlier one: from its landmarks and coefficients."""
    return (
        bool(settings.warm_start)
        and before.model.centers.shape[1] == data.rows.shape[1]
        and _same_choice(settings.landmarks, before.settings.landmarks)
        and settings.standardize == before.settings.standardize
        and settings.scales_targets == before.settings.scales_targets
    )


def _same_choice(a: LandmarksLike, b: LandmarksLike) -> bool:
    comparable = all(isinstance(v, numbers.Integral | str | Selector) for v in (a, b))
    return a is b or (comparable and a == b)


def _saved(callbacks: Callbacks, problem: Problem, solver: Solver[Any, Any]) -> State | None:
    """Return the state of the first checkpoint among the callbacks that has one."""
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            state = callback.restore(problem, solver)
            if state is not None:
                logger.info("going on from %s, iteration %d", callback.path, state.iteration)
                return state
    return None


def _of_shape(state: State | None, problem: Problem) -> State | None:
    """Return a state if its coefficients are those of the problem's centers and targets."""
    wanted = (problem.K.shape[1], problem.targets.shape[1])
    return state if state is not None and state.coef.shape == wanted else None
