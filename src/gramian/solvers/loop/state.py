"""State of a solver after an iteration, which suffices to resume exactly, and its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeVar

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...problems import FullProblem

StopReason = Literal[
    "converged",
    "max_iterations",
    "time_limit",
    "early_stopping",
    "no_progress",
    "callback",
    "diverged",
    "interrupted",
    "error",
]
"""Reason why a run ended. "converged": it reached the tolerance, or has a closed form.

"early_stopping": the error on held-out rows stopped falling; "no_progress": no step gains;
"interrupted": by Ctrl-C or a signal, see `Interrupted`; "error": by an exception, see `solve`.
"""


RESIDUAL_KEY: Final = "rel_residual"
"""Norm of the residual over the norm of the right-hand side, largest over the targets."""

PREDICTION_ERROR: Final = "prediction_error"
"""Estimated error of the predictions on the rows, relative to the exact solution of the problem.

The root mean square of the error over the standard deviation of the target (over the root mean
square of a constant target), largest over the targets.
"""

ROUNDING_ERROR: Final = "rounding_error"
"""The part of the prediction error that no iteration reduces, if it is visible."""

BATCH_ERROR: Final = "batch_mse"
"""Mean squared error of the batches since the last state, each before its step."""

PASSES_KEY: Final = "passes"
"""Evaluated kernel entries, in units of all pairs of rows."""

EPOCH_KEY: Final = "epoch"
"""Passes over the rows; fractional if a state ends within one."""

VALID_RMSE: Final = "valid_rmse"
"""Root mean squared error on held-out rows; added by a `Validate`, not by a solver."""

VALID_ERROR: Final = "valid_error"
"""Misclassified share of held-out rows; added by a `Validate` as well."""


ADDED_LATER = "added later"
"""Key in the metadata of fields that older files of the same format lack."""

ARRAY_ALIGNMENT = 16
"""Alignment of the address of a new array of NumPy."""


@dataclass
class State:
    """Solver state: enough to resume the iteration bit for bit.

    Attributes
    ----------
    iteration : int
    coef : Array of shape (m, t)
        Coefficients of the centers.
    metrics : dict of str to float
        Cheap by-products, and metrics that callbacks add; they become a row of the history.

    Notes
    -----
    Arrays of a state have the memory layout of new arrays: contiguous, from an aligned address.
    BLAS rounds differently for other layouts. A run resumed from a file, which stores only the
    numbers, would end with different bits than an uninterrupted run.
    """

    iteration: int
    coef: Float[Array, "m t"]
    metrics: dict[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if xp.is_array(value) and not xp.is_sparse(value):
                is_aligned = xp.is_tensor(value) or value.ctypes.data % ARRAY_ALIGNMENT == 0
                # Without a copy if possible.
                as_new = xp.contiguous(value) if is_aligned else xp.copy_by_rows(value)
                setattr(self, name, as_new)

    @property
    def verdict(self) -> StopReason | None:
        """Reason for which the solver itself stops at this state; None to continue."""
        return None


StateType = TypeVar("StateType", bound=State)


def move_state(state: StateType, device: str | xp.Device) -> StateType:
    """Return the state on a device, with a copy of its metrics that callers may change."""
    # `replace` would share the dictionary, into which the loop writes.
    changed: dict[str, Any] = {"metrics": dict(state.metrics)}
    for f in fields(state):
        value = getattr(state, f.name)
        if xp.is_array(value):
            changed[f.name] = xp.to_device(value, device)
        elif isinstance(value, State):
            changed[f.name] = move_state(value, device)
    return replace(state, **changed)


def draw_seed(rng: RandomStream | None) -> int:
    """Draw a seed for the state, so that a resumed run draws the same numbers."""
    return 0 if rng is None else int(rng.integers(2**31))


def starting_iteration(state: State | None) -> int:
    """Return the iteration from which a solver counts; 0 without a state."""
    return 0 if state is None else state.iteration


def starting_coef(state: State | None, like: Array) -> Array:
    """Return the coefficients of a given state as the start of a solver; zeros without a state."""
    if state is None:
        return xp.zeros_like(like)
    if state.coef.shape != like.shape:
        raise ValueError(
            f"the starting coefficients must have shape {tuple(like.shape)}, not "
            f"{tuple(state.coef.shape)}"
        )
    return xp.cast_like(state.coef, like)


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
