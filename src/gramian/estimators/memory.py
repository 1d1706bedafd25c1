"""What a fit keeps in memory, and what that leaves for blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .._checks import readable_bytes
from ..landmarks import Selector
from ..operators import COPIES, STRIP_BYTES, strip_rows
from ..preconditioners.eigenpro import BYTES_PER_PAIR, LARGE_SAMPLE, MANY_ROWS, SMALL_SAMPLE
from ..solvers import (
    PCG,
    ASkotch,
    Direct,
    EigenPro1,
    EigenPro2,
    EigenPro3,
    Falkon,
    SketchySAGA,
    Solver,
)
from ..solvers.eigenpro3 import PER_DIRECTION
from ..solvers.projection import projection_for
from .machine import machine_memory

BLOCKS = 1 << 30
"""Memory for blocks of rows if nobody limits it."""

LEAST_BLOCKS = 48 << 20
"""Memory for blocks of rows below which tiles no longer fit."""


@dataclass(frozen=True)
class Size:
    """The sizes of a problem: n rows, d features, t targets, m centers, bytes per number.

    `fits` are those at each level of a path of penalties, in units of one to all rows; zero if
    the penalty is given. `pairs_once`: whether rows are dense with random access, so that a product
    of all rows with all evaluates each pair once, as long as they fit into memory. `dense`:
    whether they are no sparse ones. `selector`: who chooses the landmarks, if they are not given.
    """

    n: int
    d: int
    t: int
    m: int
    itemsize: int
    full: bool
    fits: float = 0.0
    pairs_once: bool = True
    dense: bool = True
    selector: Selector | None = None


def least_blocks(size: Size) -> int:
    """Return the memory for blocks of rows that any solver needs."""
    return LEAST_BLOCKS + 64 * size.d * size.itemsize


def dense_bytes(solver: Solver[Any, Any], size: Size, mapped: bool = False) -> int:
    """Return the memory for what is kept: first by the selector of landmarks, then by the solver.

    Factors and vectors of a solver, with its centers or without.
    """
    chooses = size.selector
    selecting = 0 if chooses is None else chooses.kept_bytes(size.n, size.d, size.m)
    return max(_solver_bytes(solver, size, mapped), selecting + 8 * size.n * size.t)


def _solver_bytes(solver: Solver[Any, Any], size: Size, mapped: bool) -> int:
    n, m, t = size.n, size.m, size.t
    vectors = 8 * t * (6 * m + (8 * n if size.full else n))
    if isinstance(solver, Direct):
        return vectors + (8 * n * n if size.full else 40 * m * m)
    if isinstance(solver, Falkon):
        path = 8 * m * m + 8 * n * (t + 1) if size.fits else 0  # the best level so far, and a part
        return vectors + 8 * m * m + 16 * m * size.d + path
    if isinstance(solver, ASkotch):
        return vectors + solver.block_bytes(n)
    if isinstance(solver, EigenPro2 | EigenPro3 | SketchySAGA):
        centers = 0 if mapped else _center_bytes(solver, size)
        return vectors + centers + _streaming_bytes(solver, size)
    return vectors + (solver.factor_bytes(n) if isinstance(solver, PCG) else 0)


def _center_bytes(solver: Solver[Any, Any], size: Size) -> int:
    """Return what the centers of a streaming solver take, and those that are temporary."""
    if size.full:
        return 0
    return (2 if isinstance(solver, EigenPro3) else 1) * size.m * size.d * size.itemsize


def _streaming_bytes(solver: EigenPro2 | EigenPro3 | SketchySAGA, size: Size) -> int:
    """Return what is kept beside vectors; what is chosen to fit is in the memory for blocks."""
    n, m = size.n, size.m
    if isinstance(solver, SketchySAGA):
        # the sketch: its factor, and what it is made of
        return 16 * n * size.t + 64 * m * solver.sketch_rank(m)
    given = solver.subsample != "auto" or isinstance(solver, EigenPro1)
    sample = BYTES_PER_PAIR * subsample_rows(solver, n) ** 2 if given else 0
    if isinstance(solver, EigenPro2):
        return sample
    exact = 8 * m * m if solver.projection == "exact" else 0
    return sample + exact + 16 * m * flattened(solver, n, m)


def flattened(solver: EigenPro3, n: int, m: int) -> int:
    """Return the directions that EigenPro 3 flattens at most, see `EigenProFactor`."""
    if solver.rank != "auto":
        return int(solver.rank)
    s = subsample_rows(solver, n)
    return min(max(1, m // PER_DIRECTION), s if s == n else s // 10)


def subsample_rows(solver: EigenPro2 | EigenPro3, n: int) -> int:
    """Return the rows of which EigenPro takes eigenvectors, if the memory is enough."""
    if isinstance(solver, EigenPro1):
        return n
    if solver.subsample != "auto":
        return min(n, int(solver.subsample))
    return min(n, SMALL_SAMPLE if n < MANY_ROWS else LARGE_SAMPLE)


def chosen_bytes(solver: Solver[Any, Any], size: Size, blocks: int) -> int:
    """Return what is kept out of the memory for blocks, as much as is found there.

    By the solver, or before it by a selector that looks at kernel entries: two strips of them.
    """
    chooses = size.selector
    entries = 0 if chooses is None else chooses.evaluations(size.n, size.m)
    strips = 2 * 8 * size.m * min(size.n, strip_rows(size.m, 8, blocks)) if entries else 0
    return max(strips, _chosen_by_solver(solver, size, blocks))


def _chosen_by_solver(solver: Solver[Any, Any], size: Size, blocks: int) -> int:
    m = size.m
    if isinstance(solver, Direct):
        if size.full:
            return min(STRIP_BYTES, 8 * size.n * size.n)
        return COPIES * 8 * m * min(size.n, strip_rows(m, 8, blocks))
    if isinstance(solver, EigenPro2 | EigenPro3):
        sample = BYTES_PER_PAIR * subsample_rows(solver, size.n) ** 2
        given = solver.subsample != "auto" or isinstance(solver, EigenPro1)
        exact = isinstance(solver, EigenPro3) and (
            solver.projection == "auto" and projection_for("auto", m, blocks) == "exact"
        )
        return (0 if given else min(sample, blocks // 2)) + (8 * m * m if exact else 0)
    return 0


def divided(limit: int | None, solver: Solver[Any, Any], size: Size) -> tuple[int, int]:
    """Return the bytes for what a solver keeps, and those left for blocks of rows.

    Centers of a streaming solver that take more than the blocks are in a file, see
    `KernelOperator.points`, and do not count.

    Raises
    ------
    ValueError
        If factors and vectors leave too little; the message says what would fit.
    """
    if limit is None:
        limit = machine_memory()
        what = f"this process may use {readable_bytes(limit)}"
    else:
        what = f"memory_limit is {readable_bytes(limit)}"
    least, points = least_blocks(size), size.m * size.d * size.itemsize
    for mapped in (False, True):
        dense = dense_bytes(solver, size, mapped)
        blocks = int(max(least, min(BLOCKS, (limit - dense) // 2)))
        if dense + least <= limit and (points > blocks or not mapped):
            return dense, blocks
    count = f"{size.n:,} rows" if size.full else f"{size.m:,} landmarks"
    raise ValueError(
        f"{count} need {readable_bytes(dense + least)}, but {what}; "
        f"{_what_fits(limit - least, solver, size)}"
    )


def _what_fits(free: int, solver: Solver[Any, Any], size: Size) -> str:
    """Say how many centers would fit, or what the limit would have to be."""
    fits = _most(size.m, lambda m: dense_bytes(solver, _with_centers(size, m)) <= free)
    if fits == 0:
        least = least_blocks(size) + dense_bytes(solver, _with_centers(size, 1))
        return f"a single one needs {readable_bytes(least)}: raise the limit"
    if not size.full:
        return f"at most {fits:,} landmarks fit"
    other = "" if isinstance(solver, PCG) else "or solver='pcg', "
    return f"use landmarks, {other}or at most {fits:,} rows"


def _with_centers(size: Size, m: int) -> Size:
    return replace(size, m=m, n=m if size.full else size.n)


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest m up to `most` that fits, or 0, by bisection."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
