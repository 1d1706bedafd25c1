"""Start: the inputs of the final fit to all rows, with the penalty given or chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..landmarks import Landmarks
from ..landmarks.bless import SMALLEST_PENALTY
from ..problems import NystromProblem
from ..solvers import Solver, State, Stop, max_iterations, tolerance
from . import held_out, penalty_path, resolve
from .fitted import Fitted
from .generators import Generators
from .landmarks import chosen, nystrom_problem, of_earlier_fit
from .penalty_path import PathRow
from .placed import PlacedData
from .settings import FitSettings


@dataclass(frozen=True)
class Start:
    """The inputs of the final fit to all rows.

    Attributes
    ----------
    placed : PlacedData
    landmarks : Landmarks or None
        None if all rows are centers.
    penalty : float
    solver : Solver
        With the factor of the path, if there was one.
    state : State or None
        Coefficients to start from.
    path : list of dict, or None
        A row for each penalty that was tried; None if the penalty was given.
    ended_at_best : bool
        Whether the last penalty of the path was the best one.
    """

    placed: PlacedData
    landmarks: Landmarks | None
    penalty: float
    solver: Solver[Any, Any]
    state: State | None = None
    path: list[PathRow] | None = None
    ended_at_best: bool = False


def start(
    settings: FitSettings, placed: PlacedData, rng: Generators, before: Fitted | None = None
) -> Start:
    """Return landmarks and penalty, and coefficients to start from.

    Parameters
    ----------
    settings : FitSettings
    placed : PlacedData
    rng : Generators
    before : Fitted, optional
        An earlier fit whose landmarks and coefficients are reused.
    """
    if settings.searches_penalty:
        return _best_of_path(settings, placed, rng)
    if before is None or settings.landmarks is None:
        found = chosen(placed.K, settings.landmarks, rng.landmarks)
    else:
        found = of_earlier_fit(before.model.centers, before.index, placed.K)
    placed = placed.with_landmarks(0 if found is None else len(found.weight))
    return Start(placed, found, float(settings.penalty), placed.solver, _coefficients(before))


def _coefficients(before: Fitted | None) -> State | None:
    return None if before is None else State(0, before.model.coef)


def _best_of_path(settings: FitSettings, placed: PlacedData, rng: Generators) -> Start:
    """Return the penalty, and its landmarks, with the smallest error on held-out rows."""
    n, coded = placed.K.shape[0], placed.data.coded
    classes = held_out.labels(placed.data.targets).cpu() if coded else None
    if rng.folds is None:
        raise ValueError("a path of penalties needs a generator for its folds")
    folds = held_out.folds(n, settings.cv, rng.folds, classes)
    selector = resolve.path_selector(settings.landmarks, n)
    levels = selector.select_path(placed.K, rng=rng.landmarks)
    placed = placed.with_landmarks(penalty_path.largest(levels))

    def problem(landmarks: Landmarks, penalty: float) -> NystromProblem:
        return nystrom_problem(placed.K, placed.data, landmarks, penalty)

    # with a number of landmarks the path goes on until it is no use
    smallest = math.inf if selector.m is None else SMALLEST_PENALTY
    solver = resolve.path_solver(placed.solver)
    search = penalty_path.Search(
        placed.K, problem, solver, stopping(settings, solver, n), folds, coded, smallest
    )
    best, path = penalty_path.search(search, levels)
    landmarks, state = best.function.landmarks, best.start(len(folds))
    at_end = best.row is path[-1]
    return Start(placed, landmarks, best.penalty, best.solver, state, path, at_end)


def stopping(settings: FitSettings, solver: Solver[Any, Any], n: int) -> list[Stop]:
    """Return the stopping rules of a fit to n rows."""
    most = math.ceil(settings.max_iter * solver.iterations_per_pass(n))
    return [tolerance(float(settings.tol)), max_iterations(most)]
