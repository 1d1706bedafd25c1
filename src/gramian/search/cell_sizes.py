"""Sizes of cells: how many rows a cell may have, for all of them to be fitted in time."""

from __future__ import annotations

import math

from ..cells import MedianSplits
from ..paths.full import PATH_RANK
from .clock import Clock
from .cost import ITERATIONS, seconds_of_evaluation
from .findings import Findings
from .sampled import Stem

OVERLAP = 0.05
"""Share of the rows of a split that both sides keep.

Measured in equal seconds: on bathy_celt the held-out loss is 0.0034 with 0.05 and 0.1, and 0.0037
without bands; on nycflights larger cells with 0.05 are better than smaller ones with 0.1 or 0.2.
"""

USUAL_ROWS, LEAST_ROWS, MOST_ROWS = 10_000, 1_000, 40_000
"""Rows of a cell without a budget, and bounds of what a budget asks for.

Measured on rows held out of the training rows, 40,000 beside 20,000: beijing_pm25 17.12 and 17.40
in 380 and 183 s, nycflights 29.91 and 29.97.
"""

PILOT_SHARE = 0.25
"""Of what is left, the fits of some cells that choose may take so much."""

ALL_SHARE = 0.9
"""Of what is left then, all cells may take so much: predictions of held-out rows follow."""

GROWTH = 1.8
"""Power of its rows that the seconds of a cell grow with: 1.7 to 2.0 from 3,900 to 7,900 rows."""

STEP = 500
"""Rows by which sizes differ."""


def rows_expected(search: Findings, stem: Stem, n: int) -> int:
    """Return how many of n rows a cell may have, by the speed of kernel evaluations."""
    clock, most = search.clock, min(MOST_ROWS, n)
    if math.isinf(clock.budget.seconds) and math.isinf(clock.budget.evaluations):
        return min(USUAL_ROWS, most)
    pair_seconds = clock.steps.run(
        "seconds of an evaluation",
        lambda: seconds_of_evaluation(search.material, stem, search.engine),
    )
    left = ALL_SHARE * (1 - PILOT_SHARE)
    for rows in range(most, LEAST_ROWS, -STEP):
        pairs = _pairs(n, rows)
        if clock.allows(pairs * pair_seconds / left, pairs / left):
            return rows
    return min(LEAST_ROWS, most)


def rows_measured(clock: Clock, n: int, seconds: float, trained: int) -> tuple[int, int]:
    """Return how many rows a cell may have, and how many of n rows all cells together.

    Parameters
    ----------
    clock : Clock
    n : int
    seconds : float
        Of a cell.
    trained : int
        Its rows.

    Notes
    -----
    Rows are left out only where there is no time for the smallest cells: their seconds are mostly
    what any cell takes. Measured on beijing_pm25 (305,880 rows): 11.7 s with cells of 1,000 rows,
    and with cells of 300.
    """
    most = min(MOST_ROWS, n)
    least = min(LEAST_ROWS, most)
    for rows in (*range(most, least, -STEP), least):
        of_all = inflated(n, rows) / rows * seconds * (rows / trained) ** GROWTH
        if clock.allows(of_all / ALL_SHARE):
            return rows, n
    return least, max(least, int(n * min(1.0, ALL_SHARE * clock.left / of_all)))


def inflated(n: int, rows: int) -> float:
    """Return the rows of all cells, of so many each, those of bands counted twice."""
    return MedianSplits(min(rows, n), OVERLAP).inflated(n)


def _pairs(n: int, rows: int) -> float:
    """Return the kernel evaluations of all cells."""
    total = inflated(n, rows)
    return total * (min(PATH_RANK, rows / 2) + ITERATIONS * rows / 2)
