"""Tally: how many rows of each label are taken for which class, and the errors that this makes."""

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
        Sorted: of the rows, and of the training.
    said : ndarray of shape (k,)
        The places among them of what is predicted.
    counts : ndarray of shape (l, k)
        Rows by what they are and what they are taken for.
    """

    labels: np.ndarray
    said: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, predicted: np.ndarray, classes: Sequence[Any]) -> Tally:
        """Return that of labels and predictions, which are among the classes or all the same."""
        there = np.unique(predicted) if len(predicted) else predicted
        said = np.union1d(np.asarray(classes), there)
        labels = np.union1d(said, y)
        pairs = np.searchsorted(labels, y) * len(said) + np.searchsorted(said, predicted)
        counts = np.bincount(pairs, minlength=len(labels) * len(said))
        return cls(labels, np.searchsorted(labels, said), counts.reshape(len(labels), -1))

    def always(self, label: Label) -> Tally:
        """Return that of somebody who always says the same."""
        labels = np.union1d(self.labels, [label])
        rows = np.zeros(len(labels), np.int64)
        rows[np.searchsorted(labels, self.labels)] = self.rows
        return Tally(labels, np.searchsorted(labels, [label]), rows[:, None])

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of each label."""
        found: np.ndarray = self.counts.sum(axis=1)
        return found

    @cached_property
    def right(self) -> np.ndarray:
        """Rows of each label that are taken for what they are."""
        found = np.zeros(len(self.labels), np.int64)
        found[self.said] = self.counts[self.said, np.arange(len(self.said))]
        return found

    @property
    def accuracy(self) -> float:
        """The share of rows that are right."""
        return float(self.right.sum() / self.rows.sum())

    @property
    def balanced_accuracy(self) -> float:
        """The mean share of each label that is right, of the labels that are there."""
        there = self.rows > 0
        return float((self.right[there] / self.rows[there]).mean())

    @property
    def macro_f1(self) -> float:
        """The mean of F1 of each label that is there or is predicted."""
        both = self.rows.copy()
        both[self.said] += self.counts.sum(axis=0)
        some = both > 0
        return float((2 * self.right[some] / both[some]).mean())
