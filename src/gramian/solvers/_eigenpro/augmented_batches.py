"""Augmentation in a solver: the rows of each batch, changed the same way whenever it is drawn."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...data import EPOCH_STRIDE, Augmentation


def augmented(
    augment: Augmentation | None, x: Tensor, y: Tensor, seed: int, number: int
) -> tuple[Tensor, Tensor]:
    """Return the rows and targets of batch `number` of all, changed with a generator of its own."""
    if augment is None:
        return x, y
    return augment(x, y, torch.Generator().manual_seed(seed + EPOCH_STRIDE * (number + 1)))


def changed_rows(
    augment: Augmentation | None, t: int, rng: torch.Generator
) -> Callable[[Tensor], Tensor] | None:
    """Return what augmentation does to rows alone, beside t targets; None if there is none."""
    if augment is None:
        return None
    return lambda x: augment(x, x.new_zeros(len(x), t), rng)[0]
