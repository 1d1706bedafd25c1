"""Fit a model to training data: choose, place, solve."""

from __future__ import annotations

from dataclasses import replace

from .. import _arrays as xp
from .._parallel.workers import one_thread_if_small
from ..callbacks import announce, stages
from ..solvers import Result, solve
from .cells.fit import fit_cells
from .held_out.validation import Watch
from .inputs.features import check_units
from .inputs.kernel_matrix import PRECOMPUTED_NAME, linear_model, looked_up
from .inputs.training_data import TrainingData
from .methods.base import Method, Prepared
from .methods.diagnosis import warn
from .methods.nonlinear_loss import NonlinearLoss
from .methods.pipeline import (
    InterruptedFit,
    check_not_diverged,
    keeping_model,
    prepare,
    saved_state,
    stopping_rules,
)
from .methods.squared_error import SquaredError
from .result import Fitted
from .settings import resolve
from .settings.generators import Generators
from .settings.settings import FitSettings

EIGEN_OPERATIONS = 10
"""Operations of the eigenvectors of a matrix of m rows, divided by m³: the most of a fit."""


def fit(
    settings: FitSettings,
    data: TrainingData,
    *,
    rng: Generators,
    before: Fitted | None = None,
    diagnose: bool = True,
) -> Fitted:
    """Fit a model: choose solver, kernel, landmarks and penalty, place the data, and solve.

    - `before`: an earlier fit. This fit starts from its landmarks and coefficients if
      ``settings.warm_start`` is set, and features and choice of landmarks are the same.
    - `diagnose`: whether to log a warning if the model explains little of the targets.

    Raise ValueError if the settings do not suit the data, or the fit does not fit in memory. Raise
    FloatingPointError if the solver diverged. Raise InterruptedFit if the fit is interrupted, as by
    Ctrl-C, once the solver has a state: a KeyboardInterrupt with the model so far. For other errors
    see `interrupted_model`.
    """
    # A matrix comes back to this function as row numbers with a kernel that looks up its entries.
    if settings.kernel == PRECOMPUTED_NAME:
        return _fit_matrix(settings, data, rng)
    if settings.penalties is not None:
        _check_penalties(settings.penalties, data)
    settings = resolve.with_names(settings, data.column_names)
    check_units(settings, data.rows)
    # Cells have a loop of their own, with a full problem and a solver for each.
    if settings.cells is not None:
        return fit_cells(settings, data, rng=rng)
    # Once around a fit of few rows, and not around each of its products and factorisations.
    with one_thread_if_small(EIGEN_OPERATIONS * max(data.rows.shape[0], data.rows.width) ** 3):
        method = NonlinearLoss.of(settings, data) if settings.is_nonlinear else SquaredError()
        prepared = prepare(method, settings, data, rng, before)
        return _solve(method, prepared, rng, diagnose=diagnose)


def _fit_matrix(settings: FitSettings, data: TrainingData, rng: Generators) -> Fitted:
    """Fit a model to a kernel matrix, which the training data contain in place of rows."""
    n = len(data.rows)

    def of_matrix(fitted: Fitted) -> Fitted:
        # Users see the name that they gave, not the kernel that looks up entries.
        user_settings = fitted.settings.with_values(kernel=settings.kernel)
        return replace(fitted, model=linear_model(fitted.model, n), settings=user_settings)

    try:
        return of_matrix(fit(*looked_up(settings, data), rng=rng))
    except InterruptedFit as error:
        # The model of an interrupted fit must also take rows of a kernel matrix.
        raise InterruptedFit(of_matrix(error.fitted)) from error


def _check_penalties(penalties: tuple[float, ...], data: TrainingData) -> None:
    """Raise ValueError for several penalties, unless each target of a regression has one."""
    t = data.targets.shape[1]
    if data.coded:
        raise ValueError("classes share one penalty; only targets of a regression have their own")
    if len(penalties) != t:
        raise ValueError(
            f"penalty has {len(penalties)} numbers, but y has {t} target{'s' * (t != 1)}"
        )


def _solve(method: Method, prepared: Prepared, rng: Generators, *, diagnose: bool) -> Fitted:
    """Solve the problem of a fit, from its checkpoint or its starting state."""
    settings = prepared.settings
    announce(settings.callbacks, stages.CHOOSING_STAGE)
    start = method.start(prepared, rng)
    # A checkpoint is a state of this very problem, and so better than any other start.
    state = saved_state(settings.callbacks, start.problem, prepared.solver) or start.state
    # Only now: reading a checkpoint restores its best state, which the watch takes over.
    watch = Watch.of(settings)
    announce(settings.callbacks, stages.PREPARING_STAGE)

    def build_fitted(result: Result) -> Fitted:
        best = watch.best_state(start.problem, result)
        held_values = None
        # Only the probabilities of classes need predictions of held-out rows.
        if prepared.data.coded:
            held_values = watch.predict_held_out(start.problem, result, best) or start.held_values
        coef = xp.to_host((result.state if best is None else best).coef)
        model = method.model(prepared, start, coef, held_values)
        return prepared.build_fitted(start, result, model, best)

    rules = stopping_rules(settings, start.solver, len(prepared.data.rows), prepared.ends)
    with keeping_model(build_fitted):
        result = solve(
            start.problem,
            start.solver,
            stop=[*rules, *watch.stop],
            callbacks=watch.callbacks,
            state=state,
            rng=rng.solver,
        )
    check_not_diverged(result)
    if diagnose:
        warn(method.diagnosis(prepared, start, result))
    return build_fitted(result)
