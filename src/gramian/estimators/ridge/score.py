"""score_there: the score of an estimator for rows on other machines, of which sums come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier

from ...data import RemoteColumns
from ...data.base import comfortable_size
from ...model.agreement import Confusion, Errors, Sums
from ...model.predicted import predicted
from .. import dask_collections, validation
from ..types import RowsLike, Weights


def score_there(estimator: Any, X: RowsLike, y: Any, sample_weight: Weights) -> float:
    """Return R2, or the share of rows whose label is right, in one pass where the rows are.

    Parameters
    ----------
    estimator : KernelRidge or KernelRidgeClassifier
        Fitted.
    X : as in its `fit`
        On other machines.
    y : RemoteColumns, dask collection or array-like
    sample_weight : the same, optional
    """
    rows = validation.new_rows(estimator, X)
    engine = estimator._engine_of_prediction(rows)
    settings = {"engine": engine, "memory_bytes": estimator._limit() or 1 << 30}
    values = predicted(rows, estimator.model_, **settings)
    y = dask_collections.numbers_beside(rows, y)
    weights = validation.weight_tensor(
        dask_collections.numbers_beside(rows, sample_weight), len(rows)
    )
    beside = [] if weights is None else [weights]
    size = comfortable_size(rows)
    if is_classifier(estimator):
        classes = estimator.classes_
        truth = class_numbers(y, classes)
        found = values.fold(Confusion(len(classes)), truth, *beside, size=size)
        return float(found.diagonal().sum() / found.sum())
    sums: Sums = values.fold(Errors(), numbers(y), *beside, size=size)
    return sums.r2


def numbers(y: Any) -> Any:
    """Return a numeric truth as it goes with rows."""
    if isinstance(y, RemoteColumns):
        return y
    return torch.from_numpy(np.ascontiguousarray(y, dtype=np.float64))


def class_numbers(y: Any, classes: np.ndarray) -> Any:
    """Return the number of the class of each row, -1 of a label that is none, as it goes with rows.

    Parameters
    ----------
    y : RemoteColumns or array-like of shape (n,)
    classes : ndarray of shape (k,)
        Sorted.
    """
    if not isinstance(y, RemoteColumns):
        y = np.asarray(y)
        place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        return torch.from_numpy(np.where(classes[place] == y, place, -1))
    table = torch.arange(len(classes), dtype=torch.float64)[:, None]
    return y.looked_up(classes, table, unknown=-1.0)
