"""Predictions and true values, or sums over them, as the metrics take them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch

from ...data import RemoteColumns, default_block_size
from ...model import Label, Probabilities
from ...model.evaluation.agreement import Errors, Sums
from ...model.evaluation.class_sums import ChanceSums
from ...model.evaluation.ranks import Ranks
from . import calibration
from .tally import Tally

REGRESSION_TASK, CLASSIFICATION_TASK = "regression", "classification"

ALL_BINS = 1 << 62
"""Unlimited bins of `Ranks`: areas of local rows are exact."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions and true values in memory.

    Attributes
    ----------
    y, predicted : ndarray of shape (n,)
        Numbers, or labels of classes.
    values : ndarray of shape (n,) or (n, k), or None
        Decision values of a classifier; for two classes, of the second class.
    classes : tuple of labels
        Sorted labels of the training; empty for a regression.
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
        """The task: regression or classification."""
        return CLASSIFICATION_TASK if self.classes else REGRESSION_TASK

    def constant(self, value: Label) -> Answers:
        """Return the answers of a constant prediction."""
        # Equal values for all rows: each area is one half.
        values = None if self.values is None else np.zeros_like(self.values)
        predicted = np.full(len(self.y), value)
        return replace(self, predicted=predicted, values=values, chances=None)

    @cached_property
    def errors(self) -> Sums:
        """Sums of the errors of a regression."""
        y, values = (torch.from_numpy(np.asarray(a, np.float64)) for a in (self.y, self.predicted))
        return Errors()(0, values[:, None], y)

    @cached_property
    def tally(self) -> Tally:
        """Confusion counts."""
        return Tally.of(self.y, self.predicted, self.classes)

    @cached_property
    def area(self) -> tuple[float, float]:
        """The mean area under the ROC curves, and its error: 0, as local ranks are exact."""
        if self.values is None:
            return math.nan, 0.0
        # Rows of labels that the training did not have belong to no curve.
        number = calibration.numbers_of(self.y, self.classes)
        true, values = torch.from_numpy(number[number >= 0]), self.values[number >= 0]
        columns = values[:, None] if values.ndim == 1 else values
        first = len(self.classes) - columns.shape[1]  # a single column is the second class
        return mean_area(
            [
                Ranks.of(torch.from_numpy(column), true == label, ALL_BINS)
                for label, column in enumerate(columns.T, first)
            ]
        )

    @cached_property
    def chance_sums(self) -> ChanceSums | None:
        """Sums of the probabilities; None without probabilities."""
        if self.chances is None:
            return None
        return calibration.sums_of(self.y, self.chances, self.classes)


@dataclass(frozen=True, eq=False)
class RegressionThere:
    """Sums over remote predictions and true values of a regression.

    Attributes
    ----------
    y : RemoteColumns of shape (n,)
    errors : Sums
    """

    y: RemoteColumns
    errors: Sums
    classes = ()

    def constant(self, value: Label) -> RegressionThere:
        """Return the sums for a constant prediction, in a pass over the true values."""
        table = torch.tensor([[float(value)]], dtype=torch.float64)
        # A lookup in a table of one entry gives a remote column of the constant.
        same = self.y.looked_up(np.zeros(1), table).rows
        return replace(self, errors=same.fold(Errors(), self.y, size=default_block_size(same)))

    @property
    def tally(self) -> Tally:
        """Raise TypeError: only a classification has a confusion matrix."""
        raise TypeError("a regression has no confusion matrix")

    # Attributes of classifications, which the metrics of a regression do not have.
    area, chance_sums = (math.nan, 0.0), None


@dataclass(frozen=True, eq=False)
class ClassesThere:
    """Sums over remote predictions and true labels of a classification.

    Attributes
    ----------
    classes : tuple of labels
    tally : Tally
    area : (float, float)
    chance_sums : ChanceSums, optional
    """

    classes: tuple[Any, ...]
    tally: Tally
    area: tuple[float, float]
    chance_sums: ChanceSums | None

    def constant(self, value: Label) -> ClassesThere:
        """Return the answers of a constant prediction."""
        # A constant prediction ranks no row above another.
        area = math.nan if math.isnan(self.area[0]) else 0.5
        return replace(self, tally=self.tally.always(value), area=(area, 0.0), chance_sums=None)

    @property
    def errors(self) -> Sums:
        """Raise TypeError: only a regression has errors."""
        raise TypeError("a classification has no numeric errors")


Summed: TypeAlias = Answers | RegressionThere | ClassesThere
"""Arguments of metrics: local answers, or sums over remote rows."""


def mean_area(ranks: Sequence[Ranks]) -> tuple[float, float]:
    """Return the mean area under the one-vs-rest ROC curves, and a bound on its error.

    Classes that no row or all rows have are left out. The mean is NaN if no class remains.
    """
    defined_areas = [
        area
        for area in (ranks_of_class.area() for ranks_of_class in ranks)
        if not math.isnan(area[0])
    ]
    if not defined_areas:
        return math.nan, 0.0
    areas, off = np.mean(defined_areas, axis=0).tolist()
    return areas, off


def constant_of(answers: Summed) -> Label:
    """Return the mean of the true values, or their most frequent class."""
    if not answers.classes:
        return float(answers.errors.mean)
    largest: Label = answers.tally.labels[answers.tally.rows.argmax()].item()
    return largest


def answers_of(
    y: np.ndarray,
    values: np.ndarray,
    classes: Iterable[Any] | None = None,
    probabilities: Probabilities | None = None,
) -> Answers:
    """Return the answers from the output of a model.

    Parameters
    ----------
    y : ndarray of shape (n,)
    values : ndarray of shape (n, t)
        Predictions, or decision values, from `KernelModel.predict`.
    classes : iterable of labels, optional
        Labels of the model; None for a regression.
    probabilities : Probabilities, optional
        Map from decision values to probabilities.
    """
    if classes is None:
        return Answers(y.astype(np.float64), values[:, 0])
    labels = tuple(classes)
    best = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
    predicted, alone = np.asarray(labels)[best], values.shape[1] == 1
    chances = None if probabilities is None else probabilities(torch.from_numpy(values)).numpy()
    return Answers(y, predicted, values[:, 0] if alone else values, labels, chances)
