"""Checks of rows for columns that equal the target, which a model would learn to copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import TextError
from .remote.columns import RemoteColumns
from .rows.base import RowSource, default_block_size


class CopyCheck:
    """Search over blocks for columns that equal a target in every row.

    Parameters
    ----------
    names : tuple of str, optional
        Feature names for the message.
    """

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self._names = names
        self._pairs: np.ndarray | None = None  # of a column and a target that were equal so far

    def add(self, block: Float[Array, "b d"], targets: Float[Array, "b t"]) -> bool:
        """Compare one block.

        Parameters
        ----------
        block : Array of shape (b, d)
            Dense rows.
        targets : ndarray of shape (b, t)
            Targets as `comparable` returns them.

        Returns
        -------
        bool
            False if no column can equal a target any more: further blocks need no check.
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


def comparable(targets: np.ndarray, dtype: xp.DType) -> Float[Array, "n t"]:
    """Return the targets, (n,) or (n, t), that a column of rows of this type can equal.

    Such targets are numbers and not constant; they are compared in the narrower type of
    rows and targets.
    """
    # A copy that was stored in float32 is equal only after the target is rounded, too.
    narrow = dtype == xp.float32 or targets.dtype == np.float32
    columns = targets.reshape(len(targets), -1)
    if columns.dtype.kind not in "biuf":
        # Texts equal no number.
        columns = columns[:, :0]
    # A constant target would equal any constant column, which copies nothing.
    varies = (columns != columns[:1]).any(axis=0)
    kind = np.float32 if narrow else np.float64
    return np.ascontiguousarray(columns[:, varies], dtype=kind)


def beside(rows: RowSource, targets: np.ndarray | RemoteColumns | None) -> list[Any]:
    """Return the targets of rows that are checked, if they can be copied."""
    if targets is None or rows.sparse:
        return []
    if isinstance(targets, RemoteColumns):
        return comparable_remote(targets, rows.dtype)
    return [comparable(targets, rows.dtype)]


def comparable_remote(targets: RemoteColumns, dtype: xp.DType) -> list[RemoteColumns]:
    """Return `comparable` of remote numbers, which stay remote; no target if they are texts."""
    varies = np.flatnonzero(targets.facts.largest > targets.facts.smallest)
    if targets.labels is not None or len(varies) == 0:
        return []
    narrow = xp.float32 in (dtype, targets.dtype)
    varying = targets.reshape(flat=False)[:, varies]
    return [xp.cast(varying, xp.float32 if narrow else xp.float64)]


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
    check, y = CopyCheck(names), comparable(targets, rows.dtype)
    for part, block in rows.blocks(default_block_size(rows)):
        # Most tables are settled by the first block.
        if not check.add(block, y[part]):
            return
    check.finish()


def column_name(column: int, names: tuple[str, ...] | None) -> str:
    """Return the name of a column for a message, or else its number."""
    return f"column {column}" if names is None else f"column '{names[column]}'"
