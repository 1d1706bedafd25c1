"""Rows of another source, except those that are held out."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .base import RowSource, check_here, check_index, check_size, slices


class Complement(RowSource):
    """The rows of another source that are not held out, in order.

    The complement of ``Subset(rows, index)``, for training beside validation: it stores what is
    left out and not what stays, which may be millions of row numbers.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    index : Tensor of shape (k,)
        Numbers of the rows left out, strictly increasing in ``0 .. n-1``, with k < n.

    Notes
    -----
    Cost of a pass: one over ``rows`` and a copy of those that stay. Memory: k numbers.
    """

    def __init__(self, rows: RowSource, index: Int[Tensor, " k"]) -> None:
        check_here(rows, "Complement")
        check_index(index, rows.shape[0])
        if bool((index.diff() <= 0).any()):
            raise ValueError("the numbers of the rows to leave out must be strictly increasing")
        if len(index) >= rows.shape[0]:
            raise ValueError(f"no row is left of {rows.shape[0]} if {len(index)} are left out")
        self.rows = rows
        self.index = index.to("cpu", torch.int64)
        self.shape = (rows.shape[0] - len(index), rows.shape[1])
        self.dtype = rows.dtype
        self.feature_names = rows.feature_names
        self.random_access = rows.random_access
        self.sparse, self.entries = rows.sparse, rows.entries

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        check_size(size)
        if not self.random_access:
            yield from self._filtered(size)
            return
        for part in slices(self.shape[0], size):
            yield part, self.take(torch.arange(part.start, part.stop))

    def _filtered(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        stop = 0
        for part, block in self.rows.blocks(size):
            ends = torch.searchsorted(self.index, torch.tensor([part.start, part.stop])).tolist()
            stays = torch.ones(len(block), dtype=torch.bool)
            stays[self.index[slice(*ends)] - part.start] = False
            start, stop = stop, stop + len(block) - (ends[1] - ends[0])
            if stop > start:
                yield slice(start, stop), block[stays]

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        index = index.to("cpu", torch.int64)
        # Left-out row j comes after index[j] - j rows that stay; before row p, if those are <= p.
        gaps = self.index - torch.arange(len(self.index))
        return self.rows.take(index + torch.searchsorted(gaps, index, right=True))


def complement(rows: RowSource, index: Int[Tensor, " k"]) -> RowSource:
    """Return the rows that are not held out, wherever they are; see `Complement`."""
    return (
        rows.each(_left, index.to("cpu", torch.int64)) if rows.remote else Complement(rows, index)
    )


def _left(rows: RowSource, index: Tensor) -> RowSource | None:
    return None if len(index) == rows.shape[0] else Complement(rows, index)
