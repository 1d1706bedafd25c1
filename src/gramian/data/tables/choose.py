"""`as_table`: the entrance for everything that has named columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from .base import Table
from .memory import MemoryTable


def is_table(x: Any) -> bool:
    """Return whether something is a table, a path, or a frame: what `as_table` takes.

    Arrays, sparse matrices, tensors and row sources are not.
    """
    if isinstance(x, Table | str | Path | pa.Table | pa.RecordBatch):
        return True
    two = len(getattr(x, "shape", (0, 0))) == 2
    return two and (hasattr(x, "__arrow_c_stream__") or hasattr(x, "columns"))


def as_table(x: Any) -> Table:
    """Return a table of anything that has named columns.

    Parameters
    ----------
    x : Table, path, pyarrow.Table, or frame
        A frame of pandas or polars, a relation of DuckDB, and anything with
        ``__arrow_c_stream__``.

    Returns
    -------
    Table
    """
    if isinstance(x, Table):
        return x
    if isinstance(x, str | Path):
        from ..formats import format_of

        path = Path(x)
        found = format_of(path)
        table = MemoryTable(found.load(path), str(path))
        table.named = found.named
        return table
    if isinstance(x, pa.RecordBatch):
        return MemoryTable(pa.Table.from_batches([x]))
    if isinstance(x, pa.Table):
        return MemoryTable(x)
    if hasattr(x, "__arrow_c_stream__"):
        return MemoryTable(pa.table(x))
    raise TypeError(f"an object of type {type(x).__name__} has no named columns")
