"""Confusion tables, as text and as JSON, and the reliability diagram of a classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._files.atomic import write_atomically
from ..._messages.display import escape_controls
from ...scoring.predictions import Predictions
from ...scoring.reliability import Reliability
from .report import TextTable

MOST_CLASSES = 20
"""Most classes of a full table; for more, only the largest confusions are shown."""


def confusion(predictions: Predictions) -> TextTable:
    """Return the confusion table of a classification, or its largest confusions."""
    pairs = predictions.distinct
    labels = np.union1d(np.union1d(np.asarray(predictions.classes), pairs.predicted), pairs.y)
    rows = np.asarray(pairs.weights)
    if len(labels) <= MOST_CLASSES:
        square = np.zeros((len(labels), len(labels)), rows.dtype)
        square[np.searchsorted(labels, pairs.y), np.searchsorted(labels, pairs.predicted)] = rows
        entry = {"labels": labels.tolist(), "matrix": square.tolist()}
        names = [escape_controls(str(label)) for label in entry["labels"]]
        pairs_of_lines = zip(names, entry["matrix"], strict=True)
        lines = [[name, *(f"{count:,}" for count in counts)] for name, counts in pairs_of_lines]
        return TextTable([["true \\ predicted", *names], *lines], entry)
    wrong = np.flatnonzero(pairs.y != pairs.predicted)
    # Stable: equally frequent mistakes keep the order of the labels.
    largest = wrong[np.argsort(-rows[wrong], kind="stable")[:MOST_CLASSES]]
    columns = (part[largest].tolist() for part in (pairs.y, pairs.predicted, rows))
    mistakes, head = list(zip(*columns, strict=True)), ["true", "predicted", "rows"]
    lines = [[*(escape_controls(str(k)) for k in pair), f"{n:,}"] for *pair, n in mistakes]
    return TextTable(
        [head, *lines], {"largest": [dict(zip(head, m, strict=True)) for m in mistakes]}
    )


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
