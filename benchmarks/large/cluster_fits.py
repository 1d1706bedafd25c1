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

from ..lib.results import Row
from ..lib.timing import clock

FEATURES, NAMES = 10, [f"f{j}" for j in range(10)]
GROUP = 1 << 17
SMALL, SMALL_FILES, SMALL_LANDMARKS = 600_000, 12, 300
ROWS, FILES, LANDMARKS = 2_000_000, 20, 1000
FEW, MORE = 2, 12
"""Iterations of two fits, whose difference is that of so many passes."""

PARTED = 200
"""Files of the same rows, for what a further task takes."""

HEAVY_LANDMARKS, HEAVY_MORE = 4_000, 6
"""Of passes whose tasks take about a third of a second; and iterations of the longer fit."""

BLOCKS = (1_000, 8_192, 50_000, 131_072)
"""Rows of a block, by which fits in one process differ among themselves."""

GATHERED = 5_000_000
"""Rows of a dask collection, of which none comes to the client."""

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
            found.append((np.array_equal(model.coef, expected.coef), moment < seconds.wall))
    yield {
        "workers": 2, "rows are": "read or kept, a worker killed",
        "same bits": all(same_bits for same_bits, _ in found),
        "times": len(found), "within the fit": sum(within for _, within in found),
    }  # fmt: skip
    X, y = rows_of(folder), targets(folder)
    new = X[:10_000]
    for dtype in ("float32", "float64"):
        here = [predictions(X.astype(dtype), y, new, size) for size in (None, *BLOCKS)]
        there = expected if dtype == "float32" else wide(folder)
        theirs = there.predict(new)[:, 0]
        spread = max(largest(one - here[0], y) for one in here[1:])
        row: Row = {"rows are": f"{dtype}, one process, blocks of {BLOCKS[0]:,} to {BLOCKS[-1]:,}"}
        yield row | {"predictions differ": spread}
        row = {"workers": 2, "rows are": f"{dtype}, beside one process"}
        yield row | {"predictions differ": largest(theirs - here[0], y)}


def predictions(X: np.ndarray, y: np.ndarray, new: np.ndarray, size: int | None) -> np.ndarray:
    """Return predictions of a fit in this process, of blocks of at most so many rows."""
    from gramian.operators.budget import Budget

    streamed = Budget.rows_per_pass

    def limited(self: Any, m: int, *, result: int = 0) -> int:
        return min(size or X.shape[0], streamed(self, m, result=result))

    Budget.rows_per_pass = limited  # type: ignore[method-assign]
    try:
        found: np.ndarray = estimator(SMALL_LANDMARKS, 10).fit(X, y).predict(new)
    finally:
        Budget.rows_per_pass = streamed  # type: ignore[method-assign]
    return found


def largest(difference: np.ndarray, y: np.ndarray) -> float:
    return float(np.abs(difference).max() / y.std())


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
    return {"same bits": np.array_equal(estimator.model_.coef, expected.coef)}


def passes(folder: str, way: str, landmarks: int = LANDMARKS, more: int = MORE) -> Row:
    """Return seconds, CPU, tasks and bytes of a pass."""
    if way == "one process":
        X, y, found = rows_of(folder), targets(folder), []
        estimator(landmarks, 1).fit(X, y)
        for iterations in (FEW, more):
            with clock() as seconds:
                est = estimator(landmarks, iterations).fit(X, y)
            found.append(seconds)
        return {
            "products": products(est),
            "seconds": (found[1].wall - found[0].wall) / (more - FEW),
            "worker CPU ms": 1e3 * (found[1].cpu - found[0].cpu) / (more - FEW),
        }
    from gramian.data.dask import DaskRows

    workers, kept = int(way.split()[0]), "kept" in way
    with client_of(workers) as client:
        rows = DaskRows.open(folder, NAMES, client=client, keep=kept)
        y = rows.column("y")
        estimator(landmarks, 1).fit(rows, y)
        client.run(metered)
        marks = []
        for iterations in (FEW, more):
            before = mark(client)
            est = estimator(landmarks, iterations).fit(rows, y)
            marks.append([b - a for a, b in zip(before, mark(client), strict=True)])
        each = ((b - a) / (more - FEW) for a, b in zip(*marks, strict=True))
        wall, cpu, worker, sent, inside, moved = each
        tasks = rows.spread().tasks
    return {
        "products": products(est),
        "seconds": wall, "worker CPU ms": 1e3 * worker, "inside ms": 1e3 * inside,
        "client CPU ms": 1e3 * cpu, "tasks": tasks, "MB sent": sent / 1e6, "parts moved": moved,
    }  # fmt: skip


def products(fitted: Any) -> str:
    """Return the precision of the last products of a fit."""
    return "float64" if fitted.history_[-1]["wide"] else "float32"


def metered() -> None:
    """Count the CPU seconds within tasks of a pass, in this worker."""
    from gramian.data.dask import part

    folded = part.fold_part

    def counted(*arguments: Any) -> Any:
        start = time.process_time()
        found = folded(*arguments)
        part.inside += time.process_time() - start  # type: ignore[attr-defined]
        return found

    part.fold_part, part.inside = counted, 0.0  # type: ignore[attr-defined]


def met(dask_worker: Any) -> tuple[float, float, float]:
    """Return the CPU seconds of a worker, those within tasks, and parts that came to it."""
    from gramian.data.dask import part

    came = sum(
        key.startswith(("kept", "numbers"))
        for one in dask_worker.transfer_incoming_log
        for key in one["keys"]
    )
    return time.process_time(), getattr(part, "inside", 0.0), float(came)


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
            _, here, there, sent, *_ = (b - a for a, b in zip(before, mark(client), strict=True))
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


def of_collection() -> Row:
    """Return the memory here of a fit of dask arrays, which workers make."""
    import dask.array as da

    with client_of(2) as client:
        X = da.random.default_rng(0).standard_normal((GATHERED, FEATURES), chunks=(GROUP * 4, -1))
        X = X.astype(np.float32)
        y = da.sin(X[:, 0]) + X[:, 1]
        estimator(SMALL_LANDMARKS, 1).fit(X[:GROUP], y[:GROUP])  # what is imported then
        ended, peaks = threading.Event(), [psutil.Process().memory_info().rss]

        def look() -> None:
            while not ended.wait(0.05):
                peaks.append(psutil.Process().memory_info().rss)

        threading.Thread(target=look).start()
        estimator(SMALL_LANDMARKS, 10).fit(X, y)
        ended.set()
        there = sum(client.run(resident).values())
    return {
        "rows": GATHERED, "MB of the rows": GATHERED * FEATURES * 4 / 1e6,
        "MB here before": peaks[0] / 1e6, "most in the fit": max(peaks) / 1e6,
        "MB of both workers": there / 1e6,
    }  # fmt: skip


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


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
        estimator(SMALL_LANDMARKS, 1).fit(rows, y)  # what is imported then
        killed: list[float] = []

        def end() -> None:
            client.cluster.scale(0)  # nobody starts another
            while client.cluster.scheduler.workers:
                time.sleep(0.05)
            killed.append(time.perf_counter())

        threading.Timer(3.0, end).start()
        try:
            estimator(SMALL_LANDMARKS, 100).fit(rows, y)
        except ConnectionError as error:
            waited = time.perf_counter() - killed[0]
            return {"patience": PATIENCE, "seconds until the error": waited, "said": str(error)}
    raise AssertionError("the fit ended before the workers did")


def mark(client: Any) -> tuple[float, float, float, float, float, float]:
    """Return clock, CPU seconds here and of workers, bytes sent, CPU within tasks, parts moved."""
    there, inside, moved = (sum(one) for one in zip(*client.run(met).values(), strict=True))
    sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    return time.perf_counter(), time.process_time(), there, float(sent), inside, moved


def small(work: Path) -> str:
    """Return the folder of the small set, which is written unless it is there."""
    if not (work / "small").exists():
        generated(work / "small", SMALL, SMALL_FILES)
    return str(work / "small")


def all_bits(folder: str) -> list[Row]:
    return list(bits(folder))
