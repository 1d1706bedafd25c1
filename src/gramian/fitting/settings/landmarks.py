"""The parameter ``landmarks``: its selector, points or all rows, and the number of landmarks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ... import landmarks, solvers
from ..._messages.checks import is_integer
from ..._messages.errors import ParameterError
from ..._parameters.types import LandmarksLike
from ...data import RowSource, as_rows, check_finite
from ...data.formats import is_table_name
from ...landmarks import RecursiveRLS, Selector, Uniform
from ...problems import FullProblem, NystromProblem
from ...solvers import Solver
from .settings import FitSettings

ALL_ROWS = 10_000
"""Rows up to which landmarks="auto" takes all rows as centers."""

ALL_ROWS_OF_CHOICE = 30_000
"""Rows up to which it takes all rows if the solver is "auto" and the penalty is chosen."""

ALL_ROWS_OF_LOSS = 2_000
"""Rows up to which it takes all with another loss than the square, whose Newton steps factorise
the kernel matrix."""


def with_all_rows(settings: FitSettings, n: int) -> FitSettings:
    """Replace landmarks="auto" by None in settings for which "auto" means all rows.

    "auto" means all rows

    - up to 10,000 rows, if the solver takes all rows as centers: landmarks would save little, and
      cost accuracy;
    - up to 30,000 rows, if ``solver="auto"`` and the penalty is chosen: PCG then ends after few
      iterations;
    - for any number of rows, if the solver takes no landmarks;
    - up to 2,000 rows, if the loss is not the square.

    With a ``centers_file``, ``solver="auto"`` and other losses than the square take landmarks.
    """
    if not (isinstance(settings.landmarks, str) and settings.landmarks == "auto"):
        return settings
    if settings.is_nonlinear:
        takes_all = n <= ALL_ROWS_OF_LOSS and settings.centers_file is None
        return settings.with_values(landmarks=None) if takes_all else settings
    solver_given = settings.solver
    most_rows = ALL_ROWS_OF_CHOICE if settings.chooses_penalty else ALL_ROWS
    if isinstance(solver_given, str) and solver_given == "auto":
        # A file of centers means landmarks, even for few rows.
        everything = n <= most_rows and settings.centers_file is None
    else:
        solver = (
            solver_given if isinstance(solver_given, Solver) else solvers.make(str(solver_given))
        )
        # A given solver keeps the limit of 10,000 rows, also where the penalty is chosen.
        takes_all = n <= ALL_ROWS or not solver.takes(NystromProblem)
        everything = solver.takes(FullProblem) and takes_all
    return settings.with_values(landmarks=None) if everything else settings


def selector(given: LandmarksLike, n: int, sequential: bool = False) -> Selector | RowSource | None:
    """Convert ``landmarks``, for n rows, to a selector, to points, or to None for all rows.

    "auto" is the accelerated recursion for rows with random access, and uniform sampling for
    others, over which the recursion would pass about as often as the solver. Measured on six real
    sets with 500 and 2,000 landmarks, relative to uniform landmarks: the recursion has a test error
    of 0.94 and 0.97 on average, 1.03 and 1.01 at worst, in 1.24 and 1.0 times the CPU seconds of
    the fit. With ten landmarks it misses a cluster of 1 % of the rows in 2 % of the cases, uniform
    sampling in 85 %. Flat scores need no rule of their own: on six sets with 1,000 to 50,000 rows
    its spectral error is 0.01 to 1.03 times the error of uniform landmarks, and where scores are
    flat both differ less than two seeds of uniform landmarks. Pivoted Cholesky (test errors of 0.87
    and 0.95) takes 1.9 to 2.4 times as long and 8 n m bytes. See docs/benchmarks.md.
    """
    if given is None or isinstance(given, Selector):
        return given
    if isinstance(given, str) and not is_table_name(given):
        # Theorem 3 of the FALKON paper requires the order of sqrt(n), up to a logarithm.
        m = min(n, max(100, math.ceil(math.sqrt(n) * math.log(n)))) if n > 1 else 1
        if given != "auto":
            return landmarks.make(given, m=m)
        # The recursion reads the rows several times: too often where they are read in order.
        return Uniform(m) if sequential else RecursiveRLS(m, accelerated=True)
    if is_integer(given):
        return Uniform(int(given))
    return points(given)


def are_points(given: LandmarksLike) -> bool:
    """Return whether landmarks are given as points, in memory or in a file."""
    if isinstance(given, str):
        return is_table_name(given)
    return not (given is None or isinstance(given, Selector) or is_integer(given))


def count(chosen: Selector | RowSource, n: int) -> int | None:
    """Return how many landmarks a selector chooses at most among n rows; None if unknown before."""
    if isinstance(chosen, RowSource):
        return chosen.shape[0]
    # Selectors with a given penalty have no number before they have seen the rows.
    m = getattr(chosen, "m", None)
    return None if m is None else min(int(m), n)


def landmark_count(given: LandmarksLike, n: int, named: int | None = None) -> int | None:
    """Return the number of landmarks of n rows; None if all are centers, or the rows determine it.

    `named` replaces the usual number of landmarks if ``landmarks`` is the name of a selector.
    """
    if isinstance(given, str) and named is not None:
        return min(named, n)
    chosen_selector = selector(given, n)
    return None if chosen_selector is None else count(chosen_selector, n)


def require_count(given: LandmarksLike, n: int) -> None:
    """Raise ValueError if the number of landmarks is not known before they are selected."""
    chosen = selector(given, n)
    if chosen is not None and count(chosen, n) is None:
        raise ValueError(
            f"the number of landmarks of {chosen!r} depends on the rows and is unknown before the "
            "fit; give m, a number of landmarks, to plan"
        )


def points(given: LandmarksLike, d: int | None = None) -> RowSource:
    """Return the given landmark points; raise ValueError unless they have d features, if known."""
    point_rows = _point_rows(given)
    if d is not None and point_rows.shape[1] != d:
        raise ValueError(f"the landmarks have {point_rows.shape[1]} features, but X has {d}")
    return point_rows


def _point_rows(given: Any) -> RowSource:
    if isinstance(given, str | Path | RowSource):
        return as_rows(given)
    if isinstance(given, bool | float) or np.ndim(given) != 2:
        expected = (
            "None, a whole number, 'auto', the name of a selector, a selector, an array of shape "
            "(m, d) or the path of a table"
        )
        raise ParameterError("landmarks", given, expected)
    rows = as_rows(given)
    check_finite(rows, "landmarks")  # Points in files are checked when they are read.
    return rows
