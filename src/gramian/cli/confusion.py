"""Confusion: how many rows of each class were taken for which, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from .metrics import Answers

MOST_CLASSES = 20
"""Classes up to which the whole table is shown; of more, the largest confusions."""


@dataclass(frozen=True)
class Confusion:
    """A table with a row for each true class and a column for each predicted one.

    Attributes
    ----------
    labels : list of labels
    matrix : list of lists of int
    """

    labels: list[Any]
    matrix: list[list[int]]

    def to_dict(self) -> dict[str, Any]:
        """Return the labels and the counts."""
        return {"labels": self.labels, "matrix": self.matrix}

    def __str__(self) -> str:
        head = ["true \\ predicted", *map(str, self.labels)]
        rows = [
            [str(label), *(f"{count:,}" for count in counts)]
            for label, counts in zip(self.labels, self.matrix, strict=True)
        ]
        return "\n".join(_aligned([head, *rows]))


@dataclass(frozen=True)
class LargestConfusions:
    """The most frequent mistakes, where there are too many classes for a table.

    Attributes
    ----------
    mistakes : list of (true, predicted, rows)
        The most frequent first.
    """

    mistakes: list[tuple[Any, Any, int]]

    def to_dict(self) -> dict[str, Any]:
        """Return one entry per mistake."""
        return {
            "largest": [
                {"true": true, "predicted": predicted, "rows": rows}
                for true, predicted, rows in self.mistakes
            ]
        }

    def __str__(self) -> str:
        rows = [[str(true), str(predicted), f"{n:,}"] for true, predicted, n in self.mistakes]
        return "\n".join(_aligned([["true", "predicted", "rows"], *rows]))


def confusion(answers: Answers) -> Confusion | LargestConfusions:
    """Return the table of a classification, or its largest mistakes."""
    labels = np.union1d(np.asarray(answers.classes), np.unique(answers.y))
    if len(labels) <= MOST_CLASSES:
        counts = confusion_matrix(answers.y, answers.predicted, labels=labels)
        return Confusion(labels.tolist(), counts.tolist())
    true, said = (np.searchsorted(labels, part) for part in (answers.y, answers.predicted))
    wrong = true != said
    pairs, rows = np.unique(true[wrong] * len(labels) + said[wrong], return_counts=True)
    largest = np.argsort(-rows, kind="stable")[:MOST_CLASSES]
    return LargestConfusions(
        [
            (labels[pair // len(labels)].item(), labels[pair % len(labels)].item(), int(count))
            for pair, count in zip(pairs[largest], rows[largest], strict=True)
        ]
    )


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells
    ]
