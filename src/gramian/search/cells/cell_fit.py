"""Fit of one cell: its full problem, validated on held-out rows."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ..._parallel.machine import read_seconds
from ...engines import Engine
from ...kernels import Kernel
from ...operators import KernelOperator
from ...paths.full import PATH_RANK
from ...paths.sample import Sample, fit_sample
from ...problems import FullProblem
from ..all_rows.full_fit import DIRECT_ROWS, PATH_SHIFTS
from ..all_rows.path_points import BLOCK_MEMORY, factorise_matrix, watch_path
from ..all_rows.single_shift import path_of_one
from ..clock import Clock

logger = logging.getLogger("gramian")

BAD_LOSS_RATIO = 1.5
"""Ratio to the loss of the mean above which a cell is bad, if the difference is significant."""

NO_MATTER = 1e-3
"""Tolerance in variances of all targets: in a cell of one class the mean has no error."""

FAR_OUT = 10.0
"""Ratio of a diverged prediction's distance from the mean of its cell to the largest distance of a
target, or to the standard deviation of all targets if the targets of the cell hardly differ."""

LEAST_HELD_ROWS = 10
"""Least held-out rows of a cell for a comparison with its mean."""

SHIFT_FACTOR, MAX_TRIES = 10.0, 4
"""Factor of the shift in each new fit of a bad cell, and largest number of fits."""

FEW_COLUMNS, COLUMN_SHARE, LARGE_SHIFT = 300, 8, 0.3
"""Columns of the preconditioner of a cell: 300 for a large shift, otherwise n / COLUMN_SHARE.

Measured on cells of 2,000 to 8,000 rows of beijing_pm25 and nycflights: for a shift of 1, 300
columns take a third of the seconds of 1,000; for 0.01 about the same.
"""

LATE_LANDMARKS, LATE_SHIFTS = 400, (100.0, 10.0, 1.0)
"""Landmarks and relative shifts of a cell whose time is over: a tenth of a second for 7,000
rows, where a few iterations leave a cell worse than its mean."""

MOST_ITERATIONS = 240
"""Iteration limit while the loss still falls: an unconverged cell is worse than a smaller one.

Measured on bathy_celt: cells of 38,000 rows after 60 iterations, at a residual of 0.07, have an
error of 22.9; solved cells have 17.3, as have cells of 9,500 rows.
"""

FLOAT64_SHIFT_FRACTION = 0.9
"""Fraction of the smallest usual shift below which products run in float64."""


@dataclass(frozen=True, eq=False)
class CellFit:
    """Fitted cell: coefficients, shift, and predictions of held-out rows.

    Attributes
    ----------
    coef : Array of shape (n, t)
        Coefficients in float64.
    values : Array of shape (v, t)
        Predictions of the held-out rows.
    shift : float
        N times the penalty: the requested shift, or a larger one.
    """

    coef: Float[Array, "n t"]
    values: Float[Array, "v t"]
    shift: float


def fit_cell(
    kernel: Kernel,
    sample: Sample,
    shift: float,
    *,
    clock: Clock,
    left: float = math.inf,
    engine: str | Engine = "auto",
    rng: RandomStream,
) -> CellFit:
    """Fit a cell; raise the shift while the fit predicts worse than the mean of its targets.

    Parameters
    ----------
    kernel : Kernel
    sample : Sample
        Training and held-out rows of the cell.
    shift : float
        N times the penalty.
    clock : Clock
    left : float, default=inf
        Time limit in seconds; no further fit starts after it.
    engine : str or Engine, default="auto"
    rng : RandomStream

    Notes
    -----
    If the time limit stops the solver, a fit with a few landmarks competes with the iterate on the
    held-out rows.

    Fits end when a larger shift does not help. A cell that stays bad keeps its best fit; if no
    prediction is finite, its coefficients are zero, and it predicts the mean of all targets. The
    log warns of each larger shift.
    """
    tried, ends = [], read_seconds() + min(left, clock.remaining_seconds)
    for _ in range(MAX_TRIES):
        tried.append(_attempt(kernel, sample, shift, clock, ends, engine, rng))
        if not is_bad(tried[-1].values, sample):
            return tried[-1]
        if len(tried) > 1 and not sample.loss(tried[-1].values) < sample.loss(tried[-2].values):
            break  # a larger shift does not help
        if read_seconds() >= ends:
            logger.warning(
                "a cell of %d rows predicts worse than the mean of its targets, and no time is "
                "left to try a larger shift",
                len(sample.X),
            )
            break
        shift *= SHIFT_FACTOR
        logger.warning(
            "a cell of %d rows predicts worse than the mean of its targets; trying a shift of %.3g",
            len(sample.X),
            shift,
        )
    # All tries were bad. The loss of values that are not finite is infinite, so any finite one
    # wins.
    best = min(tried, key=lambda fit: sample.loss(fit.values))
    if math.isfinite(sample.loss(best.values)):
        return best
    return CellFit(xp.zeros_like(best.coef), xp.zeros_like(best.values), shift)


def _attempt(
    kernel: Kernel,
    sample: Sample,
    shift: float,
    clock: Clock,
    ends: float,
    engine: str | Engine,
    rng: RandomStream,
) -> CellFit:
    """Fit with all rows as centers; if time ends that fit, compare it with one by few landmarks."""
    full = _solve_cell(kernel, sample, shift, clock, ends, engine, rng)
    # Before the deadline the iterations ended by themselves; a factorisation has no iterate to
    # improve.
    if read_seconds() < ends or len(sample.X) <= DIRECT_ROWS:
        return full
    try:
        # An iterate that was cut short may be far from its solution; a fit with few landmarks is
        # complete, and takes a small part of the time.
        reduced = _with_landmarks(kernel, sample, shift, clock, engine)
    except FloatingPointError:  # no shift makes its matrix definite to rounding
        return full
    return min((full, reduced), key=lambda fit: sample.loss(fit.values))


def _with_landmarks(
    kernel: Kernel, sample: Sample, shift: float, clock: Clock, engine: str | Engine
) -> CellFit:
    """Fit with few landmarks, in closed form."""
    total = float(len(sample.X) if sample.weights is None else sample.weights.sum())
    penalties = [times * shift / total for times in LATE_SHIFTS]
    best = fit_sample(
        sample, kernel, landmarks=LATE_LANDMARKS, penalties=penalties, engine=engine,
        meter=clock.meter,
    )  # fmt: skip
    coef = xp.zeros(sample.Y.shape, xp.float64)
    # Landmarks are the first rows of the sample; the other rows get coefficients of zero.
    coef[: len(best.coef)] = best.coef
    return CellFit(coef, best.values, best.penalty * total)


def _solve_cell(
    kernel: Kernel,
    sample: Sample,
    shift: float,
    clock: Clock,
    ends: float,
    engine: str | Engine,
    rng: RandomStream,
) -> CellFit:
    n = len(sample.X)
    K = KernelOperator(kernel, sample.X, sample.X, engine, meter=clock.meter, **BLOCK_MEMORY)
    problem = FullProblem(K, sample.Y, 0.0, sample.weights)
    problem = replace(problem, penalty=shift / problem.total)
    if n <= DIRECT_ROWS:
        point = factorise_matrix(problem, sample, [shift])[shift]
        return CellFit(point.coef, xp.to_float64(point.values), shift)
    problem = problem.double() if is_precise(shift) else problem
    # A small shift leaves more eigenvalues of K above it, so it needs more columns.
    rank = (
        FEW_COLUMNS if shift >= LARGE_SHIFT else min(PATH_RANK, max(FEW_COLUMNS, n // COLUMN_SHARE))
    )
    path = path_of_one(problem, rng=rng, clock=clock, rank=rank)
    until = (ends, float(clock.budget.evaluations))
    point = watch_path(path, [shift], sample, until, most=MOST_ITERATIONS)[shift]
    return CellFit(point.coef, xp.to_float64(point.values), shift)


def is_precise(shift: float) -> bool:
    """Return whether the products of a cell need float64 to resolve its shift."""
    return shift < FLOAT64_SHIFT_FRACTION * PATH_SHIFTS[-1]


def is_bad(values: Float[Array, "v t"], sample: Sample) -> bool:
    """Return whether a cell has diverged, or predicts held-out rows worse than its mean.

    The difference must be significant, and matter for the error of all rows.
    """
    truth, mean = xp.to_float64(sample.held_Y), xp.to_float64(sample.Y).mean(axis=0)
    # 1. Numbers that are not finite, even without held-out rows to compare with.
    if not bool(xp.isfinite(values).all()):
        return True
    if not len(values):
        return False
    # 2. Divergence. Targets are standardised, so 1 is the standard deviation of all of them.
    spread = float(xp.abs(xp.to_float64(sample.Y) - mean).max())
    if float(xp.abs(values - mean).max()) > FAR_OUT * max(spread, 1.0):
        return True
    # 3. A loss above the mean's by two standard errors of the differences, and by enough to
    # matter.
    errors, usual = (
        xp.square(residuals).mean(axis=1) for residuals in (values - truth, mean - truth)
    )
    worse = errors - usual
    chance = 2 * float(xp.std(worse)) / math.sqrt(len(worse))
    matters = float(errors.mean()) > BAD_LOSS_RATIO * float(usual.mean()) + NO_MATTER
    return len(worse) >= LEAST_HELD_ROWS and matters and float(worse.mean()) > chance
