"""Entries: sources of kernel entries that are looked up instead of computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Numbers = slice | Int[Tensor, " k"]
"""Numbers of rows or columns; a slice where they follow each other."""


class Entries(ABC):
    """The entries of the symmetric n x n matrix of a kernel.

    Attributes
    ----------
    count : int
        The number n.
    dtype : torch.dtype
    """

    @property
    @abstractmethod
    def count(self) -> int:
        """The number n."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The type of the entries."""

    @abstractmethod
    def block(self, rows: Int[Tensor, " b"], columns: Int[Tensor, " m"]) -> Float[Tensor, "b m"]:
        """Return the entries of some rows and columns; do not write to them."""

    @abstractmethod
    def diagonal(self, at: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
        """Return the entries k(x_i, x_i)."""


@dataclass(frozen=True, eq=False)
class Given(Entries):
    """Entries of a given matrix, in memory or in a mapped file.

    Attributes
    ----------
    matrix : Tensor of shape (n, n)
    """

    matrix: Float[Tensor, "n n"]

    @property
    def count(self) -> int:
        return len(self.matrix)

    @property
    def dtype(self) -> torch.dtype:
        return self.matrix.dtype

    def block(self, rows: Int[Tensor, " b"], columns: Int[Tensor, " m"]) -> Float[Tensor, "b m"]:
        down, across = _range_or_numbers(rows), _range_or_numbers(columns)
        # A slice is a view, so it comes first: only the rows or columns in a list are copied.
        if isinstance(across, slice):
            return self.matrix[:, across][down]
        if isinstance(down, slice):
            return self.matrix[down][:, across]
        # Two plain lists would select pairs: the column vector makes the index a grid.
        return self.matrix[down[:, None], across]

    def diagonal(self, at: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
        return self.matrix[at, at]


def _range_or_numbers(numbers: Int[Tensor, " k"]) -> Numbers:
    """Return consecutive numbers as a slice, which selects without a copy."""
    start, count = int(numbers[0]), len(numbers)
    if torch.equal(numbers, torch.arange(start, start + count)):
        return slice(start, start + count)
    return numbers
