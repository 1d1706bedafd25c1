"""Targets and weights that may be dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rows.columns import as_columns
from .as_rows import is_collection


def align_collection(rows: Any, y: Any) -> Any:
    """Turn a dask collection of targets or weights into columns aligned with rows or a table.

    Local rows get the values in memory. Values other than collections stay unchanged.
    """
    if not rows.remote:
        return gather_collection(y)
    if is_collection(y):
        # Dask is optional: the import waits for a collection, which proves that it is installed.
        from ..dask import remote_columns

        y = remote_columns(y, rows)
    return y


def gather_collection(y: Any) -> Any:
    """Load targets or weights into memory if they are on a cluster."""
    if is_collection(y):
        # Imported only for a collection, as above.
        from ..dask import remote_columns

        y = remote_columns(y)
    return y if as_columns(y).fits() else np.asarray(y)
