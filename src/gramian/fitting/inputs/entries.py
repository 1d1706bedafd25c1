"""Kernel entries that are looked up in a given matrix instead of computed."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float, Int


@dataclass(frozen=True, eq=False)
class Given:
    """Entries of a given matrix, in memory or in a mapped file."""

    matrix: Float[Array, "n n"]

    @property
    def count(self) -> int:
        """Number of rows of the matrix, n."""
        return len(self.matrix)

    @property
    def dtype(self) -> xp.DType:
        """The type of the entries."""
        return self.matrix.dtype

    def block(self, rows: Int[Array, " b"], columns: Int[Array, " m"]) -> Float[Array, "b m"]:
        """Return the entries of some rows and columns; the caller must not write to the result."""
        down, across = _range_or_numbers(rows), _range_or_numbers(columns)
        # A slice is a view, so it comes first: only the rows or columns in a list are copied.
        if isinstance(across, slice):
            return self.matrix[:, across][down]
        if isinstance(down, slice):
            return self.matrix[down][:, across]
        # Two plain lists would select pairs: the column vector makes the index a grid.
        return self.matrix[down[:, None], across]

    def diagonal(self, at: Int[Array, " b"]) -> Float[Array, " b"]:
        """Return the diagonal entries k(x_i, x_i) of some rows."""
        return self.matrix[at, at]


def _range_or_numbers(numbers: Int[Array, " k"]) -> slice | Int[Array, " k"]:
    """Return consecutive indices as a slice, which selects without a copy; others unchanged."""
    start, count = int(numbers[0]), len(numbers)
    if xp.array_equal(numbers, xp.arange(start, start + count)):
        return slice(start, start + count)
    return numbers
