"""Folds of a search by groups of rows, or by the order of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, PredefinedSplit, TimeSeriesSplit

from ..._messages.errors import ParameterError, TextError
from ...data.tables.target import role_column
from ...fitting import Whole, WholeRows
from ...fitting.search.settings import SearchSettings
from ...fitting.settings.checks import is_splitter
from ...fitting.uncertainty.whole_rows import WholeTable
from ..types import Groups

USUAL_FOLDS = 5
"""Folds of groups and of ordered rows without a number."""


def with_folds(
    settings: SearchSettings,
    estimator: BaseEstimator,
    dataset: Whole,
    groups: Groups,
    order: Groups,
    folds: Groups = None,
) -> SearchSettings:
    """Return the settings with the folds that a column or values define.

    - `dataset`: all rows of the fit.
    - `groups`, `order`, `folds`: of shape (n,); the name of a column of the table, or values;
      without any the settings stay as they are.

    Raise ValueError as in `folds_by_column`; or if other rows are held out, which the groups do not
    divide.
    """
    roles = {"groups": groups, "order": order, "folds": folds}
    if all(value is None for value in roles.values()):
        return settings
    if estimator.test_fraction is not None or estimator.conformal is not None:
        raise TextError(
            "{groups}, {order} and {folds} cannot be combined with {test_fraction} or "
            "{conformal}, which hold out rows at random; leave these out"
        )
    # Splitters may stratify by the target; of a table it is read already.
    y = np.asarray(dataset.data.targets) if isinstance(dataset, WholeRows) else None
    values = list(roles.values())
    if isinstance(dataset, WholeTable):
        y, stays = dataset.table.y, dataset.table.has_target
        values = [
            role_column(dataset.table.table, value, role)
            if isinstance(value, str)
            else value
            if value is None or stays is None
            else np.asarray(value)[stays]
            for role, value in roles.items()
        ]
    return replace(settings, cv=folds_by_column(estimator.cv, np.asarray(y), *values))


def folds_by_column(
    cv: object,
    y: np.ndarray,
    groups: object = None,
    order: object = None,
    folds: object = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds that values of the rows define, as indices of training rows and of test rows.

    - `cv`: five folds by default, or as many as there are groups.
    - `y`: of shape (n,).
    - `groups`, `order`, `folds`: of shape (n,); one of them: rows of a group are in one fold; a
      fold follows the rows to learn from; or rows of equal values are a fold, but for -1, which is
      in none, as in PredefinedSplit.

    Raise ValueError if `cv` has pairs, several are given, or values are missing or too few.
    """
    roles = {"groups": groups, "order": order, "folds": folds}
    given_roles = [f"{{{role}}}" for role, value in roles.items() if value is not None]
    if len(given_roles) > 1:
        raise TextError(f"{' and '.join(given_roles)} cannot be combined: leave one of them out")
    if folds is not None:
        return _given_folds(cv, _values_of_rows("folds", folds, len(y)))
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


def _given_folds(cv: object, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    if cv is not None:
        raise TextError("{folds} defines the folds: leave {cv} out")
    numbers, codes = np.unique(values, return_inverse=True)
    is_fold = np.array([str(number) not in ("-1", "-1.0") for number in numbers])
    if len(numbers) < 2:
        raise ValueError("folds must have at least two different values, but they have one")
    # PredefinedSplit takes the numbers of test folds, and -1 for rows that are in none of them.
    test_folds = np.where(is_fold, np.arange(len(numbers)), -1)[codes.reshape(-1)]
    return list(PredefinedSplit(test_folds).split())


def _values_of_rows(name: str, given: object, count: int) -> np.ndarray:
    values = np.asarray(given)
    if values.shape != (count,):
        raise ValueError(f"{name} must have one value for each of {count:,} rows")
    if values.dtype.kind == "O" and any(value is None for value in values):
        raise ValueError(f"{name} must have no missing value; fill the gaps, or drop these rows")
    return values
