"""The abstract row source: two verbs to implement, two passes over the data for free."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

BlockFn = Callable[..., Tensor]


class RowSource(ABC):
    """Rows of a feature matrix, wherever they live.

    A subclass sets `shape` and `dtype` and implements `blocks` and `take`; it may override
    `map` and `sum` when it can do better than one block after the other.

    Attributes
    ----------
    shape : tuple of int
        Rows and features ``(n, d)``, both at least one.
    dtype : torch.dtype
        ``torch.float32`` or ``torch.float64``: the type of everything `blocks` and `take` give.
    feature_names : tuple of str of length d, or None
        Names of the features where the source knows them.
    random_access : bool
        False if `take` costs a pass over the data.
    sparse : bool
        True if blocks have layout ``torch.sparse_csr``.

    Notes
    -----
    A block may be a view of the user's array: **never write to a block**. Dense blocks are
    C-contiguous. A source does not change while it is read, so passes may be repeated.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    feature_names: tuple[str, ...] | None = None
    random_access: bool = True
    sparse: bool = False

    @abstractmethod
    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over all rows in order.

        Parameters
        ----------
        size : int
            Upper bound of the number of rows in one block.

        Yields
        ------
        rows : slice
            ``slice(start, stop)``; together the slices tile ``0 .. n`` in order.
        block : Tensor of shape (stop - start, d)
            Not to be written to.
        """

    @abstractmethod
    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows, in any order and with repeats.

        Parameters
        ----------
        index : Tensor of shape (k,)
            Row numbers in ``0 .. n-1``.

        Returns
        -------
        Tensor of shape (k, d)
            A new tensor.
        """

    def map(self, fn: BlockFn, *rowwise: Tensor, size: int) -> Tensor:
        """Concatenate ``fn(block, *slices)`` over the blocks.

        Parameters
        ----------
        fn : callable
            Gives one row of output per row of the block. It may reuse its output buffer.
        *rowwise : Tensor of shape (n, ...)
            Sliced along with the blocks.
        size : int
            Upper bound of the number of rows in one block.

        Returns
        -------
        Tensor of shape (n, ...)
            Type, device and trailing shape are those of the first result.
        """
        out: Tensor | None = None
        for rows, block in self.blocks(size):
            part = fn(block, *(r[rows] for r in rowwise))
            if out is None:
                out = part.new_empty((self.shape[0], *part.shape[1:]))
            out[rows] = part
        return _some(out)

    def sum(self, fn: BlockFn, *rowwise: Tensor, size: int) -> Tensor:
        """Add up ``fn(block, *slices)`` over the blocks.

        Parameters are those of `map`; ``fn`` gives tensors of one shape. The sum is taken in the
        type that ``fn`` returns, in the order of the rows.

        Returns
        -------
        Tensor
            A new tensor, of the shape and type of ``fn``'s results.
        """
        total: Tensor | None = None
        for rows, block in self.blocks(size):
            part = fn(block, *(r[rows] for r in rowwise))
            # a copy, because fn may hand out the same buffer again
            total = part.clone() if total is None else total.add_(part)
        return _some(total)

    def __len__(self) -> int:
        """Give the number of rows."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Show class, shape and type."""
        n, d = self.shape
        return f"{type(self).__name__}({n} x {d}, {str(self.dtype).removeprefix('torch.')})"


def slices(n: int, size: int) -> Iterator[slice]:
    """Cut ``0 .. n`` into consecutive slices of at most ``size``."""
    check_size(size)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def check_size(size: int) -> None:
    """Refuse a block size below one."""
    if size < 1:
        raise ValueError(f"a block needs at least one row, got size={size}")


def check_index(index: Tensor, n: int) -> None:
    """Refuse row numbers outside ``0 .. n-1``."""
    if index.numel() == 0:
        return
    low, high = (int(v) for v in torch.aminmax(index))
    if low < 0 or high >= n:
        raise IndexError(f"row numbers must lie in 0 .. {n - 1}, got some between {low} and {high}")


def comfortable_size(rows: RowSource, numbers: int = 1 << 20) -> int:
    """Give a block size of about a million numbers, for passes that nobody tunes."""
    return max(1, numbers // rows.shape[1])


def _some(result: Tensor | None) -> Tensor:
    if result is None:
        raise ValueError("this row source gave no blocks, so there is nothing to combine")
    return result
