"""Errors by the groups of a column, and curves of each class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from .._messages.checks import it_has
from .._messages.errors import ParameterError
from ..data import Table
from ..data.encoding.kinds import kind_of
from ..scoring.predictions import Predictions
from ..scoring.table import METRIC_TABLE, Metric

MOST_CURVES = 5
"""Most classes with a curve; of more, the ones with the most rows."""

MOST_CURVE_POINTS = 400
"""Most points of a curve; more are thinned evenly."""

Curve = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class ClassCurve:
    """Curves of one class against the rest.

    - `share`: share of the class in the rows.
    - `area`, `average_precision`: by the table of metrics.
    - `roc`, `precision_recall`, `lift`: of shape (p,); points, x and y.
    """

    label: str
    share: float
    area: float
    average_precision: float
    roc: Curve
    precision_recall: Curve
    lift: Curve

    @classmethod
    def of(cls, label: str, is_class: np.ndarray, chance: np.ndarray) -> ClassCurve:
        """Return the curves from the class and its probability in each row, (n,)."""
        false, true, _ = roc_curve(is_class, chance)
        precision, recall, _ = precision_recall_curve(is_class, chance)
        # Of equal probabilities, the mean: their order is arbitrary.
        _, group, count = np.unique(-chance, return_inverse=True, return_counts=True)
        rows, hits = np.cumsum(count), np.cumsum(np.bincount(group, is_class))
        share = float(is_class.mean())
        area, average_precision = (
            float(METRIC_TABLE[name](is_class, chance)) for name in ("auc", "average_precision")
        )
        return cls(
            label, share, area, average_precision, _thin(false, true), _thin(recall, precision),
            _thin(rows / len(chance), hits / rows / share),
        )  # fmt: skip


def shown_classes(predictions: Predictions) -> list[int]:
    """Return the indices of the classes to explain: the second of two, or up to five."""
    k = len(predictions.classes)
    if k <= 2:
        return [1][: k - 1]
    counts = np.bincount(predictions.numbers[predictions.numbers >= 0], minlength=k)
    return sorted(np.argsort(-counts, kind="stable")[:MOST_CURVES].tolist())


def curves_of(predictions: Predictions) -> list[ClassCurve]:
    """Return the curves of both classes, or of up to five, each if only some rows have it."""
    is_known = predictions.numbers >= 0
    if predictions.chances is None:
        return []
    numbers, chances = predictions.numbers[is_known], predictions.chances[is_known]
    return [
        ClassCurve.of(str(predictions.classes[k]), numbers == k, chances[:, k])
        for k in (range(2) if len(predictions.classes) == 2 else shown_classes(predictions))
        if 0 < np.count_nonzero(numbers == k) < len(numbers)
    ]


def _thin(x: np.ndarray, y: np.ndarray) -> Curve:
    index = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_CURVE_POINTS)).astype(int))
    return x[index], y[index]


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
