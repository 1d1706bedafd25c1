"""Folds of a search that a splitter makes of groups of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._messages.errors import ParameterError, Text, TextError
from ...fitting import Whole, WholeRows
from ...fitting.search.settings import SearchSettings
from ...fitting.settings.splitters import is_splitter
from ...fitting.uncertainty.whole_rows import WholeTable
from ..types import Groups
from .base import KernelRidgeSearch


def with_groups(
    settings: SearchSettings, estimator: KernelRidgeSearch, dataset: Whole, groups: Groups
) -> SearchSettings:
    """Return the settings with the folds that the splitter of an estimator makes of groups.

    Parameters
    ----------
    settings : SearchSettings
    estimator : KernelRidgeSearch
    dataset : Whole
        All rows of the fit.
    groups : str, array-like of shape (n,) or None
        The name of a column of the table, or values; None leaves the settings as they are.

    Raises
    ------
    ValueError
        If ``cv`` is no splitter, or other rows are held out, which the groups do not divide.
    """
    if groups is None:
        return settings
    cv = estimator.cv
    if not is_splitter(cv):
        expected = "a splitter, such as GroupKFold(5), with groups"
        raise ParameterError("cv", cv, expected, Text("or leave {groups} out"))
    if estimator.test_fraction is not None or estimator.conformal is not None:
        raise TextError(
            "{groups} cannot be combined with {test_fraction} or {conformal}, which hold out rows "
            "at random; leave these out"
        )
    if isinstance(dataset, WholeTable):
        y, table = dataset.table.y, dataset.table.table
        values = table.column(groups).to_pylist() if isinstance(groups, str) else groups
    elif isinstance(dataset, WholeRows):
        y, values = np.asarray(dataset.data.targets), groups
    splitter: Any = cv  # the protocol of splitters has no groups
    placeholder: np.ndarray = np.zeros((len(y), 1))
    return replace(settings, cv=list(splitter.split(placeholder, y, np.asarray(values))))
