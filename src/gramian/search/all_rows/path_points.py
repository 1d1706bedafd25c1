"""Points of a path of penalties: the solution, or the best iterate on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from ..._parallel.machine import read_seconds
from ...operators import KernelOperator
from ...paths import FullPath, direct_path
from ...paths.sample import Sample
from ...problems import FullProblem
from ..clock import Clock

VALIDATION_INTERVAL = 3
"""Iterations between two validations on the held-out rows."""

PATIENCE_VALIDATIONS = 3
"""Validations without a gain after which a path ends."""

UNSETTLED_RESIDUAL = 0.3
"""Residual above which a path continues without a gain: with a poor preconditioner, the first
iterates of a rough function predict the mean. The largest gains come at residuals below 0.1."""

Ends = tuple[float, float]
"""Deadline by `read_seconds`, and limit on kernel evaluations, of iterations."""

LEAST_RELATIVE_GAIN = 1e-3
"""Least relative reduction of the loss that counts as a gain."""

BLOCK_MEMORY: dict[str, Any] = {"memory_bytes": 1 << 32}
"""Memory of blocks: the rows of a search are in memory, on both sides of K."""

STORED_BYTES = 1 << 31
"""Memory of stored entries of K."""

MOST_ITERATIONS = 60
SOLVED_RESIDUAL = 3e-3
"""Relative residual of a solved system: below it the loss does not change."""


@dataclass(frozen=True, eq=False)
class Point:
    """Best iterate for one penalty and one split, with its held-out error."""

    loss: float
    values: Array
    coef: Array
    residual: float = 0.0
    iteration: int = 0


def factorise_matrix(
    problem: FullProblem, sample: Sample, shifts: Sequence[float]
) -> dict[float, Point]:
    """Return the solution of each shift."""
    K_held, points = _held_operator(problem.K, sample).double().dense(), {}
    penalties = [s / problem.total for s in shifts]
    # Not strict: the path ends before the first shift at which the matrix is not positive
    # definite to rounding, so later shifts have no point.
    for s, (_, coef) in zip(shifts, direct_path(problem, penalties), strict=False):
        values = K_held @ coef
        points[s] = Point(sample.loss(values), values, coef)
    return points


def watch_path(
    path: FullPath,
    shifts: Sequence[float],
    sample: Sample,
    ends: Ends,
    most: int = MOST_ITERATIONS,
) -> dict[float, Point]:
    """Iterate until the smallest loss stops falling; return the best iterate of each penalty.

    Iterations also end at the solution, at the deadline, or after `most` iterations.
    """
    K = _held_operator(path.problem.K, sample)
    meter, look = K.meter, K.shape[0] * K.shape[1]
    # With stored entries, the entries of held-out rows are stored, too, and a validation
    # evaluates none.
    held_operator: KernelOperator | Array = K
    if path.problem.K.stored_entries is not None:
        held_operator, look = K.dense(), 0
    best: dict[float, Point] = {}
    least_loss, looks, before = math.inf, 0, meter.evaluations
    for stage in path.stages():
        solved = bool((stage.residual < SOLVED_RESIDUAL).all())
        step, before = meter.evaluations - before, meter.evaluations
        # Is there a budget for this validation, another iteration and its validation? If not,
        # this iterate is the last one, and must be validated now.
        late = is_over(ends, before + step + 2 * look) or stage.iteration >= most
        if stage.iteration % VALIDATION_INTERVAL and not (solved or late):
            continue
        p, n, t = stage.coef.shape
        # One product for the columns of all penalties.
        values = held_operator @ xp.cast(
            xp.transpose(stage.coef, (1, 0, 2)).reshape(n, p * t), K.dtype
        )
        values = values.reshape(-1, p, t)
        for i, s in enumerate(shifts):
            loss = sample.loss(values[:, i])
            # Each penalty keeps its own best iterate: at a small penalty, later ones may fit the
            # noise.
            if s not in best or loss < best[s].loss:
                point = (values[:, i], stage.coef[i], float(stage.residual[i]), stage.iteration)
                best[s] = Point(loss, *point)
        current_loss = min(point.loss for point in best.values())
        # Early stopping by the best penalty of all: it regularises as the penalty does, and saves
        # iterations that change no prediction.
        looks = 0 if current_loss < (1 - LEAST_RELATIVE_GAIN) * least_loss else looks + 1
        least_loss = min(least_loss, current_loss)
        # The loss may pause while all residuals are large, see the constant: patience counts only
        # once the residual of some penalty has fallen.
        settled = bool((stage.residual < UNSETTLED_RESIDUAL).any())
        if solved or late or (settled and looks >= PATIENCE_VALIDATIONS):
            break
    return best


def store_entries(clock: Clock) -> dict[str, Any]:
    """Return the settings that store kernel entries, for many features or a budget of evaluations.

    Stored entries are evaluated once, and read in each product, which is slower for few features:
    for 13,000 rows of 8 features a product takes 0.31 s, and 0.06 s if it computes the entries.
    """
    counted = math.isfinite(clock.budget.evaluations)
    features = {"stored_features": 0} if counted else {}
    return {"store_bytes": STORED_BYTES, **features}


def is_over(ends: Ends, evaluations: int | float) -> bool:
    """Return whether the deadline or the limit on evaluations has passed."""
    return read_seconds() >= ends[0] or evaluations > ends[1]


def _held_operator(K: KernelOperator, sample: Sample) -> KernelOperator:
    return KernelOperator(K.kernel, sample.held_X, K.cols, K.engine, meter=K.meter, **BLOCK_MEMORY)
