"""Tables as inputs of the estimators, with columns by name."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from .. import data, fitting
from .._messages.checks import join_words
from ..data import (
    ReadOptions,
    RowSource,
    Table,
    as_columns,
    as_rows,
    is_table,
)
from ..data.tables.target import describe_odd_text, number_column
from ..fitting import FitSettings, Generators
from ..model import Model
from . import validation
from .types import Columns, Read, RowsLike, TargetsLike, Weights


def named_targets(X: object, y: Any) -> Any:
    """Return a tuple if targets are a list of column names of a table; else return the values.

    A list of texts that differ from each other cannot be labels, so that it names columns, of
    which a frame has at least one.
    """
    if not isinstance(y, list) or not is_table(X) or not all(isinstance(name, str) for name in y):
        return validation.host_values(y, "y")
    columns = y if isinstance(X, str | Path) else getattr(X, "columns", y)
    are_names = bool(set(y) & set(map(str, columns))) and len(set(y)) == len(y)
    return tuple(y) if are_names else y


def column_weights(table: Table, sample_weight: Weights) -> Any:
    """Return the weights, which are read from the table if they are the name of a column."""
    if not isinstance(sample_weight, str):
        return sample_weight
    return number_column(table, sample_weight, "weight")


def kept_weights(table: data.TrainingTable, sample_weight: Weights) -> Any:
    """Return the weights of the rows that have a target; see `column_weights`."""
    weights = column_weights(table.table, sample_weight)
    if table.has_target is None or weights is None or isinstance(sample_weight, str):
        return weights
    values: np.ndarray = np.asarray(weights)
    return values[table.has_target] if len(values) == len(table.has_target) else values


def is_by_name(X: object, y: object, columns: object, *roles: object) -> bool:
    """Return whether to select the columns of X by name, and to encode them if necessary.

    True if the target, the columns or one of the roles, such as weights, are named, and for a
    table with columns that are not numbers.
    Frames of numbers with a separate y follow scikit-learn's rules instead.
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, such as [{columns!r}], not a string")
    has_names = _are_names(y) or any(isinstance(role, str) for role in roles)
    if columns is None and not has_names:
        is_array = type(X) is np.ndarray
        return not is_array and is_table(X) and (isinstance(X, Table) or data.needs_encoding(X))
    if not is_table(X):
        raise TypeError(
            f"y or columns names columns, but X of type {type(X).__name__} has none; give X as a "
            "path or a table, or y as a list or an array of values"
        )
    return True


def _are_names(y: object) -> TypeGuard[str | tuple[str, ...]]:
    return isinstance(y, str) or (
        isinstance(y, tuple) and len(y) > 0 and all(isinstance(name, str) for name in y)
    )


def with_read_options(X: RowsLike, y: TargetsLike | None, read: Read) -> RowsLike:
    """Open X as a table with the options for reading; without options return X unchanged.

    Raise TypeError or ValueError if X is no table, or an option is not allowed.
    """
    if read is None:
        return X
    if not is_table(X) or isinstance(X, Table):
        raise TypeError(
            f"read has options for a path or a frame, and X is of type {type(X).__name__}: leave "
            "it out"
        )
    # Labels stay as they are written.
    labels = (y,) if isinstance(y, str) else y if _are_names(y) else ()
    return data.as_table(X, options=replace(ReadOptions.of(read), labels=labels))


def refuse_in_parts(estimator: BaseEstimator, X: RowsLike, y: TargetsLike | None) -> None:
    """Raise an error for inputs of `partial_fit` that need encoding, and for loaded models."""
    model = getattr(estimator, "model_", None)
    if model is not None and not hasattr(estimator, "_fitted"):
        raise ValueError("partial_fit cannot continue a loaded model, which only predicts; use fit")
    encoded = model is not None and model.encoding is not None
    if encoded or _are_names(y) or (is_table(X) and data.needs_encoding(X)):
        raise ValueError(
            "partial_fit requires X of numbers without missing values, and y as an array, because "
            "the encoding of a table needs all rows; use fit, or transform each part with a fitted "
            "TableEncoder"
        )


def open_training_table(
    estimator: BaseEstimator,
    X: RowsLike,
    y: TargetsLike,
    columns: Columns,
    roles: Sequence[Any] = (),
    drop_missing_target: bool = False,
) -> data.TrainingTable:
    """Open a training table, and set ``n_features_in_`` and ``feature_names_in_``.

    Columns of other roles, such as weights, are no features unless `columns` names them.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if not _are_names(y):
        y = as_labels(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
        # As objects, numbers would pass for text in `check_numbers`.
        if y.dtype.kind == "O" and all(isinstance(value, numbers.Real) for value in y.flat):
            y = y.astype(float)
    leave_out = [role for role in roles if isinstance(role, str)]
    table = data.TrainingTable.open(
        X, cast("Any", y), columns, leave_out, drop_missing_target=drop_missing_target
    )
    estimator.n_features_in_ = len(table.columns)
    estimator.feature_names_in_ = np.asarray(table.columns, dtype=object)
    return table


def check_numbers(table: data.TrainingTable) -> None:
    """Raise TypeError for text as the target of a regression."""
    texts = as_columns(table.y).texts
    if texts is not None:
        is_column = table.target is not None and texts.ndim == 1
        first = repr(str(texts.flat[0]))
        shown = describe_odd_text(table.table, texts) if is_column else first
        name = "y" if table.target is None else f"the target {join_words(table.target)}"
        raise TypeError(
            f"{table.table.where}: {name} holds text, such as {shown}, but "
            "KernelRidge predicts numbers; use KernelRidgeClassifier"
        )


def with_truth(model: Model, X: RowsLike, y: TargetsLike | None) -> tuple[Any, Any]:
    """Return X and the values of the target, which X contains if y is a name or None.

    Raise ValueError if y is None, and the model has no name of the target.
    """
    y = named_targets(X, y)
    if y is not None and not _are_names(y):
        return X, y
    names = model.target if y is None else ((y,) if isinstance(y, str) else tuple(y))
    if names is None:
        raise ValueError(
            "score requires y, as values or as the name of a column of X, because this model was "
            "fitted to values without a name"
        )
    if not is_table(X):
        raise TypeError(f"y names a column, but X of type {type(X).__name__} has no column names")
    table = model.table(X)
    return table, data.target_column(table, names)


def plan_inputs(
    settings: FitSettings,
    X: RowsLike,
    y: TargetsLike | None,
    columns: Columns,
    targets: int,
    labels: bool,
) -> tuple[FitSettings, RowSource, int]:
    """Return the settings, rows and number of targets that a plan of a fit needs.

    - `targets`: number of targets without y.
    - `labels`: whether y holds labels.
    """
    y = named_targets(X, y)
    if y is None:
        named = columns is not None or (is_table(X) and data.needs_encoding(X))
    else:
        named = is_by_name(X, y, columns)
    if not named:
        return settings, as_rows(X), targets if y is None else target_count(y, labels)
    if y is None:
        table = data.as_table(X)
        chosen = table.names if columns is None else tuple(columns)
        # A plan needs the number of targets, not their values: zeros stand for them.
        training_table = data.TrainingTable(table, chosen, None, np.zeros((len(table), targets)))
    else:
        training_table = data.TrainingTable.open(X, y if _are_names(y) else np.asarray(y), columns)
    classes = None
    if labels and y is not None:
        classes, _ = as_columns(training_table.y).counts()
    # Any seed will do: of the encoded rows a plan uses only shape and type.
    rng = Generators.from_random_state(np.random.RandomState(0))
    divided = fitting.whole_of(training_table, settings, rng, labels=classes).without(None)
    return divided.settings, divided.train.rows, divided.train.targets.shape[1]


def target_count(y: TargetsLike | None, labels: bool) -> int:
    """Return the number of targets in y."""
    values: np.ndarray = np.asarray(y)
    if labels:
        k = len(np.unique(values))
        # Two classes share one column of codes, -1 and 1.
        return k if k > 2 else 1
    return values.size // max(1, len(values))


def as_labels(y: np.ndarray) -> np.ndarray:
    """Return object arrays of texts as NumPy strings, and other arrays unchanged."""
    if y.dtype.kind == "O" and all(isinstance(v, str) for v in y.flat):
        return y.astype(str)
    return y
