"""Scorers of scikit-learn on predictions in memory, and metrics by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from .._messages.checks import did_you_mean
from .predictions import Predictions
from .table import METRIC_TABLE, Metric, metrics_of


class PredictedRows(BaseEstimator):
    """Estimator that returns stored predictions, for the scorers of scikit-learn."""

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions

    def predict(self, X: object) -> np.ndarray:
        """Return the stored predictions."""
        return self.predictions.predicted


class PredictedNumbers(RegressorMixin, PredictedRows):
    """Regressor that returns stored predictions."""


class PredictedClasses(ClassifierMixin, PredictedRows):
    """Classifier that returns stored labels, decision values and probabilities."""

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the classes."""
        return np.asarray(self.predictions.classes)

    def decision_function(self, X: object) -> np.ndarray:
        """Return the stored decision values."""
        decision = _require_values(self.predictions.decision, "decision values")
        return decision[:, 0] if decision.shape[1] == 1 else decision

    def predict_proba(self, X: object) -> np.ndarray:
        """Return the stored probabilities."""
        return _require_values(self.predictions.chances, "probabilities")


def _require_values(values: np.ndarray | None, what: str) -> np.ndarray:
    if values is None:
        raise AttributeError(f"these predictions have no {what}")
    return values


def score_predictions(metric: Metric, predictions: Predictions) -> float:
    """Return the score of a scorer; NaN if it needs probabilities, which a constant has not.

    - `metric`: metric of an estimator.
    """
    # A scorer calls the methods of an estimator: the adapter returns stored predictions instead, so
    # that the model predicts once for all metrics.
    adapter = PredictedClasses if predictions.classes else PredictedNumbers
    weights = predictions.weights
    more: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
    rows = np.arange(len(predictions.y))[:, None]  # scorers only pass them on
    try:
        score = metric.resolved_function(adapter(predictions), rows, predictions.y, **more)
    except (AttributeError, TypeError, ValueError) as error:
        if (
            isinstance(error, AttributeError)
            and predictions.classes
            and predictions.chances is None
        ):
            # A constant prediction has no probabilities: its metric is undefined, and not an error.
            return math.nan
        message = f"{metric.name} cannot score these predictions of a {predictions.task}: {error}"
        raise ValueError(message) from error
    return float(score)


def find_metric(value: object, task: str, parameter: str) -> Metric:
    """Return the metric that a parameter names.

    - `value`: name in the table of metrics, name of a scorer of scikit-learn, or a scorer: a
      function of an estimator, rows and true values, such as from `sklearn.metrics.make_scorer`.
      The estimator returns stored predictions, whatever the rows are.
    - `task`: "regression" or "classification".
    - `parameter`: name of the parameter in errors.

    Raise ValueError if no metric of the task has this name; the message lists the names, and the
    nearest one.
    """
    task_metrics = metrics_of(task)
    for metric in task_metrics.values():
        if value in metric.names:
            return metric
    from sklearn.metrics import get_scorer, get_scorer_names  # takes a third of a second

    is_of_other_task = any(value in metric.names for metric in METRIC_TABLE.values())
    # Our names come first: scikit-learn negates errors, and `mae` must not become a score. A metric
    # of the other task has an error of its own, below.
    if callable(value) or (value in get_scorer_names() and not is_of_other_task):
        name = value if isinstance(value, str) else getattr(value, "__name__", repr(value))
        return Metric(
            name=name, title=name, task=task, function=get_scorer(value), output="estimator",
            higher_is_better=True,
        )  # fmt: skip
    raise ValueError(
        f"{parameter} must be one of {', '.join(task_metrics)}, or a scorer of scikit-learn, not "
        f"{value!r}{_hint(value, task_metrics)}"
    )


def _hint(value: object, task_metrics: Mapping[str, Metric]) -> str:
    """Return the end of the error for an unknown name: the nearest metric of the task."""
    if str(value) in METRIC_TABLE:
        return f", which is a metric of a {METRIC_TABLE[str(value)].task}"
    from sklearn.metrics import get_scorer_names

    for metric in task_metrics.values():
        if str(value).lower() in metric.similar_names:
            return f"; did you mean {metric.name}?"
    scorers = [metric.scorer for metric in task_metrics.values() if metric.scorer]
    return did_you_mean(value, [*task_metrics, *scorers, *get_scorer_names()])
