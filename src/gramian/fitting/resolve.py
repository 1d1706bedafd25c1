"""Resolution of settings for given rows: kernel, engine, landmarks, solver and size."""

from __future__ import annotations

import math
import reprlib
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from .. import kernels, landmarks, solvers
from .. import metric as metrics
from ..data import LinearMap, RowSource, as_rows, check_finite
from ..data.formats import is_table_name
from ..kernels import Kernel
from ..landmarks import PathSelector, RecursiveRLS, Selector, Uniform
from ..metric import Metric
from ..operators import Engine, choose_engine
from ..problems import FullProblem, NystromProblem
from ..solvers import Falkon, Solver
from . import splits
from .held_out import HELD_OUT
from .memory import FitSize, dense_bytes, least_blocks
from .parameters import KernelLike, LandmarksLike, Lengthscale, MetricLike, SolverLike
from .settings import FitSettings, is_integer

ALL_ROWS = 10_000
"""Rows up to which landmarks="auto" takes all rows as centers."""

DIRECT_ROWS = 10_000
"""Rows up to which solver="auto" factorises the full kernel matrix."""

PCG_ROWS = 400_000
"""Rows up to which it takes PCG: an iteration is 8e10 kernel evaluations there."""

LEAST_RANK = 100
"""Columns that the preconditioner of PCG must have room for."""

STAND_IN = "matern32"
"""The kernel that a plan reckons with, and whose metric is learned, for kernel="auto"."""

PCG_FROM = 3_000
"""Rows above which solver="auto" takes PCG where the penalty is chosen: it is not tiny then."""

TINY_SHIFT = 9e-3
"""Rows times the penalty, below which PCG takes longer than Direct."""

ALL_ROWS_OF_CHOICE = 30_000
"""Rows up to which landmarks="auto" takes all where the penalty is chosen."""

MEDIAN_SAMPLE = 1000
"""Rows from which the median heuristic is computed."""


def kernel(given: KernelLike, lengthscale: Lengthscale) -> Kernel:
    """Return the kernel of that name with that lengthscale, or the kernel object itself.

    For "auto" one stands in that costs as much as others: what is chosen takes its place.
    """
    if isinstance(given, Kernel):
        if not (isinstance(lengthscale, str) and lengthscale in ("median", "auto")):
            raise ValueError(
                f"lengthscale={lengthscale!r} has no effect on a kernel object; give the "
                "kernel its own lengthscale, or the kernel's name"
            )
        return given
    if isinstance(lengthscale, str) and lengthscale == "auto":
        lengthscale = "median"
    if given == "auto":
        given = STAND_IN
    if given not in kernels.names():
        raise ValueError(
            f"unknown kernel {given!r}; known: auto, {', '.join(kernels.names())}, or a "
            f"kernel object{kernels.hint(given)}"
        )
    return kernels.make(given, lengthscale=lengthscale)


def metric(given: MetricLike) -> Metric | LinearMap | None:
    """Return what learns a metric, or the map that was given, if any.

    Raises
    ------
    ValueError
        If it is none of these: the message says what is known.
    """
    if given is None or isinstance(given, Metric | LinearMap):
        return given
    if isinstance(given, str):
        return metrics.make(given)
    array = np.asarray(given)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
        raise ValueError(
            f"metric={reprlib.repr(given)} is none of: None, the name of a metric "
            f"({', '.join(metrics.names())}), an object that learns one, a matrix of shape (d, k), "
            "a number for each of d features"
        )
    return LinearMap.of(array.astype(np.float64))


def kernel_for(kernel: Kernel, rows: RowSource, rng: torch.Generator, name: str = "X") -> Kernel:
    """Return the kernel for these rows: with as many features, and with its median computed."""
    check_features(kernel, rows, name)
    n = rows.shape[0]
    index = torch.randint(n, (MEDIAN_SAMPLE,), generator=rng).unique()
    if n <= MEDIAN_SAMPLE:
        index = torch.arange(n)
    sample = rows.take(index)
    return kernel.resolve(sample.to_dense() if rows.sparse else sample)


def check_features(kernel: Kernel, rows: RowSource, name: str = "X") -> None:
    """Raise ValueError if a kernel has lengthscales for another number of features."""
    if kernel.dim not in (None, rows.shape[1]):
        raise ValueError(
            f"the kernel has {kernel.dim} lengthscales, but {name} has {rows.shape[1]} features"
        )


def automatic(settings: FitSettings, n: int) -> FitSettings:
    """Return settings in which landmarks="auto" has become all rows, where it means that.

    All rows up to 10,000, if the solver takes them: landmarks save little there, and cost accuracy.
    Up to 30,000 where the penalty is chosen, as PCG then ends after few iterations.
    All rows of any number, if it takes nothing else.
    """
    if not (isinstance(settings.landmarks, str) and settings.landmarks == "auto"):
        return settings
    given = settings.solver
    most = ALL_ROWS_OF_CHOICE if settings.chooses_penalty else ALL_ROWS
    if isinstance(given, str) and given == "auto":
        everything = n <= most and settings.centers_file is None
    else:
        found = given if isinstance(given, Solver) else solvers.make(str(given))
        few = n <= ALL_ROWS or not found.takes(NystromProblem)
        everything = found.takes(FullProblem) and few
    return replace(settings, landmarks=None) if everything else settings


def engine_for(settings: FitSettings, rows: RowSource, found: Kernel | None = None) -> Engine:
    """Return the engine that computes with these rows; `found` is the kernel, if it is known."""
    found = kernel(settings.kernel, settings.lengthscale) if found is None else found
    return choose_engine(settings.engine, dtype=rows.dtype, kernel=found, sparse=rows.sparse)


def solver_and_size(
    settings: FitSettings, rows: RowSource, targets: int
) -> tuple[Solver[Any, Any], FitSize]:
    """Return the solver of a fit to these rows, and the size that its cost depends on.

    Raises
    ------
    ValueError
        If the solver cannot solve such problems, or not with this penalty.
    """
    n, d = rows.shape
    found = selector(settings.landmarks, n, not rows.random_access)
    # a selector that is given a penalty says how many once it has selected
    m = n if found is None else count(found, n) or 1
    size = FitSize(
        n,
        d,
        targets,
        m,
        rows.dtype.itemsize,
        full=found is None,
        pairs_once=rows.random_access and not rows.sparse,
        dense=not rows.sparse,
        fits=fits_per_level(settings, n) if settings.searches_penalty else 0.0,
        selector=found if isinstance(found, Selector) else None,
    )
    chosen = solver(settings.solver, size, settings.limit, _direct_rows(settings))
    chosen.check_type(FullProblem if size.full else NystromProblem)
    if not isinstance(settings.penalty, str):
        chosen.check_penalty(float(settings.penalty))
    return chosen, size


def _direct_rows(settings: FitSettings) -> int:
    return PCG_FROM if settings.chooses_penalty else DIRECT_ROWS


def solver_for(chosen: FitSettings, asked: FitSettings, size: FitSize) -> Solver[Any, Any]:
    """Return the solver once the penalty is chosen: PCG is slow where it turned out tiny.

    Parameters
    ----------
    chosen : FitSettings
        With values.
    asked : FitSettings
    size : FitSize
    """
    if chosen.searches_penalty:
        return solver(asked.solver, size, chosen.limit)
    tiny = float(chosen.penalty) * size.n < TINY_SHIFT
    rows = DIRECT_ROWS if tiny or not asked.chooses_penalty else PCG_FROM
    found = solver(asked.solver, size, chosen.limit, rows)
    found.check_penalty(float(chosen.penalty))
    return found


def fits_per_level(settings: FitSettings, n: int) -> float:
    """Return the fits of one level of a path, in units of one fit to all rows."""
    if settings.names_folds:
        return splits.count_of(settings.cv, n)
    return 1 - 1 / HELD_OUT if settings.cv is None else float(cast("int", settings.cv)) - 1.0


def solver(
    given: SolverLike, size: FitSize, limit: int | None, direct_rows: int = DIRECT_ROWS
) -> Solver[Any, Any]:
    """Return the solver; "auto": Falkon with landmarks; without, see `full_solver`."""
    if isinstance(given, Solver):
        return given
    pcg = solvers.PCG() if limit is None else solvers.PCG(memory_bytes=limit // 4)
    if given == "auto":
        return full_solver(size, limit, pcg, direct_rows) if size.full else solvers.Falkon()
    return pcg if given == "pcg" else solvers.make(str(given))


def full_solver(
    size: FitSize, limit: int | None, pcg: solvers.PCG, direct_rows: int = DIRECT_ROWS
) -> Solver[Any, Any]:
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
    if size.n <= direct_rows and (limit is None or need <= limit):
        return solvers.Direct()
    few = pcg.most(size.n) < min(LEAST_RANK, size.n)
    return solvers.ASkotch() if size.pairs_once and (few or size.n > PCG_ROWS) else pcg


def selector(given: LandmarksLike, n: int, sequential: bool = False) -> Selector | RowSource | None:
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
    if is_integer(given):
        return Uniform(int(given))
    return points(given)


def are_points(given: LandmarksLike) -> bool:
    """Return whether landmarks are given as points, in memory or in a file."""
    if isinstance(given, str):
        return is_table_name(given)
    return not (given is None or isinstance(given, Selector) or is_integer(given))


def path_selector(given: LandmarksLike, n: int) -> PathSelector:
    """Return the selector of a path of penalties; `FitSettings` has refused any other."""
    found = selector(given, n)
    if not isinstance(found, PathSelector):
        raise TypeError(f"{found!r} has no path of penalties")
    return found


def path_solver(found: Solver[Any, Any]) -> Falkon:
    """Return the solver of a path of penalties; `FitSettings` has refused any other."""
    return cast("Falkon", found)


def count(chosen: Selector | RowSource, n: int) -> int | None:
    """Return how many of n rows a selector will choose at most; None if that depends on them."""
    if isinstance(chosen, RowSource):
        return chosen.shape[0]
    m = getattr(chosen, "m", None)
    return None if m is None else min(int(m), n)


def require_count(given: LandmarksLike, n: int) -> None:
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


def points(given: Any, d: int | None = None) -> RowSource:
    """Return the points that were given as landmarks, of d features if that is known."""
    found = _point_rows(given)
    if d is not None and found.shape[1] != d:
        raise ValueError(f"the landmarks have {found.shape[1]} features, but X has {d}")
    return found


def _point_rows(given: Any) -> RowSource:
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
