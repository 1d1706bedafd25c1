"""A Parquet file beside the same rows in memory: seconds of fits and of their passes."""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gramian import _arrays as xp
from gramian._arrays import RandomStream

from ..lib.process import (
    THREADS,
    anonymous_bytes,
    bytes_before_work,
    in_fresh_process,
    peak_bytes,
)
from ..lib.results import Row
from ..lib.tables import Tables, asked
from ..lib.timing import clock

TITLE, MANY_ROWS = "Whole fits", "Many rows"
ROWS, FEATURES, GROUP = 1_000_000, 20, 1 << 17
LANDMARKS = (200, 1000, 4000)
FEW, MANY = 2, 12
"""Iterations of the two fits whose difference is that of so many passes."""

WAYS = ("memory", "file", "file, decoded in each pass")
SIZES, FEW_FEATURES, LIMIT = (1_000_000, 20_000_000, 100_000_000), 10, "2GB"
"""Rows of the second table, their features, and the limit of a fit to them."""

MEMORY_FOLDER = Path("/dev/shm")
"""A folder of temporary files that is in memory, where a fit keeps no decoded rows."""

NOTES = f"""\
{ROWS:,} normal float32 rows x {FEATURES}, FALKON with a Gaussian kernel, one thread, each fit in a
process of its own, CPU seconds. fit: of {MANY} iterations, with the check for missing values,
landmarks and the preconditioner; pass: of one iteration, from the difference to {FEW} iterations.
memory: an array. file: Parquet, row groups of {GROUP:,}, which the first pass of the fit decodes
into a temporary file; decoded in each pass: with a TMPDIR that is in memory. MB: peak above that
before the fit, the rows themselves not counted.

Many rows: {FEW_FEATURES} normal float32 features and a target in one such file. normal: one
`K.normal` with 1,000 landmarks from the file, which it decodes; fit: FALKON with as many, 10
iterations, `fit(path, "y")` with memory_limit={LIMIT!r}. MB: the resident memory that is not of
files, its peak, that of the libraries before ("start") included. RMSE on 20,000 fresh rows without
noise, in units of the target's deviation."""


def generated(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES), np.float32)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def measured(path: str, n: int, way: str, landmarks: int) -> Row:
    """Fit twice, with few iterations and with many."""
    from gramian import KernelRidge
    from gramian.data import ParquetRows

    X, y = generated(n)
    rows = X if way == WAYS[0] else ParquetRows(path)
    if way != WAYS[0]:
        del X
    if way == WAYS[2]:
        tempfile.tempdir = str(MEMORY_FOLDER)
    seconds, coef = [], None
    before = bytes_before_work()
    for iterations in (FEW, MANY):
        model = KernelRidge(
            "gaussian",
            lengthscale=3.0,
            penalty=1e-7,
            landmarks=landmarks,
            solver="falkon",
            max_iter=iterations,
            tol=1e-14,
            random_state=0,
        )
        with clock() as fit:
            model.fit(rows, y)
        seconds.append(fit.cpu)
        coef = model.model_.coef
    return {
        "fit": seconds[1],
        "pass": (seconds[1] - seconds[0]) / (MANY - FEW),
        "MB": round((peak_bytes() - before) / 1e6),
        "sum of squares": float(np.square(xp.to_float64(coef)).sum()),
    }


def write_rows(path: Path, n: int) -> None:
    """Write rows with a target, group by group."""
    rng = np.random.default_rng(0)
    names = [*(f"x{j}" for j in range(FEW_FEATURES)), "y"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, n, GROUP):
            X = rng.standard_normal((min(GROUP, n - start), FEW_FEATURES), np.float32)
            y = _target(X) + 0.1 * rng.standard_normal(len(X), np.float32)
            file.write_batch(pa.record_batch([*X.T.copy(), y], schema=schema))


def _target(X: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    return found


class AnonymousPeak:
    """Watches the resident memory that is not of files, from a thread."""

    def __init__(self) -> None:
        self.peak, self._end = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(0.05):
            self.peak = max(self.peak, anonymous_bytes())

    def megabytes(self) -> int:
        """End, and return the peak."""
        self._end.set()
        self._thread.join()
        return round(max(self.peak, anonymous_bytes()) / 1e6)


def one_normal(path: str, n: int) -> Row:
    """Time one product of all rows with landmarks."""

    from gramian import kernels
    from gramian.data import ParquetRows
    from gramian.operators import KernelOperator

    rows = ParquetRows(path, columns=[f"x{j}" for j in range(FEW_FEATURES)])
    points = RandomStream(0).standard_normal((1000, FEW_FEATURES), np.float32)
    K = KernelOperator(kernels.Gaussian(3.0), rows, points, memory_bytes=1 << 28)
    start, watch = round(anonymous_bytes() / 1e6), AnonymousPeak()
    with clock() as seconds:
        K.normal(np.ones((1000, 1), np.float32))
    return {"CPU s": seconds.cpu, "wall s": seconds.wall, "MB": watch.megabytes(), "start": start}


def whole_fit(path: str, n: int) -> Row:
    """Time a fit of a file to its target, by name."""
    from gramian import KernelRidge

    model = KernelRidge(
        "gaussian", lengthscale=3.0, penalty=1e-7, landmarks=1000, solver="falkon", max_iter=10,
        tol=1e-14, memory_limit=LIMIT, random_state=0,
    )  # fmt: skip
    start, watch = round(anonymous_bytes() / 1e6), AnonymousPeak()
    with clock() as seconds:
        model.fit(path, "y")
    row: Row = {"CPU s": seconds.cpu, "wall s": seconds.wall, "MB": watch.megabytes()}
    fresh = np.random.default_rng(1).standard_normal((20_000, FEW_FEATURES), np.float32)
    truth = _target(fresh)
    columns = pa.table({f"x{j}": fresh[:, j] for j in range(FEW_FEATURES)})
    error = np.asarray(model.predict(columns)).ravel() - truth
    return row | {"start": start, "RMSE": float(np.sqrt(np.mean(error**2)) / truth.std())}


def many_rows(tables: Tables, options: argparse.Namespace, folder: Path) -> None:
    works = {"normal": one_normal, "fit": whole_fit}
    for n in SIZES[:1] if options.quick else SIZES:
        keys: list[Row] = [{"rows": n, "work": name} for name in works]
        keys = [key for key in keys if asked({"table": MANY_ROWS, **key}, options.only)]
        keys = [key for key in keys if not tables.has(MANY_ROWS, **key)]
        if not keys:
            continue
        path = folder / f"rows-{n}.parquet"
        write_rows(path, n)
        for key in keys:
            found = in_fresh_process(works[key["work"]], str(path), n)
            tables.add(MANY_ROWS, key | {"MB on disk": round(path.stat().st_size / 1e6)} | found)
        path.unlink()


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning"  # that so few iterations converge
    tables = Tables("streaming", (TITLE, MANY_ROWS), NOTES, options)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        beside_memory(tables, options, Path(folder))
        many_rows(tables, options, Path(folder))


def beside_memory(tables: Tables, options: argparse.Namespace, folder: Path) -> None:
    n, path = ROWS // 50 if options.quick else ROWS, folder / "rows.parquet"
    keys: list[Row] = [
        {"landmarks": landmarks, "rows": way}
        for landmarks in (LANDMARKS[:1] if options.quick else LANDMARKS)
        for way in WAYS
    ]
    keys = [key for key in keys if not tables.has(TITLE, **key)]
    keys = [key for key in keys if asked({"table": TITLE, **key}, options.only)]
    if not keys:
        return
    X, _ = generated(n)
    columns = {f"x{j}": X[:, j] for j in range(FEATURES)}
    pq.write_table(pa.table(columns), path, row_group_size=GROUP)
    del X, columns
    for key in keys:
        row = key | in_fresh_process(measured, str(path), n, key["rows"], key["landmarks"])
        first = [r for r in tables[TITLE] if r["landmarks"] == key["landmarks"]][:1]
        beside = first[0] if first else row
        row["fit / memory"] = row["fit"] / beside["fit"]
        row["pass / memory"] = row["pass"] / beside["pass"]
        row["same bits"] = row["sum of squares"] == beside["sum of squares"]
        tables.add(TITLE, row)
    path.unlink()
