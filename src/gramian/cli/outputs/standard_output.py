"""Predictions on standard output."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import typer

STANDARD_OUTPUT = "-"
"""Name of a file of predictions that goes to standard output, as CSV."""


def write_standard_output(write: Callable[[Path], object]) -> None:
    """Write a table to standard output; `write` first writes it to a temporary file."""
    with tempfile.TemporaryDirectory(prefix="gramian-") as folder:
        path = Path(folder) / "predictions.csv"
        write(path)
        typer.echo(path.read_text(encoding="utf-8"), nl=False)
