"""From what users pass to row sources, tensors and generators: the only validation of input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import Tensor

from .._checks import listed
from ..data import (
    RowSource,
    Standardized,
    Table,
    as_rows,
    check_copies,
    check_finite,
    is_table,
)
from ..fitting.parameters import RandomState
from ..model import Model
from .arguments import RowsLike, Weights


def is_source(X: object) -> bool:
    """Return whether X goes straight to `as_rows`, past scikit-learn's validation."""
    arrow = type(X).__module__.partition(".")[0] == "pyarrow"
    return arrow or isinstance(X, str | Path | RowSource | Table | Tensor)


def rows(X: RowsLike) -> RowSource:
    """Return rows for a function, which has no features of training to compare them with."""
    if not is_source(X) and not hasattr(X, "columns"):
        X = check_array(X, accept_sparse="csr", dtype="numeric")
    source = as_rows(X)
    check_finite(source)
    return source


def training_rows(estimator: Any, X: RowsLike, y: Any, **y_checks: Any) -> tuple[RowSource, Any]:
    """Return rows and targets, and set ``n_features_in_`` and ``feature_names_in_``.

    Columns that have names or come from a file must not equal the target. What an array without
    names holds, its owner has put together; and standardised rows are compared before they are.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if not is_source(X):
        X, y = validate_data(
            estimator, X, y, dtype="numeric", accept_sparse="csr", multi_output=True, **y_checks
        )
        rows = as_rows(X)
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and not rows.sparse:
            check_copies(rows, y, tuple(names))
        return rows, y
    rows = as_rows(X)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(np.empty((len(rows), 0)), y)
    named = rows.feature_names is not None and not isinstance(rows, Standardized)
    looked_at = y if named or isinstance(X, str | Path) else None
    return _source(estimator, rows, looked_at), y


def unlabelled_rows(estimator: Any, X: RowsLike, *, least: int = 1) -> RowSource:
    """Return rows without targets, and set ``n_features_in_`` and ``feature_names_in_``.

    ValueError if there are fewer than `least`.
    """
    if not is_source(X):
        return as_rows(
            validate_data(
                estimator, X, dtype="numeric", accept_sparse="csr", ensure_min_samples=least
            )
        )
    rows = _source(estimator, X)
    if len(rows) < least:
        raise ValueError(f"X has {len(rows)} row, but at least {least} are needed")
    return rows


def second_view(y: Any) -> RowSource:
    """Return rows that belong to those of X; numbers of shape (n,) are one feature."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_source(y):
        rows = as_rows(y)
        check_finite(rows, "y")
        return rows
    y = check_array(y, accept_sparse="csr", ensure_2d=False, input_name="y")
    return as_rows(y.reshape(-1, 1) if y.ndim == 1 else y)


def _source(estimator: Any, X: RowsLike, targets: np.ndarray | None = None) -> RowSource:
    rows = as_rows(X)
    check_finite(rows, targets=targets)
    estimator.n_features_in_ = rows.shape[1]
    if rows.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return rows


def new_rows(estimator: Any, X: RowsLike) -> RowSource:
    """Return rows to predict, with the features of training."""
    if getattr(estimator, "_by_name", False) and (is_table(X) or estimator.model_.encoding):
        model: Model = estimator.model_
        given = model.table(X) if is_table(X) else X
        rows: RowSource
        if isinstance(given, Table) and model.encoding is None and model.feature_names is None:
            rows = given.rows(estimator.feature_names_in_.tolist())  # a matrix, by numbers
            check_finite(rows)
        else:
            rows = model.rows(given)
        return rows
    if not is_source(X):
        X = validate_data(estimator, X, dtype="numeric", accept_sparse="csr", reset=False)
        return as_rows(X)
    rows = as_rows(X)
    expected = estimator.n_features_in_
    if rows.shape[1] != expected:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {rows.shape[1]} features, but {name} is expecting {expected} features as input"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if rows.feature_names is not None and names is not None and tuple(names) != rows.feature_names:
        there, known = listed(rows.feature_names), listed(list(names))
        raise ValueError(
            f"X has the features {there}, but {known} were there in training, in this order"
        )
    check_finite(rows)
    return rows


def weight_tensor(sample_weight: Weights, n: int) -> Tensor | None:
    """Return observation weights of shape (n,), or None."""
    if sample_weight is None:
        return None
    checked = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, copy=True, ensure_non_negative=True
    )
    if not checked.any():
        raise ValueError("all sample weights are zero: no row is left to fit")
    return torch.from_numpy(checked)


def generators(random_state: RandomState, count: int) -> list[torch.Generator]:
    """Return independent generators, so that one step's draws do not move another's."""
    state = check_random_state(random_state)
    seeds = state.randint(2**31 - 1, size=count)
    return [torch.Generator().manual_seed(int(seed)) for seed in seeds]
