"""Choice of the solver of a fit, by its size, memory and penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ... import solvers
from ..._parallel.machine import machine_memory
from ...data import RowSource
from ...kernels import Kernel
from ...landmarks import Selector
from ...operators import Engine
from ...problems import FullProblem, NystromProblem
from ...solvers import BLOCK_BYTES, Solver
from ..held_out import splits
from ..held_out.folds import HELD_OUT
from ..settings import landmarks as landmark_settings
from ..settings import resolve
from ..settings.settings import FitSettings
from .memory import FitSize, dense_bytes, least_blocks

DIRECT_ROWS = 10_000
"""Rows up to which solver="auto" factorises the full kernel matrix, if PCG is slow."""

PCG_ROWS = 400_000
"""Rows up to which it takes PCG: an iteration is 8e10 kernel evaluations there."""

LEAST_RANK = 100
"""Columns that the preconditioner of PCG must have room for."""

PCG_FROM = 3_000
"""Rows above which solver="auto" tries PCG first, if the penalty is not tiny."""

TINY_SHIFT = 2e-3
"""Rows times the penalty, below which PCG takes longer than Direct for most kernels.

With 5,000 rows of 8 features, a Gaussian kernel and 5e-3 PCG took 0.68 s and Direct 0.82; with 5e-4
they took 1.9 and 1.0, and PCG that goes over to Direct 1.3.
"""


def solver_and_size(
    settings: FitSettings, rows: RowSource, targets: int
) -> tuple[Solver[Any, Any], FitSize]:
    """Return the solver of a fit to these rows, and the size that determines its cost.

    Raise ValueError if the solver does not support such problems, or this penalty.
    """
    n = len(rows)
    selector = landmark_settings.selector(settings.landmarks, n, not rows.random_access)
    # A selector with a given penalty has no number yet: the data
    # are placed again if there are more.
    m = n if selector is None else landmark_settings.count(selector, n) or 1
    other_loss = resolve.loss(settings.loss) if settings.is_nonlinear else None
    size = FitSize(
        n,
        rows.width,
        targets if other_loss is None else other_loss.outputs(targets),
        m,
        rows.dtype.itemsize,
        full=selector is None and other_loss is None,
        pairs_once=rows.random_access and not rows.sparse,
        dense=not rows.sparse,
        targets_here=rows.fits(),
        fits=fits_per_level(settings, n) if settings.searches_penalty else 0.0,
        selector=selector if isinstance(selector, Selector) else None,
    )
    if isinstance(selector, Selector):
        selector.check_rows(rows)
    if other_loss is not None:
        return resolve.newton(settings.solver), size
    chosen = solver(settings, size)
    chosen.check_type(FullProblem if size.full else NystromProblem)
    chosen.check_rows(rows)
    if not isinstance(settings.penalty, str):
        chosen.check_penalty(settings.one_penalty)
    if settings.penalties is not None:
        chosen.check_penalties()
    return chosen, size


def after_choices(chosen: FitSettings, asked: FitSettings, size: FitSize) -> Solver[Any, Any]:
    """Return the solver for the chosen penalty, which is Direct up to more rows if it is tiny.

    PCG is slow for tiny penalties.

    - `chosen`: settings with values in place of "auto".
    - `asked`: settings as the user gave them.
    """
    if chosen.is_nonlinear:
        return resolve.newton(asked.solver)
    chosen_solver = solver(chosen.with_values(solver=asked.solver), size)
    if chosen.searches_penalty:
        return chosen_solver
    chosen_solver.check_penalty(chosen.one_penalty)
    return chosen_solver


def with_stored_entries(
    found: Solver[Any, Any],
    size: FitSize,
    limit: int | None,
    engine: Engine,
    kernel: Kernel,
    workers: int = 1,
) -> Solver[Any, Any]:
    """Return a solver that stores kernel entries, if that saves time and memory allows.

    Entries take at most half of the free bytes of a limit, or a quarter of the machine's memory
    without one, divided among workers. A matrix with two thin factors needs no entries.
    """
    if not engine.on_host or not size.targets_here:
        return found
    # Products with the factors of such a matrix are faster than products with its entries.
    if kernel.bilinear and not found.closed_form:
        return found
    return found.storing(size, spare_bytes(found, size, limit, workers))


def spare_bytes(found: Solver[Any, Any], size: FitSize, limit: int | None, workers: int = 1) -> int:
    """Return the bytes for stored kernel entries, half of the memory left by solver and blocks."""
    # Without a limit, half of the memory is left for other uses.
    memory = machine_memory() // 2 if limit is None else limit
    free_bytes = memory // workers - dense_bytes(found, size) - BLOCK_BYTES
    return max(0, free_bytes // 2)


def fits_per_level(settings: FitSettings, n: int) -> float:
    """Return the cost of the fits to all folds at one level of a path, in fits to all rows."""
    if settings.names_folds:
        return splits.count_of(settings.cv, n)
    return 1 - 1 / HELD_OUT if settings.cv is None else float(cast("int", settings.cv)) - 1.0


def solver(settings: FitSettings, size: FitSize) -> Solver[Any, Any]:
    """Return the solver of the settings; for "auto", Falkon with landmarks, else `full_solver`."""
    chosen_solver = _solver_of_name(settings, size)
    return chosen_solver.stopped_early() if settings.early_stopping else chosen_solver


def _solver_of_name(settings: FitSettings, size: FitSize) -> Solver[Any, Any]:
    chosen_solver, limit = settings.solver, settings.limit
    if isinstance(chosen_solver, Solver):
        return chosen_solver
    if chosen_solver == "auto" and not size.full:
        return solvers.Falkon()
    if chosen_solver not in ("auto", "pcg"):
        return solvers.make(str(chosen_solver))
    # The preconditioner may take a quarter of the limit.
    pcg = solvers.PCG() if limit is None else solvers.PCG(memory_bytes=limit // 4)
    if chosen_solver == "pcg":
        return pcg
    if not isinstance(settings.tol, str):
        pcg = replace(pcg, goal=settings.tol)
    return full_solver(size, limit, pcg, is_tiny=_has_tiny_penalty(settings, size.n))


def _has_tiny_penalty(settings: FitSettings, n: int) -> bool:
    """Return whether the penalty is known and tiny: PCG then needs many iterations."""
    if isinstance(settings.penalty, str):
        return False
    penalties = settings.penalties or (settings.one_penalty,)
    return min(penalties) * n < TINY_SHIFT


def full_solver(
    size: FitSize, limit: int | None, pcg: solvers.PCG, *, is_tiny: bool = False
) -> Solver[Any, Any]:
    """Choose Direct, PCG or ASkotch as the solver if all rows are centers.

    Up to 3,000 rows Direct if it fits, and up to 10,000 rows PCG that goes over to Direct if it is
    slow, or Direct for a tiny penalty. Then PCG, if its preconditioner has 100 columns in a quarter
    of the memory, up to 400,000 rows. Else ASkotch, if rows can be read in any order.

    Measured, in CPU seconds: on 32,561 rows of adult_a9a PCG with 1,000 columns overtakes ASkotch
    after 40 s and has a residual of 0.022 after 50 s, ASkotch 0.060. On 196,046 rows of skin
    ASkotch is ahead for the first 90 s (0.061 against 2.5 % wrong labels of PCG after 15
    iterations), but only PCG converges. With 500,000 rows PCG ended its first iteration when
    ASkotch had reduced its residual two thirds of the way from 0.97 to 0.10. The best limit between
    these numbers of rows was not measured.
    """
    if size.n <= DIRECT_ROWS:
        # The factorisation takes the least time with a copy in float32.
        both = replace(pcg, direct_bytes=12 * size.n * size.n)
        if size.n > PCG_FROM and not is_tiny and _fits(both, size, limit):
            return both
        if _fits(solvers.Direct(), size, limit):
            return solvers.Direct()
    has_low_rank = pcg.rank_for(size.n) < min(LEAST_RANK, size.n)
    return solvers.ASkotch() if size.pairs_once and (has_low_rank or size.n > PCG_ROWS) else pcg


def _fits(solver: Solver[Any, Any], size: FitSize, limit: int | None) -> bool:
    return limit is None or dense_bytes(solver, size) + least_blocks(size) <= limit
