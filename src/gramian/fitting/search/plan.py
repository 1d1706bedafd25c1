"""Plan of a search before it starts: rows, memory and seconds."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import RandomStream
from ..._messages.checks import readable_bytes
from ..._messages.errors import TextError
from ...data import RowSource, as_rows
from ...engines import Engine, choose_engine
from ...kernels import Kernel
from ...operators import KernelOperator
from ...search import Effort, Recipe
from ...search.all_rows.full_fit import PATH_SHIFTS
from ...search.cells.cell_sizes import USUAL_ROWS, inflated_rows
from ...search.folds import FEW_ROWS, FOLD_COUNT, split_count
from ..plans.calibration import device_speed, measure_seconds
from .data import MOST_ROWS
from .settings import SearchSettings

HELD_BYTES = 1 << 32
"""Bytes that rows may take in memory, to be divided into cells: of more, a random part is."""

PRODUCTS_PER_FIT = 30
"""Products with K of one fit with all rows as centers, about: all penalties at once."""

FITS_PER_SEARCH = 14
"""Such fits of a search without a budget, about: lengthscales and kernels that are worth one."""

METRIC_FITS = 12
"""Fits with landmarks for metrics, of two distances, about."""

PRECONDITIONER_RANK = 1000
"""Columns of the preconditioner of a fit with all rows as centers."""

FINAL_FITS = 2
"""Fits to all rows at the end, about."""

FIT_SECONDS = 0.01
"""Overhead of a fit of few rows, in seconds."""

ENOUGH_SECONDS = 0.2
CALIBRATION_ROWS = 1500


@dataclass(frozen=True)
class SearchPlan:
    """The rows, memory and seconds that a search will need.

    - `searched_rows`: rows of the search; the last fit may take more.
    - `held_out`: held-out rows among them: a part, or all in turn if rows are few.
    - `fitted_rows`: rows of the last fit: all, or for cells as many as memory allows.
    - `memory_bytes`: approximate peak of the memory, without the given data and the libraries.
    - `kernel_evaluations`: approximate number without a budget of kernel evaluations.
    - `seconds`: approximate seconds on this machine, at most the budget.
    - `limited`: whether the budget ends the search before its last step.
    """

    searched_rows: int
    held_out: int
    all_rows: int
    fitted_rows: int
    memory_bytes: int
    kernel_evaluations: float
    seconds: float
    limited: bool

    def __str__(self) -> str:
        rows = (
            "all rows"
            if self.searched_rows == self.all_rows
            else f"{self.searched_rows:,} random rows"
        )
        if self.fitted_rows < self.all_rows:
            rows += f" (cells of {self.fitted_rows:,} in the end, as many as memory holds)"
        why = ", the budget" if self.limited else ""
        return (
            f"a search on {rows}, {self.held_out:,} of them held out to choose by: "
            f"{readable_bytes(self.memory_bytes)}, {self.kernel_evaluations:.3g} kernel "
            f"evaluations, about {self.seconds:.3g} s{why}"
        )


@dataclass(frozen=True)
class _Work:
    """Work of a search: kernel evaluations, in narrow and wide products, operations and fits."""

    narrow: float = 0.0
    wide: float = 0.0
    flops: float = 0.0
    fits: float = 1.0

    def __add__(self, other: _Work) -> _Work:
        return _Work(
            self.narrow + other.narrow,
            self.wide + other.wide,
            self.flops + other.flops,
            self.fits + other.fits,
        )

    def __mul__(self, times: float | int) -> _Work:
        return _Work(times * self.narrow, times * self.wide, times * self.flops, times * self.fits)


def plan_search(settings: SearchSettings, rows: RowSource, targets: int = 1) -> SearchPlan:
    """Estimate rows, memory and seconds of a search, before it starts.

    - `targets`: columns of the targets.

    The plan is an estimate, because the numbers of lengthscales, of kernels that are fitted with
    all
    rows, and of iterations depend on the data. Measuring the speed of this machine takes about a
    second.
    """
    n, d, settings = len(rows), rows.width, settings.of(rows)
    s = min(n, MOST_ROWS)
    held_rows = rows_by_cells(rows, targets, settings.memory_limit)
    # Cells are worthwhile only if they have more rows than the sample.
    held_rows = held_rows if s < min(n, held_rows) else 0
    fitted = USUAL_ROWS if held_rows else s
    work = _search_work(settings, s, fitted, d, targets)
    last = _last_work(s, n, held_rows, targets)
    kernel = Recipe(settings.space.kernels[0]).make_kernel()
    engine = choose_engine(settings.engine, dtype=rows.dtype, kernel=kernel, sparse=rows.sparse)
    expected = _seconds(work + last, kernel, engine, rows, targets)
    pairs = work.narrow + work.wide + last.narrow + last.wide
    budget = settings.budget
    # A budget of evaluations ends the search at that share of all steps.
    share = 1.0 if budget.evaluations > pairs else budget.evaluations / pairs
    return SearchPlan(
        searched_rows=s,
        held_out=min(2000, split_count(s) * s // FOLD_COUNT),
        all_rows=n,
        fitted_rows=held_rows or n,
        memory_bytes=_memory(rows, targets, held_rows),
        kernel_evaluations=share * pairs,
        seconds=min(share * expected, budget.seconds),
        limited=share < 1 or budget.seconds < expected,
    )


def _search_work(settings: SearchSettings, s: int, fitted: int, d: int, t: int) -> _Work:
    """Return the work of a search on s rows, including fits with all s rows as centers."""
    space, effort = settings.space, Effort()
    # Few rows are held out in turn: each step is a fit for each fold.
    times = split_count(s)
    learned = s - min(2000, s // FOLD_COUNT)
    screens = len(space.kernels) * len(space.inputs)
    work = _sampled_work(min(learned, effort.screen_rows), effort.screen_landmarks) * screens
    if space.machine is not None and d > 1:
        sampled = _sampled_work(min(learned, space.machine.rows), space.machine.landmarks)
        work += (sampled + _Work(flops=4.0 * d**3)) * METRIC_FITS
    full = min(learned, fitted)
    work += _full(full, t) * min(FITS_PER_SEARCH, space.fits)
    return work * times + _full(fitted, t) * FINAL_FITS


def _sampled_work(n: int, m: int) -> _Work:
    """Return the work of a fit for a path of penalties with landmarks."""
    m = min(m, n)
    return _Work(narrow=1.25 * n * m, flops=n * m**2 + 6 * m**3 / 3)


def _full(n: int, t: int) -> _Work:
    """Return the work of a fit for a path of penalties with all rows as centers."""
    # Few rows are factorised once for each penalty.
    if n <= FEW_ROWS:
        return _Work(narrow=float(n) ** 2, flops=len(PATH_SHIFTS) * n**3 / 3)
    columns = len(PATH_SHIFTS) * t
    return _Work(
        wide=PRODUCTS_PER_FIT * n**2 / 2,
        flops=n * PRECONDITIONER_RANK**2
        + PRODUCTS_PER_FIT * 4.0 * n * PRECONDITIONER_RANK * columns,
    )


def _last_work(s: int, n: int, held: int, t: int) -> _Work:
    """Return the work of the final fit to more rows than the sample: by cells, or to all."""
    if n == s:
        return _Work()
    # Cells overlap in bands, which inflate their rows.
    if held:
        return _full(USUAL_ROWS, t) * (inflated_rows(held, USUAL_ROWS) / USUAL_ROWS)
    return _Work(narrow=30.0 * n * 10_000, flops=10_000.0**3)


def rows_by_cells(rows: RowSource, targets: int, limit: int | None = None) -> int:
    """Return the number of rows that memory allows for cells; sparse rows have no cells.

    - `targets`: columns of the targets.
    - `limit`: bytes for the whole search.
    """
    n, d = rows.shape
    if rows.sparse:
        return min(n, MOST_ROWS)
    row_bytes = d * rows.dtype.itemsize
    most_rows = HELD_BYTES // row_bytes
    if limit is not None:
        copies = _copies(n) * row_bytes + 8 * targets
        most_rows = min(most_rows, int(max(0, limit - _memory(rows, targets, 0)) / copies))
    return min(n, most_rows)


def _copies(n: int) -> float:
    """Return how many copies of the rows a fit by cells keeps: unmapped, mapped, and by cell."""
    return 2 + inflated_rows(n, USUAL_ROWS) / n


def _memory(rows: RowSource, t: int, held: int) -> int:
    """Return the peak bytes of a search: rows in three forms, preconditioner, and vectors."""
    n, d, itemsize = len(rows), rows.width, rows.dtype.itemsize
    s = min(n, MOST_ROWS)
    # 1. Rows: the sample as standardised rows, normal scores and mapped rows, and copies of more
    # rows.
    if held:  # more than the sample, in cells
        copies, centers = 3 * s + _copies(n) * held, USUAL_ROWS
    else:
        centers = min(n, 10_000) if n > s else s
        copies = 3 * s + FINAL_FITS * centers
    # 2. A path of penalties: the columns of its preconditioner, and four vectors for each penalty.
    solver = max(s, centers) * (PRECONDITIONER_RANK * itemsize + 8 * 4 * len(PATH_SHIFTS) * t)
    landmarks = 4 * 8 * PRECONDITIONER_RANK**2
    # 3. Few rows are factorised instead: the matrix, its factor and a copy.
    beside = solver if s > FEW_ROWS else 3 * 8 * s**2
    return int(copies * d * itemsize + beside + landmarks)


def check_memory(rows: RowSource, targets: int, limit: int) -> None:
    """Raise ValueError if the approximate memory of a search on these rows exceeds a limit."""
    n, d = rows.shape
    needed = _memory(rows, targets, 0)
    if needed > limit:
        raise TextError(
            f"a search on {n:,} rows of {d} features needs about {readable_bytes(needed)}, but "
            f"{{memory_limit}} is {readable_bytes(limit)}; raise {{memory_limit}}, or use "
            "{KernelRidge} with {landmarks}"
        )


def _seconds(work: _Work, kernel: Kernel, engine: Engine, rows: RowSource, t: int) -> float:
    """Return the seconds of work from the speed of small products and factorisations."""
    # Random rows cannot stand for sparse ones, whose speed depends on their structure.
    speeds = _of_sparse if rows.sparse else _of_dense
    plain, symmetric = speeds(kernel, engine, rows, t)
    beside = work.fits * FIT_SECONDS
    factorisations = work.flops / device_speed("cpu")[0]
    return beside + work.narrow * plain + work.wide * symmetric + factorisations


def _of_dense(kernel: Kernel, engine: Engine, rows: RowSource, t: int) -> tuple[float, float]:
    """Measure the seconds of a kernel entry in narrow products, and in products for all shifts."""
    rng = RandomStream(0)
    x = rng.standard_normal((CALIBRATION_ROWS, rows.shape[1]), rows.dtype)
    x = xp.abs(x) if kernel.nonnegative else x
    kernel = kernel.resolve(x[:500])
    x = engine.place(x)
    n = len(x)
    few_columns = xp.ones((len(x), t), like=x)
    wide = xp.ones((len(x), len(PATH_SHIFTS) * t), like=x)
    # Reading a number waits for a device, whose calls return before they are done.
    products = (
        lambda: float(engine.matvec(kernel, x, x, few_columns)[0, 0]),
        lambda: float(engine.symmetric(kernel, x, wide)[0, 0]),
    )
    narrow, symmetric = (measure_seconds(product, ENOUGH_SECONDS) for product in products)
    return narrow / n**2, symmetric / engine.symmetric_evaluations(n)


def _of_sparse(kernel: Kernel, engine: Engine, rows: RowSource, t: int) -> tuple[float, float]:
    """Measure the seconds of `_of_dense` on some sparse rows, whose kernel entries a fit stores."""
    n = min(CALIBRATION_ROWS, len(rows))
    x = as_rows(rows.take(xp.arange(n)))
    K = KernelOperator(kernel.resolve(x.take(xp.arange(min(n, 500)))), x, x, engine)
    few_columns = xp.ones((n, t), rows.dtype)
    entries, wide = K.dense(), xp.ones((n, len(PATH_SHIFTS) * t), rows.dtype)
    plain = measure_seconds(lambda: float((K @ few_columns)[0, 0]), ENOUGH_SECONDS) / n**2
    product = measure_seconds(lambda: float((entries @ wide)[0, 0]), ENOUGH_SECONDS) / n**2
    # Entries are computed once for all products of a fit. Twice, because
    # `wide` counts half of the pairs, by symmetry.
    return plain, 2 * (product + plain / PRODUCTS_PER_FIT)
