"""State: what a solver yields after each iteration, and all that it needs to go on."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from .stopping import StopReason

ADDED_LATER = "added later"
"""Key in the metadata of fields that older files of the same format are without."""

TENSOR_ALIGNMENT = 64
"""Bytes of which the address of a new tensor is a multiple."""


@dataclass
class State:
    """Solver state: enough to resume the iteration bit for bit.

    Attributes
    ----------
    iteration : int
    coef : Tensor of shape (m, t)
        Coefficients of the centers.
    metrics : dict of str to float
        By-products that cost nothing, and what callbacks add; they become a row of the history.

    Notes
    -----
    Tensors of a state lie in memory as a new tensor would: row after row, from an aligned address.
    BLAS rounds otherwise for another layout, so that a run which goes on from a file, where only
    the numbers are kept, would end with other bits than one that was never interrupted.
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
        """The reason for which the solver itself would stop here; None as long as it would not."""
        return None


def _like_new(x: Tensor) -> Tensor:
    """Return a tensor itself if it lies in memory as a new one would, else a copy that does."""
    aligned = x.layout != torch.strided or x.data_ptr() % TENSOR_ALIGNMENT == 0
    return x.contiguous() if aligned else x.clone(memory_format=torch.contiguous_format)


S = TypeVar("S", bound=State)


def moved(state: S, device: str | torch.device) -> S:
    """Return a state, of which callers may change the metrics, with its tensors on a device."""
    changed: dict[str, Any] = {"metrics": dict(state.metrics)}
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Tensor):
            changed[f.name] = value.to(device)
        elif isinstance(value, State):
            changed[f.name] = moved(value, device)
    return replace(state, **changed)


def drawn_seed(rng: torch.Generator | None) -> int:
    """Return a seed to keep in the state, so that whoever goes on draws the same numbers."""
    return 0 if rng is None else int(torch.randint(2**31, (1,), generator=rng))


def starting_coef(state: State | None, like: Tensor) -> Tensor:
    """Return the coefficients of a plain state as a start, or zeros like the argument."""
    if state is None:
        return torch.zeros_like(like)
    if state.coef.shape != like.shape:
        raise ValueError(
            f"the starting coefficients have shape {tuple(state.coef.shape)}, this problem needs "
            f"{tuple(like.shape)}"
        )
    return state.coef.to(like)
