"""Metrics of predictions: a table of names, directions and functions of sums over the rows.

They equal scikit-learn's, which the tests check, for local and for remote rows. To add a metric,
add a line to `REGRESSION_METRICS` or `CLASSIFICATION_METRICS`, the tables that ``gramian evaluate``
and ``gramian fit --metric`` read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..._messages.checks import did_you_mean
from ...data import RemoteColumns
from ...model import Label
from ...model.evaluation.class_sums import ChanceSums
from . import calibration
from .answers import CLASSIFICATION_TASK, REGRESSION_TASK, Summed


@dataclass(frozen=True)
class Metric:
    """A measure of answers.

    Attributes
    ----------
    higher_is_better : bool
    of : callable
        Maps answers to a number; NaN where the metric is undefined.
    of_probabilities : bool
        Whether it needs probabilities, which a constant prediction does not have.
    """

    higher_is_better: bool
    of: Callable[[Summed], float]
    of_probabilities: bool = False


def _rmse(answers: Summed) -> float:
    return math.sqrt(float(answers.errors.squares) / answers.errors.weight)


def _mae(answers: Summed) -> float:
    return float(answers.errors.sizes) / answers.errors.weight


def _r2(answers: Summed) -> float:
    # `Sums.r2` follows scikit-learn: 0 or 1 for constant targets, which would look like a result.
    return answers.errors.r2 if bool(answers.errors.spread > 0) else math.nan


def _of_chances(measure: Callable[[ChanceSums], float]) -> Metric:
    """Return a metric of probabilities; NaN without probabilities."""

    def of(answers: Summed) -> float:
        return math.nan if answers.chance_sums is None else measure(answers.chance_sums)

    return Metric(False, of, of_probabilities=True)


REGRESSION_METRICS: Mapping[str, Metric] = {
    "rmse": Metric(False, _rmse),
    "mae": Metric(False, _mae),
    "r2": Metric(True, _r2),
}
CLASSIFICATION_METRICS: Mapping[str, Metric] = {
    "error": Metric(False, lambda a: 1 - a.tally.accuracy),
    "accuracy": Metric(True, lambda a: a.tally.accuracy),
    "balanced_accuracy": Metric(True, lambda a: a.tally.balanced_accuracy),
    "macro_f1": Metric(True, lambda a: a.tally.macro_f1),
    "auc": Metric(True, lambda a: a.area[0]),
    "log_loss": _of_chances(calibration.log_loss),
    "brier": _of_chances(calibration.brier),
    "calibration_error": _of_chances(calibration.calibration_error),
}
METRICS_OF_TASK = {REGRESSION_TASK: REGRESSION_METRICS, CLASSIFICATION_TASK: CLASSIFICATION_METRICS}
CONSTANT_OF_TASK = {REGRESSION_TASK: "mean", CLASSIFICATION_TASK: "majority"}
"""Name of the constant prediction that each task is compared with."""

VISIBLE_ERROR = 5e-5
"""Least error of an area that is reported; a smaller one is below the digits shown."""

FOREIGN_METRICS = {
    "mse": "rmse",
    "mean_squared_error": "rmse",
    "root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
    "r2_score": "r2",
    "r^2": "r2",
    "f1": "macro_f1",
    "f1_macro": "macro_f1",
    "f1_score": "macro_f1",
    "roc_auc": "auc",
    "roc_auc_score": "auc",
    "acc": "accuracy",
    "logloss": "log_loss",
    "cross_entropy": "log_loss",
    "brier_score": "brier",
    "brier_score_loss": "brier",
    "ece": "calibration_error",
}
"""Names of the metrics in other libraries."""


def known_metrics() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return (*REGRESSION_METRICS, *CLASSIFICATION_METRICS)


def check(name: str, task: str | None = None) -> None:
    """Raise ValueError if no metric has this name, or if it is for the other task.

    Parameters
    ----------
    name : str
    task : str, optional
        "regression" or "classification"; either by default.
    """
    names: Iterable[str] = known_metrics() if task is None else METRICS_OF_TASK[task]
    if name in names:
        return
    if name in known_metrics():
        raise ValueError(f"--metric for a {task} must be one of {', '.join(names)}, not {name}")
    near = FOREIGN_METRICS.get(name.lower())
    hint = did_you_mean(name, names) if near is None else f"; did you mean {near}?"
    raise ValueError(f"unknown --metric {name!r}; known: {', '.join(names)}{hint}")


def measure_answers(
    answers: Summed, constant: Label, names: Iterable[str] = ()
) -> dict[str, float]:
    """Return metrics of the predictions, and most of them also for a constant prediction.

    Parameters
    ----------
    answers : Answers, or sums over remote rows
    constant : number or label
        The mean of the training targets, or their largest class.
    names : iterable of str, optional
        All metrics of the task by default.

    Returns
    -------
    dict
        Such as ``rmse``, ``rmse_of_mean``; ``error``, ``error_of_majority``. NaN where undefined.
    """
    task = CLASSIFICATION_TASK if answers.classes else REGRESSION_TASK
    table, beside = METRICS_OF_TASK[task], answers.constant(constant)
    values: dict[str, float] = {}
    for name in tuple(names) or table:
        values[name] = table[name].of(answers)
        if not table[name].of_probabilities:
            values[f"{name}_of_{CONSTANT_OF_TASK[task]}"] = table[name].of(beside)
    return values


def best_constant(y: np.ndarray | RemoteColumns, classification: bool) -> Label:
    """Return the mean of the numbers, or the most frequent label."""
    if isinstance(y, RemoteColumns):
        if not classification:
            return float(y.mean())
        counts = y.counts()[1].numpy()
        largest: Label = y.classes()[counts.argmax()].item()
        return largest
    if not classification:
        # In float64: a float32 sum of many targets would be rounded.
        return float(y.mean(dtype=np.float64))
    classes, counts = np.unique(y, return_counts=True)
    most_frequent: Label = classes[counts.argmax()].item()
    return most_frequent


def remarks(answers: Summed) -> list[str]:
    """Return remarks on undefined, inexact and partial metrics."""
    if not answers.classes:
        same = not bool(answers.errors.spread > 0)
        return [f"all targets are {float(answers.errors.mean):g}: r2 is undefined"] if same else []
    notes, tally, off = [], answers.tally, answers.area[1]
    present_labels = tally.labels[tally.rows > 0]
    strange = np.isin(present_labels, answers.classes, invert=True)
    if strange.any():
        names = ", ".join(repr(label) for label in present_labels[strange][:3].tolist())
        count = tally.rows[tally.rows > 0][strange].sum()
        notes.append(
            f"{count:,} rows have a class without training rows, such as {names}: they count as "
            "wrong, and auc and metrics of probabilities leave them out"
        )
    if len(present_labels) == 1:
        notes.append(f"all rows have the class {present_labels[0].item()!r}: auc is undefined")
    if off >= VISIBLE_ERROR:
        notes.append(f"auc may be off by up to {off:.1g}, because values are counted in bins")
    return notes
