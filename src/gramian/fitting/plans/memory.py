"""Memory of a fit: the bytes that it keeps, and the remaining bytes for blocks of rows."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

from ..._messages.checks import readable_bytes
from ..._messages.errors import TextError
from ..._parallel.machine import machine_memory
from ...landmarks import Selector
from ...operators import strip_rows
from ...solvers import BLOCK_BYTES, PCG, ProblemSize, Solver

LEAST_BLOCKS = 48 << 20
"""Memory for blocks of rows below which tiles no longer fit."""

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan assumes, as in the FALKON paper."""

FITS_PER_PATH = 12.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; about seven beyond, with all landmarks; and
each level also scores its held-out rows.
"""

FACTORS_PER_PATH, LEVELS_PER_PATH = 2.0, 19
"""Factors of a path in units of its last one, as those beyond are shared; and all levels."""


@dataclass(frozen=True)
class FitSize(ProblemSize):
    """Size of a fit, which determines its cost: of the problem, the path and the selector.

    - `fits`: cost of the fits at each level of a path of penalties, in units of a fit to all rows;
      0 if the penalty is given.
    - `selector`: selector of the landmarks; None for given points or all rows.
    """

    fits: float = 0.0
    selector: Selector | None = None

    def evaluations(self, solver: Solver[Any, Any], iterations: int) -> int:
        """Return the kernel evaluations of some iterations, setup and path included."""
        return int(solver.evaluations(self, iterations) * (1 + FITS_PER_PATH * self.fits))

    def operations(self, solver: Solver[Any, Any], iterations: int) -> float:
        """Return the floating-point operations of some iterations, setup and path included."""
        # All folds share the factors of the levels.
        factors = FACTORS_PER_PATH if self.fits else 0.0
        return solver.operations(self, iterations) * (1 + factors)

    def steps(self, solver: Solver[Any, Any], iterations: int) -> float:
        """Return the number of successive steps, path included."""
        return solver.steps(self, iterations) * (1 + LEVELS_PER_PATH * self.fits)

    @property
    def selection_bytes(self) -> int:
        """Bytes that the selector keeps, including the targets."""
        if self.selector is None:
            return 0
        targets = 8 * self.n * self.t * self.targets_here
        return self.selector.kept_bytes(self.n, self.d, self.m) + targets

    @property
    def selection_evaluations(self) -> int:
        """Kernel evaluations of the selector."""
        return 0 if self.selector is None else self.selector.evaluations(self.n, self.m)

    @property
    def selection_operations(self) -> float:
        """Floating-point operations of the selector."""
        return 0.0 if self.selector is None else self.selector.operations(self.n, self.d, self.m)


def least_blocks(size: FitSize) -> int:
    """Return the memory for blocks of rows that any solver needs."""
    return LEAST_BLOCKS + 64 * size.d * size.itemsize


def dense_bytes(solver: Solver[Any, Any], size: FitSize, mapped: bool = False) -> int:
    """Return the bytes that a fit keeps in addition to blocks of rows.

    The selector of landmarks needs memory first, then the solver, with its centers or without;
    along a path of penalties with the factor of the best level so far.
    """
    # A path keeps the factor of the best level so far, next to the current one.
    path = 8 * size.m * size.m + 8 * size.n * (size.t + 1) if size.fits else 0
    # The selector has ended when the solver begins.
    return max(solver.peak_bytes(size, mapped=mapped) + path, size.selection_bytes)


def chosen_bytes(solver: Solver[Any, Any], size: FitSize, blocks: int) -> int:
    """Return the bytes that solver or selector take from the memory for blocks of rows.

    A selector evaluates two strips of kernel entries, before the solver begins.
    """
    looks = size.selection_evaluations > 0
    strips = 2 * 8 * size.m * min(size.n, strip_rows(size.m, 8, blocks)) if looks else 0
    # The first levels of a path have fewer landmarks, which may change its memory.
    sizes = (size, replace(size, m=max(1, size.m // 4))) if size.fits else (size,)
    return max(strips, *(solver.flexible_bytes(part, blocks) for part in sizes))


def divide_memory(limit: int | None, solver: Solver[Any, Any], size: FitSize) -> tuple[int, int]:
    """Return the bytes that a solver keeps, and the remaining bytes for blocks of rows.

    Centers of a streaming solver that are larger than the blocks are stored in a file, see
    `KernelOperator.points`, and not counted.

    Raise ValueError if factors and vectors leave too little memory; the message says what would
    fit.
    """
    memory = machine_memory() if limit is None else limit
    least_bytes, points = least_blocks(size), size.m * size.d * size.itemsize
    # First with the centers in memory; then, if they take more than the blocks, in a file.
    for mapped in (False, True):
        dense = dense_bytes(solver, size, mapped)
        blocks = int(max(least_bytes, min(BLOCK_BYTES, (memory - dense) // 2)))
        if dense + least_bytes <= memory and (points > blocks or not mapped):
            return dense, blocks
    count = f"{size.n:,} rows" if size.full else f"{size.m:,} landmarks"
    allowed = "this process may use" if limit is None else "{memory_limit} is"
    raise TextError(
        f"{count} need {readable_bytes(dense + least_bytes)}, but {allowed} "
        f"{readable_bytes(memory)}; {_what_fits(memory - least_bytes, solver, size)}"
    )


def _what_fits(free: int, solver: Solver[Any, Any], size: FitSize) -> str:
    """Return the remedy of an error: the number of centers, or the limit, that suffices."""
    # The largest number of centers that fits, by bisection.
    fits = bisect_left(
        range(1, size.m + 1), True, key=lambda m: dense_bytes(solver, _with_centers(size, m)) > free
    )
    if fits == 0:
        least_bytes = least_blocks(size) + dense_bytes(solver, _with_centers(size, 1))
        return f"a single one needs {readable_bytes(least_bytes)}: raise the limit"
    if not size.full:
        return f"at most {fits:,} landmarks fit"
    alternative = "" if isinstance(solver, PCG) else "or {solver='pcg'}, "
    return f"use {{landmarks}}, {alternative}or at most {fits:,} rows"


def _with_centers(size: FitSize, m: int) -> FitSize:
    # With all rows as centers, fewer centers mean fewer rows.
    return replace(size, m=m, n=m if size.full else size.n)
