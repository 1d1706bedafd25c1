"""`gramian plan`: what a fit would need, before anything is computed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from .estimator import check, make_estimator
from .options import FitOptions
from .report import Report
from .training import open_training


def plan(data: Path, options: FitOptions) -> Report:
    """Report solver, memory, kernel evaluations and seconds of a fit with these options."""
    check(options)
    training = open_training(data, options)
    rows = training.train.rows
    estimator = make_estimator(options, training.classification)
    expected = estimator.plan(rows, targets=training.targets)
    n, d = rows.shape
    return {"plan": str(expected), "rows": n, "features": d, **asdict(expected)}
