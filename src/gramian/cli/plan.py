"""`gramian plan`: what a fit would need, before anything is computed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from .. import fitting
from .options import FitOptions
from .report import Report
from .settings import check, generators, settings_of
from .training import open_training


def plan(data: Path, options: FitOptions) -> Report:
    """Report solver, memory, kernel evaluations and seconds of a fit with these options."""
    check(options)
    training = open_training(data, options)
    ready = training.prepared(settings_of(options), generators(options))
    expected = fitting.plan(ready.settings, ready.data.rows, training.targets)
    n, d = ready.data.rows.shape
    return {
        "plan": str(expected),
        "rows": n,
        "features": d,
        **asdict(expected),
        "columns": ready.columns,
    }
