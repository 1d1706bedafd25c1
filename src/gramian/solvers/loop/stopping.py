"""Stopping rules: small functions of the history, listed in order of precedence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._parallel.machine import read_seconds
from .state import PREDICTION_ERROR, RESIDUAL_KEY, StopReason

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
