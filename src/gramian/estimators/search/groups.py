"""Folds of a search that groups of rows, or their order, define."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._messages.errors import TextError
from ...data.tables.target import role_column
from ...fitting import Whole, WholeRows
from ...fitting.search.settings import SearchSettings
from ...fitting.settings.splitters import folds_by_column
from ...fitting.uncertainty.whole_rows import WholeTable
from ..types import Groups
from .base import KernelRidgeSearch


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
