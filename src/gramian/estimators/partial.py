"""One pass over more rows, with the centers of the first call: partial_fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_array, check_consistent_length

from .. import solvers
from ..data import RowSource
from ..model import KernelModel
from ..operators import KernelOperator
from ..problems import NystromProblem
from ..solvers import Result, Solver, State, max_iterations, solve
from . import choices, inputs
from .shared import as_numpy, host_centers, kept_in_file


def streams(estimator: Any) -> bool:
    """Return whether the solver of an estimator can go on with other rows."""
    given = estimator.solver
    if not isinstance(given, Solver):
        given = solvers.make(given) if given in solvers.names() else None
    if given is None or not given.streams:
        raise AttributeError(
            f"partial_fit needs solver='eigenpro3' or 'sketchysaga', not {estimator.solver!r}"
        )
    return True


def rows_and_targets(estimator: Any, X: Any, y: Any) -> tuple[RowSource, Any]:
    """Return the rows of a call; after the first one with the features of that."""
    if not hasattr(estimator, "model_"):
        return inputs.training_rows(estimator, X, y)
    rows = inputs.new_rows(estimator, X)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(np.empty((len(rows), 0)), y)
    return rows, y


def one_pass(estimator: Any, data: Any, **model_parts: Any) -> None:
    """Pass once over the rows, from the coefficients so far, and set the fitted attributes."""
    choices.check_settings(estimator)
    if isinstance(estimator.penalty, str):
        raise ValueError("partial_fit needs a penalty that is a number, not 'auto'")
    before = getattr(estimator, "model_", None)
    for_kernel, for_landmarks, for_solver = inputs.generators(estimator.random_state, 3)
    solver, size = estimator._chosen(data.rows, data.targets.shape[1])
    if before is None:
        kernel = estimator._resolved_kernel(data.rows, for_kernel)
        task = estimator._task(data, kernel, solver, size)
        chosen = estimator._landmarks(task.K, for_landmarks)
        landmarks = kept_in_file(chosen, estimator.centers_file)
        penalty, state = float(estimator.penalty), None
        problem = estimator._problem(task.K, task.data, landmarks, penalty)
        centers = host_centers(landmarks, data.rows)
    else:
        size = replace(size, m=len(before.centers))
        task = estimator._task(data, estimator.kernel_, solver, size)
        problem = _next_problem(estimator, task.K, task.data)
        state = State(estimator.n_iter_, before.coef)
        centers = before.centers
    earlier = [] if before is None else estimator.history_
    result = _next_epoch(solver, problem, state, earlier, for_solver)
    estimator._warn(replace(result, reason=_quiet(result.reason)), solver)
    model = KernelModel(task.K.kernel, centers, result.state.coef.cpu(), **model_parts)
    estimator._adopt(model, result, solver, task.K)
    estimator.penalty_, estimator.path_ = problem.penalty, None
    if before is None:
        estimator.landmark_index_ = as_numpy(problem.index)
        estimator._landmarks_chosen = estimator.landmarks


def _next_problem(estimator: Any, K: KernelOperator, data: Any) -> NystromProblem:
    """Return the problem of more rows with the centers of the first call."""
    before, t = estimator.model_, data.targets.shape[1]
    if before.coef.shape[1] != t:
        raise ValueError(
            f"the targets have {t} columns, but the first call had {before.coef.shape[1]}"
        )
    centers = K.against(before.centers)
    return NystromProblem(centers, data.targets, float(estimator.penalty), data.weights)


def _next_epoch(
    solver: Any,
    problem: Any,
    state: State | None,
    earlier: list[dict[str, Any]],
    rng: torch.Generator,
) -> Result:
    """Return the result of a whole epoch, however many states that has; its history goes on."""
    done = 0 if state is None else state.iteration
    last = done + getattr(solver, "states_per_epoch", 1)
    result = solve(problem, solver, stop=[max_iterations(last)], state=state, rng=rng)
    return replace(result, history=earlier + result.history[state is not None :])


def _quiet(reason: str) -> str:
    """One epoch is what was asked for, and no reason to warn."""
    return "converged" if reason == "max_iterations" else reason
