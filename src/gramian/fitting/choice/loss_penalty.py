"""Choice of the penalty of a loss other than the square, on held-out rows."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace

from ... import _arrays as xp
from ..._arrays import Array, Int, RandomStream
from ...data import Subset, as_rows
from ...losses import Loss
from ...operators import KernelOperator
from ...paths.work import Work
from ...problems import LossProblem
from ...solvers import Newton, ProblemSize, State, deadline, max_iterations, solve, tolerance
from ..inputs.training_data import TrainingData

logger = logging.getLogger("gramian")

MOST_ROWS = 8_000
"""Rows of the comparison; if there are more, a random sample."""

MOST_HELD, HELD_SHARE = 2_000, 5
"""A row of five is held out, 2,000 at most."""

MOST_LANDMARKS = 1_000
"""Largest number of landmarks of the fits that are compared."""

LARGEST, SMALLEST, FACTOR = 16.0, 2.0**-14, 4.0
"""Multiples of the best penalty of squared errors, from the largest on, and their ratio."""

TYPICAL_PENALTIES, STEPS_PER_PENALTY = 9, 2
"""Typical number of penalties, and of Newton steps for each of them."""

PATIENCE_STEPS = 2
"""Larger losses in a row after which the path ends."""

KINK_WIDTH = 0.05
"""Width of a kink in the fits that are compared, in units of the target."""

COARSE, MOST_STEPS = 1e-2, 12
"""Tolerance and Newton steps of a fit that is compared."""


def choose_penalty(
    K: KernelOperator,
    data: TrainingData,
    loss: Loss,
    squared: float,
    landmarks: int,
    rng: RandomStream,
    ends: float = math.inf,
) -> float:
    """Return the penalty with the smallest mean loss on held-out rows.

    - `data`: data with targets in the unit of the loss.
    - `squared`: the best penalty for squared errors, at the middle of the path.
    - `landmarks`: landmarks of the fit; at most 1,000 random ones are used for the choice.
    - `ends`: the time of `time.monotonic` at which the path ends.

    The sample determines the product of rows and penalty, which then applies to all rows. Cost:
    about
    9 penalties with two Newton steps each, on 8,000 rows.
    """
    n = len(data.targets)
    # 1. A random sample, because each penalty takes a fit of several Newton steps.
    order = rng.sample(n, MOST_ROWS)
    count = max(1, min(MOST_HELD, len(order) // HELD_SHARE))
    validation, learn = xp.sort(order[:count]), order[count:]
    if len(learn) == 0:
        return squared
    m = min(landmarks, MOST_LANDMARKS, len(learn))
    # 2. A kink is rounded for the fits, since Newton's method needs curvature; the held-out loss
    # keeps it.
    problem = _problem(K, data, loss.smooth_kink(KINK_WIDTH), learn, m)
    validation_problem = _problem(K, data, loss, validation, 1)
    # 3. The ridge is the sum of the weights times the penalty: fewer rows have the same ridge at a
    # larger penalty.
    scale = data.total / problem.total
    on_held = validation_problem.K.against(problem.K.cols)
    best, least_loss, worse = squared, math.inf, 0
    start: State | None = None
    multiple = LARGEST
    while multiple >= SMALLEST and worse < PATIENCE_STEPS and time.monotonic() < ends:
        problem_at_penalty = replace(problem, penalty=squared * multiple * scale)
        stop = [tolerance(COARSE), max_iterations(MOST_STEPS), deadline(ends)]
        coef = solve(problem_at_penalty, Newton(), stop=stop, state=start).state.coef
        # 4. The next, smaller penalty starts from this function, and needs one or two steps.
        start = State(0, coef)
        loss_value = float(
            validation_problem.mean_loss(on_held @ coef + problem_at_penalty.offset).sum()
        )
        logger.debug("penalty %.3g: held-out loss %.6g", squared * multiple, loss_value)
        # 5. The path ends after several penalties without a new minimum: the held-out loss is not
        # exactly convex.
        worse = 0 if loss_value < least_loss else worse + 1
        if loss_value < least_loss:
            best, least_loss = squared * multiple, loss_value
        multiple /= FACTOR
    logger.info("chosen: penalty %.3g; mean loss on held-out rows: %.4g", best, least_loss)
    return best


def loss_work(size: ProblemSize) -> Work:
    """Return the work of `choose_penalty`."""
    n = min(size.n, MOST_ROWS) * (HELD_SHARE - 1) // HELD_SHARE
    fit_size = replace(size, n=n, m=min(size.m, MOST_LANDMARKS, n), full=False)
    solver, count = Newton(), TYPICAL_PENALTIES
    return Work(
        evaluations=count * solver.evaluations(fit_size, STEPS_PER_PENALTY),
        operations=count * solver.operations(fit_size, STEPS_PER_PENALTY),
        peak_bytes=solver.peak_bytes(fit_size),
    )


def _problem(
    K: KernelOperator, data: TrainingData, loss: Loss, index: Int[Array, " k"], m: int
) -> LossProblem:
    """Return the problem of some rows, with the first m of these rows as landmarks."""
    # Dense rows are gathered once for all penalties.
    rows = Subset(K.rows, index) if K.rows.sparse else as_rows(K.rows.take(index))
    part = replace(K, rows=rows, cols=rows)
    y = data.targets[index]
    weights = None if data.weights is None else data.weights[index]
    ones = xp.ones(len(y), xp.float64, like=y)
    offset = loss.constant(xp.to_float64(y), ones if weights is None else xp.to_float64(weights))
    first = xp.arange(m)
    # The penalty is a placeholder: each level replaces it.
    return LossProblem(
        part.against(part.points(first)), y, 1.0, weights, None, None, first,
        loss=loss, offset=offset,
    )  # fmt: skip
