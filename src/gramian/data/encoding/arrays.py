"""Arrays as tables, whose columns are x0, x1, ..."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..tables import MemoryTable, Table


def array_table(array: np.ndarray) -> Table:
    """Return the columns of an array of numbers of shape (n, d), copied."""
    columns = np.ascontiguousarray(array.T)
    names = [f"x{j}" for j in range(len(columns))]
    return MemoryTable(pa.table(list(columns), names=names), "X")
