"""fit_cell: the full problem of one cell, checked on rows that are held out."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...engines import Engine
from ...kernels import Kernel
from ...operators import KernelOperator
from ...paths.full import RANK
from ...paths.sample import Sample, fit_sample
from ...problems import FullProblem
from ..all_rows.full_fit import DIRECT_ROWS, SHIFTS
from ..all_rows.path_points import MEMORY, factorised, watched
from ..all_rows.single_shift import path_of_one
from ..clock import Clock

logger = logging.getLogger("gramian")

WORSE = 1.5
"""A cell is bad if its loss is so many times that of its mean, by more than chance."""

NO_MATTER = 1e-3
"""Of the variance of all targets: a cell of one class has no error of its mean to be compared."""

FAR_OUT = 10.0
"""A prediction so many times as far from the mean of its cell as any target has diverged; or as the
deviation of all targets, if those of the cell hardly differ."""

ENOUGH = 10
"""Held-out rows of a cell from which on it is compared with its mean."""

LARGER, TRIES = 10.0, 4
"""Factor of the shift with which a bad cell is fitted again, and how often it is tried."""

FEW_COLUMNS, COLUMN_SHARE, LARGE_SHIFT = 300, 8, 0.3
"""Columns of the preconditioner of a cell: few for a large shift, else one row in so many.

Measured on cells of 2,000 to 8,000 rows of beijing_pm25 and nycflights: for a shift of 1, 300
columns take a third of the seconds of 1,000; for 0.01 about the same.
"""

LATE_LANDMARKS, LATE_SHIFTS = 400, (100.0, 10.0, 1.0)
"""Landmarks of a cell for which there is no time, and its shifts, in units of that of the others:
a tenth of a second for 7,000 rows, where a few iterations leave a cell worse than its mean."""

MOST_ITERATIONS = 240
"""Of a cell whose loss still falls: one that has not converged predicts worse than a smaller one.

Measured on bathy_celt: cells of 38,000 rows after 60 iterations, at a residual of 0.07, have an
error of 22.9, and of 17.3 when they are solved, as those of 9,500 rows have.
"""

PRECISE = 0.9
"""Of the least usual shift: products run in float64 below."""


@dataclass(frozen=True, eq=False)
class CellFit:
    """A cell, fitted.

    Attributes
    ----------
    coef : Tensor of shape (n, t)
        In float64.
    values : Tensor of shape (v, t)
        At the held-out rows.
    shift : float
        The one that was asked for, or a larger one.
    """

    coef: Float[Tensor, "n t"]
    values: Float[Tensor, "v t"]
    shift: float


def fit_cell(
    kernel: Kernel,
    sample: Sample,
    shift: float,
    *,
    clock: Clock,
    left: float = math.inf,
    engine: str | Engine = "auto",
    rng: torch.Generator,
) -> CellFit:
    """Fit a cell, with a larger shift as long as it predicts worse than its mean.

    Parameters
    ----------
    kernel : Kernel
    sample : Sample
        The rows of the cell, and some that are held out.
    shift : float
        N times the penalty.
    clock : Clock
    left : float, default=inf
        Seconds that it may take; after them, it is not tried once more.
    engine : str or Engine, default="auto"
    rng : torch.Generator

    Notes
    -----
    A cell that its time has ended, and not its solver, is fitted with a few landmarks, too, and
    that is taken where it predicts held-out rows better.

    It ends where a larger shift does not help. Of a cell that stays bad the best fit is taken; if
    no prediction is a number, it has no coefficients, and its rows are predicted by the mean of all
    targets. Each larger shift is a warning in the log.
    """
    tried, ends = [], time.monotonic() + min(left, clock.left)
    for _ in range(TRIES):
        tried.append(_attempt(kernel, sample, shift, clock, ends, engine, rng))
        if not is_bad(tried[-1].values, sample):
            return tried[-1]
        if len(tried) > 1 and not sample.loss(tried[-1].values) < sample.loss(tried[-2].values):
            break  # a larger shift does not help
        if time.monotonic() >= ends:
            logger.warning("a cell of %d rows is worse than its mean: no time left", len(sample.X))
            break
        shift *= LARGER
        logger.warning("a cell of %d rows is worse than its mean: shift %.3g", len(sample.X), shift)
    best = min(tried, key=lambda found: sample.loss(found.values))
    if math.isfinite(sample.loss(best.values)):
        return best
    return CellFit(torch.zeros_like(best.coef), torch.zeros_like(best.values), shift)


def _attempt(
    kernel: Kernel,
    sample: Sample,
    shift: float,
    clock: Clock,
    ends: float,
    engine: str | Engine,
    rng: torch.Generator,
) -> CellFit:
    """Return a fit with all rows as centers; if its time has ended it, one with few if better."""
    found = _solved(kernel, sample, shift, clock, ends, engine, rng)
    if time.monotonic() < ends or len(sample.X) <= DIRECT_ROWS:
        return found
    try:
        few = _with_landmarks(kernel, sample, shift, clock, engine)
    except FloatingPointError:  # no shift makes its matrix definite to rounding
        return found
    return min((found, few), key=lambda one: sample.loss(one.values))


def _with_landmarks(
    kernel: Kernel, sample: Sample, shift: float, clock: Clock, engine: str | Engine
) -> CellFit:
    """Return a fit with few landmarks, which takes no iterations."""
    total = float(len(sample.X) if sample.weights is None else sample.weights.sum())
    penalties = [times * shift / total for times in LATE_SHIFTS]
    found = fit_sample(
        sample, kernel, landmarks=LATE_LANDMARKS, penalties=penalties, engine=engine,
        meter=clock.meter,
    )  # fmt: skip
    coef = torch.zeros(sample.Y.shape, dtype=torch.float64)
    coef[: len(found.coef)] = found.coef
    return CellFit(coef, found.values, found.penalty * total)


def _solved(
    kernel: Kernel,
    sample: Sample,
    shift: float,
    clock: Clock,
    ends: float,
    engine: str | Engine,
    rng: torch.Generator,
) -> CellFit:
    n = len(sample.X)
    K = KernelOperator(kernel, sample.X, sample.X, engine, meter=clock.meter, **MEMORY)
    problem = FullProblem(K, sample.Y, 0.0, sample.weights)
    problem = replace(problem, penalty=shift / problem.total)
    if n <= DIRECT_ROWS:
        point = factorised(problem, sample, [shift])[shift]
        return CellFit(point.coef, point.values.double(), shift)
    problem = problem.double() if is_precise(shift) else problem
    rank = FEW_COLUMNS if shift >= LARGE_SHIFT else min(RANK, max(FEW_COLUMNS, n // COLUMN_SHARE))
    path = path_of_one(problem, rng=rng, clock=clock, rank=rank)
    until = (ends, float(clock.budget.evaluations))
    point = watched(path, [shift], sample, until, most=MOST_ITERATIONS)[shift]
    return CellFit(point.coef, point.values.double(), shift)


def is_precise(shift: float) -> bool:
    """Return whether products of a cell run in float64, as float32 cannot tell its shift."""
    return shift < PRECISE * SHIFTS[-1]


def is_bad(values: Float[Tensor, "v t"], sample: Sample) -> bool:
    """Return whether a cell has diverged, or predicts held-out rows worse than its mean.

    The latter by more than chance, and by what matters for all rows.
    """
    truth, mean = sample.held_Y.double(), sample.Y.double().mean(dim=0)
    if not bool(values.isfinite().all()):
        return True
    if not len(values):
        return False
    spread = float((sample.Y.double() - mean).abs().max())
    if float((values - mean).abs().max()) > FAR_OUT * max(spread, 1.0):
        return True
    errors, usual = (each.square().mean(dim=1) for each in (values - truth, mean - truth))
    worse = errors - usual
    chance = 2 * float(worse.std(correction=0)) / math.sqrt(len(worse))
    matters = float(errors.mean()) > WORSE * float(usual.mean()) + NO_MATTER
    return len(worse) >= ENOUGH and matters and float(worse.mean()) > chance
