"""Metrics of probabilities: log loss, Brier score and calibration error, from sums.

They leave out rows of classes that the training did not have, and are NaN if no row remains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...model.evaluation.class_sums import ChanceSums
from ...plots.reliability import Reliability


def sums_of(y: np.ndarray, chances: np.ndarray, classes: Sequence[Any]) -> ChanceSums:
    """Return the sums of local rows.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    chances : ndarray of shape (n, k)
        Probabilities.
    classes : sequence of k labels
        Sorted.
    """
    return ChanceSums.of(torch.from_numpy(chances), torch.from_numpy(numbers_of(y, classes)))


def numbers_of(y: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Return the number of the class of each label; -1 for an unknown label."""
    labels = np.asarray(classes)
    # A label above all classes has the place k, which the comparison then marks as unknown.
    place = np.searchsorted(labels, y).clip(max=len(labels) - 1)
    return np.where(labels[place] == y, place, -1)


def log_loss(sums: ChanceSums) -> float:
    """Return the mean of -log p of the true class."""
    return sums.logs / sums.rows if sums.rows else math.nan


def brier(sums: ChanceSums) -> float:
    """Return the Brier score as scikit-learn defines it.

    For two classes, only the probability of the second class counts; for more, all count.
    """
    if not sums.rows:
        return math.nan
    squares = sums.squares[1] if len(sums.squares) == 2 else sums.squares.sum()
    return float(squares) / sums.rows


def calibration_error(sums: ChanceSums) -> float:
    """Return the expected calibration error of the predicted class, in 15 bins.

    Each bin compares its mean predicted probability with its share of correct predictions. The
    error is the mean absolute difference over the bins, weighted by their rows.
    """
    if not sums.rows:
        return math.nan
    bins_table = reliability(sums.bins)
    return float(
        np.average(np.abs(bins_table.share - bins_table.probability), weights=bins_table.rows)
    )


def reliability(bins: torch.Tensor) -> Reliability:
    """Return the reliability curve of the bins that have rows; `ChanceSums` defines the bins."""
    filled_bins = bins[bins[:, 0] > 0]
    rows, probability, true = filled_bins.numpy().T
    return Reliability(probability / rows, true / rows, rows.astype(np.int64))
