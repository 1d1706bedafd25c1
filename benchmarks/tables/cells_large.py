"""Cells out of core: rows in a file larger than the memory limit; killed, and resumed."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import tempfile
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..lib.process import in_fresh_process, resident_bytes
from ..lib.results import Row
from ..lib.sets import errors
from ..lib.tables import Tables
from ..lib.timing import clock

TITLE = "Out of core"
FEATURES, NOISE, GROUP = 10, 0.1, 250_000
ROWS, QUICK_ROWS = (2_000_000, 20_000_000, 50_000_000), (100_000,)
TEST_ROWS = 20_000
CELL_ROWS, OVERLAP, RIDGE, LENGTHSCALE = 1000, 0.02, 1.0, 2.0
LIMIT, MANY, LIMIT_OF_MANY = "1GB", 50_000_000, "2GB"
KILLED_AT = 0.3
"""Share of the cells with which the first fit is killed."""

NOTES = f"""\
Generated rows of {FEATURES} normal float32 features in one Parquet file, fitted by
`KernelRidge("matern32", lengthscale={LENGTHSCALE:g}, cells=MedianSplits({CELL_ROWS}, {OVERLAP}),
memory_limit="limit")` with a checkpoint, on two cores, with other work beside: a first process is
killed with three cells of ten, a second one ends the fit. By the default solver, "direct" for such
cells; rows with solver "pcg" (tol=3e-3) are older, and were killed after 0.3 of the planned time.

- "killed after": seconds; of 50 million rows about an hour, as much else ran on the machine.
- "cells kept": those that the second process has found in the checkpoint.
- "wall_s", "cpu_s": of the second process. "anonymous MB": its largest memory that is no file's;
  "resident MB" counts pages of temporary files, too, which the system drops when others need room.
- "file MB", "temporary MB", "checkpoint MB", "model MB": on the disk.
- RMSE: of {TEST_ROWS:,} fresh rows with the same noise, deviation {NOISE}; "mean": of the mean."""


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets."""
    X = rng.standard_normal((n, FEATURES), np.float32)
    y = np.sin(3 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + NOISE * rng.standard_normal(n)
    return X, y.astype(np.float32)


def written(path: Path, n: int) -> None:
    """Write a Parquet file of n rows, group by group."""
    rng, names = np.random.default_rng(0), [f"x{j}" for j in range(FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in (*names, "y")])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, n, GROUP):
            X, y = drawn(min(GROUP, n - start), rng)
            columns = dict(zip(names, X.T, strict=True)) | {"y": y}
            writer.write_table(pa.table(columns, schema), row_group_size=GROUP)


def limit_of(n: int) -> str:
    return LIMIT_OF_MANY if n >= MANY else LIMIT


def model_for(folder: Path, n: int, callbacks: list[Any]) -> Any:
    from gramian import KernelRidge
    from gramian.callbacks import Checkpoint
    from gramian.cells import MedianSplits

    return KernelRidge(
        "matern32",
        lengthscale=LENGTHSCALE,
        penalty=RIDGE / n,
        cells=MedianSplits(CELL_ROWS, OVERLAP),
        memory_limit=limit_of(n),
        standardize=True,
        callbacks=[Checkpoint(folder / "checkpoint"), *callbacks],
        random_state=0,
    )


class Watch:
    """Peaks of memory, seconds of stages, and how many cells were ready at once."""

    def __init__(self) -> None:
        self.anonymous = self.resident = 0
        self.seconds: dict[str, float] = {}
        self.kept = 0
        self._first: float | None = None
        threading.Thread(target=self._look, daemon=True).start()

    def __call__(self, problem: object, state: object) -> None:
        """Do nothing: cells have no iterations of the whole fit."""

    def stage(self, name: str) -> None:
        self.seconds[name] = time.perf_counter()

    def part(self, done: int, total: int) -> None:
        self.seconds.setdefault("first", time.perf_counter())

    def _look(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            now = int(status.split("RssAnon:")[1].split()[0]) * 1024
            self.anonymous, self.resident = (
                max(self.anonymous, now), max(self.resident, resident_bytes()),
            )  # fmt: skip
            time.sleep(0.1)


class Killer:
    """Ends the process like one that is killed, once some of the cells are ready."""

    def __call__(self, problem: object, state: object) -> None:
        """Do nothing: cells have no iterations of the whole fit."""

    def stage(self, name: str) -> None:
        """Do nothing before there are cells."""

    def part(self, done: int, total: int) -> None:
        if done >= KILLED_AT * total:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(folder: Path, n: int) -> None:
    """Fit, and end like a process that is killed."""
    model_for(folder, n, [Killer()]).fit(str(folder / "rows.parquet"), "y")


def resumed(folder: Path, n: int) -> Row:
    """Fit to the end, from the checkpoint."""
    watch = Watch()
    model = model_for(folder, n, [watch])
    with clock() as took:
        model.fit(str(folder / "rows.parquet"), "y")
    row: Row = {"cells": model.model_.cells.cells.count}
    row |= {"wall_s": took.wall, "cpu_s": took.cpu}
    row["of it dividing, wall_s"] = watch.seconds["fitting cells"] - watch.seconds["preparing"]
    row |= {"anonymous MB": watch.anonymous / 1e6, "resident MB": watch.resident / 1e6}
    row["temporary MB"] = len(model.model_.centers) * (4 * FEATURES + 16) / 1e6
    X, y = drawn(TEST_ROWS, np.random.default_rng(1))
    with clock() as predict:
        found = model.predict(pa.table({f"x{j}": X[:, j] for j in range(FEATURES)}))
    row |= {"predict_s": predict.cpu, "RMSE": errors(found, y)[0], "mean": float(y.std())}
    model.save(folder / "model")
    return row


def measured(folder: Path, n: int) -> Row:
    """Kill a fit, resume it, and say what it took."""
    from gramian.callbacks.journal import Journal

    written(folder / "rows.parquet", n)
    plan = in_fresh_process(planned, folder, n)
    started = time.monotonic()
    with contextlib.suppress(BrokenProcessPool):
        in_fresh_process(killed, folder, n)
    seconds = time.monotonic() - started
    kept = 0
    if (folder / "checkpoint").exists():
        kept = len(Journal(folder / "checkpoint", {}, resume=True))
    row: Row = {"limit": limit_of(n), "solver": "direct", "planned s": plan}
    row |= {"killed after": seconds, "cells kept": kept}
    row |= in_fresh_process(resumed, folder, n)
    for name in ("rows.parquet", "checkpoint", "model"):
        row[f"{name.removesuffix('.parquet')} MB"] = (folder / name).stat().st_size / 1e6
    return row


def planned(folder: Path, n: int) -> float:
    return float(model_for(folder, n, []).plan(str(folder / "rows.parquet"), "y").seconds)


def main(options: argparse.Namespace) -> None:
    tables = Tables("cells_large", (TITLE,), NOTES, options)
    for n in QUICK_ROWS if options.quick else ROWS:
        if not tables.has(TITLE, rows=n):
            with tempfile.TemporaryDirectory(dir=options.work) as folder:
                tables.add(TITLE, {"rows": n} | measured(Path(folder), n))
