"""`gramian plan`: what a fit would need, before anything is computed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from .. import fitting
from .options import FitOptions
from .report import Report
from .settings import check, settings_of
from .training import open_training


def plan(data: Path, options: FitOptions) -> Report:
    """Report solver, memory, kernel evaluations and seconds of a fit with these options."""
    check(options)
    training = open_training(data, options)
    rows = training.train.rows
    expected = fitting.plan(settings_of(options), rows, training.targets)
    n, d = rows.shape
    return {"plan": str(expected), "rows": n, "features": d, **asdict(expected)}
