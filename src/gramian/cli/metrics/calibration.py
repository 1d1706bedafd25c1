"""Metrics of probabilities: log loss, Brier score and calibration error, from sums.

They are of the rows of classes that the training had, and NaN without any.
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
    place = np.searchsorted(labels, y).clip(max=len(labels) - 1)
    return np.where(labels[place] == y, place, -1)


def log_loss(sums: ChanceSums) -> float:
    """Return the mean of -log p of the right class."""
    return sums.logs / sums.rows if sums.rows else math.nan


def brier(sums: ChanceSums) -> float:
    """Return the mean squared error of the probability of the second of two classes, else of all.

    As scikit-learn defines it.
    """
    if not sums.rows:
        return math.nan
    squares = sums.squares[1] if len(sums.squares) == 2 else sums.squares.sum()
    return float(squares) / sums.rows


def calibration_error(sums: ChanceSums) -> float:
    """Return the expected calibration error of the class that is predicted, in 15 bins.

    The mean over the rows of the difference between the probability of the class that is predicted
    and the share of right ones, both means over a bin of these probabilities.
    """
    if not sums.rows:
        return math.nan
    bins_table = reliability(sums.bins)
    return float(
        np.average(np.abs(bins_table.share - bins_table.probability), weights=bins_table.rows)
    )


def reliability(bins: torch.Tensor) -> Reliability:
    """Return the bins that have rows; see `ChanceSums` for theirs."""
    filled_bins = bins[bins[:, 0] > 0]
    rows, probability, true = filled_bins.numpy().T
    return Reliability(probability / rows, true / rows, rows.astype(np.int64))
