"""Copies of rows in memory, for sources that are slow to read or to map in each pass."""

from __future__ import annotations

from ... import _arrays as xp
from ..._parallel.machine import machine_memory
from ...data import RowSource, as_rows

MEMORY_SHARE = 8
"""Rows are held in memory if they take at most this part of it: one in eight bytes."""

BLOCK_ENTRIES = 1 << 20
"""Entries of a block that is read at once."""


def shared_bytes(limit: int | None) -> int:
    """Return the bytes allowed for rows in memory, a share of the limit or of all memory."""
    return (machine_memory() if limit is None else limit) // MEMORY_SHARE


def in_memory(rows: RowSource, most_bytes: int) -> tuple[RowSource, int]:
    """Copy dense rows to memory if they fit; return the rows, and the bytes that the copy takes.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    most_bytes : int
        Limit; larger rows are returned unchanged, with 0 bytes.
    """
    need = len(rows) * rows.shape[1] * rows.dtype.itemsize
    if need > most_bytes:
        return rows, 0
    # Blocks are copied into one tensor: joining them at the end would take the memory twice.
    out = xp.empty(rows.shape, rows.dtype)
    for part, block in rows.blocks(max(1, BLOCK_ENTRIES // rows.shape[1])):
        out[part] = block
    rows_in_memory = as_rows(out)
    # A tensor has no names of columns.
    rows_in_memory.feature_names = rows.feature_names
    return rows_in_memory, need
