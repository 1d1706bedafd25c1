"""Metrics of predictions: a table of names, directions and functions, computed by scikit-learn.

To add one, add a line to `REGRESSION` or `CLASSIFICATION`: ``gramian evaluate`` and ``gramian fit
--metric`` find it there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn import metrics as sk

from .._checks import did_you_mean
from ..data import RemoteColumns
from ..model import Probabilities
from . import calibration

REGRESSION_TASK, CLASSIFICATION_TASK = "regression", "classification"


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions beside the truth.

    Attributes
    ----------
    y, predicted : ndarray of shape (n,)
        Numbers, or labels of classes.
    values : ndarray of shape (n,) or (n, k), or None
        Decision values of a classifier, of the second class where there are two.
    classes : tuple of labels
        Those of the training; empty for a regression.
    chances : ndarray of shape (n, k), or None
        Probabilities of the classes.
    """

    y: np.ndarray
    predicted: np.ndarray
    values: np.ndarray | None = None
    classes: tuple[Any, ...] = ()
    chances: np.ndarray | None = None

    @property
    def task(self) -> str:
        """The task that these are answers to: regression or classification."""
        return CLASSIFICATION_TASK if self.classes else REGRESSION_TASK

    def constant(self, value: Any) -> Answers:
        """Return the answers of somebody who always says the same."""
        values = None if self.values is None else np.zeros_like(self.values)
        predicted = np.full(len(self.y), value)
        return replace(self, predicted=predicted, values=values, chances=None)


@dataclass(frozen=True)
class Metric:
    """A measure of answers.

    Attributes
    ----------
    higher_is_better : bool
    of : callable
        From `Answers` to a number; NaN where it is undefined.
    of_probabilities : bool
        Whether it measures these, of which a constant answer has none.
    """

    higher_is_better: bool
    of: Callable[[Answers], float]
    of_probabilities: bool = False


def _r2(answers: Answers) -> float:
    y = answers.y
    if not (len(y) > 1 and y.max() > y.min()):
        return math.nan
    return float(sk.r2_score(y, answers.predicted))


def _recalls(answers: Answers) -> float:
    """Return the mean share of each class that was found, over the classes that are there."""
    there = np.unique(answers.y)
    return float(
        sk.recall_score(
            answers.y, answers.predicted, labels=there, average="macro", zero_division=0.0
        )
    )


def _macro_f1(answers: Answers) -> float:
    return float(sk.f1_score(answers.y, answers.predicted, average="macro", zero_division=0.0))


def _auc(answers: Answers) -> float:
    """Return the area under the ROC curve, of one class against the rest in the mean.

    Rows of classes that the training had not are left out, and so are classes without rows.
    """
    if answers.values is None:
        return math.nan
    known = np.isin(answers.y, answers.classes)
    y, values = answers.y[known], answers.values[known]
    each = zip(answers.classes[1:], [values], strict=True) if values.ndim == 1 else None
    pairs = each or zip(answers.classes, values.T, strict=True)
    areas = [
        float(sk.roc_auc_score(one, value))
        for label, value in pairs
        if (one := y == label).any() and not one.all()
    ]
    return float(np.mean(areas)) if areas else math.nan


def _of_chances(measure: Callable[[np.ndarray, np.ndarray, tuple[Any, ...]], float]) -> Metric:
    """Return a metric of probabilities; NaN where there are none."""

    def of(answers: Answers) -> float:
        if answers.chances is None:
            return math.nan
        return measure(answers.y, answers.chances, answers.classes)

    return Metric(False, of, of_probabilities=True)


REGRESSION: Mapping[str, Metric] = {
    "rmse": Metric(False, lambda a: float(sk.root_mean_squared_error(a.y, a.predicted))),
    "mae": Metric(False, lambda a: float(sk.mean_absolute_error(a.y, a.predicted))),
    "r2": Metric(True, _r2),
}
CLASSIFICATION: Mapping[str, Metric] = {
    "error": Metric(False, lambda a: float(sk.zero_one_loss(a.y, a.predicted))),
    "accuracy": Metric(True, lambda a: float(sk.accuracy_score(a.y, a.predicted))),
    "balanced_accuracy": Metric(True, _recalls),
    "macro_f1": Metric(True, _macro_f1),
    "auc": Metric(True, _auc),
    "log_loss": _of_chances(calibration.log_loss),
    "brier": _of_chances(calibration.brier),
    "calibration_error": _of_chances(calibration.calibration_error),
}
METRICS = {REGRESSION_TASK: REGRESSION, CLASSIFICATION_TASK: CLASSIFICATION}
CONSTANT = {REGRESSION_TASK: "mean", CLASSIFICATION_TASK: "majority"}
"""Who always says the same, by task: with whom predictions are compared."""

ELSEWHERE = {
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
"""Names that others have for some of them."""


def known() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return (*REGRESSION, *CLASSIFICATION)


def check(name: str, task: str | None = None) -> None:
    """Raise ValueError if there is no metric of that name, or none for a task.

    Parameters
    ----------
    name : str
    task : str, optional
        "regression" or "classification"; either by default.
    """
    names: Iterable[str] = known() if task is None else METRICS[task]
    if name in names:
        return
    if name in known():
        raise ValueError(f"--metric {name} is not for a {task}, which has {', '.join(names)}")
    near = ELSEWHERE.get(name.lower())
    hint = did_you_mean(name, names) if near is None else f"; did you mean {near}?"
    raise ValueError(f"unknown --metric {name!r}; known: {', '.join(names)}{hint}")


def measured(answers: Answers, constant: Any, names: Iterable[str] = ()) -> dict[str, float]:
    """Return metrics of answers, most beside that of always giving the same one.

    Parameters
    ----------
    answers : Answers
    constant : number or label
        The mean of the training targets, or their largest class.
    names : iterable of str, optional
        All metrics of the task by default.

    Returns
    -------
    dict
        Such as ``rmse``, ``rmse_of_mean``; ``error``, ``error_of_majority``. NaN where undefined.
    """
    table, beside = METRICS[answers.task], answers.constant(constant)
    found: dict[str, float] = {}
    for name in tuple(names) or table:
        found[name] = table[name].of(answers)
        if not table[name].of_probabilities:
            found[f"{name}_of_{CONSTANT[answers.task]}"] = table[name].of(beside)
    return found


def best_constant(y: np.ndarray | RemoteColumns, classification: bool) -> Any:
    """Return the mean of numbers, or the largest class of labels."""
    if isinstance(y, RemoteColumns):
        if not classification:
            return float(y.mean())
        counts = y.counts()[1].numpy()
        return y.classes()[counts.argmax()].item()
    if not classification:
        return float(y.mean(dtype=np.float64))
    classes, counts = np.unique(y, return_counts=True)
    return classes[counts.argmax()].item()


def answers_of(
    y: np.ndarray,
    values: np.ndarray,
    classes: Iterable[Any] | None = None,
    probabilities: Probabilities | None = None,
) -> Answers:
    """Return the answers that the output of a model means.

    Parameters
    ----------
    y : ndarray of shape (n,)
    values : ndarray of shape (n, t)
        Predictions, or decision values, as `KernelModel.predict` gives them.
    classes : iterable of labels, optional
        Those of the model; None for a regression.
    probabilities : Probabilities, optional
        What makes probabilities of decision values.
    """
    if classes is None:
        return Answers(y.astype(np.float64), values[:, 0])
    labels = tuple(classes)
    best = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
    predicted, alone = np.asarray(labels)[best], values.shape[1] == 1
    chances = None if probabilities is None else probabilities(torch.from_numpy(values)).numpy()
    return Answers(y, predicted, values[:, 0] if alone else values, labels, chances)


def remarks(answers: Answers) -> list[str]:
    """Return remarks on metrics that do not mean what they mostly do."""
    if not answers.classes:
        same = len(answers.y) > 0 and answers.y.max() == answers.y.min()
        return [f"all targets are {answers.y[0]:g}: r2 is undefined"] if same else []
    said = []
    strange = answers.y[~np.isin(answers.y, answers.classes)]
    if len(strange):
        names = ", ".join(repr(label) for label in np.unique(strange)[:3].tolist())
        said.append(
            f"{len(strange):,} rows have a class that the training had not, such as {names}: they "
            "count as wrong, and auc and probabilities leave them out"
        )
    there = np.unique(answers.y)
    if len(there) == 1:
        said.append(f"all rows have the class {there[0].item()!r}: auc is undefined")
    return said
