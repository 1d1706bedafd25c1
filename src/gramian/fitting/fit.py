"""fit: from settings and training data to a fitted model."""

from __future__ import annotations

import logging
import math
import numbers
import time
from dataclasses import replace
from typing import Any

from .._errors import Text
from .._parameter_types import Callbacks, LandmarksLike, MetricLike
from ..callbacks import Checkpoint, announce, stages
from ..landmarks import Selector
from ..metric import Metric
from ..model import KernelModel, same_encoding
from ..problems import Problem
from ..solvers import Result, Solver, State, solve
from . import resolve
from .cells import fit_cells
from .data import TrainingData
from .diagnosis import diagnosed
from .divide import divide
from .features import check_units
from .fitted import Fitted, InterruptedFit, check_not_diverged, keeping_model
from .generators import Generators
from .landmarks import centers_on_host, kept_in_file, problem_of
from .long_fits import long_fit
from .loss_fit import fit_loss
from .placed import PlacedData
from .precomputed import NAME, linear_model, looked_up
from .seen import as_seen
from .settings import FitSettings
from .start import start, stopping
from .watch import Watch, looking_at

logger = logging.getLogger("gramian")


def fit(
    settings: FitSettings,
    data: TrainingData,
    *,
    rng: Generators,
    before: Fitted | None = None,
    diagnose: bool = True,
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
    diagnose : bool, default=True
        Whether to log a warning where the model explains little of the targets.

    Returns
    -------
    Fitted

    Raises
    ------
    ValueError
        If the settings do not suit the data, or the fit does not fit in memory.
    FloatingPointError
        If the solver diverged.
    InterruptedFit
        If it is interrupted, as by Ctrl-C, when the solver has a state: a KeyboardInterrupt that
        holds the model until then. Another error when it has one: see `model_until`.
    """
    if settings.kernel == NAME:
        return _fit_matrix(settings, data, rng)
    _check_penalties(settings, data)
    check_units(settings, data.rows)
    if settings.cells is not None:
        return fit_cells(settings, data, rng=rng)
    if settings.is_nonlinear:
        return fit_loss(settings, data, rng=rng)
    return _fit(settings, data, rng, before, diagnose)


def _fit_matrix(settings: FitSettings, data: TrainingData, rng: Generators) -> Fitted:
    """Fit a model to the kernel matrix, which the data have as rows."""
    asked, n = settings, len(data.rows)

    def of_matrix(fitted: Fitted) -> Fitted:
        told = replace(fitted.settings, kernel=asked.kernel)
        return replace(fitted, model=linear_model(fitted.model, n), settings=told)

    try:
        return of_matrix(fit(*looked_up(settings, data), rng=rng))
    except InterruptedFit as error:
        raise InterruptedFit(of_matrix(error.fitted)) from error


def _fit(
    settings: FitSettings,
    data: TrainingData,
    rng: Generators,
    before: Fitted | None,
    diagnose: bool,
) -> Fitted:
    """Fit one model by squared errors."""
    ends = math.inf if settings.time_limit is None else time.monotonic() + settings.time_limit
    asked, parts = settings, divide(settings, data, rng)
    data, n = parts.train, len(parts.train.rows)
    settings = resolve.automatic(settings, n)
    solver, size = resolve.solver_and_size(settings, data.rows, data.targets.shape[1])
    _warn(long_fit(settings, data.rows, solver, size))
    settings = looking_at(settings, parts.held_out, solver, n)
    warm = before is not None and _starts_warm(asked, data, before)
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    seen = as_seen(settings, data, size, kernel, rng, ends, before if warm else None)
    scaling, settings, data, size = seen.scaling, seen.settings, seen.data, seen.size
    asked = replace(asked, tol=settings.tol)
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    kernel = resolve.kernel_for(kernel, data.rows, rng.kernel)
    solver = resolve.solver_for(settings, asked, size)
    engine = resolve.engine_for(settings, data.rows, kernel)
    solver = resolve.storing(solver, size, settings.limit, engine, kernel)
    announce(settings.callbacks, stages.CHOOSING)
    # nobody else may hold the data as first placed: they may have to leave the device
    begin = start(
        settings,
        PlacedData.place(data, kernel, engine, solver, size, settings.limit),
        rng,
        before if warm else None,
        folds=parts.folds,
        ends=ends,
    )
    K = begin.placed.K
    landmarks = kept_in_file(begin.landmarks, settings.centers_file)
    problem = problem_of(
        K, begin.placed.data, landmarks, begin.penalty, settings.penalties,
        spare_bytes=0 if solver.closed_form else resolve.spare_bytes(solver, size, settings.limit),
    )  # fmt: skip
    state = _saved(settings.callbacks, problem, solver) or _of_shape(begin.state, problem)
    watch = Watch.of(settings)
    announce(settings.callbacks, stages.PREPARING)

    def fitted(result: Result) -> Fitted:
        best = watch.kept(problem, result)
        chances = None
        if data.coded:
            held = watch.held(problem, result, best) or begin.held
            chances = seen.probabilities if held is None else held.shares()
        model = KernelModel(
            K.kernel,
            centers_on_host(landmarks, data.rows),
            (result.state if best is None else best).coef.cpu(),
            feature_names=data.feature_names,
            classes=data.classes,
            encoding=data.encoding,
            target=data.target,
            probabilities=chances,
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
            best=best,
            held_out=None if parts.held_out is None else parts.held_out.index,
            learned=before.learned if before and warm else scaling.features.learned,
        )

    with keeping_model(fitted):
        result = solve(
            problem,
            begin.solver,
            stop=[*stopping(settings, begin.solver, n, ends), *watch.stop],
            callbacks=watch.callbacks,
            state=state,
            rng=rng.solver,
        )
    check_not_diverged(result)
    if diagnose and not asked.chooses_penalty:  # nothing better was found
        _warn(diagnosed(problem, result, settings.callbacks, data.coded))
    return fitted(result)


def _check_penalties(settings: FitSettings, data: TrainingData) -> None:
    """Raise ValueError if there are penalties, and not one for each target of a regression."""
    if settings.penalties is None:
        return
    count, t = len(settings.penalties), data.targets.shape[1]
    if data.coded:
        raise ValueError("classes share one penalty; only targets of a regression have their own")
    if count != t:
        raise ValueError(f"penalty has {count} numbers, but y has {t} target{'s' * (t != 1)}")


def _warn(text: str | Text | None) -> None:
    """Log a warning, if there is one: not through `warnings`, as what it says may be as meant."""
    if text is not None:
        logger.warning(text)


def _starts_warm(settings: FitSettings, data: TrainingData, before: Fitted) -> bool:
    """Return whether a fit starts from an earlier one: from its landmarks and coefficients."""
    return (
        bool(settings.warm_start)
        and _same_features(before.model, data)
        and _same_choice(settings.landmarks, before.settings.landmarks)
        and settings.standardize == before.settings.standardize
        and _same_metric(settings.metric, before.settings.metric)
        and settings.scales_targets == before.settings.scales_targets
    )


def _same_features(model: KernelModel, data: TrainingData) -> bool:
    """Return whether centers of a model are rows of the same features: the same columns, too."""
    return (
        same_encoding(model.encoding, data.encoding)
        and model.features == data.rows.shape[1]
        and model.centers.sparse == data.rows.sparse
        and model.feature_names == data.feature_names
    )


def _same_choice(a: LandmarksLike, b: LandmarksLike) -> bool:
    comparable = all(isinstance(v, numbers.Integral | str | Selector) for v in (a, b))
    return a is b or (comparable and a == b)


def _same_metric(a: MetricLike, b: MetricLike) -> bool:
    comparable = all(isinstance(v, str | Metric) for v in (a, b))
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
