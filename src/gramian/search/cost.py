"""Predicted cost of the steps of a search, in kernel evaluations and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .. import _arrays as xp
from .._parallel.machine import read_seconds
from .._sparse import slice_rows, take_rows
from ..engines import Engine
from ..operators import CostMeter, KernelOperator, triangle_entries
from ..paths.full import PATH_RANK, STORED_FEATURES
from .all_rows.full_fit import DIRECT_ROWS, FEW_TARGETS, PATH_SHIFTS, PILOT_ROWS
from .all_rows.path_points import STORED_BYTES
from .material import Material
from .samples.sampled_fit import Stem

PROBE_ROWS, PROBES = 2000, 3
"""Rows and columns of a timed product, and its repetitions: the first one warms up."""

SOME_ITERATIONS = 4
"""Iterations from which on an interrupted fit beats a fit with landmarks."""

MULTIPLICATIONS_PER_SECOND = 2.5e10
"""Assumed float64 multiplications per second of a fit with landmarks, on one core."""

STORED_MULTIPLICATIONS_PER_SECOND = 1e10
"""Multiplications per second of stored entries: 9e9 measured with 20 and with 70 columns."""

TYPICAL_ITERATIONS = 12
"""Typical conjugate gradient iterations of a fit with all rows as centers."""


def of_sample(material: Material, landmarks: int, rows: int) -> float:
    """Return the kernel evaluations of one kernel's fits to a sample of each split."""
    total = 0.0
    for split in material.splits:
        n = min(rows, len(split.train))
        m = min(landmarks, n)
        total += (n + m + len(split.validation)) * float(m)
    return total


def of_fit(material: Material) -> float:
    """Return the kernel evaluations of fits to each split with all rows as centers."""
    total = 0.0
    for split in material.splits:
        n, v = float(len(split.train)), float(len(split.validation))
        if n <= DIRECT_ROWS:
            total += n * n + v * n
        else:
            total += _iterated_cost(n) + v * n
    return total


def seconds_of_evaluation(
    material: Material,
    stem: Stem,
    engine: str | Engine,
    *,
    columns: int = 1,
    stored: bool = False,
) -> float:
    """Measure the seconds of a kernel evaluation on rows mapped by a stem.

    Time a product with `columns` columns, or the evaluation of entries to be `stored`.
    """
    index = material.splits[0].train[: 2 * PROBE_ROWS]
    X = take_rows(material.inputs(stem.recipe.inputs), index)
    X = X if stem.maps[0] is None else stem.maps[0].forth(X)
    # Rows and columns are two objects: for a symmetric operator, engines evaluate only one
    # triangle, which would halve the seconds of an entry.
    rows = slice_rows(X, 0, PROBE_ROWS)
    cols = slice_rows(X, max(0, len(X) - PROBE_ROWS), len(X))
    # A separate meter: the budget of a search does not pay for measurements.
    K = KernelOperator(stem.fits[0].kernel, rows, cols, engine, meter=CostMeter())
    least_seconds, ones = math.inf, xp.ones((len(cols), columns), X.dtype)
    # The minimum excludes the warm-up, and interruptions by other processes.
    for _ in range(PROBES):
        started = read_seconds()
        _ = K.dense() if stored else K @ ones
        least_seconds = min(least_seconds, read_seconds() - started)
    return least_seconds / (len(rows) * len(cols))


def seconds_of_fit(material: Material, stem: Stem, engine: str | Engine) -> float:
    """Return the least seconds of a worthwhile fit with all rows as centers.

    The seconds include its preconditioner and some iterations; for wide rows also the stored
    entries; and for many targets the fit to a part of the rows that chooses the shift.
    """
    stored, t = _width(material, stem) >= STORED_FEATURES, material.Y.shape[1]
    shifts = 2 if t > FEW_TARGETS else len(PATH_SHIFTS)
    pair_seconds = seconds_of_evaluation(material, stem, engine, columns=t * shifts, stored=stored)
    evaluations, factor, products = 0.0, 0.0, 0.0
    for split in material.splits:
        n, v = float(len(split.train)), float(len(split.validation))
        # Stored entries are evaluated once; otherwise every iteration evaluates the lower
        # triangle again.
        entries, rank = n * n if stored else SOME_ITERATIONS * n * n / 2, min(PATH_RANK, n / 2)
        evaluations += entries + n * rank + 2 * v * n
        factor += n * rank * rank
        products += SOME_ITERATIONS * n * n * t * shifts if stored else 0.0
    # `n` is the size of the last split, which stands for all of them.
    # For many targets, a path of all shifts on a part of the rows chooses the shift.
    if t > FEW_TARGETS and n >= 2 * PILOT_ROWS:
        evaluations += PILOT_ROWS**2
        products += TYPICAL_ITERATIONS * PILOT_ROWS**2 * t * len(PATH_SHIFTS)
    return (
        evaluations * pair_seconds
        + factor / MULTIPLICATIONS_PER_SECOND
        + products / STORED_MULTIPLICATIONS_PER_SECOND
    )


def landmarks_within(
    seconds: float, material: Material, stem: Stem, engine: str | Engine, sizes: Iterable[int]
) -> int | None:
    """Return the first of `sizes` landmarks whose fits to all splits take at most `seconds`.

    None if the fits take longer with each of `sizes`.
    """
    pair_seconds = seconds_of_evaluation(material, stem, engine)
    for m in sizes:
        total = 0.0
        for split in material.splits:
            n, v = len(split.train), len(split.validation)
            # The Gram matrix takes n m² operations, and each of the ten penalties of the path one
            # Cholesky factor of m³ / 3.
            total += (n + v + m) * m * pair_seconds + (
                n + 10 * m / 3
            ) * m * m / MULTIPLICATIONS_PER_SECOND
        if total <= seconds:
            return m
    return None


def _width(material: Material, stem: Stem) -> int:
    """Return the number of features of mapped rows."""
    map_ = stem.maps[0]
    d = material.X.shape[1]
    return d if map_ is None or map_.matrix is None else map_.matrix.shape[1]


def of_round(material: Material, gradient_rows: int) -> float:
    """Return the kernel evaluations of the gradients from which a round learns its metric."""
    trains = [len(split.train) for split in material.splits]
    return float(sum(min(gradient_rows, n) * n for n in trains))


def of_refit(material: Material) -> float:
    """Return the kernel evaluations of the last fit to all rows."""
    n = float(len(material.X))
    # The same limit as in the last fit, which factorises one matrix instead of one per penalty.
    return n * n if n <= 2 * DIRECT_ROWS else _iterated_cost(n)


def _iterated_cost(n: float) -> float:
    rank = min(PATH_RANK, n / 2)
    triangle = triangle_entries(int(n))
    # Four bytes per entry. A budget of evaluations stores entries for any number of features, see
    # `store_entries`; each entry is then evaluated once.
    if 4 * triangle <= STORED_BYTES:
        return triangle + n * rank + rank * rank
    return n * rank + TYPICAL_ITERATIONS * n * n / 2
