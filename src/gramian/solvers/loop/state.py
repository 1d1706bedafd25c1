"""State: the result of a solver iteration, enough to resume exactly."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from .stopping import StopReason

ADDED_LATER = "added later"
"""Key in the metadata of fields that older files of the same format lack."""

TENSOR_ALIGNMENT = 64
"""Alignment of the address of a new tensor."""


@dataclass
class State:
    """Solver state: enough to resume the iteration bit for bit.

    Attributes
    ----------
    iteration : int
    coef : Tensor of shape (m, t)
        Coefficients of the centers.
    metrics : dict of str to float
        Cheap by-products, and metrics that callbacks add; they become a row of the history.

    Notes
    -----
    Tensors of a state have the memory layout of new tensors: contiguous, from an aligned address.
    BLAS rounds differently for other layouts. A run resumed from a file, which stores only the
    numbers, would end with different bits than an uninterrupted run.
    """

    iteration: int
    coef: Float[Tensor, "m t"]
    metrics: dict[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Tensor):
                setattr(self, f.name, _like_new(value))

    @property
    def verdict(self) -> StopReason | None:
        """Reason for which the solver itself stops at this state; None to continue."""
        return None


def _like_new(x: Tensor) -> Tensor:
    """Return a contiguous tensor at an aligned address: the tensor itself if it is one."""
    aligned = x.layout != torch.strided or x.data_ptr() % TENSOR_ALIGNMENT == 0
    return x.contiguous() if aligned else x.clone(memory_format=torch.contiguous_format)


StateType = TypeVar("StateType", bound=State)


def move_state(state: StateType, device: str | torch.device) -> StateType:
    """Return the state on a device, with a copy of its metrics that callers may change."""
    # `replace` would share the dictionary, into which the loop writes.
    changed: dict[str, Any] = {"metrics": dict(state.metrics)}
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Tensor):
            changed[f.name] = value.to(device)
        elif isinstance(value, State):
            changed[f.name] = move_state(value, device)
    return replace(state, **changed)


def draw_seed(rng: torch.Generator | None) -> int:
    """Draw a seed for the state, so that a resumed run draws the same numbers."""
    return 0 if rng is None else int(torch.randint(2**31, (1,), generator=rng))


def starting_coef(state: State | None, like: Tensor) -> Tensor:
    """Return the coefficients of a plain state as a start, or zeros like the argument."""
    if state is None:
        return torch.zeros_like(like)
    if state.coef.shape != like.shape:
        raise ValueError(
            f"the starting coefficients must have shape {tuple(like.shape)}, not "
            f"{tuple(state.coef.shape)}"
        )
    return state.coef.to(like)
