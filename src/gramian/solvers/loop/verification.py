"""Verification of a loaded state by recomputing its residual."""

from __future__ import annotations

from ... import _arrays as xp
from ..._arrays import Array
from ...problems import FullProblem
from .metrics import RESIDUAL_KEY
from .state import State

TOLERATED_RATIO = 10.0
"""Largest ratio of the true residual to the residual of the last batches or blocks.

Measured, over dimensions 1 to 8, penalties 1e-2 to 1e-6 and both precisions: at most 2.6 times
for blocks, 1.7 for batches.
"""


def check_residual(problem: FullProblem, state: State) -> None:
    """Raise ValueError if the true residual is far above the residual that a state reports.

    It is for solvers that report the residual of the last blocks or batches before their steps; the
    true residual is mostly smaller. Cost: n² kernel evaluations.
    """
    reported = state.metrics.get(RESIDUAL_KEY)
    if reported is None:
        return
    rhs = xp.to_float64(problem.rhs)
    size = _norms(rhs)
    relative = _norms(rhs - problem.apply(state.coef)) / xp.where(size > 0, size, 1.0)
    refuse_beyond("a relative residual", reported, float(relative.max()))


def refuse_beyond(quantity: str, reported: float, recomputed: float) -> None:
    """Raise ValueError if a recomputed value exceeds the reported one `TOLERATED_RATIO` times."""
    # The negated comparison also refuses NaN.
    if not recomputed <= TOLERATED_RATIO * reported + 1e-12:  # the constant allows for rounding
        raise ValueError(
            f"it reports {quantity} of {reported:.1e}, but the recomputed value is "
            f"{recomputed:.1e}: it was changed, or belongs to other data. Delete it to start again"
        )


def _norms(x: Array) -> Array:
    norms: Array = xp.norm(xp.to_float64(x), axis=0)
    return norms
