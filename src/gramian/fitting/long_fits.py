"""A warning before a fit that will take long: what is expected, and what would shorten it."""

from __future__ import annotations

from typing import Any

from .._errors import Text
from ..data import RowSource
from ..solvers import Solver
from . import selection
from .memory import FitSize
from .plan import ASSUMED_ITERATIONS, evaluations, plan
from .settings import FitSettings

LONG_SECONDS = 600.0
"""Seconds above which a fit says before what it will take."""

SLOW_OPERATIONS = 1e9
"""Floating-point operations per second that any machine manages: below, nothing is measured."""

OPERATIONS_PER_ENTRY = 40
"""Floating-point operations of a kernel entry, beside two for each feature."""


def long_fit(
    settings: FitSettings, rows: RowSource, solver: Solver[Any, Any], size: FitSize
) -> Text | None:
    """Return a warning if a fit is expected to take more than ten minutes.

    Parameters
    ----------
    settings : FitSettings
    rows : RowSource of shape (n, d)
    solver : Solver
    size : FitSize
        As `resolve.solver_and_size` gives them.

    Notes
    -----
    Costs nothing for fits that no machine needs ten minutes for, by the count of their operations;
    for others half a second, to measure the speed of this one.
    """
    if _operations(settings, solver, size) < SLOW_OPERATIONS * LONG_SECONDS:
        return None
    found = selection.selector(settings.landmarks, size.n, not rows.random_access)
    if found is not None and selection.count(found, size.n) is None:
        return None  # how many landmarks, and with them how long, shows only once they are chosen
    expected = plan(settings, rows, size.t)
    if expected.seconds <= LONG_SECONDS:
        return None
    shorter = (
        "{landmarks='auto'} takes far fewer centers"
        if size.full
        else ("half as many landmarks take half the time or less")
    )
    return Text(f"this fit may take {_minutes(expected.seconds)}: {{}}; {shorter}", expected)


def _operations(settings: FitSettings, solver: Solver[Any, Any], size: FitSize) -> float:
    """Return about how many operations a fit has: kernel entries and factorisations."""
    iterations = 1 if solver.closed_form else min(settings.max_iter, ASSUMED_ITERATIONS)
    entries = evaluations(solver, size, iterations) + size.selection_evaluations
    of_factors = solver.operations(size, iterations) + size.selection_operations
    return entries * (2 * size.d + OPERATIONS_PER_ENTRY) + of_factors


def _minutes(seconds: int | float) -> str:
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.3g} hours"
