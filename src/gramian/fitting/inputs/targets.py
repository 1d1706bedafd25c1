"""Targets of a fit as arrays of numbers, or of the codes of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ... import _arrays as xp
from ..._messages.errors import TextError
from ...data import Columns, RowNumbers, RowSource, RowWeights, Targets, as_columns, check_magnitude
from ...model import Label
from .training_data import TrainingData


def training_targets(
    y: ArrayLike | Columns, dtype: xp.DType, products: xp.DType | None = None
) -> Targets:
    """Return `target_tensor`; raise ValueError if products with a target round to 0 or overflow.

    Products have the type of the rows, unless another type is given.
    """
    targets = target_tensor(y, dtype)
    check_magnitude(targets, products or dtype)
    return targets


def target_tensor(y: ArrayLike | Columns, dtype: xp.DType) -> Targets:
    """Return numeric targets of shape (n, t), in float32 if the rows are float32."""
    return as_columns(y).as_targets(dtype)


def classes_of(y: RowNumbers, weights: RowWeights | None = None) -> np.ndarray:
    """Return the labels of the rows of positive weight, sorted.

    Raise ValueError if there is only one label.
    """
    classes, _ = as_columns(y).counts(weights)
    if len(classes) < 2:
        raise TextError(
            "{y} holds one class only, {}, in rows of positive weight; a classifier needs at "
            "least two classes",
            classes.tolist(),
        )
    return classes


def coded_data(
    rows: RowSource,
    y: RowNumbers,
    classes: np.ndarray,
    weights: RowWeights | None = None,
    feature_names: tuple[str, ...] | None = None,
) -> TrainingData:
    """Return training data whose targets are the codes of labels; see `class_codes`."""
    codes = class_codes(y, classes, rows.dtype, weights)
    return TrainingData(rows, codes, weights, labels_of(classes), feature_names)


def as_labels(y: np.ndarray) -> np.ndarray:
    """Return object arrays of texts as NumPy strings, and other arrays unchanged."""
    if y.dtype.kind == "O" and all(isinstance(v, str) for v in y.flat):
        return y.astype(str)
    return y


def labels_of(classes: np.ndarray) -> tuple[Label, ...]:
    """Return the labels of classes as Python's texts, numbers or booleans."""
    # The file of a model holds JSON, which has no scalars of NumPy.
    return tuple(label.item() for label in classes)


def class_codes(
    y: RowNumbers,
    classes: np.ndarray,
    dtype: xp.DType,
    weights: RowWeights | None = None,
) -> Targets:
    """Return the codes of labels: (n, 1) with -1 and 1 for two classes, else (n, k).

    Rows of weight zero may have labels that are not classes: the fit leaves these rows out.
    Raise ValueError if a label is not a class.
    """
    k = len(classes)
    # The codes of a row sum to zero, whatever its class.
    table = xp.full((k, k), -1 / (k - 1), dtype=dtype)
    table[xp.arange(k), xp.arange(k)] = 1.0
    # Two classes share one column. The workers of a cluster get this table, and send no label.
    return as_columns(y).look_up(classes, table[:, 1:] if k == 2 else table, weights=weights)
