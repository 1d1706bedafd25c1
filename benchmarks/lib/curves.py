"""Error and residual of an iterative solver against CPU seconds and kernel evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.kernels import Kernel
from gramian.problems import NystromProblem, Problem
from gramian.solvers import State

from .results import Row

FIRST, GROWTH = 2.0, 1.6
"""CPU seconds at which a curve is first measured, and the factor to the next time."""

RESIDUAL_ROWS = 2000
"""Rows on which the residual is measured."""


@dataclass(frozen=True)
class Case:
    """A set, its kernel and penalty, and CPU seconds for each method."""

    name: str
    kernel: Callable[[int], Kernel]
    penalty: float
    seconds: float
    metric: str


def watched(
    problem: Problem,
    states: Iterator[State],
    case: Case,
    test: Callable[[np.ndarray], float],
    first: float = FIRST,
) -> list[Row]:
    """Return error and residual by CPU seconds and kernel evaluations; looking costs nothing.

    - `first`: CPU seconds of the first look.
    """
    curve: list[Row] = []
    meter, due, spent, last = problem.K.meter, first, 0.0, -1
    start, first = time.process_time(), meter.evaluations
    for state in states:
        spent = time.process_time() - start
        if spent < due and spent < case.seconds:
            continue
        count, away = meter.evaluations, time.process_time()
        if state.iteration > 0 and state.iteration != last:
            row = {"seconds": spent, "evaluations": count - first, "iteration": state.iteration}
            curve.append(row | {"error": test(state.coef)} | residual(problem, state.coef))
            last = state.iteration
        meter.evaluations = count
        start += time.process_time() - away
        due = max(due, spent) * GROWTH
        if spent >= case.seconds:
            break
    return curve


def residual(problem: Problem, coef: np.ndarray) -> Row:
    """Return the relative residual on some rows: the whole one costs as much as an iteration."""
    if isinstance(problem, NystromProblem):
        return {}
    n = len(problem.rhs)
    rows = RandomStream(1).permutation(n)[:RESIDUAL_ROWS]
    rhs, coef = xp.to_float64(problem.rhs[rows]), xp.to_float64(coef)
    left = rhs - problem.K.double()[rows] @ coef - problem.ridge * coef[rows]
    return {"residual": float(xp.norm(left) / xp.norm(rhs))}
