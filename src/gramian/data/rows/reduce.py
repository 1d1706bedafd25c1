"""Block-wise map and reduce over a row source, with row-aligned arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

Result = TypeVar("Result")

BlockFn = Callable[..., Tensor]


@runtime_checkable
class Rowwise(Protocol):
    """Row-aligned numbers, such as targets: a tensor, or columns of remote rows."""

    @property
    def shape(self) -> Any:
        """Number of rows, and of columns if there is a second axis."""

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers."""

    def double(self) -> Rowwise:
        """Return the numbers in float64."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the numbers of some rows: of a slice, or of a tensor of row numbers."""


class BlockReduction(ABC, Generic[Result]):
    """Reduction of blocks by `RowSource.fold`: a result for each block, and a merge of results.

    It supports plain pickle, and contains no unrelated data, because it may be sent to the machines
    of the rows. See `compact_views` for tensors that are views of larger ones.
    """

    @abstractmethod
    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Return a new result of one block, whose first row has the number `start`."""

    @abstractmethod
    def merge(self, a: Result, b: Result) -> Result:
        """Return the joint result of neighbouring rows; may overwrite the first result."""

    def add(self, total: Result, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Return the joint result of earlier rows and the next block; may overwrite the former.

        Override it to be cheaper than `merge`, for instance without memory for a second result.
        """
        return self.merge(total, self(start, block, *rowwise))


@dataclass(frozen=True, eq=False)
class Sum(BlockReduction[Tensor]):
    """Fold of a block function whose results are added up."""

    fn: BlockFn

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Tensor:
        """Return a copy, because the function may hand out the same buffer again."""
        return self.fn(block, *rowwise).clone()

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Add, in the type of the results."""
        return a.add_(b)

    def add(self, total: Tensor, start: int, block: Tensor, *rowwise: Any) -> Tensor:
        """Add without a copy."""
        return total.add_(self.fn(block, *rowwise))


@dataclass(frozen=True, eq=False)
class Shifted(BlockReduction[Result]):
    """Fold of a part of the rows, with row numbers that count from the first of all rows.

    Parameters
    ----------
    fn : BlockReduction
    first : int
        Number of the first row of the part among all rows.
    """

    fn: BlockReduction[Result]
    first: int

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Count from the first of all rows."""
        return self.fn(self.first + start, block, *rowwise)

    def merge(self, a: Result, b: Result) -> Result:
        """Merge as `fn` does."""
        return self.fn.merge(a, b)

    def add(self, total: Result, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Count from the first of all rows."""
        return self.fn.add(total, self.first + start, block, *rowwise)


@dataclass(frozen=True)
class RowIndex:
    """The row numbers first, ..., first + n - 1: sliced like a tensor of shape (n,), never stored.

    Parameters
    ----------
    n : int
    first : int
        Number of the first row.
    """

    n: int
    first: int = 0

    @property
    def shape(self) -> tuple[int]:
        """The number of rows."""
        return (self.n,)

    @property
    def dtype(self) -> torch.dtype:
        """The type of whole numbers."""
        return torch.int64

    def double(self) -> RowIndex:
        """Return itself: its numbers are whole numbers."""
        return self

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def __getitem__(self, part: slice, /) -> RowIndex:
        """Return the numbers of consecutive rows."""
        start, stop, _ = part.indices(self.n)
        return RowIndex(stop - start, self.first + start)


def compact_views(values: Any) -> Any:
    """Return a copy of a tensor that is a view; return other values unchanged.

    Otherwise the whole memory of the larger tensor would be pickled.
    """
    if not isinstance(values, Tensor) or values.layout != torch.strided:
        return values
    # A tensor that fills its memory is sent as it is, without a copy.
    is_whole_storage = values.untyped_storage().nbytes() == values.numel() * values.itemsize
    return values if is_whole_storage else values.clone()


class Value:
    """A frozen dataclass that is pickled field by field; views are copied."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling."""
        return {name: compact_views(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields."""
        # A frozen dataclass refuses assignment; its dictionary does not.
        vars(self).update(state)
