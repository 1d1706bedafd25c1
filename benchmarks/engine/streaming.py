"""A Parquet file beside the same rows in memory: seconds of fits and of their passes."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..lib.process import THREADS, bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import Row
from ..lib.tables import Tables, asked
from ..lib.timing import clock

TITLE = "Whole fits"
ROWS, FEATURES, GROUP = 3_000_000, 20, 1 << 17
LANDMARKS = (200, 1000, 4000)
FEW, MANY = 2, 12
"""Iterations of the two fits whose difference is that of so many passes."""

WAYS = ("memory", "file", "file, decoded in each pass")
MEMORY_FOLDER = Path("/dev/shm")
"""A folder of temporary files that is in memory, where a fit keeps no decoded rows."""

NOTES = f"""\
{ROWS:,} normal float32 rows x {FEATURES}, FALKON with a Gaussian kernel, one thread, each fit in a
process of its own, CPU seconds. fit: of {MANY} iterations, with the check for missing values,
landmarks and the preconditioner; pass: of one iteration, from the difference to {FEW} iterations.
memory: an array. file: Parquet, row groups of {GROUP:,}, which the first pass of the fit decodes
into a temporary file; decoded in each pass: with a TMPDIR that is in memory. MB: peak above that
before the fit, the rows themselves not counted."""


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
        "sum of squares": float(coef.double().square().sum()),
    }


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning"  # that so few iterations converge
    tables = Tables("streaming", (TITLE,), NOTES, options)
    n = ROWS // 50 if options.quick else ROWS
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        path = Path(folder) / "rows.parquet"
        X, _ = generated(n)
        columns = {f"x{j}": X[:, j] for j in range(FEATURES)}
        pq.write_table(pa.table(columns), path, row_group_size=GROUP)
        del X, columns
        for landmarks in LANDMARKS[:1] if options.quick else LANDMARKS:
            for way in WAYS:
                key: Row = {"landmarks": landmarks, "rows": way}
                if tables.has(TITLE, **key) or not asked({"table": TITLE, **key}, options.only):
                    continue
                row = key | in_fresh_process(measured, str(path), n, way, landmarks)
                first = [r for r in tables[TITLE] if r["landmarks"] == landmarks][:1]
                beside = first[0] if first else row
                row["fit / memory"] = row["fit"] / beside["fit"]
                row["pass / memory"] = row["pass"] / beside["pass"]
                row["same bits"] = row["sum of squares"] == beside["sum of squares"]
                tables.add(TITLE, row)
