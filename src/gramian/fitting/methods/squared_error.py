"""Fit by squared errors: kernel ridge regression, with landmarks or all rows as centers."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import cast

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, Shaped
from ..._sparse import are_equal
from ...data import RowSource, gather_rows
from ...landmarks import Landmarks, PathSelector, Selector
from ...landmarks.leverage.bless import SMALLEST_PENALTY
from ...metric import Metric
from ...model import KernelModel, same_encoding
from ...operators import KernelOperator
from ...problems import NystromProblem
from ...solvers import Falkon, Result, State
from ..choice import penalty_path
from ..held_out import folds as held_out
from ..held_out.validation import HeldValues
from ..inputs.training_data import TrainingData
from ..plans import solver_choice
from ..plans.placement import PlacedData
from ..result import Fitted
from ..settings import landmarks as landmark_settings
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from .base import (
    Method,
    Prepared,
    Start,
    choose_landmarks,
    kept_in_file,
    nystrom_problem,
    problem_of,
)
from .diagnosis import diagnose_fit
from .pipeline import stopping_rules


class SquaredError(Method):
    """Method of a fit by squared errors: a linear system in the coefficients of the centers."""

    estimates_time = True

    def before(
        self, settings: FitSettings, data: TrainingData, fitted: Fitted | None
    ) -> Fitted | None:
        """Return an earlier fit of the same features and landmarks, for a warm start."""
        return fitted if fitted is not None and _starts_warm(settings, data, fitted) else None

    def start(self, prepared: Prepared, rng: Generators) -> Start:
        """Return the problem, with landmarks and penalty chosen if they are "auto"."""
        if prepared.settings.searches_penalty:
            return _start_of_path(prepared, rng)
        settings, before, placed = prepared.settings, prepared.before, prepared.place()
        if before is None or settings.landmarks is None:
            landmarks = choose_landmarks(placed.K, settings.landmarks, rng.landmarks)
        else:
            landmarks = _landmarks_again(before.model.centers, before.index, placed.K)
        # A selector may choose more landmarks than foreseen, which
        # then need the memory of the rows.
        placed = placed.with_landmarks(0 if landmarks is None else len(landmarks.weight))
        start = _start(prepared, placed, landmarks, settings.one_penalty)
        return start if before is None else replace(start, state=_first_state(before, start))

    def model(
        self,
        prepared: Prepared,
        start: Start,
        coef: Float[Array, "m t"],
        held_values: HeldValues | None,
    ) -> KernelModel:
        """Return the model, with probabilities of classes fitted to held-out rows."""
        data = prepared.data
        probabilities = None
        if data.coded:
            probabilities = prepared.probabilities if held_values is None else held_values.shares()
        centers = self.centers(prepared, start)
        model = data.model(prepared.kernel, centers, coef, probabilities=probabilities)
        return prepared.scaling.model(model)

    def centers(self, prepared: Prepared, start: Start) -> RowSource | Array:
        """Return the centers of the model: landmarks, or all rows."""
        landmarks = start.landmarks
        return prepared.data.rows if landmarks is None else xp.to_host(landmarks.points)

    def diagnosis(self, prepared: Prepared, start: Start, result: Result) -> str | None:
        """Return a warning about a weak fit, unless the fit itself has chosen the penalty."""
        # The warning would advise to try other penalties, which the fit has done.
        if prepared.user_settings.chooses_penalty:
            return None
        return diagnose_fit(start.problem, result, prepared.settings.callbacks, prepared.data.coded)


def _start(
    prepared: Prepared,
    placed: PlacedData,
    landmarks: Landmarks | None,
    penalty: float,
) -> Start:
    settings, solver = prepared.settings, prepared.solver
    spare = 0
    # Closed forms read the kernel matrix once, so that its factors would save nothing.
    if not solver.closed_form:
        spare = solver_choice.spare_bytes(solver, prepared.size, settings.limit)
    landmarks = kept_in_file(landmarks, settings.centers_file)
    problem = problem_of(
        placed.K, placed.data, landmarks, penalty, settings.penalties, spare_bytes=spare
    )
    return Start(problem, landmarks, penalty, placed.K.engine, solver)


def _first_state(before: Fitted, start: Start) -> State | None:
    """Return the state of an earlier fit; None if its centers or targets differ."""
    problem, coef = start.problem, before.model.coef
    shape = (problem.K.shape[1], problem.targets.shape[1])
    # The iterations of the earlier fit do not count against ``max_iter``.
    return State(0, coef) if coef.shape == shape else None


def _landmarks_again(
    points: RowSource, index: Int[Array, " m"] | None, K: KernelOperator
) -> Landmarks:
    """Return the landmarks of an earlier fit, with their row numbers if they are rows of K."""
    m = len(points)
    points_taken = gather_rows(points, xp.arange(m), K.host_bytes)
    # Row numbers select the weights of rows: of other data they would select the wrong ones.
    if index is not None and not _are_rows(points_taken, K.rows, index):
        index = None
    return Landmarks(points_taken, xp.ones(m, xp.float64), index)


def _are_rows(points: Shaped[Array, "m d"], rows: RowSource, index: Int[Array, " m"]) -> bool:
    # The new data may have fewer rows.
    if int(index.max()) >= len(rows):
        return False
    rows_taken, points = xp.to_host(rows.take(index)), xp.to_host(points)
    return rows_taken.dtype == points.dtype and are_equal(rows_taken, points)


def _start_of_path(prepared: Prepared, rng: Generators) -> Start:
    """Choose the level of a path with the smallest held-out error, and return its start."""
    settings, placed = prepared.settings, prepared.place()
    n, folds = placed.K.shape[0], prepared.folds
    if folds is None:
        if rng.folds is None:
            raise ValueError("a path of penalties needs a generator for its folds")
        classes = xp.to_host(held_out.labels(placed.data.targets)) if placed.data.coded else None
        folds = held_out.folds(
            len(placed.data.targets), cast("int | None", settings.cv), rng.folds, classes
        )
    # `FitSettings` has checked the selector and the solver of a path.
    selector = cast("PathSelector", landmark_settings.selector(settings.landmarks, n))
    levels = selector.select_path(placed.K, rng=rng.landmarks)
    placed = placed.with_landmarks(penalty_path.largest(levels))

    def problem(landmarks: Landmarks, penalty: float) -> NystromProblem:
        return nystrom_problem(placed.K, placed.data, landmarks, penalty)

    # With a number of landmarks, the path continues until smaller penalties no longer help.
    smallest = math.inf if selector.m is None else SMALLEST_PENALTY
    solver = cast("Falkon", placed.solver)
    rules = stopping_rules(settings, solver, n, prepared.ends)
    search = penalty_path.PathSettings(
        placed.K, problem, solver, rules, folds, placed.data.coded, smallest, ends=prepared.ends
    )
    best, path = penalty_path.search(search, levels)
    start = _start(prepared, placed, best.function.landmarks, best.penalty)
    return replace(
        start,
        solver=best.solver,
        state=best.start(len(folds)),
        path=path,
        ended_at_best=best.row is path[-1],
        held_values=penalty_path.held_values(search, best) if search.coded else None,
    )


def _starts_warm(settings: FitSettings, data: TrainingData, before: Fitted) -> bool:
    """Return whether a fit starts from the landmarks and coefficients of an earlier fit."""
    return (
        bool(settings.warm_start)
        and (
            same_encoding(before.model.encoding, data.encoding)
            and before.model.features == data.rows.shape[1]
            and before.model.centers.sparse == data.rows.sparse
            and before.model.feature_names == data.feature_names
        )
        and _is_same(settings.landmarks, before.settings.landmarks, Integral, str, Selector)
        and settings.standardize == before.settings.standardize
        and _is_same(settings.metric, before.settings.metric, str, Metric)
        and settings.scales_targets == before.settings.scales_targets
    )


def _is_same(a: object, b: object, *comparable: type) -> bool:
    # The comparison of arrays is an array: points count as the same only if they are one object.
    return a is b or (isinstance(a, comparable) and isinstance(b, comparable) and a == b)
