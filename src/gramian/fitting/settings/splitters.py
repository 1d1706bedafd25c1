"""Folds: splitters of scikit-learn, pairs of row numbers, and columns that divide the rows."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, TypeGuard

import numpy as np
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from ..._messages.errors import ParameterError, TextError
from ..._parameters.types import Indices, Splitter

USUAL_FOLDS = 5
"""Folds of groups and of ordered rows without a number."""


def is_splitter(cv: object) -> TypeGuard[Splitter]:
    """Return whether a value has the methods of scikit-learn's splitters."""
    return callable(getattr(cv, "split", None)) and callable(getattr(cv, "get_n_splits", None))


def is_pairs(cv: object) -> TypeGuard[Sequence[tuple[Indices, Indices]]]:
    """Return whether a value is a sequence of pairs; `folds_of` checks their row numbers."""
    # Texts are sequences, whose characters are sequences again.
    if isinstance(cv, str | bytes) or not isinstance(cv, Sequence) or not cv:
        return False
    return all(not isinstance(pair, str) and length(pair) == 2 for pair in cv)


def length(value: object) -> int:
    """Return the length of a value; -1 if it has none."""
    try:
        return len(value) if isinstance(value, Sized) else -1
    # NumPy's arrays without axes have `__len__`, but raise.
    except TypeError:
        return -1


def folds_by_column(
    cv: object, y: np.ndarray, groups: object = None, order: object = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds that keep groups of rows together, or whose rows follow the rows to learn from.

    Parameters
    ----------
    cv : int, splitter or None
        Five folds by default, or as many as there are groups.
    y : ndarray of shape (n,) or (n, t)
    groups, order : array-like of shape (n,), or None
        One of both.

    Returns
    -------
    list of (ndarray, ndarray)
        Row numbers to learn from, and to test on.

    Raises
    ------
    ValueError
        If `cv` has pairs, both are given, or values are missing or too few.
    """
    if groups is not None and order is not None:
        raise TextError("{groups} and {order} cannot be combined: leave one of them out")
    if not (cv is None or isinstance(cv, int) or is_splitter(cv)):
        raise ParameterError("cv", cv, "None, a number or a splitter, with groups or an order")
    splitter: Any = cv  # the protocol of splitters has no groups
    placeholder: np.ndarray = np.zeros((len(y), 1))
    if groups is None:
        values = _values_of_rows("order", order, len(y))
        if not is_splitter(cv):
            splitter = TimeSeriesSplit(USUAL_FOLDS if cv is None else cv)
        place = np.argsort(values, kind="stable")
        return [(place[train], place[test]) for train, test in splitter.split(placeholder)]
    values = _values_of_rows("groups", groups, len(y))
    if not is_splitter(cv):
        count = len(np.unique(values))
        if count < 2:
            raise ValueError("groups must have at least two different values, but they have one")
        splitter = GroupKFold(min(USUAL_FOLDS, count) if cv is None else cv)
    return list(splitter.split(placeholder, y, values))


def _values_of_rows(name: str, given: object, count: int) -> np.ndarray:
    values = np.asarray(given)
    if values.shape != (count,):
        raise ValueError(f"{name} must have one value for each of {count:,} rows")
    if values.dtype.kind == "O" and any(value is None for value in values):
        raise ValueError(f"{name} must have no missing value; fill the gaps, or drop these rows")
    return values
