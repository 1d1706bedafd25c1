"""`gramian plan`: what a fit would need, before anything is computed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from .estimator import check, make_estimator
from .options import FitOptions
from .report import Report
from .training import open_training


def plan(data: Path, options: FitOptions) -> Report:
    """Report solver, memory, kernel evaluations and seconds of a fit with these options."""
    check(options)
    training = open_training(data, options)
    targets = 1
    if training.classification and (classes := len(np.unique(training.train.y))) > 2:
        targets = classes
    rows = training.train.rows
    expected = make_estimator(options, training.classification).plan(rows, targets=targets)
    n, d = rows.shape
    return {"plan": str(expected), "rows": n, "features": d, **asdict(expected)}
