"""Fits to rows on a Dask cluster of this machine: bits, passes, cells, lost workers."""

from __future__ import annotations

import os
import random
import signal
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

from ..lib.results import Row
from ..lib.timing import clock

FEATURES, NAMES = 10, [f"f{j}" for j in range(10)]
GROUP = 1 << 17
SMALL, SMALL_FILES, SMALL_LANDMARKS = 600_000, 12, 300
ROWS, FILES, LANDMARKS = 2_000_000, 20, 1000
FEW, MORE = 2, 12
"""Iterations of two fits, whose difference is that of so many passes."""

KILLS = 20
LINES, LINE_FILES = 100_000_000, 100
PATIENCE = 5.0
WORKERS = 2
WAYS = ("one process", "1 worker, kept", "2 workers, kept", "2 workers, read")


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
    return estimator(SMALL_LANDMARKS, 10).fit(rows, rows.column("y"))


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
        there = expected if dtype == "float32" else wide(folder)
        off = np.abs(here - there.predict(torch.from_numpy(new))[:, 0].numpy())
        row: Row = {"workers": 2, "rows are": f"{dtype}, beside one process"}
        yield row | {"predictions differ": float(off.max() / y.std())}


def wide(folder: str) -> Any:
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
        return estimator(SMALL_LANDMARKS, 10).fit(rows, rows.column("y")).model_


def same(estimator: Any, expected: Any) -> Row:
    return {"same bits": torch.equal(estimator.model_.coef, expected.coef)}


def passes(folder: str, way: str) -> Row:
    """Return seconds, tasks and bytes of a pass."""
    if way == "one process":
        X, y, found = rows_of(folder), targets(folder), []
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
        y = rows.column("y")
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


def cells(folder: str, way: str) -> Row:
    """Return seconds, bytes and score of a fit by cells."""
    from gramian import KernelRidge
    from gramian.data.dask import DaskRows

    est = KernelRidge("gaussian", lengthscale=4.0, penalty=1e-7, cells=2000, random_state=0)
    X, y = rows_of(folder)[:50_000], targets(folder)[:50_000]
    if way == "one process":
        every, numbers = rows_of(folder), targets(folder)
        with clock() as seconds:
            est.fit(every, numbers)
        cpu: Row = {"CPU s": seconds.cpu}
    else:
        with client_of(int(way.split()[0])) as client:
            before = mark(client)
            rows = DaskRows.open(folder, NAMES, client=client)
            with clock() as seconds:
                est.fit(rows, rows.column("y"))
            _, here, there, sent = (b - a for a, b in zip(before, mark(client), strict=True))
        cpu = {"CPU s": there, "client CPU s": here, "MB sent": sent / 1e6}
    found: Row = {"cells": est.model_.cells.cells.count, "seconds": seconds.wall}
    return found | cpu | {"R2": float(est.score(X, y))}


def what_comes(folder: str) -> Row:
    """Count the rows that are asked for."""
    from gramian.data.dask import DaskRows

    asked_for = {"rows": 0, "targets": 0}
    take = DaskRows.take

    def counted(self: Any, index: Any) -> Any:
        asked_for["rows" if self.shape[1] == FEATURES else "targets"] += len(index)
        return take(self, index)

    def refused(self: Any, size: int) -> Any:
        raise AssertionError("all rows were asked for")

    DaskRows.take, DaskRows.blocks = counted, refused  # type: ignore[method-assign]
    with client_of(2) as client:
        rows = DaskRows.open(folder, NAMES, client=client)
        y = rows.column("y")
        est = estimator(SMALL_LANDMARKS, 10).fit(rows, y)
        fitted_rows = asked_for["rows"]
        est.predict(rows)
        est.score(rows, y)
    return {"rows of": SMALL, "in the fit": fitted_rows, "with all": asked_for["rows"]} | {
        "targets": asked_for["targets"]
    }


def all_lost(folder: str) -> Row:
    """Return how long a fit waits for workers that never come."""
    import dask
    from gramian.data.dask import DaskRows

    with client_of(2) as client:
        dask.config.set({"distributed.scheduler.allowed-failures": 100})
        rows = DaskRows.open(folder, NAMES, client=client)
        rows.workers.patience = PATIENCE
        y = rows.column("y")
        y.rows.workers.patience = PATIENCE  # type: ignore[attr-defined]
        killed: list[float] = []

        def end() -> None:
            client.cluster.scale(0)  # nobody starts another
            killed.append(time.perf_counter())

        threading.Timer(3.0, end).start()
        try:
            estimator(SMALL_LANDMARKS, 100).fit(rows, y)
        except ConnectionError as error:
            waited = time.perf_counter() - killed[0]
            return {"patience": PATIENCE, "seconds until the error": waited, "said": str(error)}
    raise AssertionError("the fit ended before the workers did")


def mark(client: Any) -> tuple[float, float, float, float]:
    """Return the clock, CPU seconds here and of workers, and bytes on the sockets."""
    there = sum(client.run(time.process_time).values())
    sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    return time.perf_counter(), time.process_time(), there, float(sent)


def small(work: Path) -> str:
    """Return the folder of the small set, which is written unless it is there."""
    if not (work / "small").exists():
        generated(work / "small", SMALL, SMALL_FILES)
    return str(work / "small")


def all_bits(folder: str) -> list[Row]:
    return list(bits(folder))
