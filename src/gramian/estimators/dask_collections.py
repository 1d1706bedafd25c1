"""Lazy predictions of Dask collections."""

from __future__ import annotations

import copy

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .types import RowsLike, Values


def lazily(estimator: BaseEstimator, method: str, X: RowsLike) -> Values:
    """Return the lazy result of a method for a dask collection, as a dask array."""
    from ..data.dask.collections import lazily

    check_is_fitted(estimator)
    copied = copy.copy(estimator)
    # `copy.copy` leaves out the training rows, see `__getstate__`. The state of the solver and the
    # histories would also travel with each task.
    for name in ("_fitted", "history_", "path_"):
        vars(copied).pop(name, None)
    # Callbacks act only in fits, and may hold files or locks, which do not pickle.
    if hasattr(copied, "callbacks"):
        copied.callbacks = ()
    predictions: Values = lazily(copied, method, X)
    return predictions
