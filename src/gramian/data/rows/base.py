"""The abstract row source: a subclass implements `blocks` and `take`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.errors import TextError
from .reduce import BlockFn, BlockReduction, Result, Rowwise

NO_ROWS_MESSAGE = "no rows are left; keep at least one"


@dataclass(frozen=True, eq=False)
class Spread:
    """Workers and tasks of a pass over remote rows, for its plan.

    Attributes
    ----------
    workers : int
    slots : int
        Tasks that run at once, all workers together.
    tasks : int
        Tasks of a pass: one for each part, and tasks that merge their results.
    mean : callable
        ``mean(ask)`` calls a function, such as a measurement of speed, on all workers at once, and
        returns the mean of its values. The function supports plain pickle.
    seconds_to_read : callable
        Measures the seconds that one task at a time would take to read all rows.
    """

    workers: int
    slots: int
    tasks: int
    mean: Callable[[Callable[[], float]], float]
    seconds_to_read: Callable[[], float]


class RowSource(ABC):
    """Rows of a feature matrix in memory, in files or on a cluster.

    A subclass sets `shape` and `dtype` and implements `blocks` and `take`; it may override
    `fold` and `map` if it has a faster way than one block after the other. A source of remote rows
    is a `RemoteRows`.

    Attributes
    ----------
    shape : tuple of int
        Rows and features ``(n, d)``, both at least one.
    dtype : dtype
        float32 or float64: the type of blocks and of gathered rows.
    feature_names : tuple of str of length d, or None
        Names of the features, if the source has names.
    random_access : bool
        False if `take` costs a pass over the data.
    sparse : bool
        True if blocks are compressed sparse rows, `CsrArray`.
    entries : int or None
        For sparse rows with too many features to be made dense: numbers in memory per row on
        average, values and positions.
    remote : bool
        True if `blocks` and `take` fetch rows over a network. `fold` and `map` instead send a small
        value to the machines of the rows, and all passes over the rows use these.

    Notes
    -----
    A block may be a view of the user's array: **never write to a block**. Dense blocks are
    C-contiguous. A source does not change while it is read, so passes may be repeated.
    """

    shape: tuple[int, int]
    dtype: xp.DType
    feature_names: tuple[str, ...] | None = None
    random_access: bool = True
    sparse: bool = False
    entries: int | None = None
    remote: bool = False

    @abstractmethod
    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        """Walk over all rows in order.

        Parameters
        ----------
        size : int
            Upper bound of the number of rows in one block.

        Yields
        ------
        rows : slice
            ``slice(start, stop)``; together the slices tile ``0 .. n`` in order.
        block : Array of shape (stop - start, d)
            Rows; do not write to them.
        """

    @abstractmethod
    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        """Gather rows, in any order and with repeats.

        Parameters
        ----------
        index : ndarray of shape (k,)
            Row numbers in ``0 .. n-1``.

        Returns
        -------
        Array of shape (k, d)
            A new array.
        """

    def map(self, fn: BlockFn, *rowwise: Rowwise, size: int) -> Array:
        """Concatenate ``fn(block, *slices)`` over the blocks.

        Parameters
        ----------
        fn : callable
            Returns one row of output per row of the block. It may reuse its output buffer. For
            remote rows it must support plain pickle.
        *rowwise : Rowwise of shape (n, ...)
            Sliced along with the blocks.
        size : int
            Upper bound of the number of rows in one block.

        Returns
        -------
        Array of shape (n, ...)
            Results with the type, device and trailing shape of the first one.
        """
        out: Array | None = None
        for rows, block in self.blocks(size):
            # Copied into the result at once, because the next call may reuse the buffer of this
            # one.
            part = fn(block, *(r[rows] for r in rowwise))
            if out is None:
                # Allocated only now: the first result tells type, device and trailing shape.
                out = xp.empty((self.shape[0], *part.shape[1:]), like=part)
            out[rows] = part
        return some_rows(out)

    def fold(self, fn: BlockReduction[Result], *rowwise: Rowwise, size: int) -> Result:
        """Merge ``fn(start, block, *slices)`` over the blocks, in the order of the rows.

        Parameters
        ----------
        fn : BlockReduction
            Reduction with small results, which remote rows send back.
        *rowwise : Rowwise of shape (n, ...)
            Sliced along with the blocks.
        size : int
            Upper bound of the number of rows in one block.

        Returns
        -------
        T
            The result for all rows. If rows are in parts, the results of each part's blocks are
            merged first.
        """
        total: Result | None = None
        for rows, block in self.blocks(size):
            beside = [r[rows] for r in rowwise]
            if total is None:
                # The first result starts the sum: there is no neutral element for all kinds of
                # results.
                total = fn(rows.start, block, *beside)
            else:
                total = fn.add(total, rows.start, block, *beside)
        return some_rows(total)

    def map_rows(
        self, change: Callable[..., RowSource | None], index: Int[Array, " k"] | None = None
    ) -> RowSource:
        """Return changed rows; remote rows are changed on their machines.

        Parameters
        ----------
        change : callable
            Maps this row source to another one: a class, or a `functools.partial` of a class, which
            supports plain pickle. If rows are in parts it is called with each part, so that a row
            must not depend on other rows. To find the shape and type of the result, it is first
            called with a `RemoteDescription`, which has no rows.
        index : ndarray of shape (k,), optional
            Row numbers, increasing. ``change(rows, index)`` is called with each part and the row
            numbers within the part; it may return None if no row is left.

        Returns
        -------
        RowSource
        """
        changed = change(self) if index is None else change(self, index)
        return some_rows(changed, NO_ROWS_MESSAGE)

    def call_at_rows(self, ask: Callable[[], Result]) -> Result:
        """Call a function on the machines of the rows, such as the choice of an engine.

        Parameters
        ----------
        ask : callable
            A function that supports plain pickle. All machines must return the same value.
        """
        return ask()

    def fits(self, most_rows: float | int = math.inf) -> bool:
        """Return whether all rows may be in the memory of this process, with room for `most_rows`.

        Rows of a cluster never fit: a pass over them is sent to its workers.
        """
        return len(self) <= most_rows

    def spread(self) -> Spread | None:
        """Return the workers and tasks of a pass over remote rows; None for local rows."""
        return None

    @property
    def width(self) -> int:
        """Numbers per row in memory: d, or `entries`."""
        return self.shape[1] if self.entries is None else self.entries

    def _resemble(self, rows: RowSource, n: int | None = None) -> None:
        """Take the attributes of other rows, of which `n` are left."""
        self.shape = (rows.shape[0] if n is None else n, rows.shape[1])
        self.dtype, self.feature_names = rows.dtype, rows.feature_names
        self.random_access, self.sparse = rows.random_access, rows.sparse
        self.entries = rows.entries

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def __repr__(self) -> str:
        """Show class, shape and type."""
        n, d = self.shape
        return f"{type(self).__name__}({n} x {d}, {xp.dtype_name(self.dtype)})"


class RemoteDescription(RowSource):
    """Shape and type of remote rows, without the rows.

    Parameters
    ----------
    rows : RowSource
        The described rows.
    n : int, optional
        Number of rows, if not all.
    """

    def __init__(self, rows: RowSource, n: int | None = None) -> None:
        self._resemble(rows, n)

    def blocks(self, size: int) -> Iterator[tuple[slice, Array]]:
        """Raise an error: a description has no rows."""
        raise RuntimeError("only the shape and type of these remote rows are available, not blocks")

    def take(self, index: Array) -> Array:
        """Raise an error: a description has no rows."""
        raise RuntimeError("only the shape and type of these remote rows are available, not rows")


def slices(n: int, size: int) -> Iterator[slice]:
    """Cut ``0 .. n`` into consecutive slices of at most ``size``."""
    check_size(size)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def check_size(size: int) -> None:
    """Raise ValueError for a block size below one."""
    if size < 1:
        raise ValueError(f"size must be at least one row per block, got {size}")


def check_index(index: Array, n: int) -> None:
    """Raise IndexError for row numbers outside ``0 .. n-1``."""
    if xp.size(index) == 0:
        return
    # One pass without temporaries, where two comparisons would each make an array of booleans.
    low, high = (int(v) for v in xp.aminmax(index))
    if low < 0 or high >= n:
        raise IndexError(f"row numbers must be in 0 .. {n - 1}, got numbers from {low} to {high}")


def default_block_size(rows: RowSource) -> int:
    """Return a block size of about a million numbers, for passes without a tuned size."""
    return max(1, (1 << 20) // rows.width)


def refuse_remote(source: object, message: str, *values: object) -> None:
    """Raise ValueError, in the form of `TextError`, for a source or table of remote rows."""
    # A frame may have a column of this name.
    if getattr(source, "remote", False) is True:
        raise TextError(message, *values)


def check_local(rows: RowSource, what: str) -> None:
    """Raise ValueError for remote rows, whose blocks would be sent over the network."""
    refuse_remote(
        rows,
        "{} needs local rows, but {!r} are on other machines: apply it on these machines with "
        "rows.map_rows(...)",
        what,
        rows,
    )


def first_row(rows: RowSource) -> Float[Array, "1 d"]:
    """Return the first row."""
    # `take` would pass over all of a sequential source.
    return rows.take(np.array([0])) if rows.random_access else next(iter(rows.blocks(1)))[1]


def some_rows(
    result: Result | None,
    message: str = "the row source returned no blocks; it must return at least one",
) -> Result:
    """Return a result of rows; raise ValueError if there are no rows."""
    if result is None:
        raise ValueError(message)
    return result
