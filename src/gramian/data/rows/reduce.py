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
        """The numbers of rows and, maybe, of columns."""

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers."""

    def double(self) -> Rowwise:
        """Return the same in float64."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the numbers of some rows: of a slice, or of a tensor of row numbers."""


class BlockReduction(ABC, Generic[Result]):
    """What `RowSource.fold` makes of each block, and how two results become one.

    A value: it pickles by plain pickle, and without unrelated data, because it may be sent to the
    machines of the rows. See `compact_views` for tensors that are parts of larger ones.
    """

    @abstractmethod
    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Return a new result of one block, whose first row has the number `start`."""

    @abstractmethod
    def merge(self, a: Result, b: Result) -> Result:
        """Return the joint result of neighbouring rows; may write to the first."""

    def add(self, total: Result, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Return the joint result of earlier rows and the next block; may write to the first.

        For who can do better than `merge`: without memory for another result, say.
        """
        return self.merge(total, self(start, block, *rowwise))


@dataclass(frozen=True, eq=False)
class Sum(BlockReduction[Tensor]):
    """The folding of a block function whose results are added up."""

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
    """A folding of some of the rows that another one is for.

    Parameters
    ----------
    fn : BlockReduction
    first : int
        Number of the first of these rows among all.
    """

    fn: BlockReduction[Result]
    first: int

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Count from the first of all rows."""
        return self.fn(self.first + start, block, *rowwise)

    def merge(self, a: Result, b: Result) -> Result:
        """Merge as the other does."""
        return self.fn.merge(a, b)

    def add(self, total: Result, start: int, block: Tensor, *rowwise: Any) -> Result:
        """Count from the first of all rows."""
        return self.fn.add(total, self.first + start, block, *rowwise)


@dataclass(frozen=True)
class RowIndex:
    """The numbers of n rows, row-aligned like other numbers but not stored.

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
        """Whole numbers."""
        return torch.int64

    def double(self) -> RowIndex:
        """Return itself: it stands for whole numbers."""
        return self

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def __getitem__(self, part: slice, /) -> RowIndex:
        """Return the numbers of consecutive rows."""
        start, stop, _ = part.indices(self.n)
        return RowIndex(stop - start, self.first + start)


def compact_views(values: Any) -> Any:
    """Return a tensor, or what else it is, without the memory around it.

    A tensor that is a view of a larger one is pickled with all of that one's memory.
    """
    if not isinstance(values, Tensor) or values.layout != torch.strided:
        return values
    # A tensor that fills its memory is sent as it is, without a copy.
    is_whole_storage = values.untyped_storage().nbytes() == values.numel() * values.itemsize
    return values if is_whole_storage else values.clone()


class Value:
    """A frozen dataclass that is pickled field by field, views without their bases."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields as they are sent."""
        return {name: compact_views(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the fields back."""
        # A frozen dataclass refuses assignment; its dictionary does not.
        vars(self).update(state)
