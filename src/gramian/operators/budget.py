"""Choice of how many rows to keep in memory and to stream, within a memory limit."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines import LARGEST_BLOCK, Engine

STRIP_BYTES = 1 << 24
"""Bytes of the entries of a strip: more would need memory and save nothing."""

STRIP_COPIES = 6
"""Copies of a strip during a factorisation."""


def strip_rows(m: int, itemsize: int, memory_bytes: int) -> int:
    """Return the number of rows of a strip with m columns.

    A strip has 16 MiB of entries, or m rows if these are more; fewer if memory requires it.
    """
    row = m * itemsize
    # A QR factorisation of fewer rows than columns spends its time on the triangle, not on the
    # rows.
    enough = max(STRIP_BYTES // row, m)
    return max(1, min(LARGEST_BLOCK, enough, memory_bytes // (STRIP_COPIES * row)))


@dataclass(frozen=True)
class Budget:
    """The memory of one product, with t columns of a vector, in units of rows.

    Parameters
    ----------
    engine : Engine
    memory_bytes : int
    d, itemsize : int
        Features of a row, and bytes of a number.
    t : int
        Columns of the vector.
    """

    engine: Engine
    memory_bytes: int
    d: int
    itemsize: int
    t: int

    def holds(self, m: int) -> bool:
        """Return whether m rows fit in memory while others are streamed."""
        return self._held_bytes(m) <= self.memory_bytes

    def holds_beside(self, n: int, m: int) -> bool:
        """Return whether n rows at once fit in memory together with m kept rows."""
        workspace = self.engine.workspace_bytes(m, self.d, self.t, self.itemsize)
        return workspace + n * self._row_bytes() <= self.memory_bytes

    def check(self, m: int) -> None:
        """Raise ValueError if m rows do not fit in memory."""
        if not self.holds(m):
            raise ValueError(
                f"{m:,} rows of {self.d} features need {_megabytes(self._held_bytes(m))}, but "
                f"memory_bytes allows {_megabytes(self.memory_bytes)}; raise the memory limit or "
                "use fewer landmarks"
            )

    def rows_per_pass(self, m: int, *, result: int = 0) -> int:
        """Return the number of rows in a streamed block, with m rows in memory.

        `result` is the number of bytes of a row of the result, if the budget covers the result.
        """
        workspace = self.engine.workspace_bytes(m, self.d, self.t, self.itemsize)
        # The workspace is needed for any number of rows.
        size = (self.memory_bytes - workspace) // (self._row_bytes() + result)
        # Each block of the result is copied to its place, so that larger blocks save nothing.
        if result and self.engine.on_host:
            size = min(size, max(1, STRIP_BYTES // result))
        return int(max(1, min(size, self.engine.largest_block)))

    def resident_rows(self, n: int) -> int:
        """Return the number of rows that fit half of the memory, a power of two up to about n."""
        if not self.holds(1):
            raise ValueError(
                f"one row and the workspace of {self.engine} need "
                f"{_megabytes(self._held_bytes(1))}, but memory_bytes allows "
                f"{_megabytes(self.memory_bytes)}; raise the memory limit, or use an engine with "
                "smaller tiles or fewer threads"
            )
        size = 1
        # Half of the memory is left for the side that is streamed past the held rows.
        while size < n and self._held_bytes(2 * size) <= self.memory_bytes // 2:
            size *= 2
        return size

    def _held_bytes(self, m: int) -> int:
        workspace = self.engine.workspace_bytes(m, self.d, self.t, self.itemsize)
        return workspace + self._row_bytes()

    def _row_bytes(self) -> int:
        return self.engine.row_bytes(self.d, self.t, self.itemsize)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
