"""What the settings of an estimator mean: which kernel, landmarks and solver."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import kernels, landmarks, solvers
from .._checks import as_count
from ..data import RowSource, as_rows, check_finite
from ..data.formats import is_table_name
from ..kernels import Kernel
from ..landmarks import PathSelector, RecursiveRLS, Selector, Uniform
from ..landmarks.base import selectors
from ..solvers import Falkon, Solver
from .memory import Size, dense_bytes, least_blocks

DIRECT_ROWS = 10_000
"""Rows up to which solver="auto" factorises the full kernel matrix."""

PCG_ROWS = 400_000
"""Rows up to which it takes PCG: an iteration is 8e10 kernel evaluations there."""

LEAST_RANK = 100
"""Columns that the preconditioner of PCG must have room for."""


def check_settings(estimator: Any) -> None:
    """Raise ValueError for a number that cannot be used, before any work."""
    as_count(estimator.max_iter, "max_iter")
    if not (_is_number(estimator.tol) and 0 <= estimator.tol < math.inf):
        raise ValueError(f"tol must be a finite number of at least 0, not {estimator.tol!r}")
    callbacks = estimator.callbacks
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise ValueError(
            f"callbacks must be a list of callables, like [Validate(X, y)], not {callbacks!r}"
        )
    penalty = estimator.penalty
    if isinstance(penalty, str) and penalty == "auto":
        _check_path(estimator)
    elif not (_is_number(penalty) and 0 <= penalty < math.inf):
        raise ValueError(
            f"penalty must be finite and at least 0, not {penalty!r}; it is the ridge per "
            "sample, scikit-learn's alpha / n, or 'auto'"
        )


def _check_path(estimator: Any) -> None:
    """Raise ValueError for settings with which there is no path of penalties to choose from."""
    cv = estimator.cv
    if not (cv is None or (_is_integer(cv) and cv >= 2)):
        raise ValueError(f"cv must be None or a number of folds from 2 on, not {cv!r}")
    given = estimator.landmarks
    name = isinstance(given, str) and given in selectors
    kind = selectors[given] if name else type(given)
    if not issubclass(kind, PathSelector):
        raise ValueError(
            f"penalty='auto' chooses from the path of penalties of BlessR or Bless, and "
            f"landmarks={given!r} has none; give landmarks='bless_r', landmarks=BlessR(m=1000), "
            "or a penalty"
        )
    if not (isinstance(estimator.solver, Falkon) or estimator.solver in ("auto", "falkon")):
        raise ValueError(
            f"penalty='auto' goes along its path with solver='falkon', not {estimator.solver!r}; "
            "leave the solver out, or give a penalty"
        )
    if estimator.warm_start:
        raise ValueError(
            "penalty='auto' chooses new landmarks, and warm_start=True goes on with those of the "
            "last fit; give penalty=est.penalty_ to go on, or warm_start=False"
        )


def kernel(given: Any, lengthscale: Any) -> Kernel:
    """Return the kernel of that name with that lengthscale, or the kernel object itself."""
    if isinstance(given, Kernel):
        if not (isinstance(lengthscale, str) and lengthscale == "median"):
            raise ValueError(
                f"lengthscale={lengthscale!r} has no effect on a kernel object; give the "
                "kernel its own lengthscale, or the kernel's name"
            )
        return given
    if given not in kernels.names():
        raise ValueError(
            f"unknown kernel {given!r}; known: {', '.join(kernels.names())}, or a kernel object"
        )
    return kernels.make(given, lengthscale=lengthscale)


def solver(given: Any, size: Size, limit: int | None) -> Solver[Any, Any]:
    """Return the solver; "auto": Falkon with landmarks; without, see `full_solver`."""
    if isinstance(given, Solver):
        return given
    pcg = solvers.PCG() if limit is None else solvers.PCG(memory_bytes=limit // 4)
    if given == "auto":
        return full_solver(size, limit, pcg) if size.full else solvers.Falkon()
    return pcg if given == "pcg" else solvers.make(str(given))


def full_solver(size: Size, limit: int | None, pcg: solvers.PCG) -> Solver[Any, Any]:
    """Return the solver for all rows as centers: Direct, PCG or ASkotch.

    Direct up to 10,000 rows if it fits. Then PCG, if its preconditioner has 100 columns in a
    quarter of the memory, up to 400,000 rows. Else ASkotch, if rows can be read in any order.

    Measured, in CPU seconds: on 32,561 rows of adult_a9a PCG with 1,000 columns passes ASkotch
    after 40 s and has a residual of 0.022 after 50, ASkotch 0.060; on 196,046 rows of skin ASkotch
    is ahead for the first 90 s (0.061 against 2.5 % wrong labels, PCG after 15 iterations), and
    PCG is what converges; with 500,000 rows PCG ended its first iteration when ASkotch was two
    thirds of its way from 0.97 to 0.10.
    Where between them the best limit lies was not measured.
    """
    need = dense_bytes(solvers.Direct(), size) + least_blocks(size)
    if size.n <= DIRECT_ROWS and (limit is None or need <= limit):
        return solvers.Direct()
    few = pcg.most(size.n) < min(LEAST_RANK, size.n)
    return solvers.ASkotch() if size.pairs_once and (few or size.n > PCG_ROWS) else pcg


def selector(given: Any, n: int, sequential: bool = False) -> Selector | RowSource | None:
    """Return what ``landmarks`` means for n rows: a selector, points, or None for all rows.

    "auto" is the accelerated recursion for rows with random access, uniform for others, over which
    the recursion would pass about as often as the solver. Measured on six real sets with 500 and
    2,000 landmarks: its test error is 0.94 and 0.97 of that of uniform landmarks in the mean, 1.03
    and 1.01 at worst, in 1.24 and 1.0 times the CPU seconds of the fit, and it misses a cluster of
    1 % of the rows in 2 % of the cases with ten landmarks, uniform in 85 %. Pivoted Cholesky (0.87
    and 0.95) takes 1.9 to 2.4 times as long and 8 n m bytes. See docs/benchmarks.md.
    """
    if given is None or isinstance(given, Selector):
        return given
    if isinstance(given, str) and not is_table_name(given):
        m = automatic_landmarks(n)
        if given != "auto":
            return landmarks.make(given, m=m)
        return Uniform(m) if sequential else RecursiveRLS(m, accelerated=True)
    if _is_integer(given):
        return Uniform(int(given))
    return _points(given)


def count(chosen: Selector | RowSource, n: int) -> int | None:
    """Return how many of n rows a selector will choose at most; None if that depends on them."""
    if isinstance(chosen, RowSource):
        return chosen.shape[0]
    m = getattr(chosen, "m", None)
    return None if m is None else min(int(m), n)


def require_count(given: Any, n: int) -> None:
    """Raise ValueError if the number of landmarks is not known before they are selected."""
    chosen = selector(given, n)
    if chosen is not None and count(chosen, n) is None:
        raise ValueError(
            f"how many landmarks {chosen!r} chooses depends on the rows, so that there is no plan "
            "before; give it m, a number of landmarks"
        )


def automatic_landmarks(n: int) -> int:
    """Return the number of landmarks that ``landmarks="auto"`` means: min(n, sqrt(n) log(n)).

    The square root is the theory's order for FALKON (its theorem 3), the logarithm its factor.
    """
    return min(n, max(100, math.ceil(math.sqrt(n) * math.log(n)))) if n > 1 else 1


def _points(given: Any) -> RowSource:
    if isinstance(given, str | Path | RowSource):
        return as_rows(given)
    if isinstance(given, bool | float) or np.ndim(given) != 2:
        raise ValueError(
            f"landmarks={given!r} is none of: None, a whole number, 'auto', the name of a "
            "selector, a selector, an array of shape (m, d), the path of a table"
        )
    rows = as_rows(given)
    check_finite(rows, "landmarks")  # those in files are looked at once they are read
    return rows


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
