"""fit: from settings and training data to a fitted model."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

from .._parameter_types import LandmarksLike, MetricLike
from ..callbacks import announce, stages
from ..landmarks import Landmarks, Selector
from ..metric import Metric
from ..model import KernelModel, same_encoding
from ..problems import FullProblem, NystromProblem, Problem
from ..solvers import Result, Solver, State
from .cells.fit import fit_cells
from .choice.landmarks import centers_on_host, kept_in_file, problem_of
from .choice.prepared import Prepared, prepare
from .choice.start import Start, start, stopping
from .diagnosis import diagnosed, warn
from .held_out.divide import divide
from .held_out.early_stopping import Watch
from .inputs.features import check_units
from .inputs.kernel_matrix import NAME, linear_model, looked_up
from .inputs.training_data import TrainingData
from .other_losses import fit_loss
from .plans.placed_data import PlacedData
from .result import Fitted, InterruptedFit, run, saved_state
from .settings import resolve
from .settings.generators import Generators
from .settings.settings import FitSettings


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
    ends = settings.deadline()
    parts = divide(settings, data, rng)
    if before is not None and not _starts_warm(settings, parts.train, before):
        before = None
    p = prepare(settings, parts.train, rng, ends=ends, held_out=parts.held_out, before=before)
    solver = resolve.storing(p.solver, p.size, p.settings.limit, p.engine, p.kernel)
    announce(p.settings.callbacks, stages.CHOOSING)
    # nobody else may hold the data as first placed: they may have to leave the device
    begin = start(
        p.settings,
        PlacedData.place(p.data, p.kernel, p.engine, solver, p.size, p.settings.limit),
        rng,
        before,
        folds=parts.folds,
        ends=ends,
    )
    problem, landmarks = _problem(p, begin, solver)
    state = saved_state(settings.callbacks, problem, solver) or _of_shape(begin.state, problem)
    watch = Watch.of(p.settings)
    announce(p.settings.callbacks, stages.PREPARING)

    def fitted(result: Result) -> Fitted:
        best = watch.kept(problem, result)
        probabilities = p.probabilities
        if p.data.coded and (held := watch.held(problem, result, best) or begin.held):
            probabilities = held.shares()
        model = p.data.model(
            begin.placed.K.kernel,
            centers_on_host(landmarks, p.data.rows),
            (result.state if best is None else best).coef.cpu(),
            probabilities=probabilities,
        )
        return Fitted.of(
            result,
            p.scaling.model(model),
            replace(settings, tol=p.settings.tol),
            solver,
            begin.placed.K.engine,
            penalty=begin.penalty,
            index=None if begin.landmarks is None else begin.landmarks.index,
            path=p.scaling.path(begin.path),
            path_ended_at_best=begin.ended_at_best,
            best=best,
            held_out=None if parts.held_out is None else parts.held_out.index,
            learned=p.scaling.features.learned if before is None else before.learned,
        )

    stop = [*stopping(p.settings, begin.solver, len(p.data.rows), ends), *watch.stop]
    result = run(
        problem, begin.solver, fitted,
        stop=stop, callbacks=watch.callbacks, state=state, rng=rng.solver,
    )  # fmt: skip
    if diagnose and not settings.chooses_penalty:  # nothing better was found
        warn(diagnosed(problem, result, p.settings.callbacks, data.coded))
    return fitted(result)


def _problem(
    p: Prepared, begin: Start, solver: Solver[Any, Any]
) -> tuple[FullProblem | NystromProblem, Landmarks | None]:
    """Return the problem of all rows, and its landmarks, in their file if they have one."""
    landmarks = kept_in_file(begin.landmarks, p.settings.centers_file)
    spare = 0
    if not solver.closed_form:
        spare = resolve.spare_bytes(solver, p.size, p.settings.limit)
    problem = problem_of(
        begin.placed.K, begin.placed.data, landmarks, begin.penalty, p.settings.penalties,
        spare_bytes=spare,
    )  # fmt: skip
    return problem, landmarks


def _check_penalties(settings: FitSettings, data: TrainingData) -> None:
    """Raise ValueError if there are penalties, and not one for each target of a regression."""
    if settings.penalties is None:
        return
    count, t = len(settings.penalties), data.targets.shape[1]
    if data.coded:
        raise ValueError("classes share one penalty; only targets of a regression have their own")
    if count != t:
        raise ValueError(f"penalty has {count} numbers, but y has {t} target{'s' * (t != 1)}")


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


def _of_shape(state: State | None, problem: Problem) -> State | None:
    """Return a state if its coefficients are those of the problem's centers and targets."""
    wanted = (problem.K.shape[1], problem.targets.shape[1])
    return state if state is not None and state.coef.shape == wanted else None
