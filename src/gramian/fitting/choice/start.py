"""Start: the inputs of the final fit to all rows, with the penalty given or chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...landmarks import Landmarks
from ...landmarks.leverage.bless import SMALLEST_PENALTY
from ...problems import NystromProblem
from ...solvers import Solver, State, Stop, deadline, max_iterations, tolerance
from ..held_out import folds as held_out
from ..held_out.folds import Fold
from ..held_out.values import HeldValues
from ..inputs.training_data import TrainingData
from ..plans.placed_data import PlacedData
from ..result import Fitted
from ..settings import resolve
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from . import penalty_path, selection
from .landmarks import chosen, nystrom_problem, of_earlier_fit
from .penalty_path import PathRow


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
    held : HeldValues, optional
        Predictions of held-out rows at the best penalty, of classes.
    """

    placed: PlacedData
    landmarks: Landmarks | None
    penalty: float
    solver: Solver[Any, Any]
    state: State | None = None
    path: list[PathRow] | None = None
    ended_at_best: bool = False
    held: HeldValues | None = None


def start(
    settings: FitSettings,
    placed: PlacedData,
    rng: Generators,
    before: Fitted | None = None,
    *,
    folds: Sequence[Fold] | None = None,
    ends: float = math.inf,
) -> Start:
    """Return landmarks and penalty, and coefficients to start from.

    Parameters
    ----------
    settings : FitSettings
    placed : PlacedData
    rng : Generators
    before : Fitted, optional
        An earlier fit whose landmarks and coefficients are reused.
    folds : sequence of Fold, optional
        Those of a path of penalties, if the settings say them; see `divide`.
    ends : float, default=inf
        The time of `time.monotonic` at which the fit is to end.
    """
    if settings.searches_penalty:
        return _best_of_path(settings, placed, rng, folds, ends)
    if before is None or settings.landmarks is None:
        found = chosen(placed.K, settings.landmarks, rng.landmarks)
    else:
        found = of_earlier_fit(before.model.centers, before.index, placed.K)
    placed = placed.with_landmarks(0 if found is None else len(found.weight))
    return Start(placed, found, settings.one_penalty, placed.solver, _coefficients(before))


def _coefficients(before: Fitted | None) -> State | None:
    return None if before is None else State(0, before.model.coef)


def _best_of_path(
    settings: FitSettings,
    placed: PlacedData,
    rng: Generators,
    folds: Sequence[Fold] | None,
    ends: float,
) -> Start:
    """Return the penalty, and its landmarks, with the smallest error on held-out rows."""
    n = placed.K.shape[0]
    folds = _drawn_folds(settings, placed.data, rng) if folds is None else folds
    selector = selection.path_selector(settings.landmarks, n)
    levels = selector.select_path(placed.K, rng=rng.landmarks)
    placed = placed.with_landmarks(penalty_path.largest(levels))

    def problem(landmarks: Landmarks, penalty: float) -> NystromProblem:
        return nystrom_problem(placed.K, placed.data, landmarks, penalty)

    # with a number of landmarks the path goes on until it is no use
    smallest = math.inf if selector.m is None else SMALLEST_PENALTY
    solver = resolve.path_solver(placed.solver)
    rules = stopping(settings, solver, n, ends)
    search = penalty_path.Search(
        placed.K, problem, solver, rules, folds, placed.data.coded, smallest, ends=ends
    )
    best, path = penalty_path.search(search, levels)
    landmarks, state = best.function.landmarks, best.start(len(folds))
    at_end = best.row is path[-1]
    held = penalty_path.held_values(search, best) if search.coded else None
    return Start(placed, landmarks, best.penalty, best.solver, state, path, at_end, held)


def _drawn_folds(settings: FitSettings, data: TrainingData, rng: Generators) -> list[Fold]:
    if rng.folds is None:
        raise ValueError("a path of penalties needs a generator for its folds")
    classes = held_out.labels(data.targets).cpu() if data.coded else None
    return held_out.folds(len(data.targets), cast("int | None", settings.cv), rng.folds, classes)


def stopping(
    settings: FitSettings, solver: Solver[Any, Any], n: int, ends: float = math.inf
) -> list[Stop]:
    """Return the stopping rules of a fit to n rows that ends at a time of `time.monotonic`."""
    most = math.ceil(settings.max_iter * solver.iterations_per_pass(n))
    return [tolerance(float(settings.tol)), max_iterations(most), deadline(ends)]
