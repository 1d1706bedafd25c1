"""A small simulation of passes on clusters: seconds, bytes and memory by rows, landmarks, workers.

Discrete tasks on the slots of workers, whose seconds vary, fed by a scheduler that starts one task
after the other. From rates that were measured on this machine; see `RATES`.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from ..lib.results import Row


@dataclass(frozen=True)
class Rates:
    """Work of one core, a scheduler and a link in a second.

    Attributes
    ----------
    pairs, wide_pairs : float
        Kernel evaluations with their products of a core: `normal`, ten features, float32 and
        float64.
    numbers : float
        Numbers of a Parquet file that a core decodes.
    task : float
        Seconds of client and scheduler for each task, those of merging included.
    flops : float
        Of the client in float64, in factorisations.
    stream : float
        Bytes of a matrix that the client reads, in triangular solves.
    link : float
        Bytes between two machines.
    spread : float
        Standard deviation of the seconds of a task, relative to their mean.
    """

    pairs: float = 1.8e9
    wide_pairs: float = 1.0e9
    numbers: float = 8.4e7
    task: float = 6e-4
    flops: float = 1e12
    stream: float = 1e11
    link: float = 1e9
    spread: float = 0.15


RATES = Rates()
"""Of a core, a scheduler and its client: from the table of passes, CPU seconds.

Pairs of one worker that keeps its rows; numbers from what two workers that read take more; seconds
of a task from what a further one takes. Factorisation, reading of memory and network are
assumed.
"""

CORES, FEATURES = 16, 10
TASKS_PER_WORKER = 4
FAN_IN = 16
ITERATIONS = 20

SIZES = tuple(
    (n, workers, m)
    for n in (10**8, 10**9, 10**10)
    for workers in (10, 100, 1000)
    for m in (10_000, 100_000)
)


def reckoned(
    n: int,
    workers: int,
    m: int,
    rates: Rates = RATES,
    *,
    cores: int = CORES,
    parts: int | None = None,
    kept: bool = False,
    wide: bool = False,
) -> Row:
    """Return seconds and bytes of a fit of n rows and m landmarks on workers of so many cores.

    With products in float32, or `wide`.
    """
    parts = TASKS_PER_WORKER * workers if parts is None else parts
    reading = 0.0 if kept else n * FEATURES / (rates.numbers * cores) / parts
    pairs = rates.wide_pairs if wide else rates.pairs
    each = n * m / (pairs * cores) / parts + reading
    rng = np.random.default_rng(0)
    seconds = each * np.maximum(1 + rates.spread * rng.standard_normal(parts), 0.3)
    merges = merging(parts)
    vectors = 8.0 * m
    spreading = vectors * math.ceil(math.log2(workers + 1)) / rates.link
    product = ends_at(seconds, workers, rates.task)
    adding = len(merges) * (FAN_IN * vectors / rates.link) + sum(merges) * rates.task
    solves = 4 * 4.0 * m * m / rates.stream  # four triangles of 4 m² bytes
    iteration = spreading + product + adding + solves
    dense = 2 * m**3 / 3 / rates.flops
    tasks = parts + sum(merges)
    return {
        "rows": n, "workers": workers, "landmarks": m, "s of an iteration": iteration,
        "of it products": product, "scheduler busy": tasks * rates.task / iteration,
        "dense part s": dense, f"{ITERATIONS} iterations s": dense + ITERATIONS * iteration,
        "GB here": 8.0 * m * m / 1e9, "tasks": tasks,
        "MB of a pass": vectors * (workers + tasks) / 1e6,
        "dense part dominates from M": dominating(n, workers * cores, rates),
    }  # fmt: skip


def ends_at(seconds: np.ndarray, workers: int, task: float) -> float:
    """Return when the last task ends, of which a scheduler starts one after the other."""
    free = [0.0] * workers
    heapq.heapify(free)
    last = 0.0
    for number, one in enumerate(seconds.tolist()):
        begins = max(heapq.heappop(free), (number + 1) * task)
        heapq.heappush(free, begins + one)
        last = max(last, begins + one)
    return last


def merging(parts: int) -> list[int]:
    """Return the merges of each level of the tree."""
    found = []
    while parts > 1:
        parts = math.ceil(parts / FAN_IN)
        found.append(parts)
    return found


def dominating(n: int, cores: int, rates: Rates) -> int:
    """Return the M from which a factorisation takes longer than all products of the iterations."""
    return round(math.sqrt(ITERATIONS * 1.5 * n * rates.flops / (rates.pairs * cores)))


def checked(measured: list[Row]) -> list[Row]:
    """Return the reckoned seconds of passes that were measured on this machine, beside these."""
    found = []
    for row in measured:
        by = str(row["by"])
        if "worker" not in by:
            continue
        n, files, m = (int(row[name]) for name in ("rows", "files", "landmarks"))
        workers = int(by.split()[0])
        wide = row["products"] == "float64"
        one = reckoned(n, workers, m, cores=1, parts=files, kept="kept" in by, wide=wide)
        found.append(
            {
                "rows": n, "files": files, "by": by, "landmarks": m,
                "products": row["products"], "measured s": row["seconds"],
                "CPU s of a worker": row["worker CPU ms"] / 1e3 / workers,
                "reckoned s": one["s of an iteration"], "measured tasks": row["tasks"],
                "reckoned tasks": one["tasks"],
            }
        )  # fmt: skip
    return found
