"""One pass over more rows, with the centers of the first call: partial_fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_array, check_consistent_length

from .. import solvers
from ..data import RowSource
from ..operators import KernelOperator
from ..problems import NystromProblem
from ..solvers import Solver, State, max_iterations, solve
from . import choices, inputs
from .plan import split_memory
from .shared import as_numpy, squeezed


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
    for_kernel, for_landmarks, for_solver = inputs.generators(estimator.random_state, 3)
    rows, t = data.rows, data.targets.shape[1]
    before = getattr(estimator, "model_", None)
    if before is not None and before.coef.shape[1] != t:
        raise ValueError(
            f"the targets have {t} columns, but the first call had {before.coef.shape[1]}"
        )
    solver, size = estimator._chosen(rows, t)
    kernel = estimator.kernel_ if before else estimator._resolved_kernel(rows, for_kernel)
    m = size.m if before is None else len(before.centers)
    memory = split_memory(estimator._limit(), solver, replace(size, m=m))
    K = KernelOperator(kernel, rows, rows, estimator.engine, memory)
    penalty, done = float(estimator.penalty), 0
    if before is None:
        problem = estimator._problem(K, data, estimator._landmarks(K, for_landmarks), penalty)
        state = None
    else:
        done = estimator.n_iter_
        problem = NystromProblem(K.against(before.centers), data.targets, penalty, data.weights)
        state = State(done, before.coef)
    # a whole epoch, however many states that has
    last = done + getattr(solver, "states_per_epoch", 1)
    result = solve(problem, solver, stop=[max_iterations(last)], state=state, rng=for_solver)
    estimator._warn(replace(result, reason=_quiet(result.reason)), solver)
    centers = problem.K.cols.take(torch.arange(problem.K.shape[1]))
    estimator.model_ = replace(
        replace(problem, K=problem.K.against(centers)).model(result.state.coef), **model_parts
    )
    estimator.dual_coef_ = squeezed(result.state.coef)
    if before is None:
        estimator.landmark_index_ = as_numpy(problem.index)
        estimator._landmarks_chosen = estimator.landmarks
    estimator.n_iter_ = result.state.iteration
    estimator.penalty_, estimator.path_ = penalty, None
    estimator.stop_reason_ = result.reason
    estimator.history_ = getattr(estimator, "history_", [])[:] + result.history[state is not None :]
    estimator.solver_, estimator.engine_, estimator.kernel_ = solver, K.engine, kernel
    estimator.solver_settings_ = dict(getattr(result.state, "settings", {}))


def _quiet(reason: str) -> str:
    """One epoch is what was asked for, and no reason to warn."""
    return "converged" if reason == "max_iterations" else reason
