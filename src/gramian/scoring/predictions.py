"""Predictions and true values in memory, and their metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..data import RowNumbers, as_columns
from ..model import Label, Probabilities
from ..model.uncertainty.probabilities import likeliest
from .reliability import Reliability, shown_class, shown_probabilities
from .table import Metric, task_of


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions and true values: 16 bytes a row; for a classifier 16 more a row and class.

    - `y`, `predicted`: of shape (n,); numbers, or labels of classes.
    - `decision`: of shape (n, 1); decision values of a classifier; for two classes, of the second
      class.
    - `classes`: sorted labels of the training; empty for a regression.
    - `chances`: of shape (n, k); probabilities of the classes.
    - `weights`: of shape (n,).
    - `measured`: metrics that were computed where the rows are.
    - `always`: constant prediction whose metrics were computed where the rows are.
    - `area_error`: largest error of the area under the ROC curve; 0 for local rows, whose ranks are
      exact.
    - `bins`: bins of the reliability diagram that were computed where the rows are.
    """

    y: np.ndarray
    predicted: np.ndarray
    decision: np.ndarray | None = None
    classes: tuple[Any, ...] = ()
    chances: np.ndarray | None = None
    weights: np.ndarray | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    always: Predictions | None = None
    area_error: float = 0.0
    bins: Reliability | None = None

    @classmethod
    def of(
        cls,
        y: np.ndarray,
        values: np.ndarray,
        classes: Iterable[Any] | None = None,
        probabilities: Probabilities | None = None,
        weights: np.ndarray | None = None,
    ) -> Predictions:
        """Return the predictions in the output of a model.

        - `y`: of shape (n,).
        - `values`: of shape (n, t); predictions, or decision values, from `Model.predict`.
        - `classes`: labels of the model; None for a regression.
        - `probabilities`: map from decision values to probabilities.
        - `weights`: of shape (n,).
        """
        if classes is None:
            y = y.astype(np.float64)
            return cls(y, values.astype(np.float64).reshape(y.shape), weights=weights)
        labels = tuple(classes)
        chances = None if probabilities is None else probabilities(values)
        predicted = np.asarray(labels)[likeliest(values)]
        return cls(y, predicted, values, labels, chances, weights)

    @property
    def task(self) -> str:
        """The task: regression or classification."""
        return task_of(self.classes)

    @property
    def varies(self) -> bool:
        """Whether there are different true values."""
        return bool((self.y != self.y[:1]).any())

    @cached_property
    def distinct(self) -> Predictions:
        """Distinct pairs of true and predicted classes, whose weights are the numbers of rows.

        The confusion matrix without its zeros: labels have the same metrics as in all rows.
        """
        labels, places = np.unique(np.concatenate([self.y, self.predicted]), return_inverse=True)
        true, predicted = places.reshape(2, -1)
        # A pair of labels is one number.
        pairs, inverse = np.unique(true * len(labels) + predicted, return_inverse=True)
        y, predicted = (labels[part] for part in np.divmod(pairs, len(labels)))
        rows = np.bincount(inverse, self.weights)
        rows = rows if self.weights is None else rows.astype(self.weights.dtype)
        return replace(self, y=y, predicted=predicted, weights=rows, decision=None, chances=None)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Index of the class of each row; -1 for a class without training rows."""
        return class_numbers(self.y, np.asarray(self.classes))

    def measure(self, metric: Metric) -> float:
        """Return a metric; NaN if it is undefined.

        Decision values and probabilities leave out rows of classes that the training had not.
        """
        if metric.needs_variation and not self.varies:
            return math.nan
        # On a cluster, workers have measured block by block: there are no rows to compute from.
        if metric.name in self.measured:
            return self.measured[metric.name]
        if metric.output == "estimator":
            from .scorers import score_predictions

            return score_predictions(metric, self)
        if metric.output == "predictions":
            # Labels have few distinct pairs of true and predicted class: sorting texts of all rows
            # for each metric would take seconds.
            rows = self.distinct if self.classes else self
            return float(metric(rows.y, rows.predicted, rows.weights))
        # A class without training rows has no column in the output: its rows are left out, and a
        # remark counts them.
        output = self.decision if metric.output == "decision" else self.chances
        is_known = self.numbers >= 0
        if output is None or not is_known.any():
            return math.nan
        w = None if self.weights is None else self.weights[is_known]
        if metric.output == "decision":
            return _measure_decision(metric, self.numbers[is_known], output[is_known], w)
        labels = np.arange(len(self.classes))
        return float(metric(self.numbers[is_known], output[is_known], w, labels=labels))

    def constant(self, value: Label) -> Predictions:
        """Return a constant prediction of the same true values."""
        if self.always is not None:
            return self.always
        # Equal values for all rows: each area is one half.
        decision = None if self.decision is None else np.zeros_like(self.decision)
        predicted = np.full(self.y.shape, value)
        return replace(self, predicted=predicted, decision=decision, chances=None, measured={})

    def reliability(self) -> tuple[str, Reliability]:
        """Return the class of the reliability diagram, and its bins."""
        what, is_known = shown_class(self.classes), self.numbers >= 0
        if self.bins is not None:
            return what, self.bins
        if self.chances is None or not is_known.any():
            raise ValueError(f"no row has one of the classes {list(self.classes)}")
        rows = self.numbers[is_known], self.chances[is_known]
        return what, Reliability.of(*shown_probabilities(*rows))


def _measure_decision(
    metric: Metric, numbers: np.ndarray, decision: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the mean over the classes of a metric of one class against the rest."""
    first = 1 if decision.shape[1] == 1 else 0  # a single column is the second class
    return mean_of_classes(
        metric(numbers == label, column, weights)
        for label, column in enumerate(decision.T, first)
        # One class against the rest is undefined where one of both sides is empty.
        if 0 < np.count_nonzero(numbers == label) < len(numbers)
    )


def mean_of_classes(values: Iterable[float]) -> float:
    """Return the mean of the values of the classes that occur; NaN without any."""
    defined = list(values)
    return float(np.mean(defined)) if defined else math.nan


def best_constant(y: RowNumbers, is_classification: bool) -> Label:
    """Return the mean of the numbers, or the most frequent label."""
    if not is_classification:
        # In float64: a float32 sum of many targets would be rounded.
        return float(y.mean(dtype=np.float64))
    classes, counts = as_columns(y).counts()
    return classes[counts.argmax()].item()


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of the class of each label; -1 for an unknown label."""
    # A label above all classes has the place k, which the comparison then marks as unknown.
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    return np.where(classes[place] == y, place, -1)
