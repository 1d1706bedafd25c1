"""ROC, precision by recall, and lift of each class against the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from ..scoring.predictions import Predictions
from ..scoring.table import METRIC_TABLE

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
    """Return the indices of the classes with curves: the second of two, or up to five."""
    k = len(predictions.classes)
    if k <= 2:
        return [1][: k - 1]
    counts = np.bincount(predictions.numbers[predictions.numbers >= 0], minlength=k)
    return sorted(np.argsort(-counts, kind="stable")[:MOST_CURVES].tolist())


def curves_of(predictions: Predictions) -> list[ClassCurve]:
    """Return the curves of each shown class, unless no row or all rows have this class."""
    is_known = predictions.numbers >= 0
    if predictions.chances is None:
        return []
    numbers, chances = predictions.numbers[is_known], predictions.chances[is_known]
    return [
        ClassCurve.of(str(predictions.classes[k]), numbers == k, chances[:, k])
        for k in shown_classes(predictions)
        if 0 < np.count_nonzero(numbers == k) < len(numbers)
    ]


def _thin(x: np.ndarray, y: np.ndarray) -> Curve:
    index = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_CURVE_POINTS)).astype(int))
    return x[index], y[index]
