"""Choice of the penalty along a path of levels, each a penalty with its landmarks."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...landmarks import Landmarks, Level, landmarks_of
from ...operators import KernelOperator
from ...preconditioners import FalkonFactor
from ...problems import NystromProblem
from ...search import Split
from ...solvers import Falkon, State, Stop, solve
from ..held_out import folds as held_out
from ..held_out.validation import HeldValues
from ..inputs.scaling import PathRow

logger = logging.getLogger("gramian")

PATIENCE_LEVELS = 3
"""Levels in a row without progress after which a path ends."""

LEAST_PROGRESS = 1e-3
"""Relative decrease of the error that counts as progress."""

RATIO_BEYOND_PATH = 4.0
"""Ratio of the penalties beyond the end of the path of a selector, where landmarks stay."""

CHEAP_SHARE = 0.25
"""Share of the last level's effective dimension below which a path does not end.

The levels below cost about as much as the last one alone, and a target that varies fast shows
nothing at the first of them.
"""


@dataclass(frozen=True)
class FactoredFalkon(Falkon):
    """FALKON for a part of the rows, with a preconditioner that was computed for all rows."""

    prepared: FalkonFactor = field(kw_only=True)

    def factor(self, problem: NystromProblem) -> FalkonFactor:
        return self.prepared


@dataclass(frozen=True)
class PathSettings:
    """Problem, solver and folds by which the levels of a path are fitted and scored.

    - `problem`: ``problem(landmarks, penalty)`` returns the problem on all n rows.
    - `folds`: the rows of each fit, and the rows that score it.
    - `coded`: whether targets are class codes: levels are then compared by the share of rows whose
      class is wrong, and by the squared error of the codes where that is the same.
    - `smallest`: penalty down to which the path continues with the landmarks of the last level.
      Levels limited by a number of landmarks end long before the best penalty for these landmarks.
    - `warm`: whether a level starts from the function of the previous level.
    - `ends`: the time of `time.monotonic` after which no further level is fitted.
    """

    K: KernelOperator
    problem: Callable[[Landmarks, float], NystromProblem]
    solver: Falkon
    stop: Sequence[Stop]
    folds: Sequence[Split]
    coded: bool = False
    smallest: float = math.inf
    warm: bool = True
    ends: float = math.inf


@dataclass(frozen=True)
class Function:
    """Functions fitted to all folds at one level, from which the next level starts."""

    level: Level
    landmarks: Landmarks
    coef: Float[Array, "m _"]


@dataclass(frozen=True)
class FittedLevel:
    """A level of the path, with its fits to the folds and their error.

    - `solver`: solver with the factor of this level, for the fit to all rows.
    - `error`: criterion by which levels are compared; smaller is better.
    - `row`: entry of ``path_``.
    """

    function: Function
    penalty: float
    solver: FactoredFalkon
    error: tuple[float, float]
    row: PathRow

    def start(self, folds: int) -> State:
        """Return the mean of the functions of all folds, from which the fit to all rows starts."""
        coef = self.function.coef
        # The columns of the folds are side by side, t for each.
        return State(0, coef.reshape(len(coef), folds, -1).mean(axis=1))


def search(task: PathSettings, levels: Sequence[Level]) -> tuple[FittedLevel, list[PathRow]]:
    """Fit and score the levels of a path, from the largest penalty down.

    - `levels`: levels of decreasing penalties.

    Return the first level of the smallest error, and a row for each fitted level.

    Raise FloatingPointError if the solver diverged at every level.

    Cost: at each level m² kernel evaluations and about m³ operations once, and a fit and the
    predictions of each fold. Memory: 16 m² bytes, the factors of two levels.

    Beyond the last level the landmarks stay the same, and usually the factor, as `Falkon` accepts a
    factor for a larger penalty than the problem has.
    """
    enough = CHEAP_SHARE * levels[-1].effective_dimension
    best: FittedLevel | None = None
    before: Function | None = None
    rows: list[PathRow] = []
    # 1. Count levels without progress from the mark: steps too small to count may add up to one.
    mark, since = (math.inf, math.inf), 0
    factor: FalkonFactor | None = None
    for level in _and_beyond(levels, task.smallest):
        fitted = _fit_level(task, level, before, factor)
        rows.append(fitted.row)
        logger.debug("penalty %.3g: held-out error %.6g", level.penalty, fitted.error[0])
        best = fitted if best is None or fitted.error < best.error else best
        # 2. The next level starts from this function, and beyond the path from its factor, too.
        before = fitted.function if task.warm else None
        factor = _for_smaller(fitted) if level.penalty <= levels[-1].penalty else None
        # Either error counts: the share of wrong classes may stay while the squared error falls.
        if any(b < (1 - LEAST_PROGRESS) * a for a, b in zip(mark, fitted.error, strict=True)):
            mark, since = fitted.error, 0
        else:
            since += 1
        # 3. A factor takes 8 m² bytes: no more than the best one and the next one are kept.
        del fitted
        given_up = since >= PATIENCE_LEVELS
        # 4. Do not give up at cheap levels. `not <` also holds for
        # NaN, the dimension beyond the path.
        if given_up and not level.effective_dimension < enough:
            break
        if time.monotonic() >= task.ends:
            break
    if best is None or not math.isfinite(best.error[0]):
        raise FloatingPointError(
            "the solver diverged at every penalty of the path; use float64 data, or rescale "
            "targets whose squares overflow"
        )
    return best, rows


def held_values(task: PathSettings, best: FittedLevel) -> HeldValues:
    """Return predictions of all held-out rows at a level.

    Cost: one prediction of each held-out row.
    """
    problem = task.problem(best.function.landmarks, best.penalty)
    parts = xp.chunk(best.function.coef, len(task.folds), axis=1)
    fold_parts = zip(task.folds, parts, strict=True)
    values = xp.to_host(
        xp.concat(
            [problem.K.at(fold.validation) @ xp.to_float64(coef) for fold, coef in fold_parts]
        )
    )
    validation = xp.concat([fold.validation for fold in task.folds])
    weights = None if problem.weights is None else xp.to_host(problem.weights[validation])
    return HeldValues(values, xp.to_host(xp.to_float64(problem.targets[validation])), weights)


def largest(levels: Sequence[Level]) -> int:
    """Return the number of landmarks of the largest level, usually the last one."""
    return max(len(level.dictionary) for level in levels)


def _and_beyond(levels: Sequence[Level], smallest: float) -> Iterator[Level]:
    """Yield the levels, then the last level again with smaller and smaller penalties.

    The additional levels end at `smallest`; their effective dimension is NaN.
    """
    yield from levels
    # `smallest` is inf for selectors without a number: then there is nothing beyond.
    penalty = levels[-1].penalty / RATIO_BEYOND_PATH
    while penalty >= smallest:
        yield Level(penalty, levels[-1].dictionary, math.nan, levels[-1].coverage)
        penalty /= RATIO_BEYOND_PATH


def _for_smaller(fitted: FittedLevel) -> FalkonFactor | None:
    """Return the factor of a level if it suits smaller penalties with the same landmarks."""
    factor = fitted.solver.prepared
    return factor if factor.penalty > fitted.penalty else None


def _fit_level(
    task: PathSettings, level: Level, before: Function | None, factor: FalkonFactor | None = None
) -> FittedLevel:
    clock, evaluations = time.perf_counter(), task.K.meter.evaluations
    landmarks = landmarks_of(task.K, level)
    problem = task.problem(landmarks, level.penalty)
    # The factor depends on the landmarks, not on the rows: the one of all rows serves all folds.
    factor = task.solver.factor(problem) if factor is None else factor
    path_solver = task.solver
    solver = FactoredFalkon(
        path_solver.preconditioner_penalty,
        path_solver.refine,
        path_solver.store_bytes,
        prepared=factor,
    )
    # All folds share landmarks and factor, and differ in the rows alone: their functions are
    # columns side by side, and are interpolated together.
    starts = _starts(problem, level, factor, before, len(task.folds))
    fits = [
        _fit_fold(task, problem, solver, fold, start)
        for fold, start in zip(task.folds, starts, strict=True)
    ]
    mean = [sum(part) / len(fits) for part in zip(*(fit.error for fit in fits), strict=True)]
    row: PathRow = {
        "penalty": level.penalty,
        "landmarks": len(level.dictionary),
        "effective_dimension": level.effective_dimension,
        "error": mean[0],
        "fold_errors": [fit.error[0] for fit in fits],
        "iterations": sum(fit.iterations for fit in fits),
        "kernel_evaluations": task.K.meter.evaluations - evaluations,
        "seconds": time.perf_counter() - clock,
    }
    function = Function(level, landmarks, xp.concat([fit.coef for fit in fits], axis=1))
    return FittedLevel(function, level.penalty, solver, (mean[0], mean[1]), row)


def _starts(
    problem: NystromProblem,
    level: Level,
    factor: FalkonFactor,
    before: Function | None,
    folds: int,
) -> list[State | None]:
    """Return the functions of the previous level, interpolated at the landmarks of this level.

    The coefficients solve T'T coef = f(landmarks), with T the Cholesky factor of the kernel matrix.
    """
    if before is None:
        return [None] * folds
    coef = before.coef
    # Beyond the path the landmarks stay, and the coefficients with them.
    if level.dictionary is not before.level.dictionary:
        values = problem.K_mm.against(before.landmarks.points).double() @ coef
        coef = factor.solve_T(factor.solve_Tt(values))
    return [State(0, xp.contiguous(part)) for part in xp.chunk(coef, folds, axis=1)]


@dataclass(frozen=True)
class _FoldFit:
    coef: Float[Array, "m t"]
    error: tuple[float, float]
    iterations: int


def _fit_fold(
    task: PathSettings,
    problem: NystromProblem,
    solver: FactoredFalkon,
    fold: Split,
    start: State | None,
) -> _FoldFit:
    left_out = held_out.other_rows(len(problem.targets), fold.train)
    result = solve(held_out.without(problem, left_out), solver, stop=task.stop, state=start)
    coef, iterations = result.state.coef, result.state.iteration
    if result.reason == "diverged":
        # Zeros are a safe start for the next level; the infinite error excludes this one.
        return _FoldFit(xp.zeros_like(coef), (math.inf, math.inf), iterations)
    return _FoldFit(coef, held_out.error(problem, fold.validation, coef, task.coded), iterations)
