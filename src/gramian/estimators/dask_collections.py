"""Dask collections: targets and weights that stay with their rows, and lazy predictions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data import RemoteColumns, RowSource, Table, is_collection
from .types import Values


def numbers_beside(rows: RowSource | Table, y: Any) -> Any:
    """Return targets or weights that are a dask collection as columns that stay with remote rows.

    Of rows that are here they come here, and everything else is given back as it is.
    """
    if not rows.remote:
        return brought_here(y)
    if is_collection(y):
        from ..data.dask import remote_columns

        y = remote_columns(y, rows)
    return y


def brought_here(y: Any) -> Any:
    """Return targets or weights in memory, if they are a dask collection; else as they are."""
    if is_collection(y):
        from ..data.dask import remote_columns

        y = remote_columns(y)
    return np.asarray(y) if isinstance(y, RemoteColumns) else y


def lazily(estimator: Any, method: str, X: Any) -> Values:
    """Return a dask array of what a method gives for a dask collection: nothing is computed yet."""
    from ..data.dask.lazy import lazily

    check_is_fitted(estimator)
    found: Values = lazily(copy_to_send(estimator), method, X)
    return found


def copy_to_send(estimator: Any) -> Any:
    """Return an estimator without what predictions do not need: the rows, and how the fit went."""
    found = copy.copy(estimator)
    for name in ("_fitted", "history_", "path_"):
        vars(found).pop(name, None)
    if hasattr(found, "callbacks"):
        found.callbacks = ()
    return found
