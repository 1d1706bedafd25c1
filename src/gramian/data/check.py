"""Checks of rows for NaN, infinity and copies of the target, in one pass, by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .base import RowSource, comfortable_size

LARGEST_TARGET = {torch.float32: 1e25, torch.float64: 1e140}
"""Targets up to this size, and down to its inverse, leave room for their squares in float64, and
for coefficients, which are up to 1 / (n penalty) times as large, in the type of the rows."""


@dataclass
class FiniteCheck:
    """Counts NaN and infinite entries while blocks go by, and remembers the first of them.

    Parameters
    ----------
    names : tuple of str, optional
        Feature names for the message.
    copies : CopyCheck, optional
        What looks at the same blocks for columns that equal a target.
    """

    names: tuple[str, ...] | None = None
    copies: CopyCheck | None = None
    nans: int = 0
    infinities: int = 0
    first: tuple[int, int, float] | None = field(default=None)

    @classmethod
    def of(cls, rows: RowSource, targets: np.ndarray | None = None) -> FiniteCheck:
        """Return a check for these rows, also for targets among dense ones if they are given."""
        names = rows.feature_names
        if targets is None or rows.sparse:
            return cls(names)
        return cls(names, CopyCheck(targets, rows.dtype, names))

    def add(self, start: int, block: Tensor) -> bool:
        """Look at one block.

        Parameters
        ----------
        start : int
            Row number of the block's first row.
        block : Tensor of shape (b, d)
            Dense or sparse.

        Returns
        -------
        bool
            True if all of the block is finite.
        """
        if self.copies is not None:
            self.copies.add(start, block)
        values = block.values() if block.layout == torch.sparse_csr else block
        if _surely_finite(values):
            return True
        bad = ~torch.isfinite(values)
        if not bool(bad.any()):  # finite numbers, but too large to be added
            return True
        nans = int(torch.isnan(values).sum())
        self.nans += nans
        self.infinities += int(bad.sum()) - nans
        if self.first is None:
            row, column = _position(block, bad)
            self.first = (start + row, column, float(values[bad][0]))
        return False

    def finish(self, what: str = "X") -> None:
        """Raise a ValueError that names the first bad entry or a copy, if there was any."""
        if self.first is None:
            return None if self.copies is None else self.copies.finish(what)
        row, column, value = self.first
        counts = [f"{k} {word}" for k, word in ((self.nans, "NaN"), (self.infinities, "inf")) if k]
        raise ValueError(
            f"{what} contains {' and '.join(counts)} (NaN stands for missing values, too); "
            f"the first is {value} in row {row}, {_named(column, self.names)}; drop these rows or "
            "fill the gaps"
        )


class CopyCheck:
    """Finds columns that equal a target in every row, while blocks go by.

    Parameters
    ----------
    targets : ndarray of shape (n,) or (n, t)
        What is to be predicted. Text, and a target that does not vary, equals no column.
    dtype : torch.dtype
        That of the rows; numbers are compared in the narrower one of both types.
    names : tuple of str, optional
        Feature names for the message.
    """

    def __init__(
        self, targets: np.ndarray, dtype: torch.dtype, names: tuple[str, ...] | None = None
    ) -> None:
        self._names = names
        self._pairs: Tensor | None = None  # of a column and a target that were equal so far
        narrow = dtype == torch.float32 or targets.dtype == np.float32
        self._targets = _varying(targets, np.float32 if narrow else np.float64)

    def add(self, start: int, block: Tensor) -> bool:
        """Look at one block.

        Parameters
        ----------
        start : int
            Row number of the block's first row.
        block : Tensor of shape (b, d)
            Dense.

        Returns
        -------
        bool
            False if no column can be a target any more: further blocks need not be looked at.
        """
        y = self._targets[start : start + len(block)]
        if self._pairs is None:  # nearly always the first row tells them apart
            self._pairs = (block[0].cpu().to(y.dtype)[:, None] == y[0]).nonzero()
        same = [bool((block[:, j].cpu().to(y.dtype) == y[:, k]).all()) for j, k in self._pairs]
        self._pairs = self._pairs[torch.tensor(same, dtype=torch.bool)]
        return len(self._pairs) > 0

    def finish(self, what: str = "X") -> None:
        """Raise a ValueError that names the first such column, if there is one."""
        if self._pairs is None or len(self._pairs) == 0:
            return
        name = _named(int(self._pairs[0, 0]), self._names)
        raise ValueError(
            f"{what} contains the target: {name} equals it in every row, so that a model would "
            "learn to copy it; leave that column out (columns=[...] of gramian.data.as_rows, on "
            "the command line --drop); an array without names is taken as it is"
        )


def _varying(targets: np.ndarray, dtype: Any) -> Float[Tensor, "n t"]:
    """Return the targets that are numbers and not all the same."""
    columns = targets.reshape(len(targets), -1)
    if columns.dtype.kind not in "biuf":
        columns = columns[:, :0]
    varies = (columns != columns[:1]).any(axis=0)
    return torch.from_numpy(np.ascontiguousarray(columns[:, varies], dtype=dtype))


def _named(column: int, names: tuple[str, ...] | None) -> str:
    return f"column {column}" if names is None else f"column '{names[column]}'"


def _surely_finite(values: Tensor) -> bool:
    """Add up: one read without temporaries, in pieces that torch gives to one thread."""
    pieces = values.reshape(-1).split(1 << 15)
    return all(math.isfinite(float(piece.sum(dtype=torch.float64))) for piece in pieces)


def _position(block: Tensor, bad: Tensor) -> tuple[int, int]:
    if block.layout != torch.sparse_csr:
        row, column = torch.nonzero(bad)[0].tolist()
        return row, column
    entry = int(torch.nonzero(bad)[0])
    row = int(torch.searchsorted(block.crow_indices(), torch.tensor(entry), right=True)) - 1
    return row, int(block.col_indices()[entry])


def check_finite(rows: RowSource, what: str = "X", targets: np.ndarray | None = None) -> None:
    """Refuse NaN and infinite entries, and columns that equal a target.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    what : str
        Subject of the error message.
    targets : ndarray of shape (n,) or (n, t), optional
        What dense rows must not contain. Not looked for if None.

    Raises
    ------
    ValueError
        Names the first bad row and column, and how many entries are bad; or the column that
        equals a target in every row.

    Notes
    -----
    Cost: one pass over the data, about a million numbers at a time.
    """
    check = FiniteCheck.of(rows, targets)
    for part, block in rows.blocks(comfortable_size(rows)):
        check.add(part.start, block)
    check.finish(what)


def check_copies(rows: RowSource, targets: np.ndarray, names: tuple[str, ...]) -> None:
    """Refuse columns that equal a target; reads no further than to the row that tells.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense and finite.
    targets : ndarray of shape (n,) or (n, t)
    names : tuple of str of length d

    Raises
    ------
    ValueError
        Names the column.
    """
    check = CopyCheck(targets, rows.dtype, names)
    for part, block in rows.blocks(comfortable_size(rows)):
        if not check.add(part.start, block):
            return
    check.finish()


def check_magnitude(targets: Float[Tensor, "n t"], dtype: torch.dtype, what: str = "y") -> None:
    """Refuse targets so small that products with them round to 0, or so large that they overflow.

    Parameters
    ----------
    targets : Tensor of shape (n, t)
        Numbers. A column of zeros is fine, and so are small numbers beside larger ones.
    dtype : torch.dtype
        That of the rows, and so of products with the kernel matrix.
    what : str
        Subject of the error message.

    Raises
    ------
    ValueError
        Names the column, its largest number and a divisor.
    """
    most = LARGEST_TARGET[dtype]
    for column, size in enumerate(targets.abs().amax(dim=0).tolist()):
        if size == 0 or 1 / most <= size <= most:
            continue
        where = what if targets.shape[1] == 1 else f"column {column} of {what}"
        does = "overflow" if size > most else "round to 0"
        raise ValueError(
            f"the largest number of {where} is {size:.2g} in size, and products of such numbers "
            f"{does}: with {str(dtype).removeprefix('torch.')} rows it should be between "
            f"{1 / most:.0e} and {most:.0e}; divide {where} by {size:.0e}, and multiply "
            "predictions by it"
        )
