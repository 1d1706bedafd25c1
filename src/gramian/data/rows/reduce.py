"""Block-wise map and reduce over a row source, with row-aligned arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ... import _arrays as xp
from ..._arrays import Array

Result = TypeVar("Result")

BlockFn = Callable[..., Array]


@runtime_checkable
class Rowwise(Protocol):
    """Row-aligned numbers, such as targets: an array, or columns of remote rows."""

    @property
    def shape(self) -> Any:
        """Number of rows, and of columns if there is a second axis."""

    @property
    def dtype(self) -> xp.DType:
        """The type of the numbers."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the numbers of some rows: of a slice, or of an array of row numbers."""


class BlockReduction(ABC, Generic[Result]):
    """Base of reductions by `RowSource.fold`, which compute and merge the results of blocks.

    It supports plain pickle, and contains no unrelated data, because it may be sent to the machines
    of the rows.
    """

    @abstractmethod
    def __call__(self, start: int, block: Array, *rowwise: Any) -> Result:
        """Return a new result of one block, whose first row has the number `start`."""

    @abstractmethod
    def merge(self, a: Result, b: Result) -> Result:
        """Return the joint result of neighbouring rows; may overwrite the first result."""

    def add(self, total: Result, start: int, block: Array, *rowwise: Any) -> Result:
        """Return the joint result of earlier rows and the next block; may overwrite the former.

        Override it to be cheaper than `merge`, for instance without memory for a second result.
        """
        return self.merge(total, self(start, block, *rowwise))


@dataclass(frozen=True, eq=False)
class Sum(BlockReduction[Array]):
    """Reduction that adds up the results of a function of blocks."""

    fn: BlockFn

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Array:
        """Return a copy, because the function may hand out the same buffer again."""
        return xp.copy(self.fn(block, *rowwise))

    def merge(self, a: Array, b: Array) -> Array:
        """Add, in the type of the results."""
        return xp.add_(a, b)

    def add(self, total: Array, start: int, block: Array, *rowwise: Any) -> Array:
        """Add without a copy."""
        return xp.add_(total, self.fn(block, *rowwise))


@dataclass(frozen=True, eq=False)
class Shifted(BlockReduction[Result]):
    """Reduction of a part of the rows, with row numbers that start at the first of all rows.

    Parameters
    ----------
    fn : BlockReduction
    first : int
        Number of the first row of the part among all rows.
    """

    fn: BlockReduction[Result]
    first: int

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Result:
        """Reduce one block, with the number of its first row among all rows."""
        return self.fn(self.first + start, block, *rowwise)

    def merge(self, a: Result, b: Result) -> Result:
        """Merge as `fn` does."""
        return self.fn.merge(a, b)

    def add(self, total: Result, start: int, block: Array, *rowwise: Any) -> Result:
        """Add one block, with the number of its first row among all rows."""
        return self.fn.add(total, self.first + start, block, *rowwise)


@dataclass(frozen=True)
class RowIndex:
    """Row numbers first, ..., first + n - 1, which are sliced like an array but never stored.

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
    def dtype(self) -> xp.DType:
        """The type of whole numbers."""
        return xp.int64

    def double(self) -> RowIndex:
        """Return self, because row numbers are integers."""
        return self

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def __getitem__(self, part: slice, /) -> RowIndex:
        """Return the numbers of consecutive rows."""
        start, stop, _ = part.indices(self.n)
        return RowIndex(stop - start, self.first + start)
