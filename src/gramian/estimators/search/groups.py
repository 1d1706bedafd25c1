"""Folds of a search that groups of rows, or their order, define."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from ..._messages.errors import ParameterError, TextError
from ...data.tables.target import role_column
from ...fitting import Whole, WholeRows
from ...fitting.search.settings import SearchSettings
from ...fitting.settings.splitters import is_splitter
from ...fitting.uncertainty.whole_rows import WholeTable
from ..types import Groups
from .base import KernelRidgeSearch

USUAL_FOLDS = 5
"""Folds of groups and of ordered rows without a number."""


def with_folds(
    settings: SearchSettings,
    estimator: KernelRidgeSearch,
    dataset: Whole,
    groups: Groups,
    order: Groups,
) -> SearchSettings:
    """Return the settings with the folds that groups of rows, or their order, define.

    Parameters
    ----------
    settings : SearchSettings
    estimator : KernelRidgeSearch
    dataset : Whole
        All rows of the fit.
    groups, order : str, array-like of shape (n,) or None
        The name of a column of the table, or values; without both the settings stay as they are.

    Raises
    ------
    ValueError
        As in `folds_by_column`; or if other rows are held out, which the groups do not divide.
    """
    if groups is None and order is None:
        return settings
    if estimator.test_fraction is not None or estimator.conformal is not None:
        raise TextError(
            "{groups} and {order} cannot be combined with {test_fraction} or {conformal}, which "
            "hold out rows at random; leave these out"
        )
    # Splitters may stratify by the target; of a table it is read already.
    y = np.asarray(dataset.data.targets) if isinstance(dataset, WholeRows) else None
    values = [groups, order]
    if isinstance(dataset, WholeTable):
        y, stays = dataset.table.y, dataset.table.has_target
        values = [
            role_column(dataset.table.table, value, role)
            if isinstance(value, str)
            else value
            if value is None or stays is None
            else np.asarray(value)[stays]
            for role, value in (("groups", groups), ("order", order))
        ]
    return replace(settings, cv=folds_by_column(estimator.cv, np.asarray(y), *values))


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
        # scikit-learn's splitter takes the order of the rows for the order of time: it divides
        # sorted places. Stable, so that rows of one moment keep their order.
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
