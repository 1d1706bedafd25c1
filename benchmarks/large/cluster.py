"""Rows on a Dask cluster of this machine: bits, bytes, tasks, seconds, lost workers, 10^8 rows."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from ..lib.process import THREADS, in_fresh_process
from ..lib.results import Row
from ..lib.tables import Tables, asked
from .cluster_command import COMMAND, through_the_command_line
from .cluster_fits import (
    FEATURES,
    FEW,
    FILES,
    HEAVY_LANDMARKS,
    HEAVY_MORE,
    KILLS,
    LANDMARKS,
    LINE_FILES,
    LINES,
    MORE,
    PARTED,
    PATIENCE,
    ROWS,
    SMALL,
    SMALL_FILES,
    SMALL_LANDMARKS,
    WAYS,
    WORKERS,
    all_bits,
    all_lost,
    cells,
    generated,
    of_collection,
    passes,
    small,
    what_comes,
)
from .cluster_sizes import SIZES, checked, reckoned

BITS, PASSES, CELLS, COMES = "Bits", "Passes", "Cells", "What comes to the client"
MEMORY = "Memory here, of a dask collection"
LOST, MANY = "All workers lost", "Through the command line"
CHECKED, SIZED = "Reckoned, beside measured passes", "Reckoned"
TITLES = (BITS, PASSES, CELLS, COMES, MEMORY, LOST, MANY, CHECKED, SIZED)

LAKE = "lake1e8"
"""Folder of temporary files: written once, and left for a next time."""

NOTES = f"""\
Workers are processes of one thread on this machine (two cores), which it shares with their client.
Passes over 4 million rows, cells, the memory of a collection and the fit to 100 million rows
without Dask are of 24 November 2026 (commit d9528e5), when nothing else ran, except beside passes
over 4 million rows, which took longer by the clock for that: 8.25 and 8.55 s with 4,000 landmarks
before.
The fit to 100 million rows with two workers is of 28 November on a virtual Zen 5, on which nothing
else ran; it took 174 s on 24 November on a virtual Zen 4, and the cause is not known. All else is
of 28 November, beside ten other processes: a worker had an eighth to a sixth of a core, which makes
seconds by the clock up to ten times longer, and CPU seconds of a pass up to 14 %. Messages of Dask
come by the clock, 7 kB/s, so that slow passes send more.
{FEATURES} normal float32 features in Parquet files, FALKON with a Gaussian kernel.

- {BITS}: {SMALL:,} rows in {SMALL_FILES} files, M = {SMALL_LANDMARKS}; whether coefficients are, to
  the last bit, those of two workers that read. killed: one of two workers gets SIGKILL at a random
  moment of the fit, {KILLS} times with as many seeds. Predictions of 10,000 rows beside a fit in
  one process: the largest difference, relative to the deviation of the target; and of fits in one
  process among themselves, by rows of a block.
- {PASSES}: by the difference between {MORE} ({HEAVY_MORE} with {HEAVY_LANDMARKS:,} landmarks) and
  {FEW} iterations. worker CPU: milliseconds of a pass, of which inside are those within tasks;
  client CPU: with the scheduler, which is in its process, and with its own share of FALKON; MB: on
  all sockets of the machine; parts moved: between workers, of rows that are kept; products: the
  precision that FALKON finds to be needed. one process: the same without Dask. A further task: what
  the same rows in {PARTED} files take more, by task.
- {CELLS}: {SMALL:,} rows, of at most 2,000 a cell; seconds by the clock, CPU seconds of the workers
  (or of the process) and of the client, and R2.
- {COMES}: the rows, and the numbers of targets, that the client asked for in a fit with M =
  {SMALL_LANDMARKS} to {SMALL:,} standardised rows, in predictions and in a score; none of all rows.
- {MEMORY}: a fit of dask arrays that workers make; resident memory of the client and of the workers
  that keep the rows, libraries included.
- {LOST}: the cluster ends both workers and starts none; seconds from then to the error, of a
  patience of {PATIENCE:g} s.
- {MANY}: {LINES:,} rows in {LINE_FILES} files, fitted by

      gramian fit DIR {" ".join(COMMAND)}

  and 10,000,000 rows in 10 files, as the other processes left no time for more; the seconds and the
  memory of `gramian plan` beside those by the clock; peaks of resident memory,
  libraries included, of the command and of the largest worker.
- {CHECKED}: the simulation of the next table for the clusters of {PASSES!r}, by the clock; other
  work on the machine makes that longer, and the CPU seconds of a worker less so.
- {SIZED}: seconds of an iteration and of the dense part, from the rates in its notes: see
  `benchmarks/large/cluster_sizes.py`."""


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["PYTHONWARNINGS"] = "ignore"
    tables = Tables("cluster", TITLES, NOTES, options)
    with tempfile.TemporaryDirectory(prefix="gramian-", dir=options.work) as work:
        for title, add in (
            (BITS, add_bits), (PASSES, add_passes), (CELLS, add_cells), (COMES, add_comes),
            (MEMORY, add_memory), (LOST, add_lost), (MANY, add_many),
        ):  # fmt: skip
            if wanted(tables, title, options) and not (title == MANY and options.quick):
                add(tables, Path(work), options)
    tables.replace(CHECKED, checked(tables[PASSES]))
    tables.replace(SIZED, [reckoned(*size) for size in SIZES])


def add_bits(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    tables.add(BITS, *in_fresh_process(all_bits, small(work)))


def add_passes(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    for n, files, landmarks, more, way in (
        *((ROWS, FILES, LANDMARKS, MORE, way) for way in WAYS),
        (2 * ROWS, FILES, LANDMARKS, MORE, WAYS[-1]),
        (ROWS, PARTED, LANDMARKS, MORE, WAYS[-2]),
        *((2 * ROWS, FILES, HEAVY_LANDMARKS, HEAVY_MORE, way) for way in WAYS if "1" not in way),
    ):
        key: Row = {"rows": n, "files": files, "landmarks": landmarks, "by": way}
        if tables.has(PASSES, **key):
            continue
        folder = work / f"rows{n}-{files}"
        if not folder.exists():
            generated(folder, n, files)
        row = in_fresh_process(passes, str(folder), way, landmarks, more)
        tables.add(PASSES, key | row | further(tables[PASSES], key, row))


def further(measured: list[Row], key: Row, row: Row) -> Row:
    """Return the costs of a further task, beside a pass over the same rows in fewer files."""
    same = [m for m in measured if all(m[k] == key[k] for k in ("rows", "landmarks", "by"))]
    if not same:
        return {}
    tasks = row["tasks"] - same[0]["tasks"]
    return {
        f"{what} of a further task": (row[of] - same[0][of]) / tasks * scale
        for what, of, scale in (
            ("client ms", "client CPU ms", 1), ("worker ms", "worker CPU ms", 1),
            ("kB", "MB sent", 1000),
        )
    }  # fmt: skip


def add_cells(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    for way in ("one process", "2 workers"):
        tables.add(CELLS, {"by": way} | in_fresh_process(cells, small(work), way))


def add_comes(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    tables.add(COMES, in_fresh_process(what_comes, small(work)))


def add_memory(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    tables.add(MEMORY, in_fresh_process(of_collection))


def add_lost(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    tables.add(LOST, in_fresh_process(all_lost, small(work)))


def add_many(tables: Tables, work: Path, options: argparse.Namespace) -> None:
    folder = Path(options.work or tempfile.gettempdir()) / LAKE
    if not folder.exists():
        generated(folder, LINES, LINE_FILES)
    for name, way in (("local:2", ("--dask", f"local:{WORKERS}")), ("no Dask", ())):
        key: Row = {"rows": LINES, "by": name}
        if asked(key, options.only) and not tables.has(MANY, **key):
            row = through_the_command_line(folder, way, work / f"{name}.model")
            tables.add(MANY, key | row)


def wanted(tables: Tables, title: str, options: argparse.Namespace) -> bool:
    """Return whether a table is asked for and not there; the last may have a part missing."""
    full = {MANY: 2, PASSES: 9}.get(title, 1)
    return asked({"table": title}, [o for o in options.only if o.startswith("table=")]) and (
        len(tables[title]) < full
    )
