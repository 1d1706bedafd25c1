"""Questions to numbers that go with rows, wherever they are: here, or with rows elsewhere."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from .remote_columns import RemoteColumns, RowNumbers


def columns_there(numbers: object) -> RemoteColumns | None:
    """Return remote columns, where they stand in for a tensor; None for anything else."""
    return numbers if isinstance(numbers, RemoteColumns) else None


def part_of(numbers: RowNumbers, index: Int[Tensor, " k"]) -> RowNumbers:
    """Return the numbers of some rows: of remote columns those that stay there, if many."""
    there = columns_there(numbers)
    return numbers[index] if there is None else there.part(index)


def brought_here(numbers: RowNumbers) -> Tensor:
    """Return numbers in memory, wherever they are."""
    there = columns_there(numbers)
    return numbers if there is None else there.here()


def all_finite(numbers: RowNumbers) -> bool:
    """Return whether all numbers are finite, wherever they are."""
    there = columns_there(numbers)
    if there is not None:
        return there.facts.finite
    if numbers.numel() == 0:
        return True
    low, high = torch.aminmax(numbers)  # which need no memory, unlike isfinite
    return bool(low > -torch.inf and high < torch.inf)


def range_of(numbers: RowNumbers) -> tuple[float, float]:
    """Return the least and the largest number, wherever they are."""
    there = columns_there(numbers)
    if there is not None:
        return float(there.facts.least.min()), float(there.facts.most.max())
    low, high = torch.aminmax(numbers)
    return float(low), float(high)
