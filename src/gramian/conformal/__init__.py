"""Conformal methods: prediction intervals, and sets of classes, from errors on held-out rows.

Each is one file with a registered `ConformalMethod`: `divide` holds rows out before a fit,
`calibrate` scores them after it, and `intervals` turns predictions and scores into intervals.
``KernelRidge(conformal=...)``, ``gramian fit --conformal`` and model files take all of them.

======  ================================  =================================================
name    rows with scores                  intervals
======  ================================  =================================================
split   a fifth, held out before the fit  the prediction, and a multiple of a learned spread
cv+     all, each by a fit without it     the same, of five fits
cqr     a fifth, held out before the fit  two fitted quantiles, moved by a constant
======  ================================  =================================================

`RowGroups` calibrate each group of rows by itself, with any method: ``conformal_groups``.

To add a method: one file with a registered `ConformalMethod`, one import line here. A method that
holds rows out derives from `HeldOutMethod`, and defines the score of a row alone.
"""

from __future__ import annotations

from typing import Any

from .base import ConformalMethod, RowScores, methods
from .cqr import ConformalQuantiles
from .cv_plus import CVPlus
from .groups import RowGroups
from .held_out import HeldOutMethod
from .parts import CalibratedPart
from .predictor import ConformalPredictor
from .split import ConformalSplit


def make(name: str, **parameters: Any) -> ConformalMethod:
    """Return the conformal method called `name`, one of `names`."""
    return methods.make(name, **parameters)


def names() -> tuple[str, ...]:
    """Return the names of the conformal methods, and of the methods of other packages."""
    return methods.names()


__all__ = [
    "CVPlus",
    "CalibratedPart",
    "ConformalMethod",
    "ConformalPredictor",
    "ConformalQuantiles",
    "ConformalSplit",
    "HeldOutMethod",
    "RowGroups",
    "RowScores",
    "make",
    "names",
]
