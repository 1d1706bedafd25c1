"""fashion-MNIST with pixels between 0 and 1."""

from __future__ import annotations

from pathlib import Path

from .labels import load, subsampled
from .sets import Split

BANDWIDTH = 20.0
"""Lengthscale of the Laplacian kernel, that of the code of EigenPro 3's authors."""


def pixels(path: Path, rows: int | None = None) -> Split:
    split = load(path, "float32", standardize=False)
    split.X /= 255
    split.X_test /= 255
    return split if rows is None else subsampled(split, rows)
