"""Partial dependence: the mean prediction with a column set to one value in all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any

import numpy as np

from .. import _arrays as xp
from ..data.encoding.kinds import kind_of
from ..model import Model
from ..model.mapped_predictions import model_columns, open_for_model
from ..scoring.truth import Truth

MOST_CURVES = 6
"""Most columns, the most important ones."""

DEPENDENCE_ROWS = 300
"""Rows whose predictions are averaged, drawn at random."""

GRID_VALUES, MOST_LEVELS = 20, 8
"""Most values of a column of numbers or dates, and of a column of categories."""

GRID_LEVELS = (0.02, 0.98)
"""Levels of the quantiles between which the values are."""


@dataclass(frozen=True, eq=False)
class Dependence:
    """Mean predictions by the values of a column.

    - `label`: column, with the unit of its values.
    - `values`: values of some rows, in increasing order; of categories, the most frequent first.
    - `means`: of shape (g, k); mean prediction; for classes, the mean probability of each.
    - `row_values`: values of some rows, to mark where there are rows.
    """

    label: str
    values: list[Any]
    means: np.ndarray
    row_values: list[Any]
    is_category: bool

    @classmethod
    def of(
        cls,
        model: Model,
        truth: Truth,
        column: str,
        index: np.ndarray,
        shown: Sequence[int],
        settings: Mapping[str, Any],
    ) -> Dependence | None:
        """Return the partial dependence on a column; None if it has a single value.

        - `index`: of shape (r,); rows to average.
        - `shown`: indices of the classes; 0 for a regression.
        - `settings`: engine and memory of predictions.

        Cost: predictions for g r rows, at most 6,000.

        References
        ----------
        .. [1] Friedman, *Greedy function approximation: a gradient boosting machine*, Annals of
           Statistics 29, 2001, section 8.2.
        """
        names = model_columns(model, truth.table, truth.name)
        batch = truth.table.take(names, index)
        place = names.index(column)
        kind = kind_of(batch.schema.field(place).type)
        is_category = kind not in UNIT_OF_KIND
        values = batch.column(place).to_pylist() if is_category else _numbers(batch.column(place))
        # NaN and its like of dates differ from themselves.
        value_of_row = {row: v for row, v in enumerate(values) if v is not None and v == v}
        grid = _frequent_rows(value_of_row) if is_category else _spread_rows(value_of_row)
        if len(grid) < 2:
            return None
        # 1. All rows once for each value, in one table.
        r, g = len(index), len(grid)
        varied = batch.column(place).take(np.repeat(grid, r))
        table = batch.take(np.tile(np.arange(r), g)).set_column(
            place, batch.schema.field(place), varied
        )
        # 2. Means of the predictions for each value.
        rows = open_for_model(model, model.table(table), truth.name)
        outputs = model.predict(rows, **settings)
        predicted = xp.to_float64(outputs) if model.classes is None else model.class_map(outputs)
        means = predicted[:, shown].reshape(g, r, -1).mean(axis=1)
        label = f"{column}{UNIT_OF_KIND.get(kind, '')}"
        return cls(
            label, [value_of_row[k] for k in grid], means, list(value_of_row.values()), is_category
        )


UNIT_OF_KIND: Mapping[Any, str] = {
    "number": "", "date": "", "zoned date": "", "time": " in hours", "duration": " in hours",
}  # fmt: skip
"""Kinds of columns whose values are in order on an axis, and the ends of its label."""


def _numbers(column: Any) -> list[Any]:
    """Return the values of an Arrow column for an axis: numbers, dates, or hours."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "m":
        return list(values / np.timedelta64(3600, "s"))
    if values.dtype.kind == "O":  # times of day, and decimals
        return [_hours(v) if isinstance(v, time) else v and float(v) for v in values]
    return list(values)


def _hours(value: time) -> float:
    return value.hour + value.minute / 60 + value.second / 3600


def _frequent_rows(value_of_row: Mapping[int, Any]) -> list[int]:
    """Return a row with each of the most frequent values, the most frequent first."""
    first = {value: row for row, value in reversed([*value_of_row.items()])}
    return [first[value] for value, _ in Counter(value_of_row.values()).most_common(MOST_LEVELS)]


def _spread_rows(value_of_row: Mapping[int, Any]) -> list[int]:
    """Return rows whose values are quantiles, or all of a few values, in increasing order."""
    rows = sorted(value_of_row, key=lambda row: value_of_row[row])
    first = {value_of_row[row]: row for row in reversed(rows)}
    if len(first) > GRID_VALUES:
        places = np.linspace(*GRID_LEVELS, GRID_VALUES) * (len(rows) - 1)
        first = {value_of_row[rows[k]]: rows[k] for k in places.round().astype(int)}
    return [first[value] for value in sorted(first)]
