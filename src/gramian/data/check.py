"""NaN and infinity: found in one pass, reported by row and column."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .base import RowSource, comfortable_size


@dataclass
class FiniteCheck:
    """Counts NaN and infinite entries while blocks go by, and remembers the first of them.

    Parameters
    ----------
    names : tuple of str, optional
        Feature names for the message.
    """

    names: tuple[str, ...] | None = None
    nans: int = 0
    infinities: int = 0
    first: tuple[int, int, float] | None = field(default=None)

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
        """Raise a ValueError that names the first bad entry, if there was any."""
        if self.first is None:
            return
        row, column, value = self.first
        counts = [f"{k} {word}" for k, word in ((self.nans, "NaN"), (self.infinities, "inf")) if k]
        name = f"column {column}" if self.names is None else f"column '{self.names[column]}'"
        raise ValueError(
            f"{what} contains {' and '.join(counts)} (NaN stands for missing values, too); "
            f"the first is {value} in row {row}, {name}. Drop these rows or fill the gaps."
        )


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


def check_finite(rows: RowSource, what: str = "X") -> None:
    """Refuse NaN and infinite entries.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    what : str
        Subject of the error message.

    Raises
    ------
    ValueError
        Names the first bad row and column, and how many entries are bad.

    Notes
    -----
    Cost: one pass over the data, about a million numbers at a time.
    """
    check = FiniteCheck(rows.feature_names)
    for part, block in rows.blocks(comfortable_size(rows)):
        check.add(part.start, block)
    check.finish(what)
