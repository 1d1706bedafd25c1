"""Sizes of cells that fit a budget."""

from __future__ import annotations

import math

from ...cells import MedianSplits
from ...paths.full import PATH_RANK
from ..clock import Clock
from ..cost import TYPICAL_ITERATIONS, seconds_of_evaluation
from ..samples.sampled_fit import Stem
from ..search_state import SearchState

OVERLAP_FRACTION = 0.05
"""Fraction of the rows of a split in both of its sides.

Measured in equal seconds: on bathy_celt the held-out loss is 0.0034 with 0.05 and 0.1, and 0.0037
without bands; on nycflights larger cells with 0.05 are better than smaller ones with 0.1 or 0.2.
"""

USUAL_ROWS, LEAST_ROWS, MOST_ROWS = 10_000, 1_000, 40_000
"""Rows of a cell without a budget, and bounds with one.

Measured on rows held out of the training rows, for 40,000 and 20,000: beijing_pm25 17.12 and 17.40
in 380 and 183 s, nycflights 29.91 and 29.97.
"""

PILOT_SHARE = 0.25
"""Fraction of the remaining budget for the pilot cells."""

ALL_SHARE = 0.9
"""Fraction of the budget after the pilot for all cells: held-out predictions follow."""

SECONDS_EXPONENT = 1.8
"""Exponent of the seconds of a cell in its rows: 1.7 to 2.0 from 3,900 to 7,900 rows."""

SIZE_STEP_ROWS = 500
"""Increment of the sizes, in rows."""


def rows_expected(search: SearchState, stem: Stem, n: int) -> int:
    """Return the rows of a cell that the remaining time allows, by a measured speed."""
    clock, most_rows = search.clock, min(MOST_ROWS, n)
    if math.isinf(clock.budget.seconds) and math.isinf(clock.budget.evaluations):
        return min(USUAL_ROWS, most_rows)
    pair_seconds = clock.steps.run(
        "seconds of an evaluation",
        lambda: seconds_of_evaluation(search.material, stem, search.engine),
    )
    budget_share = ALL_SHARE * (1 - PILOT_SHARE)
    # From large to small: the first affordable size is the largest one.
    for rows in range(most_rows, LEAST_ROWS, -SIZE_STEP_ROWS):
        pairs = _pairs(n, rows)
        if clock.allows(pairs * pair_seconds / budget_share, pairs / budget_share):
            return rows
    return min(LEAST_ROWS, most_rows)


def rows_measured(clock: Clock, n: int, seconds: float, trained: int) -> tuple[int, int]:
    """Return the rows of a cell, and of all cells, that the remaining time allows.

    Parameters
    ----------
    clock : Clock
    n : int
        Number of training rows.
    seconds : float
        Seconds of a measured cell.
    trained : int
        Rows of the measured cell.

    Notes
    -----
    Rows are left out only if the budget is too small for the smallest cells: even smaller cells
    would not be faster, because most of their seconds are a fixed cost. Measured on beijing_pm25
    (305,880 rows): 11.7 s with cells of 1,000 rows, and with cells of 300.
    """
    most_rows = min(MOST_ROWS, n)
    least_rows = min(LEAST_ROWS, most_rows)
    for rows in (*range(most_rows, least_rows, -SIZE_STEP_ROWS), least_rows):
        # The number of cells times the seconds of one.
        of_all = inflated_rows(n, rows) / rows * seconds * (rows / trained) ** SECONDS_EXPONENT
        if clock.allows(of_all / ALL_SHARE):
            return rows, n
    # `of_all` is now the estimate for cells of the least size, the last ones tried.
    return least_rows, max(
        least_rows, int(n * min(1.0, ALL_SHARE * clock.remaining_seconds / of_all))
    )


def inflated_rows(n: int, rows: int) -> float:
    """Return the rows of all cells of `rows` rows; rows in overlap bands count twice."""
    return MedianSplits(min(rows, n), OVERLAP_FRACTION).total_cell_rows(n)


def _pairs(n: int, rows: int) -> float:
    """Return the kernel evaluations of all cells."""
    total = inflated_rows(n, rows)
    return total * (min(PATH_RANK, rows / 2) + TYPICAL_ITERATIONS * rows / 2)
