"""Warnings before a long fit, and after a fit that converged but explains little of the targets."""

from __future__ import annotations

import logging
import math
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.errors import Text
from ..._parameters.types import Callbacks
from ...callbacks import Validate
from ...data import RowSource
from ...problems import FullProblem, Problem
from ...solvers import Result, Solver
from ..plans.memory import ASSUMED_ITERATIONS, FitSize
from ..plans.plan import plan
from ..settings import landmarks as landmark_settings
from ..settings.settings import FitSettings

logger = logging.getLogger("gramian")

WEAK_R2 = 0.3
"""R2 below which a fit that converged is called weak."""

TRAINING_ROWS = 2000
"""Training rows on which R2 is measured without held-out rows."""


LONG_SECONDS = 600.0
"""Expected seconds above which a fit warns beforehand."""

SLOW_OPERATIONS = 1e9
"""Floating-point operations per second that any machine manages: below, nothing is measured."""

OPERATIONS_PER_ENTRY = 40
"""Floating-point operations of a kernel entry, in addition to two for each feature."""


def warn(text: str | Text | None) -> None:
    """Log a warning, if any.

    The module `warnings` is not used, because the user may intend such a fit.
    """
    if text is not None:
        logger.warning(text)


def weak_fit(r2: float, where: str) -> str | None:
    """Return a warning about a solution of the problem that explains little of the target.

    - `r2`: coefficient of determination; NaN if unknown.
    - `where`: the rows on which it was measured, such as "500 held-out rows".
    """
    # Not `r2 >= WEAK_R2`: for NaN, of an unknown R2, there is no warning.
    if not r2 < WEAK_R2:
        return None
    return (
        f"R2 is {r2:.2g} on {where}, although the solver converged: the lengthscale or the penalty "
        "is the likely cause, unless the target is mostly noise; try other lengthscales, such as a "
        "third and three times as large, and other penalties"
    )


def diagnose_fit(problem: Problem, result: Result, callbacks: Callbacks, coded: bool) -> str | None:
    """Return the warning of `weak_fit` for a regression that converged.

    - `callbacks`: callbacks; the last error of a `Validate` among them is used.
    - `coded`: whether targets are codes of classes, for which there is no warning.

    Cost without a `Validate`: 2,000 m kernel evaluations for m landmarks and rows with random
    access; otherwise none. A fit to a sequential source is then not diagnosed.
    """
    if coded or result.reason != "converged":
        return None
    # Rows that the fit did not see come first: on training rows R2 is optimistic.
    validates = [callback for callback in callbacks if isinstance(callback, Validate)]
    if validates:
        y = xp.asarray(validates[0].y, dtype=xp.float64)
        valid_errors = [row["valid_rmse"] for row in result.history if "valid_rmse" in row]
        mean = xp.to_host(xp.sum_float64(problem.targets, axis=0)) / len(problem.targets)
        spread = float(
            xp.sqrt(xp.square((y.reshape(-1, len(mean)) - mean) * validates[0].scale).mean())
        )
        r2 = 1 - (valid_errors[-1] / spread) ** 2 if valid_errors and spread > 0 else math.nan
        return weak_fit(r2, f"{len(y):,} held-out rows")
    # Rows that are read in order would take a pass of their own.
    if not problem.K.rows.random_access:
        return None
    n, count = len(problem.targets), min(len(problem.targets), TRAINING_ROWS)
    # At equal distances: rows may be sorted, and the first ones alike.
    index = xp.arange(count) * n // count
    return weak_fit(_training_r2(problem, result.state.coef, index), f"{count:,} training rows")


def _training_r2(problem: Problem, coef: Float[Array, "m t"], index: Array) -> float:
    """Return the weighted R2 over all targets on some training rows."""
    device_index = xp.to_device(index, problem.targets.device)
    y = xp.to_float64(problem.targets[device_index])
    # A sample of training rows: R2 on them is optimistic, so that a weak value is weak indeed.
    off = _residuals(problem, xp.to_float64(coef), index, y)
    if problem.weights is None:
        spread, lost = xp.square(y - y.mean(axis=0)).sum(), xp.square(off).sum()
    else:
        weight = xp.to_float64(problem.weights[device_index])[:, None]
        mean = (weight * y).sum(axis=0) / weight.sum()
        spread, lost = (weight * xp.square(y - mean)).sum(), (weight * xp.square(off)).sum()
    return 1 - float(lost) / float(spread) if spread > 0 else math.nan


def _residuals(
    problem: Problem,
    coef: Float[Array, "m t"],
    index: Int[Array, " k"],
    y: Float[Array, "k t"],
) -> Float[Array, "k t"]:
    """Return the residuals y - f of some rows; if all rows are centers, shift times coef.

    The shift is N times the penalty. The product is exact up to the residual of the system, far
    below the error of a weak fit.
    """
    # From (K + ridge) c = y follows y - K c = ridge c, without a product.
    if isinstance(problem, FullProblem):
        return (problem.ridge * xp.to_device(coef, y.device))[xp.to_device(index, y.device)]
    return y - xp.cast_like(problem.K.at(index) @ coef, y)


def long_fit(
    settings: FitSettings, rows: RowSource, solver: Solver[Any, Any], size: FitSize
) -> Text | None:
    """Return a warning if a fit is expected to take more than ten minutes.

    - `size`: size of the fit, as `solver_choice.solver_and_size` returns it.

    Fits with few operations are not timed. For other fits, the speed of this machine
    is measured in a quarter of a second.
    """
    # Most fits are short by any measure, and should not pay for a measurement.
    iterations = 1 if solver.closed_form else min(settings.max_iter, ASSUMED_ITERATIONS)
    entries = size.evaluations(solver, iterations) + size.selection_evaluations
    of_factors = solver.operations(size, iterations) + size.selection_operations
    operations = entries * (2 * size.d + OPERATIONS_PER_ENTRY) + of_factors
    if operations < SLOW_OPERATIONS * LONG_SECONDS:
        return None
    selector = landmark_settings.selector(settings.landmarks, size.n, not rows.random_access)
    if selector is not None and landmark_settings.count(selector, size.n) is None:
        # The number of landmarks, and with it the time, is known only after they are chosen.
        return None
    expected = plan(settings, rows, size.t)
    if expected.seconds <= LONG_SECONDS:
        return None
    shorter = (
        "{landmarks='auto'} takes far fewer centers"
        if size.full
        else ("half as many landmarks take half the time or less")
    )
    minutes = expected.seconds / 60
    shown = f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.3g} hours"
    return Text(f"this fit may take {shown}: {{}}; {shorter}", expected)
