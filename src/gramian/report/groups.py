"""Errors by the groups of a categorical column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._messages.checks import it_has
from .._messages.errors import ParameterError
from ..data import Table
from ..data.encoding.kinds import kind_of
from ..scoring.predictions import Predictions
from ..scoring.table import Metric

MOST_COLUMNS = 3
"""Most columns whose groups are shown."""

MOST_GROUPS = 8
"""Most groups of a column; smaller ones are one group."""

GROUP_KINDS = ("category", "ordered", "boolean")
"""Kinds of columns whose values are groups."""

OTHER_GROUPS, GAP_GROUP = "others", "missing"


@dataclass(frozen=True, eq=False)
class GroupErrors:
    """Errors of g groups of a column, the largest group first.

    - `indices`: row indices.
    - `values`: the main metric of each group.
    """

    column: str
    names: list[str]
    indices: list[np.ndarray]
    values: list[float]

    @property
    def rows(self) -> list[int]:
        """Number of rows of each group."""
        return [len(index) for index in self.indices]

    @classmethod
    def of(cls, column: str, table: Table, answers: Predictions, metric: Metric) -> GroupErrors:
        """Return the errors by the values of a column."""
        texts = [GAP_GROUP if v is None else str(v) for v in table.column(column).to_pylist()]
        names, place, count = np.unique(texts, return_inverse=True, return_counts=True)
        order = np.argsort(-count, kind="stable")
        parts = {str(names[k]): np.flatnonzero(place == k) for k in order[:MOST_GROUPS]}
        small_groups = np.flatnonzero(np.isin(place, order[MOST_GROUPS:]))
        if len(small_groups):
            parts[OTHER_GROUPS] = small_groups
        values = [_part(answers, index).measure(metric) for index in parts.values()]
        return cls(column, list(parts), list(parts.values()), values)


def _part(answers: Predictions, index: np.ndarray) -> Predictions:
    """Return some rows with true and predicted values alone, which errors by group need."""
    y, predicted = answers.y[index], answers.predicted[index]
    return replace(answers, y=y, predicted=predicted, decision=None, chances=None)


def group_columns(table: Table, names: Sequence[str], column: str | None) -> list[str]:
    """Return the column of a report, or the first categorical columns of a model.

    - `names`: columns of the model, the most important first.
    - `column`: column that the user names.
    """
    if column is None:
        model_columns = [name for name in names if name in table.names]
        kinds = {name: kind_of(table.schema.field(name).type) for name in model_columns}
        return [name for name in model_columns if kinds[name] in GROUP_KINDS][:MOST_COLUMNS]
    if column not in table.names:
        raise ParameterError(
            "groups", column, f"a column of {table.where}", it_has(table.names, column)
        )
    return [column]
