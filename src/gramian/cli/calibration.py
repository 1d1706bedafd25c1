"""Probabilities beside what came true: log loss, Brier score, calibration error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn import metrics as sk

from ..plots.reliability import Reliability


def log_loss(y: np.ndarray, chances: np.ndarray, classes: tuple[Any, ...]) -> float:
    """Return the mean of -log p of the right class; NaN without a row of a known class."""
    y, chances = known(y, chances, classes)
    return float(sk.log_loss(y, chances, labels=list(classes))) if len(y) else math.nan


def brier(y: np.ndarray, chances: np.ndarray, classes: tuple[Any, ...]) -> float:
    """Return the mean squared error of the probability of the second of two classes, else of all.

    As scikit-learn defines it; NaN without a row of a known class.
    """
    y, chances = known(y, chances, classes)
    if not len(y):
        return math.nan
    squares = (chances - (y[:, None] == np.asarray(classes))) ** 2
    return float(squares[:, 1].mean() if len(classes) == 2 else squares.sum(axis=1).mean())


def calibration_error(y: np.ndarray, chances: np.ndarray, classes: tuple[Any, ...]) -> float:
    """Return the expected calibration error of the class that is predicted, in 15 bins.

    The mean over the rows of the difference between the probability of the class that is predicted
    and the share of right ones, both means over a bin of these probabilities. NaN as above.
    """
    y, chances = known(y, chances, classes)
    if not len(y):
        return math.nan
    right = np.asarray(classes)[chances.argmax(axis=1)] == y
    found = Reliability.of(chances.max(axis=1), right)
    return float(np.average(np.abs(found.share - found.probability), weights=found.rows))


def known(
    y: np.ndarray, chances: np.ndarray, classes: tuple[Any, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of classes that the training had."""
    some = np.isin(y, classes)
    return y[some], chances[some]
