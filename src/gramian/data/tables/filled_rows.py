"""`FilledRows`: rows of numbers whose gaps are filled with the medians of training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..checks import FiniteCheck
from ..rows.base import RowSource
from ..rows.transform import Blockwise
from .new_values import NewValues


class FilledRows(Blockwise):
    """Rows whose gaps are filled as the rows go by, and reported once.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense; NaN for gaps.
    medians : Tensor of shape (d,)
        In float64.
    names : sequence of d str
    where : str
        Subject of errors and of the warning.

    Notes
    -----
    An infinite number raises ValueError.
    """

    def __init__(
        self, rows: RowSource, medians: Float[Tensor, " d"], names: Sequence[str], where: str
    ) -> None:
        super().__init__(rows)
        self._medians, self._names, self._where = medians.to(self.dtype), tuple(names), where
        self._is_reported = False

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        new_values = NewValues(self._where)
        for part, block in self.rows.blocks(size):
            yield part, self._fill(block, part.start, new_values)
        if not self._is_reported:
            self._is_reported = True
            new_values.report()

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """Fill gaps; see `Blockwise.change`."""
        return self._fill(block, 0, None)

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        return self.change(self.rows.take(index))

    def _fill(self, block: Tensor, start: int, new_values: NewValues | None) -> Tensor:
        check = FiniteCheck(self._names)
        if check.add(start, block):
            return block
        is_gap = block.isnan()
        if check.infinities:
            infinite = FiniteCheck(self._names)
            infinite.add(start, block.masked_fill(is_gap, 0.0))
            infinite.finish(self._where)
        if new_values is not None:
            for j in is_gap.any(dim=0).nonzero()[:, 0].tolist():
                new_values.add_gaps(self._names[j], is_gap[:, j].numpy())
        return torch.where(is_gap, self._medians, block)
