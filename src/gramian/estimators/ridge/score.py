"""True values for a score, which may be a column of X, and scores over remote rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard, TypeVar

import numpy as np

from ... import _arrays as xp
from ...data import (
    BlockReduction,
    RowNumbers,
    RowSource,
    as_columns,
    as_rows,
    is_collection,
)
from ...data.rows.base import default_block_size
from ...data.sources.as_rows import align_collection, gather_collection
from ...model import Model
from ...model.labels import match_labels
from ...model.mapped_predictions import map_predictions
from ...scoring.forms import ExplainedVariance
from ...scoring.reductions import ClassMeans, RowMeans
from ...scoring.table import METRIC_TABLE
from .. import tables, validation
from ..types import RowsLike, TargetsLike, Weights
from .base import KernelRidgeModel

Result = TypeVar("Result")


def rows_and_truth(
    model: Model, X: RowsLike, y: TargetsLike | None, sample_weight: Weights
) -> tuple[Any, Any, Any]:
    """Return rows, true values and weights, in memory unless the rows are remote.

    - `y`: by default the column of X with the name of the target.
    - `sample_weight`: of shape (n,).
    """
    rows = as_rows(X) if is_collection(X) else X
    if isinstance(sample_weight, str):
        rows = model.table(X)
        sample_weight = tables.column_weights(rows, sample_weight)
    rows, truth = tables.with_truth(model, rows, y)
    if is_streamed(rows):
        return rows, truth, sample_weight
    truth, weights = gather_collection(truth), gather_collection(sample_weight)
    labels: np.ndarray = np.asarray(truth)
    if model.classes is not None and labels.ndim == 1:
        truth = match_labels(labels, model.classes)
    return rows, truth, weights


def is_streamed(X: object) -> TypeGuard[RowSource]:
    """Return whether rows are scored by sums over a pass, because predictions are not gathered."""
    return isinstance(X, RowSource) and not X.fits()


def remote_r2(
    estimator: KernelRidgeModel, X: RowSource, y: TargetsLike, sample_weight: Weights
) -> float:
    """Return R2 over remote rows."""
    reduction = RowMeans((ExplainedVariance(METRIC_TABLE["r2"]),))
    means = _fold_remote(estimator, X, reduction, _numbers, y, sample_weight)
    return reduction.values(means)[0]


def remote_accuracy(
    estimator: KernelRidgeModel, X: RowSource, y: TargetsLike, sample_weight: Weights
) -> float:
    """Return the accuracy over remote rows."""
    classes: np.ndarray = estimator.classes_
    k, encode = len(classes), partial(_class_numbers, classes)
    numbers = xp.concat([xp.arange(k), xp.array([-1], xp.int64)])
    reduction = ClassMeans(RowMeans(()), numbers, estimator.model_.class_map, k, is_ranked=False)
    counts = xp.to_float64(_fold_remote(estimator, X, reduction, encode, y, sample_weight).counts)
    # The additional last row counts labels that are no class: in the total, but never correct.
    return float(xp.diagonal(counts).sum() / counts.sum())


def _fold_remote(
    estimator: KernelRidgeModel,
    X: RowSource,
    fold: BlockReduction[Result],
    encode: Callable[[TargetsLike | RowNumbers], RowNumbers],
    y: TargetsLike,
    sample_weight: Weights,
) -> Result:
    """Compute sums over predictions and true values in one pass over remote rows."""
    rows = validation.new_rows(estimator, X)
    engine, memory = estimator._engine_of_prediction(rows), estimator._block_bytes()
    # A row source, not numbers: the workers compute the predictions in the pass below.
    values = map_predictions(rows, estimator.model_, engine=engine, memory_bytes=memory)
    truth = encode(align_collection(rows, y))
    weights = validation.row_weights(rows, sample_weight, len(rows))
    rowwise = [truth] if weights is None else [truth, weights]
    return values.fold(fold, *rowwise, size=default_block_size(rows))


def _numbers(y: TargetsLike | RowNumbers) -> RowNumbers:
    """Return true values in float64, of shape (n, t)."""
    return as_columns(y).as_targets(xp.float64)


def _class_numbers(classes: np.ndarray, y: TargetsLike | RowNumbers) -> RowNumbers:
    """Return the index of the class of each row; k for a label that is not in `classes`.

    - `classes`: of shape (k,); sorted.
    - `y`: of shape (n,).
    """
    table = xp.arange(len(classes), dtype=xp.float64)[:, None]
    labels = as_columns(y).check_with(np.asarray)
    return as_columns(labels).look_up(classes, table, unknown=float(len(classes)))
