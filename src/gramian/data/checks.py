"""Checks of rows and targets: finite numbers, and magnitudes that kernels can square."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .copies import CopyCheck, column_name, comparable
from .rows.base import RowSource, default_block_size, slices
from .rows.columns import RowNumbers, as_columns
from .rows.reduce import BlockReduction


@dataclass
class FiniteCheck:
    """Count of NaN and infinite entries over blocks, with the position of the first such entry.

    - `names`: feature names for the message.
    - `copies`: check of the same blocks for columns that equal a target.
    """

    names: tuple[str, ...] | None = None
    copies: CopyCheck | None = None
    nans: int = 0
    infinities: int = 0
    first: tuple[int, int, float] | None = field(default=None)

    def add(self, start: int, block: Array, targets: Float[Array, "b t"] | None = None) -> bool:
        """Check one block; return True if all of it is finite.

        - `start`: row number of the block's first row.
        - `block`, Array of shape (b, d): dense or sparse.
        - `targets`, ndarray of shape (b, t): columns that a dense block must not contain, as
          `comparable` returns them.
        """
        if targets is not None:
            self.copies = self.copies or CopyCheck(self.names)
            # Before the check of finite numbers, which returns early.
            self.copies.add(block, targets)
        values = xp.entries(block) if xp.is_sparse(block) else block
        if _is_finite(values):
            return True
        bad = ~xp.isfinite(values)
        nans = int(xp.isnan(values).sum())
        self.nans += nans
        self.infinities += int(bad.sum()) - nans
        if self.first is None:
            row, column = _position(block, bad)
            self.first = (start + row, column, float(values[bad][0]))
        return False

    def merge(self, other: FiniteCheck) -> FiniteCheck:
        """Add the counts of later rows, and return this check."""
        self.nans += other.nans
        self.infinities += other.infinities
        # The other check is of later rows: its first entry counts only if this one has none.
        self.first = other.first if self.first is None else self.first
        if self.copies is not None and other.copies is not None:
            self.copies.merge(other.copies)
        return self

    def finish(self, what: str = "X") -> None:
        """Raise a ValueError that names the first bad entry or a copy, if there was any."""
        if self.first is None:
            return None if self.copies is None else self.copies.finish(what)
        row, column, value = self.first
        counts = [f"{k} {word}" for k, word in ((self.nans, "NaN"), (self.infinities, "inf")) if k]
        remedy = "fill the gaps, or fit to a table with named columns, whose gaps are filled"
        raise ValueError(
            f"{what} contains {' and '.join(counts)} (NaN stands for missing values, too); "
            f"the first is {value} in row {row}, {column_name(column, self.names)}; "
            f"drop these rows{', ' + remedy if self.nans else ''}"
        )


def _is_finite(values: Array) -> bool:
    """Return whether all numbers are finite, by one read with masks that stay in the cache."""
    if xp.is_tensor(values):
        return bool(values.isfinite().all())
    flat = values.reshape(-1)
    return all(bool(np.isfinite(flat[part]).all()) for part in slices(len(flat), 1 << 15))


def _position(block: Array, bad: Array) -> tuple[int, int]:
    if not xp.is_sparse(block):
        row, column = (int(i[0]) for i in xp.nonzero(bad))
        return row, column
    # `bad` is of the stored entries: the row of an entry is found by the row starts.
    entry = int(xp.flatnonzero(bad)[0])
    # Of several equal starts all but the last belong to empty rows: hence `right`.
    row = int(xp.find_insertions(xp.indptr(block), xp.array(entry, xp.int64), right=True)) - 1
    return row, int(xp.indices(block)[entry])


def check_finite(rows: RowSource, what: str = "X", targets: RowNumbers | None = None) -> None:
    """Raise ValueError for NaN and infinite entries, and for columns that equal a target.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    what : str
        Subject of the error message.
    targets : ndarray of shape (n,) or (n, t), optional
        Columns that dense rows must not contain; no check if None.

    Raises
    ------
    ValueError
        Names the first bad row and column, and how many entries are bad; or the column that
        equals a target in every row.

    Notes
    -----
    Cost: one pass over the data, about a million numbers at a time.
    """
    looked = _Looked(rows.feature_names)
    check = rows.fold(looked, *comparable(rows, targets), size=default_block_size(rows))
    check.finish(what)


@dataclass(frozen=True)
class _Looked(BlockReduction[FiniteCheck]):
    """Reduction by which `check_finite` checks blocks of rows, and targets for copies."""

    names: tuple[str, ...] | None

    def __call__(self, start: int, block: Array, *targets: Any) -> FiniteCheck:
        return self.add(FiniteCheck(self.names), start, block, *targets)

    def merge(self, a: FiniteCheck, b: FiniteCheck) -> FiniteCheck:
        return a.merge(b)

    def add(self, total: FiniteCheck, start: int, block: Array, *targets: Any) -> FiniteCheck:
        total.add(start, block, *targets)
        return total


LARGEST_TARGET = {xp.float32: 1e25, xp.float64: 1e140}
"""Targets up to this size, and down to its inverse, leave room for their squares in float64, and
for coefficients, which are up to 1 / (n penalty) times as large, in the type of the rows."""


def check_magnitude(targets: RowNumbers, dtype: xp.DType, what: str = "y") -> None:
    """Raise ValueError for targets whose products with the kernel matrix round to 0 or overflow.

    Parameters
    ----------
    targets : ndarray or Columns of shape (n,) or (n, t)
        Numbers. A column of zeros is valid, and so are small numbers next to larger ones.
    dtype : dtype
        Type of the rows, and so of products with the kernel matrix.
    what : str
        Subject of the error message.

    Raises
    ------
    ValueError
        Names the column, its largest number and a divisor.
    """
    largest = LARGEST_TARGET[np.dtype(dtype)]
    smallest, largest_of = as_columns(targets).ends
    sizes = np.maximum(abs(largest_of), abs(smallest)).tolist()
    for column, size in enumerate(sizes):
        # Only the largest number of a column matters: small ones next to it round to 0 harmlessly.
        if size == 0 or 1 / largest <= size <= largest:
            continue
        where = what if len(sizes) == 1 else f"column {column} of {what}"
        does = "overflow" if size > largest else "round to 0"
        raise ValueError(
            f"the largest number of {where} is {size:.2g} in size, and products of such numbers "
            f"{does}: with {xp.dtype_name(dtype)} rows it should be between "
            f"{1 / largest:.0e} and {largest:.0e}; divide {where} by {size:.0e}, and multiply "
            "predictions by it"
        )
