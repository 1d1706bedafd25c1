"""Targets of a fit as tensors: numbers, or the codes of classes."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from ..._messages.errors import TextError
from ...data import RemoteColumns, RowSource, RowWeights, Targets, check_magnitude
from ...model import Label
from .training_data import TrainingData


def training_targets(
    y: ArrayLike | RemoteColumns, dtype: torch.dtype, products: torch.dtype | None = None
) -> Targets:
    """Return `target_tensor`; raise ValueError if products with a column round to 0 or overflow.

    Products have the type of the rows, unless another type is given.
    """
    targets = _remote_targets(y, dtype) if isinstance(y, RemoteColumns) else target_tensor(y, dtype)
    check_magnitude(targets, products or dtype)
    return targets


def _remote_targets(y: RemoteColumns, dtype: torch.dtype) -> Targets:
    """Return remote targets in the type and shape of `target_tensor`."""
    if y.labels is not None:
        raise ValueError(
            f"the targets are texts, such as {str(y.labels[0])!r}, and KernelRidge predicts "
            "numbers; use KernelRidgeClassifier"
        )
    if not y.facts.finite:
        raise ValueError("y contains NaN or infinity; leave out rows without a target")
    narrow = y.dtype == torch.float32 and dtype == torch.float32
    return y.reshape(flat=False).to(torch.float32 if narrow else torch.float64).stand_in()


def target_tensor(y: ArrayLike, dtype: torch.dtype) -> Float[Tensor, "n t"]:
    """Return numeric targets as a tensor of shape (n, t), in float32 if the rows are float32."""
    y = np.asarray(y)
    # float32 only if both are: integers and float64 targets keep their digits.
    narrow = y.dtype == np.float32 and dtype == torch.float32
    y = np.ascontiguousarray(y, dtype=np.float32 if narrow else np.float64)
    # torch warns about read-only arrays, such as memory maps, which it cannot protect.
    tensor = torch.from_numpy(y if y.flags.writeable else y.copy())
    return tensor[:, None] if tensor.ndim == 1 else tensor


def classes_of(y: np.ndarray | RemoteColumns, weights: RowWeights | None = None) -> np.ndarray:
    """Return the labels of the rows of positive weight, sorted.

    Raises
    ------
    ValueError
        If there is only one label.
    """
    if isinstance(y, RemoteColumns):
        classes = y.classes(weights)
    else:
        classes = np.unique(y if weights is None else y[weights.numpy() > 0])
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
    counts_row = np.ones(len(y), bool) if weights is None else weights.numpy() > 0
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


def class_codes(y: np.ndarray, classes: np.ndarray, dtype: torch.dtype) -> Float[Tensor, "n t"]:
    """Return the codes of labels: (n, 1) for two classes, else (n, k).

    Raises
    ------
    ValueError
        If a label is not a class.
    """
    # A label after all classes gets the place len(classes); the comparison then finds it.
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    unknown = classes[place] != y
    if unknown.any():
        label = y[unknown].tolist()[0]
        raise ValueError(f"labels must be classes seen in training, not {label!r}")
    index = torch.from_numpy(place)
    if len(classes) == 2:
        return (2 * index - 1).to(dtype)[:, None]
    # The codes of a row sum to zero, whatever its class.
    codes = torch.full((len(y), len(classes)), -1 / (len(classes) - 1), dtype=dtype)
    return codes.scatter_(1, index[:, None], 1.0)
