"""Points of a path of penalties: the solution at each, or the best iterate on held-out rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...operators import KernelOperator
from ...paths import FullPath, direct_path
from ...paths.sample import Sample
from ...problems import FullProblem
from ..clock import Clock

EVERY = 3
"""Iterations between two looks at the held-out rows."""

PATIENCE = 3
"""Looks without a gain after which a path ends."""

UNSETTLED = 0.3
"""Residual down to which it goes on without a gain: the first iterates of a rough function that is
preconditioned badly predict as the mean does. Where it gains most the residual is below 0.1."""

Ends = tuple[float, float]
"""Time of `time.monotonic`, and kernel evaluations, at which iterations end."""

GAIN = 1e-3
"""Share of the loss that counts as a gain."""

MEMORY: dict[str, Any] = {"memory_bytes": 1 << 32}
"""For blocks: rows of a search are in memory, and on both sides of K."""

STORED_BYTES = 1 << 31
"""For entries of K that are stored."""

MOST_ITERATIONS = 60
SOLVED = 3e-3
"""Relative residual at which a system counts as solved: the loss changes no more."""


@dataclass(frozen=True, eq=False)
class Point:
    """One penalty of one split: the best iterate."""

    loss: float
    values: Tensor
    coef: Tensor
    residual: float = 0.0
    iteration: int = 0


def factorised(problem: FullProblem, sample: Sample, shifts: Sequence[float]) -> dict[float, Point]:
    """Return the solution of each shift."""
    K_held, found = _held(problem.K, sample).double().dense(), {}
    penalties = [s / problem.total for s in shifts]
    for s, (_, coef) in zip(shifts, direct_path(problem, penalties), strict=False):
        values = K_held @ coef
        found[s] = Point(sample.loss(values), values, coef)
    return found


def watched(
    path: FullPath,
    shifts: Sequence[float],
    sample: Sample,
    ends: Ends,
    most: int = MOST_ITERATIONS,
) -> dict[float, Point]:
    """Iterate until the least loss of all penalties falls no more; return the best of each.

    Until they are solved, their time is over, or there were `most` iterations, too.
    """
    K = _held(path.problem.K, sample)
    meter, look = K.meter, K.shape[0] * K.shape[1]
    held: KernelOperator | Tensor = K
    if path.problem.K.kept is not None:
        held, look = K.dense(), 0
    best: dict[float, Point] = {}
    least, looks, before = math.inf, 0, meter.evaluations
    for stage in path.stages():
        solved = bool((stage.residual < SOLVED).all())
        step, before = meter.evaluations - before, meter.evaluations
        late = is_over(ends, before + step + 2 * look) or stage.iteration >= most
        if stage.iteration % EVERY and not (solved or late):
            continue
        p, n, t = stage.coef.shape
        values = held @ stage.coef.permute(1, 0, 2).reshape(n, p * t).to(K.dtype)
        values = values.reshape(-1, p, t)
        for i, s in enumerate(shifts):
            loss = sample.loss(values[:, i])
            if s not in best or loss < best[s].loss:
                point = (values[:, i], stage.coef[i], float(stage.residual[i]), stage.iteration)
                best[s] = Point(loss, *point)
        now = min(point.loss for point in best.values())
        looks = 0 if now < (1 - GAIN) * least else looks + 1
        least = min(least, now)
        settled = bool((stage.residual < UNSETTLED).any())
        if solved or late or (settled and looks >= PATIENCE):
            break
    return best


def stored(clock: Clock) -> dict[str, Any]:
    """Return when paths store entries: where rows have many features, or evaluations are counted.

    Stored entries are evaluated once, and read in each product, which takes more seconds where rows
    have few features: 13,000 rows of 8 features 0.31 s, and 0.06 s to compute them anew.
    """
    counted = math.isfinite(clock.budget.evaluations)
    features = {"stored_features": 0} if counted else {}
    return {"store_bytes": STORED_BYTES, **features}


def is_over(ends: Ends, evaluations: int | float) -> bool:
    """Return whether iterations end."""
    return time.monotonic() >= ends[0] or evaluations > ends[1]


def _held(K: KernelOperator, sample: Sample) -> KernelOperator:
    return KernelOperator(K.kernel, sample.held_X, K.cols, K.engine, meter=K.meter, **MEMORY)
