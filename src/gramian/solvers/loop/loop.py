"""The only loop over the states of a solver, with stopping rules, timing, history and callbacks."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import RandomStream, as_stream
from ..._parallel.machine import read_seconds
from ..._parallel.workers import one_blas_thread
from ...problems import Problem
from ..base import Callback, Solver
from .state import PREDICTION_ERROR, RESIDUAL_KEY, State, StopReason, move_state

logger = logging.getLogger("gramian")

Row = dict[str, int | float]
Stop = Callable[[Sequence[Row]], StopReason | None]
"""Function that maps the history so far to the reason to stop, or None."""


def tolerance(tol: int | float, metric: str | None = None) -> Stop:
    """Return a rule: stop as "converged" once a metric is at most `tol`.

    States without this metric are skipped.

    Parameters
    ----------
    tol : float
    metric : str, optional
        Name of a metric in the history; by default ``"prediction_error"``, the estimated error of
        predictions, or ``"rel_residual"`` for solvers without it.
    """

    def rule(history: Sequence[Row]) -> StopReason | None:
        row = history[-1]
        value = (
            row.get(PREDICTION_ERROR, row.get(RESIDUAL_KEY)) if metric is None else row.get(metric)
        )
        return "converged" if value is not None and value <= tol else None

    return rule


def max_iterations(limit: int) -> Stop:
    """Stop as "max_iterations" after `limit` iterations, also counted before a resumption."""
    return lambda history: "max_iterations" if history[-1]["iteration"] >= limit else None


def time_limit(seconds: int | float) -> Stop:
    """Stop as "time_limit" after `seconds` of solver time, without callbacks."""
    return lambda history: "time_limit" if history[-1]["seconds"] >= seconds else None


def deadline(at: int | float) -> Stop:
    """Stop as "time_limit" once `read_seconds` reaches `at`, including callbacks and setup."""
    return lambda history: "time_limit" if read_seconds() >= at else None


def patience(metric: str, rounds: int = 5) -> Stop:
    """Stop as "no_progress" when a metric reaches no new minimum `rounds` times in a row."""

    def rule(history: Sequence[Row]) -> StopReason | None:
        values = [row[metric] for row in history if metric in row]
        if not values:
            return None
        # The first of equal minima counts, so that a constant metric ends the run.
        return "no_progress" if len(values) - 1 - values.index(min(values)) >= rounds else None

    return rule


@dataclass(frozen=True)
class Result:
    """Outcome of a run of a solver: the last state, the reason of the stop, and the history.

    Attributes
    ----------
    state : State
    reason : StopReason
        One of "converged", "max_iterations", "time_limit", "early_stopping", "no_progress",
        "callback", "diverged", "interrupted", "error".
    history : list of dict
        One row per state: iteration, seconds (without callbacks), kernel_evaluations, metrics.
    """

    state: State
    reason: StopReason
    history: list[Row]


class Interrupted(KeyboardInterrupt):
    """Interruption of a run that already has a state.

    Attributes
    ----------
    result : Result
        The result so far, with the reason "interrupted".
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted at iteration {result.state.iteration}")
        self.result = result


def solve(
    problem: Problem,
    solver: Solver[Any, Any],
    *,
    stop: Sequence[Stop] = (tolerance(1e-6), max_iterations(100)),
    callbacks: Sequence[Callback] = (),
    state: State | None = None,
    rng: RandomStream | np.random.Generator | int | None = None,
) -> Result:
    """Run a solver until a stopping rule fires, a callback returns True, or it diverges.

    Parameters
    ----------
    problem : FullProblem, NystromProblem or LossProblem
    solver : Solver
    stop : sequence of stopping rules
        See `tolerance`, `max_iterations`, `time_limit`, `deadline`, `patience`. The first rule to
        fire wins.
    callbacks : sequence of callables
        ``callback(problem, state)`` after each iteration, in order, before the stopping rules,
        which may use metrics that the callback adds to ``state.metrics``. Time of callbacks is not
        counted.
    state : State, optional
        A state of this solver, from which it resumes, or a plain `State` as a starting point.
    rng : RandomStream, numpy.random.Generator or int, optional
        Generator for random solvers, or its seed; seeded with 0 if None. A generator of NumPy draws
        the seed.

    Returns
    -------
    Result
        The outcome; its state is on the device of the problem's targets, on which the solver works.

    Raises
    ------
    ValueError
        If the solver cannot solve this problem.
    Interrupted
        If the run is interrupted, as by Ctrl-C, after its first state: a KeyboardInterrupt that
        holds the result so far.
    Exception
        An error of the solver or of a callback. After the first state, its attribute ``result``
        holds the result so far, with the reason "error".
    """
    solver.check(problem)
    stop = () if solver.closed_form else stop
    # The copy of the metrics keeps the caller's state unchanged.
    state = None if state is None else move_state(state, problem.targets.device)
    rng = as_stream(rng)
    clock = _Clock(problem, state)
    states = solver.iterate(problem, state, rng=rng)
    history: list[Row] = []
    last: State | None = None
    try:
        with _finish_at_exit(callbacks):
            while (last_or_none := clock.next(states)) is not None:
                last = last_or_none
                # Callbacks run before the row is recorded, because they may add metrics to it. All
                # of them run, even after one has returned True.
                answers = [callback(problem, last) for callback in callbacks]
                history.append(row_of(last))
                reason = _reason(last, history, stop, any(answer is True for answer in answers))
                if reason is not None:
                    return Result(last, reason, history)
    except KeyboardInterrupt as error:
        if last is None:
            raise
        raise Interrupted(Result(last, "interrupted", _up_to(last, history))) from error
    except Exception as error:
        # Set without a state, too, so that callers do not use the result of a run within this one.
        vars(error)["result"] = last and Result(last, "error", _up_to(last, history))
        raise
    if last is None:
        raise ValueError(f"{type(solver).__name__} yielded no state")
    return Result(last, "converged", history)


def row_of(state: State) -> Row:
    """Return the row of a state in the history."""
    return {"iteration": state.iteration, **state.metrics}


def _up_to(last: State, history: list[Row]) -> list[Row]:
    """Return the history with the last state, even if a callback was interrupted at that state."""
    is_complete = bool(history) and history[-1]["iteration"] == last.iteration
    return history if is_complete else [*history, row_of(last)]


@contextlib.contextmanager
def _finish_at_exit(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Call ``finish`` of the callbacks that have it when the run ends, even by an error."""
    with contextlib.ExitStack() as stack:
        for callback in callbacks:
            finish = getattr(callback, "finish", None)
            if callable(finish):
                # The stack calls each one, even if an earlier one raises an error.
                stack.callback(finish)
        yield


class _Clock:
    """Clock of solver time, without callbacks, and kernel evaluations; continues when resuming."""

    def __init__(self, problem: Problem, state: State | None) -> None:
        metrics = {} if state is None else state.metrics
        self._seconds = metrics.get("seconds", 0.0)
        self._meter = problem.K.meter
        # The meter is shared and may have counted other work already.
        self._offset = metrics.get("kernel_evaluations", 0) - self._meter.evaluations

    def next(self, states: Iterator[State]) -> State | None:
        start = time.perf_counter()
        # Threads of the BLAS keep waiting after a product, in the time of the workers that
        # evaluate the kernel. Large factors are shared among the workers instead.
        with one_blas_thread:
            state = next(states, None)
        self._seconds += time.perf_counter() - start
        if state is not None:
            state.metrics["seconds"] = self._seconds
            state.metrics["kernel_evaluations"] = self._meter.evaluations + self._offset
        return state


def _reason(
    state: State, history: list[Row], stop: Sequence[Stop], is_stopped: bool
) -> StopReason | None:
    # Divergence comes first, because rules cannot compare values that are not finite.
    finite = all(math.isfinite(value) for value in state.metrics.values())
    if not (finite and bool(xp.isfinite(state.coef).all())):
        logger.info("iteration %d: a metric or a coefficient is not finite", state.iteration)
        return "diverged"
    if state.verdict is not None:
        return state.verdict
    reasons = (rule(history) for rule in stop)
    return next((reason for reason in reasons if reason), "callback" if is_stopped else None)
