"""Rows on a Dask cluster of this machine: bits, bytes, tasks, seconds, lost workers, 10^8 rows."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from ..lib.process import THREADS, in_fresh_process
from ..lib.results import Row
from ..lib.tables import Tables, asked
from ..lib.timing import clock
from .cluster_sizes import SIZES, reckoned

BITS, PASSES, MANY, SIZED = "Bits", "Passes", "Through the command line", "Reckoned"
TITLES = (BITS, PASSES, MANY, SIZED)

FEATURES, NAMES = 10, [f"x{j}" for j in range(10)]
GROUP = 1 << 17
SMALL, SMALL_FILES, SMALL_LANDMARKS = 600_000, 12, 300
ROWS, FILES, LANDMARKS = 2_000_000, 20, 1000
FEW, MORE = 2, 12
"""Iterations of two fits, whose difference is that of so many passes."""

KILLS = 20
LINES, LINE_FILES = 100_000_000, 100
COMMAND = ("--target", "y", "--landmarks", "1000", "--lengthscale", "4", "--penalty", "1e-7")
WORKERS = 2

NOTES = f"""\
Workers are processes of one thread on this machine (two cores), which it shares with their client.
{FEATURES} normal float32 features in Parquet files, FALKON with a Gaussian kernel.

- {BITS}: {SMALL:,} rows in {SMALL_FILES} files, M = {SMALL_LANDMARKS}; whether coefficients are, to
  the last bit, those of two workers that read. killed: one of two workers gets SIGKILL at a random
  moment of the fit, {KILLS} times with as many seeds. Predictions of 10,000 rows beside a fit in
  one process: the largest difference, relative to the deviation of the target.
- {PASSES}: {ROWS:,} rows in {FILES} files, M = {LANDMARKS}; by the difference between {MORE} and
  {FEW} iterations. worker and client CPU: milliseconds of a pass, the scheduler being in the
  client's process; MB: on all sockets of the machine. one process: the same without Dask.
- {MANY}: {LINES:,} rows in {LINE_FILES} files, fitted by

      gramian fit DIR {" ".join(COMMAND)}

  the seconds of `gramian plan` beside those by the clock; peaks of resident memory, libraries
  included, of the command and of the largest worker.
- {SIZED}: seconds of an iteration and of the dense part, from the rates in its notes: see
  `benchmarks/large/cluster_sizes.py`."""


def generated(folder: Path, n: int, files: int) -> None:
    """Write n rows."""
    folder.mkdir(parents=True)
    for number in range(files):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((n // files, FEATURES), np.float32)
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X), np.float32)
        columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"y": y.astype(np.float32)}
        path = folder / f"part-{number:03}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=GROUP, use_dictionary=False)


@contextmanager
def client_of(workers: int) -> Iterator[Any]:
    from gramian.data.dask.connect import connection

    with connection(workers) as client:
        yield client


def estimator(landmarks: int, iterations: int) -> Any:
    from gramian import KernelRidge

    return KernelRidge(
        "gaussian",
        lengthscale=4.0,
        penalty=1e-7,
        landmarks=landmarks,
        solver="falkon",
        max_iter=iterations,
        tol=1e-14,
        random_state=0,
    )


def fitted(client: Any, folder: str, keep: bool = False) -> Any:
    """Fit the small set where it lies."""
    from gramian.data.dask import DaskRows

    rows = DaskRows.open(folder, NAMES, client=client, keep=keep)
    y = np.asarray(rows.column("y")) if not keep else targets(folder)
    return estimator(SMALL_LANDMARKS, 10).fit(rows, y)


def targets(folder: str) -> np.ndarray:
    return pq.read_table(folder, columns=["y"])["y"].to_numpy()


def rows_of(folder: str) -> np.ndarray:
    table = pq.read_table(folder, columns=NAMES)
    return np.stack([table[name].to_numpy() for name in NAMES], axis=1)


def bits(folder: str) -> Iterator[Row]:
    """Yield the comparisons of coefficients."""
    with client_of(2) as client:
        expected = fitted(client, folder).model_
        yield {"workers": 2, "rows are": "read", "same bits": True}
        yield {"workers": 2, "rows are": "kept"} | same(fitted(client, folder, True), expected)
    for workers in (1, 4):
        with client_of(workers) as client:
            yield {"workers": workers, "rows are": "read"} | same(fitted(client, folder), expected)
    found, moments = [], random.Random(0)
    for _ in range(KILLS):
        with client_of(2) as client:
            pid = next(iter(client.run(os.getpid).values()))
            moment = moments.uniform(0.2, 4.0)
            threading.Timer(moment, os.kill, (pid, signal.SIGKILL)).start()
            with clock() as seconds:
                model = fitted(client, folder, keep=moments.random() < 0.5).model_
            found.append((torch.equal(model.coef, expected.coef), moment < seconds.wall))
    yield {
        "workers": 2, "rows are": "read or kept, a worker killed",
        "same bits": all(same_bits for same_bits, _ in found),
        "times": len(found), "within the fit": sum(within for _, within in found),
    }  # fmt: skip
    X, y = rows_of(folder), targets(folder)
    new = X[:10_000]
    for dtype in ("float32", "float64"):
        here = estimator(SMALL_LANDMARKS, 10).fit(X.astype(dtype), y).predict(new)
        there = expected if dtype == "float32" else wide(folder, y)
        off = np.abs(here - there.predict(torch.from_numpy(new))[:, 0].numpy())
        row: Row = {"workers": 2, "rows are": f"{dtype}, beside one process"}
        yield row | {"predictions differ": float(off.max() / y.std())}


def wide(folder: str, y: np.ndarray) -> Any:
    """Return the model of rows in float64."""
    from gramian.data.dask import DaskRows

    other = Path(folder).with_name("float64")
    other.mkdir()
    for path in sorted(Path(folder).iterdir()):
        table = pq.read_table(path)
        schema = pa.schema([(name, pa.float64()) for name in table.column_names])
        pq.write_table(table.cast(schema), other / path.name)
    with client_of(2) as client:
        rows = DaskRows.open(other, NAMES, client=client)
        return estimator(SMALL_LANDMARKS, 10).fit(rows, y).model_


def same(estimator: Any, expected: Any) -> Row:
    return {"same bits": torch.equal(estimator.model_.coef, expected.coef)}


def passes(folder: str, way: str) -> Row:
    """Return what a pass takes."""
    y = targets(folder)
    if way == "one process":
        X, found = rows_of(folder), []
        for iterations in (FEW, MORE):
            with clock() as seconds:
                estimator(LANDMARKS, iterations).fit(X, y)
            found.append(seconds)
        return {
            "seconds": (found[1].wall - found[0].wall) / (MORE - FEW),
            "worker CPU ms": 1e3 * (found[1].cpu - found[0].cpu) / (MORE - FEW),
        }
    from gramian.data.dask import DaskRows

    workers, kept = int(way.split()[0]), "kept" in way
    with client_of(workers) as client:
        rows = DaskRows.open(folder, NAMES, client=client, keep=kept)
        estimator(LANDMARKS, 1).fit(rows, y)
        marks = []
        for iterations in (FEW, MORE):
            before = mark(client)
            estimator(LANDMARKS, iterations).fit(rows, y)
            marks.append([b - a for a, b in zip(before, mark(client), strict=True)])
        wall, cpu, worker, sent = ((b - a) / (MORE - FEW) for a, b in zip(*marks, strict=True))
        tasks = rows.spread().tasks
    return {
        "seconds": wall, "worker CPU ms": 1e3 * worker, "client CPU ms": 1e3 * cpu,
        "tasks": tasks, "client ms of a task": 1e3 * cpu / tasks, "MB sent": sent / 1e6,
    }  # fmt: skip


def mark(client: Any) -> tuple[float, float, float, float]:
    """Return the clock, CPU seconds here and of workers, and bytes on the sockets."""
    there = sum(client.run(time.process_time).values())
    sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    return time.perf_counter(), time.process_time(), there, float(sent)


def through_the_command_line(folder: Path, way: tuple[str, ...], out: Path) -> Row:
    """Plan and fit; the memory of the command and of its workers."""
    script = str(Path(sys.executable).parent / "gramian")
    planned = said_by([script, "plan", str(folder), *COMMAND, *way, "--json"])
    started, peaks = time.perf_counter(), dict[int, int]()
    command = [script, "fit", str(folder), *COMMAND, *way, "--out", str(out), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        own = psutil.Process(process.pid)
        while process.poll() is None:
            for one in [own, *children(own)]:
                peaks[one.pid] = max(peaks.get(one.pid, 0), resident(one))
            time.sleep(0.5)
        said = json.loads(process.stdout.read() if process.stdout else "")
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    seconds = time.perf_counter() - started
    others = [peak for pid, peak in peaks.items() if pid != process.pid]
    return {
        "seconds": seconds, "planned": planned["seconds"], "iterations": said["iterations"],
        "MB here": peaks[process.pid] / 1e6, "MB of a worker": max(others, default=0) / 1e6,
    }  # fmt: skip


def said_by(command: list[str]) -> Any:
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["PYTHONWARNINGS"] = "ignore"
    tables = Tables("cluster", TITLES, NOTES, options)
    with tempfile.TemporaryDirectory(prefix="gramian-", dir=options.work) as work:
        if wanted(tables, BITS, options):
            generated(Path(work) / "small", SMALL, SMALL_FILES)
            tables.add(BITS, *in_fresh_process(all_bits, str(Path(work) / "small")))
        if wanted(tables, PASSES, options):
            generated(Path(work) / "rows", ROWS, FILES)
            for way in ("one process", "1 worker, kept", "2 workers, kept", "2 workers, read"):
                row = in_fresh_process(passes, str(Path(work) / "rows"), way)
                tables.add(PASSES, {"by": way} | row)
        if wanted(tables, MANY, options) and not options.quick:
            folder = Path(work) / "lines"
            generated(folder, LINES, LINE_FILES)
            for name, way in (("local:2", ("--dask", f"local:{WORKERS}")), ("no Dask", ())):
                key: Row = {"rows": LINES, "by": name}
                if asked(key, options.only) and not tables.has(MANY, **key):
                    row = through_the_command_line(folder, way, Path(work) / f"{name}.model")
                    tables.add(MANY, key | row)
            shutil.rmtree(folder)
    tables.replace(SIZED, [reckoned(*size) for size in SIZES])


def all_bits(folder: str) -> list[Row]:
    return list(bits(folder))


def wanted(tables: Tables, title: str, options: argparse.Namespace) -> bool:
    """Return whether a table is asked for and not there; the last two may have parts missing."""
    full = {BITS: 1, PASSES: 1, MANY: 2}[title]
    return asked({"table": title}, [o for o in options.only if o.startswith("table=")]) and (
        len(tables[title]) < full
    )
