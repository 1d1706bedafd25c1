"""ProblemSize: what a solver must know of a problem to say what it will need."""

from __future__ import annotations

from dataclasses import dataclass

BLOCK_BYTES = 1 << 30
"""Memory for blocks of rows unless it is limited."""

PANEL_ROWS = 1024
"""Rows of a panel of a factorisation on a device."""


@dataclass(frozen=True)
class ProblemSize:
    """The sizes of a problem, before anything of it is computed.

    Attributes
    ----------
    n, d, t, m : int
        Rows, features, targets, centers.
    itemsize : int
        Bytes per number of the rows.
    full : bool
        Whether all rows are centers.
    pairs_once : bool
        Whether rows are dense with random access: a product of all rows with all then evaluates
        each pair once, as long as they fit into memory.
    dense : bool
        Whether rows are dense.
    targets_here : bool
        Whether there is a vector of n numbers for each target: not where they stay with remote
        rows.
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
        """Bytes of the vectors of an iterative solver: some of m numbers, and of n, per target."""
        of_rows = 8 * self.n if self.full else self.n * self.targets_here
        return 8 * self.t * (6 * self.m + of_rows)

    @property
    def center_bytes(self) -> int:
        """Bytes of the centers, if they are not rows of the data."""
        return 0 if self.full else self.m * self.d * self.itemsize
