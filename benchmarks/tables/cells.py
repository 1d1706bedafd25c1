"""Fits by cells: error and seconds by size and overlap of cells, and by the number of rows."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..lib.process import THREADS, in_fresh_process, peak_bytes
from ..lib.results import Row
from ..lib.sets import errors
from ..lib.tables import Tables, asked
from ..lib.timing import clock
from .accuracy_sets import load, path_of

SIZES, ROWS = "Size and overlap", "Rows"
TITLES = (SIZES, ROWS)
SET = "nycflights"
CELLS, OVERLAPS = (1250, 2500, 5000), (0.0, 0.05, 0.1, 0.2)
PARTITIONS = ("median_splits", "kmeans", "random")
GENERATED = (10_000, 40_000, 160_000, 640_000, 4_000_000)
FEATURES, CELL_ROWS, NOISE = 5, 2500, 0.1
TEST_ROWS = 10_000
RIDGE = 0.1
"""Rows times the penalty, with the kernel below: about what `KernelRidgeCV` chooses."""

NOTES = f"""\
One thread, each fit in a process of its own, `KernelRidge(cells=...)` with `solver="pcg"` to a
relative residual of 3e-3.

- {SIZES}: {SET}, all training rows; l1 Laplacian, half the median, a learned metric, ridge
  {RIDGE:g}. "rows of cells": those of bands counted for each cell.
- {ROWS}: generated rows of {FEATURES} normal features, cells of {CELL_ROWS:,}; MB: peak above that
  before the work, the data included."""


def measured(path: str, partition: str, rows: int, overlap: float) -> Row:
    """Fit one set with one partition."""
    from gramian import KernelRidge
    from gramian.cells import partitions

    table = load(Path(path), None)
    given = {"rows": rows} if partition == "random" else {"rows": rows, "overlap": overlap}
    model = KernelRidge(
        "l1_laplacian",
        lengthscale="0.5 median",
        penalty=RIDGE / len(table.X),
        metric="learned",
        cells=partitions.make(partition, **given),
        solver="pcg",
        tol=3e-3,
        random_state=0,
    )
    with clock() as fit:
        model.fit(table.X, table.y)
    with clock() as predict:
        prediction = model.predict(table.X_test)
    return {
        "cells": model.model_.cells.cells.count,
        "rows of cells": len(model.model_.centers) / len(table.X),
        "RMSE": errors(prediction, table.y_test)[0],
        "cpu_s": fit.cpu,
        "predict_s": predict.cpu,
    }


def generated(n: int) -> Row:
    """Fit generated rows, to see how seconds and memory grow."""
    from gramian import KernelRidge

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + TEST_ROWS, FEATURES), np.float32)
    y = np.sin(3 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + NOISE * rng.standard_normal(len(X))
    before = peak_bytes()
    model = KernelRidge(
        "matern32",
        lengthscale=1.0,
        penalty=1.0 / n,
        cells=CELL_ROWS,
        solver="pcg",
        tol=3e-3,
        random_state=0,
    )
    with clock() as fit:
        model.fit(X[:n], y[:n])
    with clock() as predict:
        prediction = model.predict(X[n:])
    return {
        "cells": model.model_.cells.cells.count,
        "RMSE": errors(prediction, y[n:])[0],
        "cpu_s": fit.cpu,
        "cpu_s of 10,000 rows": fit.cpu / n * 10_000,
        "predict_s": predict.cpu,
        "MB": round((peak_bytes() - before) / 1e6),
    }


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """Yield the keys of the rows that are asked for."""
    sizes = (5000,) if options.quick else CELLS
    for rows in sizes:
        for overlap in (0.1,) if options.quick else OVERLAPS:
            yield SIZES, {"partition": PARTITIONS[0], "rows": rows, "overlap": overlap}
    if not options.quick:
        for name in PARTITIONS[1:]:
            yield SIZES, {"partition": name, "rows": CELLS[1], "overlap": 0.1}
    for n in GENERATED[:1] if options.quick else GENERATED:
        yield ROWS, {"rows": n}


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tables, path = Tables("cells", TITLES, NOTES, options), path_of(options.data, SET)
    for title, key in wanted(options):
        if tables.has(title, **key) or not asked({"table": title, **key}, options.only):
            continue
        if title == ROWS:
            tables.add(title, key | in_fresh_process(generated, key["rows"]))
        elif path is not None:
            tables.add(title, key | in_fresh_process(measured, str(path), *key.values()))
