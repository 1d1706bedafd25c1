"""Rows that are held in memory, so that what makes them is not done anew in each pass."""

from __future__ import annotations

import torch

from ...data import RowSource, as_rows
from ..plans.machine import machine_memory

MEMORY_SHARE = 8
"""Rows are held in memory if they take no more than one in so many bytes of it."""


def in_memory(rows: RowSource, limit: int | None) -> tuple[RowSource, int]:
    """Return rows, in memory if they are few and not remote, and the bytes that they take there.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense.
    limit : int or None
        The memory, in bytes; that of the machine if None.
    """
    need = len(rows) * rows.shape[1] * rows.dtype.itemsize
    if rows.remote or MEMORY_SHARE * need > (machine_memory() if limit is None else limit):
        return rows, 0
    out = torch.empty(rows.shape, dtype=rows.dtype)
    for part, block in rows.blocks(max(1, (1 << 20) // rows.shape[1])):
        out[part] = block
    held = as_rows(out)
    held.feature_names = rows.feature_names
    return held, need
