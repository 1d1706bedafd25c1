"""Fit by parts: each call passes once over more rows, with the centers of the first call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import _arrays as xp
from .. import solvers
from .._arrays import Array
from .._parameters.types import SolverLike
from ..data import RowSource
from ..problems import NystromProblem
from ..solvers import Solver, State, max_iterations, solve
from .inputs.features import check_units
from .inputs.training_data import TrainingData
from .methods.base import Prepared, Start, choose_landmarks, kept_in_file, problem_of
from .methods.pipeline import check_not_diverged, prepare
from .methods.squared_error import SquaredError
from .plans.placement import PlacedData
from .result import Fitted
from .settings import resolve
from .settings.generators import Generators
from .settings.settings import FitSettings


@dataclass(frozen=True)
class MoreRows(SquaredError):
    """Fit of new rows by squared errors, with the kernel and the centers of the first call.

    - `earlier`: the fit so far; None in the first call.
    """

    earlier: Fitted | None
    estimates_time = False  # a single pass is not expected to take long

    def before(
        self, settings: FitSettings, data: TrainingData, fitted: Fitted | None
    ) -> Fitted | None:
        """Return the fit so far."""
        return self.earlier

    def start(self, prepared: Prepared, rng: Generators) -> Start:
        """Return the problem with the centers of the first call, or with new landmarks."""
        settings, before = prepared.settings, self.earlier
        if before is not None:
            # The memory is divided by the centers that there are: the
            # settings may mean another number.
            size = replace(prepared.size, m=len(before.model.centers))
            placed = replace(prepared, size=size).place()
            problem = _with_centers(before, placed, settings.one_penalty)
            state = State(before.iteration, before.model.coef)
            penalty, engine = settings.one_penalty, placed.K.engine
            return Start(problem, None, penalty, engine, prepared.solver, state)
        placed = prepared.place()
        landmarks = choose_landmarks(placed.K, settings.landmarks, rng.landmarks)
        landmarks = kept_in_file(landmarks, settings.centers_file)
        first = problem_of(placed.K, placed.data, landmarks, settings.one_penalty)
        return Start(first, landmarks, settings.one_penalty, placed.K.engine, prepared.solver)

    def centers(self, prepared: Prepared, start: Start) -> RowSource | Array:
        """Return the centers of the first call, without a copy."""
        earlier = self.earlier
        return super().centers(prepared, start) if earlier is None else earlier.model.centers


def partial_fit(
    settings: FitSettings, data: TrainingData, *, rng: Generators, before: Fitted | None = None
) -> Fitted:
    """Improve the coefficients of a fit by one pass over new rows.

    - `settings`: settings without a path of penalties, and with a solver that supports it, see
      `supports_partial_fit`.
    - `data`: any number of rows.
    - `before`: the fit so far, whose kernel and centers stay. None in the first call.

    Raise ValueError if the penalty is "auto", early stopping is requested, or the number of
    targets differs from the first call.
    """
    _check(settings)
    settings = resolve.with_names(settings, data.column_names)
    check_units(settings, data.rows)
    # Later calls may bring rows of other quantiles. A single pass has no time limit.
    own = settings.with_plain_inputs().with_values(time_limit=None)
    if before is not None:
        # A kernel object keeps its own lengthscale: next to it, "median" has no effect.
        own = own.with_values(kernel=before.model.kernel, lengthscale="median")
    method = MoreRows(before)
    # A decoded copy of a file would be read only once.
    prepared = prepare(method, own, data, rng, decodes=False)
    start = method.start(prepared, rng)
    earlier = [] if before is None else before.history
    # Run one epoch, which may have several states, and return it with the earlier history.
    done = 0 if start.state is None else start.state.iteration
    # A solver with several states per epoch stops at the end of the epoch, not after one state.
    last = done + getattr(prepared.solver, "states_per_epoch", 1)
    result = solve(
        start.problem,
        prepared.solver,
        stop=[max_iterations(last)],
        state=start.state,
        rng=rng.solver,
    )
    # The first row repeats the state to start from, which the earlier history ends with.
    result = replace(result, history=earlier + result.history[start.state is not None :])
    check_not_diverged(result)
    model = method.model(prepared, start, xp.to_host(result.state.coef), None)
    fitted = prepared.build_fitted(start, result, model)
    user_settings = settings.with_values(callbacks=(), tol=prepared.settings.tol)
    if before is None:
        return replace(fitted, settings=user_settings)
    # Landmarks and names of targets are the choice of the first call.
    user_settings = user_settings.with_values(landmarks=before.settings.landmarks)
    model = replace(fitted.model, target=before.model.target)
    return replace(fitted, model=model, settings=user_settings, index=before.index)


def _check(settings: FitSettings) -> None:
    """Raise ValueError for settings of fits that need all rows at once."""
    if settings.searches_penalty:
        raise ValueError("partial_fit has no path of penalties; give other landmarks, or a penalty")
    if settings.early_stopping:
        raise ValueError(
            "partial_fit passes once over the rows and does not stop early; give "
            "early_stopping=False"
        )


def supports_partial_fit(given: SolverLike) -> bool:
    """Return whether a solver, or the solver with this name, supports `partial_fit`."""
    if isinstance(given, Solver):
        return given.streams
    return given in solvers.names() and solvers.make(given).streams


def _with_centers(before: Fitted, placed: PlacedData, penalty: float) -> NystromProblem:
    """Return the problem of the new rows with the centers of the first call."""
    data, t = placed.data, placed.data.targets.shape[1]
    if before.model.coef.shape[1] != t:
        raise ValueError(
            f"the targets have {t} columns, but the first call had {before.model.coef.shape[1]}"
        )
    centers = placed.K.against(before.model.centers)
    return NystromProblem(centers, data.targets, penalty, data.weights)
