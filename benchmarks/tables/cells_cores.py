"""Cells on several cores by the clock: threads of one process, and processes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import Barrier, get_context
from pathlib import Path

import numpy as np

from ..lib.process import THREADS, in_fresh_process
from ..lib.results import Row
from ..lib.tables import Tables, asked
from ..lib.timing import clock
from .accuracy_sets import load, path_of
from .cells import RIDGE
from .many_rows_contenders import searched

FITS, SEARCHES = "Threads and processes", "Searches by the clock"
SET, CELL_ROWS, REPEATS = "nycflights", (1250, 2500, 5000), 3
CORES = 2
SEARCHED, BUDGETS = ("nycflights", "beijing_pm25"), (60,)

NOTES = f"""\
By the clock, on a machine with nothing else to do; the least of {REPEATS} fits each, without
imports.

- {FITS}: {SET}, all training rows, `KernelRidge(cells=...)` with `solver="pcg"` to a relative
  residual of 3e-3; l1 Laplacian, half the median, ridge {RIDGE:g}. threads: one fit with so many,
  and no processes. as chosen: processes where they pay, which are there already; `cpu_s` is without
  theirs. processes: as many at once, each with one thread and one half of the rows, split at the
  median of the first feature, as the tree's first split would; the slowest counts.
- {SEARCHES}: `KernelRidgeCV(budget=...)` on all training rows with so many threads."""


def _model(cell_rows: int, n: int) -> Callable[[np.ndarray, np.ndarray], object]:
    from gramian import KernelRidge

    return KernelRidge(
        "l1_laplacian",
        lengthscale="0.5 median",
        penalty=RIDGE / n,
        cells=cell_rows,
        solver="pcg",
        tol=3e-3,
        random_state=0,
    ).fit


def as_chosen(path: str, cell_rows: int) -> Row:
    """Fit all rows with the threads that this process has, or processes."""
    table = load(Path(path), None)
    fit = _model(cell_rows, len(table.X))
    times = []
    for _ in range(REPEATS):
        with clock() as seconds:
            fit(table.X, table.y)
        times.append((seconds.wall, seconds.cpu))
    return dict(zip(("wall_s", "cpu_s"), min(times), strict=True))


def with_threads(path: str, cell_rows: int) -> Row:
    """Fit all rows in this process alone."""
    from gramian.fitting.cells import problems as cell_fits

    cell_fits.processes_pay = lambda *_: False
    return as_chosen(path, cell_rows)


def half(path: str, cell_rows: int, which: int) -> list[tuple[float, float]]:
    """Fit one half of the rows; times of the system's clock, which processes share."""
    table = load(Path(path), None)
    low = table.X[:, 0] <= np.median(table.X[:, 0])
    mine = low if which == 0 else ~low
    fit, X, y = _model(cell_rows, len(table.X)), table.X[mine], table.y[mine]
    fit(X[:5000], y[:5000])
    times = []
    for _ in range(REPEATS):
        _together.wait()
        begun = time.time()
        with clock() as seconds:
            fit(X, y)
        times.append((time.time() - begun, seconds.cpu))
    return times


def _join(barrier: Barrier) -> None:  # type: ignore[valid-type]
    global _together
    _together = barrier


def with_processes(path: str, cell_rows: int) -> Row:
    """Fit both halves at once."""
    context = get_context("spawn")
    barrier = context.Barrier(CORES)
    with ProcessPoolExecutor(CORES, context, _join, (barrier,)) as pool:
        halves = [pool.submit(half, path, cell_rows, which) for which in range(CORES)]
        rounds = zip(*(one.result() for one in halves), strict=True)
    both = [(max(wall for wall, _ in one), sum(cpu for _, cpu in one)) for one in rounds]
    return dict(zip(("wall_s", "cpu_s"), min(both), strict=True))


def search(path: str, budget: int) -> Row:
    """Search within a budget, and test what was found."""
    table = load(Path(path), None)
    model = searched(f"{budget} s")(False, 0)
    with clock() as seconds:
        model.fit(table.X, table.y)
    error = np.sqrt(np.mean((model.predict(table.X_test) - table.y_test) ** 2))
    return {"RMSE": float(error), "wall_s": seconds.wall, "cpu_s": seconds.cpu}


def started_alone(work: Callable[[str, int], Row], path: str, number: int) -> Row:
    """Return ``work(path, number)`` of a process that knows of no parent: it may have children."""
    code = (
        "import json, sys; from {} import {}; print(json.dumps({}(sys.argv[1], int(sys.argv[2]))))"
    )
    code = code.format(work.__module__, work.__name__, work.__name__)
    command = [sys.executable, "-c", code, path, str(number)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile have so many threads."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def main(options: argparse.Namespace) -> None:
    tables = Tables("cells_cores", (FITS, SEARCHES), NOTES, options)
    path = path_of(options.data, SET)
    for rows in CELL_ROWS[1:2] if options.quick else CELL_ROWS:
        for name, work, threads in (
            ("1 thread", with_threads, 1),
            (f"{CORES} threads", with_threads, CORES),
            (f"{CORES} processes", with_processes, 1),
            (f"{CORES}, as chosen", as_chosen, CORES),
        ):
            key: Row = {"rows of a cell": rows, "by": name}
            wanted = path is not None and asked({"table": FITS, **key}, options.only)
            if not wanted or tables.has(FITS, **key):
                continue
            with _threads(threads):
                run = started_alone if work is as_chosen else in_fresh_process
                tables.add(FITS, key | run(work, str(path), rows))
    for name in () if options.quick else SEARCHED:
        file = path_of(options.data, name)
        for budget in BUDGETS:
            for threads in (1, CORES):
                key = {"set": name, "budget": budget, "threads": threads}
                wanted = file is not None and asked({"table": SEARCHES, **key}, options.only)
                if not wanted or tables.has(SEARCHES, **key):
                    continue
                with _threads(threads):
                    tables.add(SEARCHES, key | started_alone(search, str(file), budget))
