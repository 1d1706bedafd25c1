"""Reliability diagram of a classifier, drawn with matplotlib."""

from __future__ import annotations

from pathlib import Path

from ..._files.atomic import write_atomically
from ...scoring.reliability import Reliability

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
