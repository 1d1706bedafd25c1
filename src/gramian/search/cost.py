"""Kernel evaluations of the steps of a search, before they are made."""

from __future__ import annotations

from ..paths.full import RANK
from .full_fit import DIRECT_ROWS, EVERY
from .material import Material

ITERATIONS = 12
"""Of conjugate gradient that a fit with all rows as centers takes, about."""


def of_sample(material: Material, landmarks: int, rows: int) -> float:
    """Return those of one kernel, fitted to a sample of each split."""
    total = 0.0
    for split in material.splits:
        n = min(rows, len(split.learn))
        m = min(landmarks, n)
        total += (n + m + len(split.held)) * float(m)
    return total


def of_fit(material: Material) -> float:
    """Return those of a fit with all rows as centers, to each split."""
    total = 0.0
    for split in material.splits:
        n, v = float(len(split.learn)), float(len(split.held))
        if n <= DIRECT_ROWS:
            total += n * n + v * n
        else:
            total += _iterated(n) + ITERATIONS / EVERY * v * n
    return total


def of_refit(material: Material) -> float:
    """Return those of a last fit to all rows."""
    n = float(len(material.X))
    return n * n if n <= 2 * DIRECT_ROWS else _iterated(n)


def _iterated(n: float) -> float:
    return n * min(RANK, n / 2) + ITERATIONS * n * n / 2
