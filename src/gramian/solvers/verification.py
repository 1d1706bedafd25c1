"""Verification of a state from a file: the residual it states is compared with a fresh one."""

from __future__ import annotations

from torch import Tensor

from ..problems import FullProblem
from .metrics import RESIDUAL
from .state import State

TOLERATED_RATIO = 10.0
"""Largest ratio of a residual to what was seen of it in the last batches or blocks.

Measured, over dimensions 1 to 8, penalties 1e-2 to 1e-6 and both precisions: at most 2.6 times
for blocks, 1.7 for batches.
"""


def check_residual(problem: FullProblem, state: State) -> None:
    """Raise ValueError if the residual is far above the one that a state reports.

    Cost: n² kernel evaluations. For solvers whose residual is that of the last blocks or batches,
    each at the time it was drawn: the true one is mostly below it.
    """
    said = state.metrics.get(RESIDUAL)
    if said is None:
        return
    rhs = problem.rhs.double()
    size = _norms(rhs)
    found = _norms(rhs - problem.apply(state.coef)) / size.where(size > 0, 1.0)
    refuse_beyond("a relative residual", said, float(found.max()))


def refuse_beyond(what: str, said: float, found: float) -> None:
    """Raise ValueError if what was found is more than `TOLERATED_RATIO` times what was said."""
    if not found <= TOLERATED_RATIO * said + 1e-12:  # below, rounding has the word
        raise ValueError(
            f"it reports {what} of {said:.1e}, and computed afresh that is {found:.1e}: it was "
            "changed, or is of other data. Delete it to start again"
        )


def _norms(x: Tensor) -> Tensor:
    found: Tensor = x.double().norm(dim=0)
    return found
