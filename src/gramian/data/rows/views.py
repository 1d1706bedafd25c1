"""Row sources of some rows, or of some columns, of another row source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.checks import it_has, join_words
from ..._messages.errors import SETTING_FORM, ParameterError, TextError
from .base import RowSource, check_index, check_local, check_size, slices
from .transform import Blockwise


class Select(Blockwise):
    """Some columns of a dense source, in the order given.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    columns : sequence of int or str, of length k
        Numbers in ``0 .. d-1`` or feature names. Without feature names, ``"3"`` means 3.
    """

    def __init__(self, rows: RowSource, columns: Sequence[int | str]) -> None:
        super().__init__(rows)
        if rows.sparse:
            raise ValueError("columns of sparse rows are chosen in SciPy: matrix[:, columns]")
        numbers = column_numbers(columns, rows.feature_names, rows.shape[1])
        self.shape = (rows.shape[0], len(numbers))
        if rows.feature_names is not None:
            self.feature_names = tuple(rows.feature_names[j] for j in numbers)
        self._numbers = np.array(numbers, np.int64)

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b k"]:
        return xp.take_columns(block, xp.to_device(self._numbers, xp.device_of(block)))


def select(rows: RowSource, columns: Sequence[int | str]) -> RowSource:
    """Return some columns of local or remote rows; see `Select`."""
    return rows.map_rows(partial(Select, columns=tuple(columns)))


def column_numbers(
    columns: Sequence[int | str], names: tuple[str, ...] | None, d: int
) -> tuple[int, ...]:
    """Translate column names and numbers into distinct numbers in ``0 .. d-1``."""
    # Columns without names go by their numbers as text, as a command line gives them.
    number = {name: j for j, name in enumerate(names or map(str, range(d)))}
    number_or_same = [number.get(c, c) if isinstance(c, str) else c for c in columns]
    missing = [str(c) for c in number_or_same if isinstance(c, str) or not 0 <= c < d]
    if missing:
        # Negative numbers are refused too: Python's count from the end would hide a mistake.
        known_names = (
            it_has(names, missing[0]) if names else f"there are columns 0 .. {d - 1}, without names"
        )
        raise ValueError(f"there is no column {join_words(missing)}; {known_names}")
    numbers = tuple(c for c in number_or_same if not isinstance(c, str))
    if not numbers:
        raise TextError("found 0 columns in {columns}, but at least one feature is needed")
    if len(set(numbers)) < len(numbers):
        raise ParameterError("columns", list(columns), "names a column twice", form=SETTING_FORM)
    return numbers


class _Selection(RowSource):
    """Base of `Subset` and `Complement`: some rows of another source."""

    def __init__(self, rows: RowSource, index: Int[Array, " k"], n: int) -> None:
        self.rows = rows
        self.index = xp.cast(xp.to_host(index), xp.int64)
        self._resemble(rows, n)

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        if self.random_access:
            # Each block is gathered by itself.
            for part in slices(self.shape[0], size):
                yield part, self.take(np.arange(part.start, part.stop))
            return
        check_size(size)
        stop = 0
        for part, block in self.rows.blocks(size):
            positions = self._positions_in(part)
            start, stop = stop, stop + len(positions)
            if stop > start:
                yield slice(start, stop), block[positions]

    @abstractmethod
    def _positions_in(self, part: slice) -> Int[Array, " b"]:
        """Return the positions of the selected rows within a block of a sequential source."""


class Subset(_Selection):
    """Some rows of another source, in the order given.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    index : ndarray of shape (k,)
        Row indices in ``0 .. n-1``, in any order, with repeats. A pass over a sequential source
        filters the source, and needs strictly increasing indices (`take` does not).

    Notes
    -----
    Cost of a pass: a copy of the k rows; for a sequential source a full pass over ``rows``, whose
    blocks shrink by the share of rows that are left out.
    """

    def __init__(self, rows: RowSource, index: Int[Array, " k"]) -> None:
        if len(index) == 0:
            raise ValueError("index must have at least one row number, got none")
        check_index(index, rows.shape[0])
        check_local(rows, "Subset")
        super().__init__(rows, index, len(index))

    def _positions_in(self, part: slice) -> Int[Array, " b"]:
        if part.start == 0:
            # Checked only for passes: `take` allows any order.
            check_increasing(self.rows, self.index)
        start, stop = np.searchsorted(self.index, [part.start, part.stop]).tolist()
        return self.index[start:stop] - part.start

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        return self.rows.take(self.index[xp.cast(xp.to_host(index), xp.int64)])


def subset(rows: RowSource, index: Int[Array, " k"]) -> RowSource:
    """Return some local or remote rows; for remote rows `index` must increase. See `Subset`."""
    check_index(index, rows.shape[0])
    return rows.map_rows(_pick_rows, xp.cast(xp.to_host(index), xp.int64))


def _pick_rows(rows: RowSource, index: Array) -> RowSource | None:
    # A part without any of these rows is left out: a row source has at least one row.
    return Subset(rows, index) if len(index) else None


def check_increasing(rows: RowSource, index: Array) -> None:
    """Raise ValueError for row numbers that do not increase, in which order a pass needs them."""
    if bool((xp.diff(index) <= 0).any()):
        raise ValueError(
            f"{rows!r} is read from front to back, so row numbers of a subset must be strictly "
            "increasing; sort them (and the targets in the same way), or convert the data once "
            "with `gramian convert data.parquet data.npy`"
        )


class Complement(_Selection):
    """The rows of another source that are not held out, in order.

    The complement of ``Subset(rows, index)``, for training rows next to validation rows: it stores
    the numbers of the omitted rows, not of the millions of other rows.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    index : ndarray of shape (k,)
        Indices of the rows left out, strictly increasing in ``0 .. n-1``, with k < n.

    Notes
    -----
    Cost of a pass: one pass over ``rows`` and a copy of the remaining rows. Memory: k numbers.
    """

    def __init__(self, rows: RowSource, index: Int[Array, " k"]) -> None:
        check_local(rows, "Complement")
        check_index(index, rows.shape[0])
        if bool((xp.diff(index) <= 0).any()):
            raise ValueError(
                "the numbers of rows to leave out must be strictly increasing; sort them"
            )
        if len(index) >= rows.shape[0]:
            raise ValueError(
                f"leaving out {len(index)} of {rows.shape[0]} rows leaves none; leave out fewer"
            )
        super().__init__(rows, index, rows.shape[0] - len(index))

    def _positions_in(self, part: slice) -> Int[Array, " b"]:
        ends = np.searchsorted(self.index, [part.start, part.stop]).tolist()
        # A mask per block: a mask of all rows would take a byte for each.
        stays = np.ones(part.stop - part.start, bool)
        stays[self.index[slice(*ends)] - part.start] = False
        return np.flatnonzero(stays)

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        index = xp.cast(xp.to_host(index), xp.int64)
        # Example: without rows 1 and 2 of 5, gaps = [1, 1], and rows 0, 1, 2 are rows 0, 3, 4.
        # Left-out row j comes after index[j] - j rows that stay; before row p, if those are <= p.
        gaps = self.index - np.arange(len(self.index))
        return self.rows.take(index + np.searchsorted(gaps, index, side="right"))


def complement(rows: RowSource, index: Int[Array, " k"]) -> RowSource:
    """Return the local or remote rows that are not held out; see `Complement`."""
    return rows.map_rows(_left_rows, xp.cast(xp.to_host(index), xp.int64))


def _left_rows(rows: RowSource, index: Array) -> RowSource | None:
    # A part of which no row is left is left out.
    return None if len(index) == rows.shape[0] else Complement(rows, index)
