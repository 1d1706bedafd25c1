"""Sizes of a problem, from which solvers estimate cost and memory."""

from __future__ import annotations

from dataclasses import dataclass

BLOCK_BYTES = 1 << 30
"""Default memory for blocks of rows."""

PANEL_ROWS = 1024
"""Rows of a panel in a factorisation on a device."""


@dataclass(frozen=True)
class ProblemSize:
    """Sizes of a problem, available before any computation.

    Attributes
    ----------
    n, d, t, m : int
        Rows, features, targets, centers.
    itemsize : int
        Bytes per number of a row.
    full : bool
        Whether all rows are centers.
    pairs_once : bool
        Whether rows are dense with random access: a product of all rows with all rows then
        evaluates each pair once, if the rows fit into memory.
    dense : bool
        Whether rows are dense.
    targets_here : bool
        Whether each target has a local vector of n numbers, which is False for remote targets.
    """

    n: int
    d: int
    t: int
    m: int
    itemsize: int
    full: bool
    pairs_once: bool = True
    dense: bool = True
    targets_here: bool = True

    @property
    def vector_bytes(self) -> int:
        """Bytes of the vectors of an iterative solver, with m or n numbers per target each."""
        of_rows = 8 * self.n if self.full else self.n * self.targets_here
        return 8 * self.t * (6 * self.m + of_rows)

    @property
    def center_bytes(self) -> int:
        """Bytes of the centers, if they are not rows of the data."""
        return 0 if self.full else self.m * self.d * self.itemsize
