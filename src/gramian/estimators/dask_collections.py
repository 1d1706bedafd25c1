"""Dask collections: targets and weights aligned with remote rows, and lazy predictions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..data import RemoteColumns, RowSource, Table, is_collection
from .types import RowsLike, Values


def numbers_beside(rows: RowSource | Table, y: Any) -> Any:
    """Turn a dask collection of targets or weights into columns aligned with remote rows.

    Local rows get the values in memory. Values other than collections stay unchanged.
    """
    if is_collection(y):
        # Dask is optional: the import waits for a collection, which proves that it is installed.
        from ..data.dask import remote_columns

        y = remote_columns(y, rows) if rows.remote else remote_columns(y)
    return np.asarray(y) if isinstance(y, RemoteColumns) and not rows.remote else y


def lazily(estimator: BaseEstimator, method: str, X: RowsLike) -> Values:
    """Return the lazy result of a method for a dask collection, as a dask array."""
    from ..data.dask.lazy_arrays import lazily

    check_is_fitted(estimator)
    predictions: Values = lazily(copy_to_send(estimator), method, X)
    return predictions


def copy_to_send(estimator: BaseEstimator) -> BaseEstimator:
    """Copy an estimator without training rows and fit history, which predictions do not need."""
    copied = copy.copy(estimator)
    # `copy.copy` leaves out the training rows, see `__getstate__`. The state of the solver and the
    # histories would also travel with each task.
    for name in ("_fitted", "history_", "path_"):
        vars(copied).pop(name, None)
    # Callbacks act only in fits, and may hold files or locks, which do not pickle.
    if hasattr(copied, "callbacks"):
        copied.callbacks = ()
    return copied
