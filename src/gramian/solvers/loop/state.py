"""State of a solver after an iteration, which suffices to resume exactly."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from .stopping import StopReason

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
            if xp.is_array(value):
                setattr(self, name, _like_new(value))

    @property
    def verdict(self) -> StopReason | None:
        """Reason for which the solver itself stops at this state; None to continue."""
        return None


def _like_new(x: Array) -> Array:
    """Return a contiguous array at an aligned address, if possible without a copy."""
    if xp.is_sparse(x):
        return x
    is_aligned = xp.is_tensor(x) or x.ctypes.data % ARRAY_ALIGNMENT == 0
    return xp.contiguous(x) if is_aligned else xp.copy_by_rows(x)


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
