"""Targets of a fit as arrays of numbers, or of the codes of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._messages.errors import TextError
from ...data import RemoteColumns, RowSource, RowWeights, Targets, check_magnitude
from ...model import Label
from .training_data import TrainingData


def training_targets(
    y: ArrayLike | RemoteColumns, dtype: xp.DType, products: xp.DType | None = None
) -> Targets:
    """Return `target_tensor`; raise ValueError if products with a target round to 0 or overflow.

    Products have the type of the rows, unless another type is given.
    """
    targets = _remote_targets(y, dtype) if isinstance(y, RemoteColumns) else target_tensor(y, dtype)
    check_magnitude(targets, products or dtype)
    return targets


def _remote_targets(y: RemoteColumns, dtype: xp.DType) -> Targets:
    """Return remote targets with the dtype and shape that `target_tensor` gives to local ones."""
    if y.labels is not None:
        raise ValueError(
            f"the targets are texts, such as {str(y.labels[0])!r}, and KernelRidge predicts "
            "numbers; use KernelRidgeClassifier"
        )
    if not y.facts.finite:
        raise ValueError("y contains NaN or infinity; leave out rows without a target")
    narrow = y.dtype == xp.float32 and dtype == xp.float32
    return xp.cast(y.reshape(flat=False), xp.float32 if narrow else xp.float64).stand_in()


def target_tensor(y: ArrayLike, dtype: xp.DType) -> Float[Array, "n t"]:
    """Return numeric targets as an array of shape (n, t), in float32 if the rows are float32."""
    y = np.asarray(y)
    # float32 only if both are: integers and float64 targets keep their digits.
    narrow = y.dtype == np.float32 and dtype == xp.float32
    y = np.ascontiguousarray(y, dtype=np.float32 if narrow else np.float64)
    return y[:, None] if y.ndim == 1 else y


def classes_of(y: np.ndarray | RemoteColumns, weights: RowWeights | None = None) -> np.ndarray:
    """Return the labels of the rows of positive weight, sorted.

    Raise ValueError if there is only one label.
    """
    if isinstance(y, RemoteColumns):
        classes = y.classes(weights)
    else:
        classes = np.unique(y if weights is None else y[weights > 0])
    if len(classes) < 2:
        raise TextError(
            "{y} holds one class only, {}, in rows of positive weight; a classifier needs at "
            "least two classes",
            classes.tolist(),
        )
    return classes


def coded_data(
    rows: RowSource,
    y: np.ndarray | RemoteColumns,
    classes: np.ndarray,
    weights: RowWeights | None = None,
    feature_names: tuple[str, ...] | None = None,
) -> TrainingData:
    """Return training data whose targets are the codes of labels; see `class_codes`.

    Rows of weight zero may have labels that are not classes.
    """
    if isinstance(y, RemoteColumns):
        # The workers look codes up in this table, so that no label is sent.
        table = class_codes(classes, classes, rows.dtype)
        remote_codes = y.looked_up(classes, table).stand_in()
        return TrainingData(rows, remote_codes, weights, labels_of(classes), feature_names)
    counts_row = np.ones(len(y), bool) if weights is None else weights > 0
    # Any class will do for rows of weight zero: the fit leaves them out.
    codes = class_codes(np.where(counts_row, y, classes[0]), classes, rows.dtype)
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


def class_codes(y: np.ndarray, classes: np.ndarray, dtype: xp.DType) -> Float[Array, "n t"]:
    """Return the codes of labels: (n, 1) with -1 and 1 for two classes, else (n, k).

    Raise ValueError if a label is not a class.
    """
    # A label after all classes gets the place len(classes); the comparison then finds it.
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    unknown = classes[place] != y
    if unknown.any():
        label = y[unknown].tolist()[0]
        raise ValueError(f"labels must be classes seen in training, not {label!r}")
    index = place
    if len(classes) == 2:
        return xp.cast(2 * index - 1, dtype)[:, None]
    # The codes of a row sum to zero, whatever its class.
    codes = xp.full((len(y), len(classes)), -1 / (len(classes) - 1), dtype=dtype)
    return xp.put_along(codes, index[:, None], 1.0, 1)
