"""Confusion counts by true label and predicted class, and the metrics from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...model import Label


@dataclass(frozen=True, eq=False)
class Tally:
    """A confusion matrix.

    Attributes
    ----------
    labels : ndarray of shape (l,)
        Sorted labels of the rows and of the training.
    predicted : ndarray of shape (k,)
        Positions of the predicted labels in `labels`.
    counts : ndarray of shape (l, k)
        Rows by true and predicted label.
    """

    labels: np.ndarray
    predicted: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, predicted: np.ndarray, classes: Sequence[Any]) -> Tally:
        """Count pairs of label and prediction; predictions are classes, or one constant label."""
        predicted_labels = np.unique(predicted) if len(predicted) else predicted
        predicted_places = np.union1d(np.asarray(classes), predicted_labels)
        labels = np.union1d(predicted_places, y)
        # A pair of labels is one number: a single count fills the matrix.
        pairs = np.searchsorted(labels, y) * len(predicted_places) + np.searchsorted(
            predicted_places, predicted
        )
        counts = np.bincount(pairs, minlength=len(labels) * len(predicted_places))
        return cls(
            labels, np.searchsorted(labels, predicted_places), counts.reshape(len(labels), -1)
        )

    def always(self, label: Label) -> Tally:
        """Return the counts of a constant prediction."""
        labels = np.union1d(self.labels, [label])
        rows = np.zeros(len(labels), np.int64)
        rows[np.searchsorted(labels, self.labels)] = self.rows
        return Tally(labels, np.searchsorted(labels, [label]), rows[:, None])

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of each label."""
        counts_by_label: np.ndarray = self.counts.sum(axis=1)
        return counts_by_label

    @cached_property
    def right(self) -> np.ndarray:
        """Correctly predicted rows of each label."""
        correct = np.zeros(len(self.labels), np.int64)
        correct[self.predicted] = self.counts[self.predicted, np.arange(len(self.predicted))]
        return correct

    @property
    def accuracy(self) -> float:
        """The share of correctly predicted rows."""
        return float(self.right.sum() / self.rows.sum())

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the labels that occur."""
        is_present = self.rows > 0
        return float((self.right[is_present] / self.rows[is_present]).mean())

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that occur or are predicted."""
        # F1 of a label is 2 TP / (its rows + its predictions).
        both = self.rows.copy()
        both[self.predicted] += self.counts.sum(axis=0)
        is_relevant = both > 0
        return float((2 * self.right[is_relevant] / both[is_relevant]).mean())
