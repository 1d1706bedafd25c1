"""Checks of rows for columns that equal the target, which a model would learn to copy."""

from __future__ import annotations

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import TextError
from .rows.base import RowSource, default_block_size
from .rows.columns import RowNumbers, as_columns


class CopyCheck:
    """Search over blocks for columns that equal a target in every row.

    - `names`: feature names for the message.
    """

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self._names = names
        self._pairs: np.ndarray | None = None  # of a column and a target that were equal so far

    def add(self, block: Float[Array, "b d"], targets: Float[Array, "b t"]) -> bool:
        """Compare one block; return False if no column can equal a target any more.

        - `block`, Array of shape (b, d): dense rows.
        - `targets`, ndarray of shape (b, t): targets as `comparable` returns them.
        """
        y = targets
        if self._pairs is None:
            # Columns nearly always differ from the targets in the first row: comparing it leaves
            # few pairs, where a comparison of all d t pairs would read the block t times.
            first = xp.cast(xp.to_host(block[0]), y.dtype)
            self._pairs = np.argwhere(first[:, None] == y[0])
        same = [
            bool((xp.cast(xp.to_host(block[:, j]), y.dtype) == y[:, k]).all())
            for j, k in self._pairs
        ]
        self._pairs = self._pairs[np.array(same, dtype=bool)]
        return len(self._pairs) > 0

    def merge(self, other: CopyCheck) -> None:
        """Keep the pairs that were equal in the rows of another check as well."""
        if self._pairs is None or other._pairs is None:
            # A check without blocks leaves the pairs of the other one as they are.
            self._pairs = other._pairs if self._pairs is None else self._pairs
        else:
            same = (self._pairs[:, None] == other._pairs).all(axis=2).any(axis=1)
            self._pairs = self._pairs[same]

    def finish(self, what: str = "X") -> None:
        """Raise a ValueError that names the first such column, if there is one."""
        if self._pairs is None or len(self._pairs) == 0:
            return
        name = column_name(int(self._pairs[0, 0]), self._names)
        raise TextError(
            "{} contains the target: {} equals it in every row, so that a model would learn to "
            "copy it; leave that column out with {columns=[...] of gramian.data.as_rows}; an "
            "array without names is taken as it is",
            what,
            name,
        )


def comparable(rows: RowSource, targets: RowNumbers | None) -> list[RowNumbers]:
    """Return the targets that a column of dense rows can equal, as one matrix; or an empty list.

    Such targets are numbers and not constant; they are compared in the narrower type of
    rows and targets.
    """
    if targets is None or rows.sparse:
        return []
    columns = as_columns(targets)
    if columns.kind.kind not in "biuf":
        # Texts equal no number.
        return []
    # A constant target would equal any constant column, which copies nothing.
    smallest, largest = columns.ends
    varying = np.flatnonzero(largest > smallest)
    # A copy that was stored in float32 is equal only after the target is rounded, too.
    narrow = xp.float32 in (rows.dtype, columns.kind)
    dtype = xp.float32 if narrow else xp.float64
    return [columns.select(varying, dtype)] if len(varying) else []


def check_copies(rows: RowSource, targets: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise ValueError for columns that equal a target.

    Reading stops once each column has differed from the targets.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense and finite.
    targets : ndarray of shape (n,) or (n, t)
    names : tuple of str of length d

    Raises
    ------
    ValueError
        If a column equals a target; the message names the column.
    """
    check = CopyCheck(names)
    for y in comparable(rows, targets):
        for part, block in rows.blocks(default_block_size(rows)):
            # Most tables are settled by the first block.
            if not check.add(block, y[part]):
                break
    check.finish()


def column_name(column: int, names: tuple[str, ...] | None) -> str:
    """Return the name of a column for a message, or else its number."""
    return f"column {column}" if names is None else f"column '{names[column]}'"
