"""Kernel evaluations of the steps of a search, before they are made."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import torch

from .._sparse import slice_rows, take_rows
from ..engines import Engine
from ..operators import CostMeter, KernelOperator, triangle_entries
from ..paths.full import RANK, STORED_FEATURES
from .all_rows.full_fit import DIRECT_ROWS, FEW_TARGETS, PILOT_ROWS, SHIFTS
from .all_rows.path_points import STORED_BYTES
from .material import Material
from .samples.sampled_fit import Stem

PROBE_ROWS, PROBES = 2000, 3
"""Rows and columns of a product that is timed, and how often: the first one warms up."""

SOME_ITERATIONS = 4
"""Iterations after which a fit that ends for want of time is better than one with landmarks."""

PRODUCTS = 2.5e10
"""Products of entries a second, in float64, that fits with landmarks are planned with: a core."""

STORED_PRODUCTS = 1e10
"""Products a second of entries that are stored with columns: 9e9 with 20 and with 70 of them."""

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
            total += _iterated(n) + v * n
    return total


def seconds_of_evaluation(
    material: Material,
    stem: Stem,
    engine: str | Engine,
    *,
    columns: int = 1,
    stored: bool = False,
) -> float:
    """Return the seconds of a kernel evaluation on rows as a stem maps them, measured.

    Those of a product with so many columns, or of entries that are `stored`.
    """
    some = material.splits[0].learn[: 2 * PROBE_ROWS]
    X = take_rows(material.inputs(stem.recipe.inputs), some)
    X = X if stem.maps[0] is None else stem.maps[0].forth(X)
    rows = slice_rows(X, 0, PROBE_ROWS)
    cols = slice_rows(X, max(0, len(X) - PROBE_ROWS), len(X))
    K = KernelOperator(stem.fits[0].kernel, rows, cols, engine, meter=CostMeter())
    least, ones = math.inf, torch.ones(len(cols), columns, dtype=X.dtype)
    for _ in range(PROBES):
        started = time.monotonic()
        _ = K.dense() if stored else K @ ones
        least = min(least, time.monotonic() - started)
    return least / (len(rows) * len(cols))


def seconds_of_fit(material: Material, stem: Stem, engine: str | Engine) -> float:
    """Return the seconds without which a fit with all rows as centers is not worth its start.

    They are those of its preconditioner and of some iterations; where rows are so wide that entries
    are stored, of these, too; and of many targets those of the part that their shift is chosen by.
    """
    stored, t = _width(material, stem) >= STORED_FEATURES, material.Y.shape[1]
    shifts = 2 if t > FEW_TARGETS else len(SHIFTS)
    each = seconds_of_evaluation(material, stem, engine, columns=t * shifts, stored=stored)
    evaluations, factor, products = 0.0, 0.0, 0.0
    for split in material.splits:
        n, v = float(len(split.learn)), float(len(split.held))
        entries, rank = n * n if stored else SOME_ITERATIONS * n * n / 2, min(RANK, n / 2)
        evaluations += entries + n * rank + 2 * v * n
        factor += n * rank * rank
        products += SOME_ITERATIONS * n * n * t * shifts if stored else 0.0
    if t > FEW_TARGETS and n >= 2 * PILOT_ROWS:  # its shift is chosen by a part, of all of them
        evaluations += PILOT_ROWS**2
        products += ITERATIONS * PILOT_ROWS**2 * t * len(SHIFTS)
    return evaluations * each + factor / PRODUCTS + products / STORED_PRODUCTS


def landmarks_within(
    seconds: float, material: Material, stem: Stem, engine: str | Engine, sizes: Iterable[int]
) -> int | None:
    """Return the first number of landmarks with which a fit to all rows takes so many seconds."""
    each = seconds_of_evaluation(material, stem, engine)
    for m in sizes:
        total = 0.0
        for split in material.splits:
            n, v = len(split.learn), len(split.held)
            total += (n + v + m) * m * each + (n + 10 * m / 3) * m * m / PRODUCTS
        if total <= seconds:
            return m
    return None


def _width(material: Material, stem: Stem) -> int:
    """Return the number of features of mapped rows."""
    map_ = stem.maps[0]
    d = material.X.shape[1]
    return d if map_ is None or map_.matrix is None else map_.matrix.shape[1]


def of_refit(material: Material) -> float:
    """Return those of a last fit to all rows."""
    n = float(len(material.X))
    return n * n if n <= 2 * DIRECT_ROWS else _iterated(n)


def _iterated(n: float) -> float:
    rank = min(RANK, n / 2)
    triangle = triangle_entries(int(n))
    if 4 * triangle <= STORED_BYTES:  # where evaluations are counted
        return triangle + n * rank + rank * rank
    return n * rank + ITERATIONS * n * n / 2
