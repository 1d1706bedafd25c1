"""go_on: one pass over more rows, with the centers of the first call, as `partial_fit` does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .. import solvers
from .._parameter_types import SolverLike
from ..problems import FullProblem, NystromProblem, Problem
from ..solvers import Result, Solver, State, max_iterations, solve
from ..solvers.loop.stopping import Row
from .choice.landmarks import centers_on_host, chosen, kept_in_file, problem_of
from .choice.prepared import prepare
from .inputs.features import check_units
from .inputs.training_data import TrainingData
from .plans.placed_data import PlacedData
from .result import Fitted, check_not_diverged
from .settings.generators import Generators
from .settings.settings import FitSettings


def go_on(
    settings: FitSettings, data: TrainingData, *, rng: Generators, before: Fitted | None = None
) -> Fitted:
    """Pass once over the rows, from the coefficients so far.

    Parameters
    ----------
    settings : FitSettings
        With a solver that streams, see `can_go_on`, and no path of penalties.
    data : TrainingData
        Of any number of rows.
    rng : Generators
    before : Fitted, optional
        The fit so far, whose kernel and centers stay. None: this is the first call.

    Raises
    ------
    ValueError
        If the penalty is "auto", the settings ask for early stopping, or there are not as many
        targets as in the first call.
    """
    if settings.searches_penalty:
        raise ValueError("partial_fit has no path of penalties; give other landmarks, or a penalty")
    if settings.early_stopping:
        raise ValueError(
            "partial_fit passes once over the rows and does not stop early; give "
            "early_stopping=False"
        )
    check_units(settings, data.rows)
    data = data.without_zero_weights()
    plain = settings.with_plain_inputs()  # other calls may see other rows
    p = prepare(plain, data, rng, before=before, is_single_pass=True)
    asked, penalty = replace(settings, tol=p.settings.tol), p.settings.one_penalty
    size = p.size if before is None else replace(p.size, m=len(before.model.centers))
    placed = PlacedData.place(p.data, p.kernel, p.engine, p.solver, size, p.settings.limit)
    problem: FullProblem | NystromProblem
    if before is None:
        found = chosen(placed.K, p.settings.landmarks, rng.landmarks)
        landmarks = kept_in_file(found, settings.centers_file)
        problem = problem_of(placed.K, placed.data, landmarks, penalty)
        centers = centers_on_host(landmarks, p.data.rows)
        index = None if found is None else found.index
        state, history, target = None, [], data.target
        learned = p.scaling.features.learned
    else:
        problem = _with_centers(before, placed, penalty)
        centers, index = before.model.centers, before.index
        state, history = State(before.iteration, before.model.coef), before.history
        target, learned = before.model.target, before.learned
        asked = replace(asked, landmarks=before.settings.landmarks)
    result = _next_epoch(p.solver, problem, state, history, rng.solver)
    check_not_diverged(result)
    coef = result.state.coef.cpu()
    probabilities = p.probabilities
    model = p.data.model(placed.K.kernel, centers, coef, target=target, probabilities=probabilities)
    return Fitted.of(
        result,
        p.scaling.model(model),
        asked,
        p.solver,
        placed.K.engine,
        penalty=penalty,
        index=index,
        learned=learned,
    )


def can_go_on(given: SolverLike) -> bool:
    """Return whether a solver, or the solver of that name, can go on with other rows."""
    if isinstance(given, Solver):
        return given.streams
    return given in solvers.names() and solvers.make(given).streams


def _with_centers(before: Fitted, placed: PlacedData, penalty: float) -> NystromProblem:
    """Return the problem of more rows with the centers of the first call."""
    data, t = placed.data, placed.data.targets.shape[1]
    if before.model.coef.shape[1] != t:
        raise ValueError(
            f"the targets have {t} columns, but the first call had {before.model.coef.shape[1]}"
        )
    centers = placed.K.against(before.model.centers)
    return NystromProblem(centers, data.targets, penalty, data.weights)


def _next_epoch(
    solver: Solver[Any, Any],
    problem: Problem,
    state: State | None,
    earlier: list[Row],
    rng: torch.Generator,
) -> Result:
    """Return the result of a whole epoch, however many states that has; its history goes on."""
    done = 0 if state is None else state.iteration
    last = done + getattr(solver, "states_per_epoch", 1)
    result = solve(problem, solver, stop=[max_iterations(last)], state=state, rng=rng)
    return replace(result, history=earlier + result.history[state is not None :])
