"""Confusion tables, as text and as JSON, and the reliability diagram of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..._files.atomic import write_atomically
from ..._messages.display import escape_controls
from ...scoring.predictions import Predictions
from ...scoring.reliability import Reliability

MOST_CLASSES = 20
"""Most classes of a full table; for more, only the largest confusions are shown."""


@dataclass(frozen=True)
class Confusion:
    """Table of counts with a row for each true and a column for each predicted class."""

    labels: list[Any]
    matrix: list[list[int]]

    def to_dict(self) -> dict[str, Any]:
        """Return the labels and the counts."""
        return {"labels": self.labels, "matrix": self.matrix}

    def __str__(self) -> str:
        head = ["true \\ predicted", *map(_label, self.labels)]
        rows = [
            [_label(label), *(f"{count:,}" for count in counts)]
            for label, counts in zip(self.labels, self.matrix, strict=True)
        ]
        return "\n".join(_align_columns([head, *rows]))


@dataclass(frozen=True)
class LargestConfusions:
    """The most frequent mistakes, for too many classes for a table.

    - `mistakes`: the most frequent first.
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
        rows = [[_label(true), _label(answer), f"{n:,}"] for true, answer, n in self.mistakes]
        return "\n".join(_align_columns([["true", "predicted", "rows"], *rows]))


def confusion(predictions: Predictions) -> Confusion | LargestConfusions:
    """Return the confusion table of a classification, or its largest confusions."""
    pairs = predictions.distinct
    labels = np.union1d(np.union1d(np.asarray(predictions.classes), pairs.predicted), pairs.y)
    rows = np.asarray(pairs.weights)
    if len(labels) <= MOST_CLASSES:
        square = np.zeros((len(labels), len(labels)), rows.dtype)
        square[np.searchsorted(labels, pairs.y), np.searchsorted(labels, pairs.predicted)] = rows
        return Confusion(labels.tolist(), square.tolist())
    wrong = np.flatnonzero(pairs.y != pairs.predicted)
    # Stable: equally frequent mistakes keep the order of the labels.
    largest = wrong[np.argsort(-rows[wrong], kind="stable")[:MOST_CLASSES]]
    columns = (part[largest].tolist() for part in (pairs.y, pairs.predicted, rows))
    return LargestConfusions(list(zip(*columns, strict=True)))


def _label(label: object) -> str:
    return escape_controls(str(label))


def _align_columns(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells
    ]


PICTURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: Path | None) -> None:
    """Raise ValueError if the picture cannot be drawn."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise ValueError(f"--reliability {path} must end in one of {', '.join(PICTURE_SUFFIXES)}")
    from ...plots._drawing import check_matplotlib  # imports scikit-learn, as all displays do

    try:
        check_matplotlib("--reliability")
    except ImportError as error:
        raise ValueError(str(error)) from error


def draw_reliability(path: Path, what: str, curve: Reliability) -> None:
    """Draw the observed share of a class by its predicted probability, above the row counts."""
    from matplotlib.figure import Figure

    from ...plots import ReliabilityDisplay

    figure = Figure(figsize=(4.5, 5.5), layout="constrained")
    top, below = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    display = ReliabilityDisplay(curve.probability, curve.share, curve.rows, what)
    display.plot(top, rows_ax=below)
    # Named, because the temporary file ends in .part, from which matplotlib finds no format.
    kind = path.suffix[1:].lower()
    write_atomically(path, lambda part: figure.savefig(part, format=kind, dpi=150))
