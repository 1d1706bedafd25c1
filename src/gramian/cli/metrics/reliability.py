"""Reliability diagram of a classifier, drawn with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files.atomic import write_atomically
from ...model.evaluation.class_sums import ChanceSums
from ...plots._drawing import check_matplotlib
from ...plots.reliability import PREDICTED_CLASS, ReliabilityDisplay
from .calibration import reliability

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: Path | None) -> None:
    """Raise ValueError if the picture cannot be drawn."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise ValueError(f"--reliability {path} must end in one of {', '.join(PICTURE_SUFFIXES)}")
    try:
        check_matplotlib("--reliability")
    except ImportError as error:
        raise ValueError(str(error)) from error


def draw(path: Path, sums: ChanceSums, classes: tuple[Any, ...]) -> None:
    """Draw the observed share of a class by its predicted probability, above the row counts.

    For two classes, the probability of the second one; for several, of the predicted one.
    """
    from matplotlib.figure import Figure

    if not sums.rows:
        raise ValueError(f"--reliability: no row has one of the classes {list(classes)}")
    what, bins = (
        (repr(classes[1]), sums.second) if len(classes) == 2 else (PREDICTED_CLASS, sums.bins)
    )
    bins_table = reliability(bins)
    figure = Figure(figsize=(4.5, 5.5), layout="constrained")
    top, below = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    display = ReliabilityDisplay(bins_table.probability, bins_table.share, bins_table.rows, what)
    display.plot(top, rows_ax=below)
    # Named, because the temporary file ends in .part, from which matplotlib finds no format.
    kind = path.suffix[1:].lower()
    write_atomically(path, lambda part: figure.savefig(part, format=kind, dpi=150))
