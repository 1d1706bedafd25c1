"""PCG with cells as a preconditioner, low rank, and both: iterations and seconds to a residual."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian import KernelRidge, kernels
from gramian._arrays import RandomStream
from gramian.cells import MedianSplits
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import PCG

from ..lib.curves import residual
from ..lib.results import Row
from ..lib.sets import Split, data_set, errors, load
from ..lib.tables import Tables, asked
from ..lib.timing import clock

ITERATIONS, SECONDS, RULE = "Iterations", "CPU seconds", "The rule"
BLENDED = "Beside blended cells"
RESIDUALS = (1e-1, 1e-2, 1e-3)
ROWS = (20_000, 60_000, 150_000)
CELLS = (600, 2000, 5000)
RANK, FEW = 1000, 300
LIMIT = {20_000: 15, 60_000: 90, 150_000: 300}
"""CPU seconds for each method by the number of rows."""

BLENDED_ROWS, BLENDED_CELLS, OVERLAP = 60_000, (1000, 2500, 5000), 0.1


@dataclass(frozen=True)
class Case:
    """A set, a kernel and its lengthscales in medians."""

    name: str
    kernel: str
    widths: tuple[float, ...]


CASES = (
    Case("bathy_celt", "matern32", (1.0, 0.25)),
    Case("bathy_celt", "l1_laplacian", (0.25, 0.0625)),
    Case("beijing_pm25", "l1_laplacian", (1.0, 0.25)),
)


def contenders(n: int) -> Iterator[tuple[str, PCG]]:
    """Yield methods and solvers; those with many rows are fewer."""
    large = {"memory_bytes": 1 << 32}
    yield "auto", PCG("auto", **large)
    yield f"rpcholesky {RANK}", PCG("rpcholesky", RANK)
    sizes = CELLS if n <= 20_000 else CELLS[1:2]
    for rows in sizes:
        yield f"cells {rows}", PCG("cells", cell_rows=rows)
    pairs = [(FEW, 600), (FEW, 2000), (RANK, 2000)]
    for rank, rows in pairs if n <= 20_000 else pairs[1:] if n <= 60_000 else []:
        yield f"rank {rank} and cells {rows}", PCG("nystrom+cells", rank, cell_rows=rows)


def problems(split: Split, case: Case, n: int) -> Iterator[tuple[Row, FullProblem]]:
    """Yield what a row of a table begins with, and the problem."""
    X = split.X[:n]
    rows, y = as_rows(X), split.y[:n].astype(np.float64)[:, None]
    for width in case.widths:
        kernel = kernels.make(case.kernel, lengthscale=f"{width} median")
        K = KernelOperator(kernel.resolve(X[:1000]), rows, rows)
        for shift in (0.1, 1.0):
            about = {"set": case.name, "n": n, "kernel": case.kernel, "medians": width}
            yield about | {"shift": shift}, FullProblem(K, y, shift / n)


def measured(problem: FullProblem, solver: PCG, limit: float) -> tuple[Row, Row]:
    """Return iterations and CPU seconds to each residual; looking at it is not counted."""
    count: Row = {}
    seconds: Row = {"setup": math.nan}
    start = time.process_time()
    for state in solver.iterate(problem, rng=RandomStream(0)):
        spent = time.process_time() - start
        if state.iteration == 0:
            seconds["setup"] = spent
        for least in RESIDUALS:
            if f"{least:.0e}" not in count and state.metrics["rel_residual"] <= least:
                count[f"{least:.0e}"], seconds[f"{least:.0e}"] = state.iteration, spent
        if len(count) == len(RESIDUALS) or spent > limit:
            break
    last = {"reached": f"{residual(problem, state.coef)['residual']:.1e}"}
    last |= {"after": state.iteration}
    none = {f"{least:.0e}": "-" for least in RESIDUALS}
    return none | count | last, {"setup": seconds["setup"]} | none | seconds | {"spent": spent}


def rule(tables: Tables) -> list[Row]:
    """Return, for each problem and residual, the best method and the seconds of the rule."""
    found: list[Row] = []
    key = ("set", "n", "kernel", "medians", "shift")
    for about in dict.fromkeys(tuple(row[k] for k in key) for row in tables[SECONDS]):
        runs = [row for row in tables[SECONDS] if tuple(row[k] for k in key) == about]
        line: Row = dict(zip(key, about, strict=True))
        for least in (f"{least:.0e}" for least in RESIDUALS):
            ended = {row["method"]: row[least] for row in runs if row[least] != "-"}
            others = {name: spent for name, spent in ended.items() if name != "auto"}
            best = min(others, key=others.__getitem__, default="none")
            line |= {f"best to {least}": best, f"auto / best, {least}": "-"}
            if best in others and "auto" in ended:
                line[f"auto / best, {least}"] = ended["auto"] / others[best]
        found.append(line)
    return found


def blended(split: Split, case: Case) -> Iterator[Row]:
    """Yield errors of test rows and seconds: the global solution by PCG, and cells."""
    n, X, X_test = BLENDED_ROWS, split.X[:BLENDED_ROWS], split.X_test
    width = f"{case.widths[-1]} median"
    kernel = kernels.make(case.kernel, lengthscale=width).resolve(X[:1000])
    given = {"penalty": 0.1 / n, "standardize": False, "random_state": 0}
    fits: dict[str, dict[str, Any]] = {
        f"global, to {tol:g}": {"solver": PCG("auto", memory_bytes=1 << 32), "tol": tol}
        for tol in RESIDUALS
    }
    for rows in BLENDED_CELLS:
        cells = MedianSplits(rows, OVERLAP)
        fits[f"cells {rows}, {OVERLAP:g}"] = {"cells": cells, "solver": "pcg", "tol": 1e-3}
    for name, how in fits.items():
        with clock() as took:
            model = KernelRidge(kernel, **given, **how).fit(X, split.y[:n])
        error = errors(model.predict(X_test), split.y_test)[0]
        yield {"set": case.name, "n": n, "method": name, "RMSE": error, "cpu_s": took.cpu}


NOTES = f"""\
Full kernel ridge regression by PCG, float32 rows, one core: iterations, and CPU seconds with the
setup of the preconditioner, until the residual has come down to a share of the targets; `reached`
is the true one in float64, on 2,000 rows, where a method ended. A method ends at {RESIDUALS[-1]} or
after {", ".join(f"{s} s with {n:,} rows" for n, s in LIMIT.items())} (-: not reached by then).
Lengthscales in medians of the distances, shift = n penalty. rpcholesky: {RANK:,} columns; cells:
block Cholesky with at most so many rows; rank and cells: both, "nystrom+cells"; auto: what
`PCG("auto")` chooses. The rule: seconds of auto over those of the fastest of the others.
{BLENDED}: RMSE of the test rows by the same kernel and ridge, the narrowest and 0.1 above: all
rows in one problem by `PCG("auto")` to a relative residual, and cells, blended in bands."""


def main(options: argparse.Namespace) -> None:
    tables = Tables("cells_pcg", (RULE, BLENDED, SECONDS, ITERATIONS), NOTES, options)
    for n in (2000,) if options.quick else ROWS:
        for case in CASES:
            if (path := data_set(options.data, case.name)) is None:
                return
            split = load(path)
            order = np.random.default_rng(0).permutation(len(split.X))
            split = Split(split.X[order], split.y[order], split.X_test, split.y_test)
            for about, problem in problems(split, case, n):
                add(tables, about, problem, options)
            about = {"set": case.name, "n": n, "table": BLENDED}
            here = (case, n) == (CASES[1], BLENDED_ROWS) and not tables[BLENDED]
            if here and asked(about, options.only):
                tables.add(BLENDED, *blended(split, case))


def add(tables: Tables, about: Row, problem: FullProblem, options: argparse.Namespace) -> None:
    """Measure what is asked for of a problem, and not measured yet."""
    n = about["n"]
    for name, solver in contenders(n):
        row = about | {"method": name}
        if tables.has(SECONDS, **row) or not asked(row, options.only):
            continue
        count, seconds = measured(problem, solver, 1 if options.quick else LIMIT[n])
        tables.add(ITERATIONS, row | count)
        tables.add(SECONDS, row | seconds)
    tables.replace(RULE, rule(tables))
