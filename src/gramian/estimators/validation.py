"""Validation of inputs, and conversion to row sources, arrays and random generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from .. import _arrays as xp
from .._arrays import Array, RandomStream
from .._messages.checks import join_words
from .._messages.errors import ParameterError
from .._parameters.types import RandomState
from ..data import (
    RowNumbers,
    RowSource,
    RowWeights,
    Standardized,
    Table,
    as_columns,
    as_rows,
    check_copies,
    check_finite,
    decode_rows,
    is_collection,
    is_table,
)
from ..data.sources.as_rows import align_collection
from ..data.tables.frames import warn_of_rounded_columns
from ..data.tables.records import is_records
from ..fitting import FitSettings
from ..fitting.inputs.objects import Calls, ObjectRows, between
from ..fitting.plans.remote import check_remote, check_remote_landmarks
from ..model import Model
from .base import is_function, is_matrix
from .types import RowsLike, Weights

MEDIAN_ROWS = 100_000
"""Rows, about, of which medians are taken."""


def is_source(X: object) -> bool:
    """Return whether `as_rows` converts X, without scikit-learn's validation."""
    # By the name of its module, which covers tables, batches, readers and data sets alike.
    arrow = type(X).__module__.partition(".")[0] == "pyarrow"
    # A masked array, too: scikit-learn would use its masked numbers, and `as_rows` refuses it.
    is_ours = isinstance(X, str | Path | RowSource | Table | np.ma.MaskedArray)
    # Arrays by DLPack alone: scikit-learn would take them for a scalar.
    is_foreign = hasattr(X, "__dlpack__") and not hasattr(X, "__array__")
    return arrow or is_collection(X) or is_ours or xp.is_tensor(X) or is_foreign


def host_values(values: Any, name: str) -> Any:
    """Return targets or weights, arrays of other libraries as NumPy's.

    Raise ValueError for masked values, which scikit-learn would use.
    """
    if np.ma.is_masked(values):
        masked_count = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array with {masked_count:,} masked values, expected a value for "
            "each row; leave the masked rows out"
        )
    if xp.is_tensor(values):
        return xp.to_host(values)
    has_dlpack_only = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
    return np.from_dlpack(values) if has_dlpack_only else values


def rows(X: RowsLike) -> RowSource:
    """Return validated rows for a function that has no fitted features to compare."""
    if not is_source(X) and not hasattr(X, "columns"):
        # Frames go to `as_rows` directly, whose errors name the columns that are not numbers.
        X = check_array(X, accept_sparse="csr", dtype="numeric")
    source = as_rows(X)
    check_finite(source)
    return source


def training_rows(
    estimator: BaseEstimator, X: RowsLike, y: Any, settings: FitSettings, *, y_numeric: bool = False
) -> tuple[RowSource, Any]:
    """Return rows and targets, and set ``n_features_in_`` and ``feature_names_in_``.

    Settings that remote rows do not support raise an error first. Columns that have names or come
    from a file must not equal the target. Arrays without names are not compared, and standardised
    rows are compared before standardisation.
    """
    if y is None:
        # In the words that scikit-learn's `check_estimator` looks for.
        raise ValueError("requires y to be passed, but the target y is None")
    if is_function(getattr(estimator, "kernel", None)):
        objects = object_rows(estimator.kernel, X)
        # Objects have no features: the attributes of an earlier fit to rows would be wrong.
        _forget_features(estimator)
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        # An empty array of as many rows: scikit-learn cannot take the length of every kind of rows.
        check_consistent_length(np.empty((len(objects), 0)), y)
        return objects, y
    if _is_plain(X, y):
        return _source(estimator, X), y
    if y_numeric:
        _refuse_labels(estimator, y)
    if not is_source(X):
        # Before `validate_data`, which converts a frame of mixed types to one type, and has then
        # rounded whole numbers beyond 2**53.
        warn_of_rounded_columns(X)
        X, y = validate_data(
            estimator, X, y, dtype="numeric", accept_sparse="csr", multi_output=True,
            ensure_all_finite=False, y_numeric=y_numeric,
        )  # fmt: skip
        rows = as_rows(X)
        check_finite(rows)  # scikit-learn's words would send to other libraries
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and not rows.sparse:
            check_copies(rows, y, tuple(names))
        return rows, y
    rows = as_rows(X)
    # Before the first pass: it may take minutes on a cluster, only to fail afterwards.
    check_remote(settings, rows)
    y = align_collection(rows, y)
    y = as_columns(y).check_with(partial(check_array, ensure_2d=False, dtype=None, input_name="y"))
    check_consistent_length(np.empty((len(rows), 0)), y)
    named = rows.feature_names is not None and not isinstance(rows, Standardized)
    looked_at = y if named or isinstance(X, str | Path) else None
    # The check below is the first pass over a file: later passes read the rows that it decodes.
    return _source(estimator, decode_rows(rows), looked_at), y


def _refuse_labels(estimator: BaseEstimator, y: Any) -> None:
    """Raise ValueError if the target of a regression holds text that is no number."""
    values = None if is_source(y) else np.asarray(y)
    if values is None or values.dtype.kind not in "USO":
        return
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        labels = [value for value in values.ravel().tolist() if isinstance(value, str)]
        if labels:
            name = type(estimator).__name__
            classifier = (
                "KernelRidgeClassifierCV" if name.endswith("CV") else "KernelRidgeClassifier"
            )
            raise ValueError(
                f"y holds text, such as {labels[0]!r}, but {name} predicts numbers; use "
                f"{classifier}"
            ) from None


def _is_plain(X: object, y: object) -> TypeGuard[np.ndarray]:
    """Return whether scikit-learn would return both unchanged, which takes a fifth of a small fit.

    Such inputs are arrays of floating-point numbers, of the right shapes; the targets are finite.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype in (np.float32, np.float64)
        and type(y) is np.ndarray
        and y.ndim in (1, 2)
        and y.dtype in (np.float32, np.float64)
        and y.size > 0
        and len(X) == len(y)
        and bool(np.isfinite(y).all())
    )


def unlabelled_rows(estimator: BaseEstimator, X: RowsLike, *, least: int = 1) -> RowSource:
    """Return rows without targets, and set ``n_features_in_`` and ``feature_names_in_``.

    Raise ValueError if there are fewer than `least` rows.
    """
    if is_function(getattr(estimator, "kernel", None)):
        _forget_features(estimator)
        return object_rows(estimator.kernel, X)
    if not is_source(X):
        array = validate_data(
            estimator, X, dtype="numeric", accept_sparse="csr", ensure_min_samples=least,
            ensure_all_finite=False,
        )  # fmt: skip
        rows = as_rows(array)
        check_finite(rows)
        return rows
    check_remote_landmarks(getattr(estimator, "landmarks", "auto"), as_rows(X))
    rows = _source(estimator, X)
    if len(rows) < least:
        raise ValueError(f"X must have at least {least} rows, not {len(rows)}")
    return rows


def object_rows(kernel: Callable[[Any, Any], float], X: RowsLike) -> ObjectRows:
    """Return the lazy kernel matrix of a function of two objects."""
    return ObjectRows(Calls(kernel, objects_of(X)))


def objects_of(X: Any) -> list[Any]:
    """Return the objects for a kernel of objects as a list."""
    # A string is a sequence of characters, a mapping of keys, and a frame of columns: a caller who
    # gives one of these rarely means a list of such objects.
    listed_ones = hasattr(X, "__len__") and hasattr(X, "__getitem__")
    if isinstance(X, str | bytes | Mapping) or hasattr(X, "columns") or not listed_ones:
        raise TypeError(
            "X must be a list of objects if the kernel is a function of two objects, not of type "
            f"{type(X).__name__}; for a table, give one of its columns as a list"
        )
    if len(X) == 0:
        raise ValueError("X must be a list of at least one object, not an empty list")
    return list(X)


def medians_of(rows: RowSource, names: Sequence[str] | None) -> Array | None:
    """Return the medians of columns with names, of shape (d,), from at most about 100,000 rows.

    The medians fill the gaps of new rows. None for columns without names, and for rows that are
    sparse, streamed or on other machines.
    """
    if names is None or rows.sparse or not (rows.random_access and rows.fits()):
        return None
    step = -(-len(rows) // MEDIAN_ROWS)
    sample = xp.to_float64(rows.take(xp.arange(0, len(rows), step)))
    return np.median(sample, axis=0)


def _forget_features(estimator: BaseEstimator) -> None:
    """Delete the feature attributes of an earlier fit."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(estimator, name):
            delattr(estimator, name)


def second_view(y: RowsLike | None) -> RowSource:
    """Return the rows of the second view; numbers of shape (n,) are one feature."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if is_source(y):
        rows = as_rows(y)
        check_finite(rows, "y")
        return rows
    values: np.ndarray = check_array(y, accept_sparse="csr", ensure_2d=False, input_name="y")
    return as_rows(values.reshape(-1, 1) if values.ndim == 1 else values)


def _source(estimator: BaseEstimator, X: RowsLike, targets: RowNumbers | None = None) -> RowSource:
    rows = as_rows(X)
    check_finite(rows, targets=targets)
    estimator.n_features_in_ = rows.shape[1]
    if rows.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return rows


def new_rows(estimator: BaseEstimator, X: RowsLike) -> RowSource:
    """Return rows to predict, checked against the training features."""
    # 1. The model selects the columns of a table, and encodes them.
    if _selects_columns(estimator, X):
        return _rows_by_name(estimator, X)
    # 2. A kernel of objects: its values between the new objects and the kept ones are the rows.
    if is_function(getattr(estimator, "kernel", None)) and hasattr(estimator, "objects_"):
        return as_rows(between(estimator.kernel, objects_of(X), estimator.objects_))
    # 3. A given matrix. The error of `validate_data` would count features, which it does not have.
    if is_matrix(getattr(estimator, "kernel", None)):
        _check_columns(X, estimator.n_features_in_)
    if not is_source(X):
        # 4. Arrays and frames of numbers: scikit-learn compares number and names of the columns.
        return _new_array_rows(estimator, X)
    rows = as_rows(X)
    # 5. Other sources, which scikit-learn does not accept: the same checks in its words.
    expected = estimator.n_features_in_
    if rows.shape[1] != expected:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {rows.shape[1]} features, but {name} is expecting {expected} features as input"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if rows.feature_names is not None and names is not None and tuple(names) != rows.feature_names:
        given_names, known_names = join_words(rows.feature_names), join_words(list(names))
        raise ValueError(
            f"X has the features {given_names}, but the training rows had {known_names}, in this "
            "order"
        )
    check_finite(rows)
    return rows


def _selects_columns(estimator: BaseEstimator, X: RowsLike) -> bool:
    """Return whether columns of X are found by name, as in a fit by name, and of records always."""
    if is_records(X):
        is_objects = is_function(getattr(estimator, "kernel", None))
        return isinstance(getattr(estimator, "model_", None), Model) and not is_objects
    by_name: bool = getattr(estimator, "_by_name", False)
    return by_name and (is_table(X) or estimator.model_.encoding is not None)


def _rows_by_name(estimator: BaseEstimator, X: RowsLike) -> RowSource:
    model: Model = estimator.model_
    has_names = model.encoding is not None or model.feature_names is not None
    if has_names or not (estimator._by_name and is_table(X)):
        return model.rows(X)
    table, names = model.table(X), estimator.feature_names_in_.tolist()  # a matrix, by numbers
    return model.fill_gaps(table.rows(names), names, table.where)


def _new_array_rows(estimator: BaseEstimator, X: Any) -> RowSource:
    """Return rows of an array or of a frame of numbers, whose gaps are filled."""
    if _is_valid_matrix(estimator, X):
        return as_rows(X)
    array = validate_data(
        estimator, X, dtype="numeric", accept_sparse="csr", reset=False, ensure_all_finite=False
    )
    rows = as_rows(array)
    model = getattr(estimator, "model_", None)
    if isinstance(model, Model) and hasattr(X, "columns"):
        return model.fill_gaps(rows, [str(name) for name in X.columns])
    check_finite(rows)
    return rows


def _is_valid_matrix(estimator: BaseEstimator, X: Any) -> bool:
    """Return whether an array certainly passes all checks, and without a warning.

    scikit-learn's checks take longer than the prediction of a row.
    """
    if type(X) is not np.ndarray or X.dtype not in (np.float64, np.float32):
        return False
    if X.ndim != 2 or len(X) == 0 or X.shape[1] != estimator.n_features_in_:
        return False
    with np.errstate(all="ignore"):
        # The sum is not finite if a number is not, and rarely for large numbers: then others look.
        return not hasattr(estimator, "feature_names_in_") and bool(np.isfinite(X.sum()))


def _check_columns(X: Any, n: int) -> None:
    """Raise ValueError if X is not a kernel matrix of new rows with the n training rows."""
    shape = as_rows(X).shape if is_source(X) else np.shape(X)
    if len(shape) == 2 and shape[1] != n:
        raise ValueError(
            f"X must have {n:,} columns, the kernel between a new row and the {n:,} training rows, "
            f"not shape ({shape[0]:,}, {shape[1]:,}): the model was fitted with "
            "kernel='precomputed'"
        )


def row_weights(rows: Any, sample_weight: Weights, n: int) -> RowWeights | None:
    """Return the observation weights of n rows, which may be remote, or None."""
    if sample_weight is None:
        return None
    return weight_tensor(align_collection(rows, sample_weight), n)


def weight_tensor(sample_weight: Weights, n: int) -> RowWeights | None:
    """Return observation weights of shape (n,), or None."""
    if sample_weight is None:
        return None
    sample_weight = host_values(sample_weight, "sample_weight")
    # A copy: the tensor shares the memory of the array, which the caller may change later.
    check = partial(
        _check_sample_weight,
        X=np.empty((n, 1)),
        dtype=np.float64,
        copy=True,
        ensure_non_negative=True,
    )
    weights = as_columns(sample_weight).as_weights(n, check)
    if not as_columns(weights).range[1] > 0:
        raise ValueError("all sample weights are zero: no row is left to fit")
    return weights


def generators(random_state: RandomState, count: int) -> list[RandomStream]:
    """Return a generator for each step of a fit, so that its draws do not affect other steps."""
    state = check_random_state(random_state)
    seeds = state.randint(2**31 - 1, size=count)
    return [RandomStream(int(seed)) for seed in seeds]


def is_by_errors(return_std: Any) -> bool:
    """Return whether deviations by errors are requested; raise ValueError for any other text."""
    if isinstance(return_std, str) and return_std != "errors":
        raise ParameterError("return_std", return_std, "False, True or 'errors'")
    return isinstance(return_std, str)
