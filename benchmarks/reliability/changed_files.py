"""Files that change under a fit: each must end it with an error that names the file.

A memory map keeps the file that it was made of. Only a change in place ends its fit; under any
other change the fit must be the one of the file before.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge
from gramian.callbacks import stages
from gramian.cli.main import explain_error
from gramian.data.rows import cache as decoded
from gramian.fitting.inputs import training_data as held_rows

from ..lib.results import Row

ROWS = 400
SETTINGS = {"landmarks": 30, "lengthscale": 1.5, "penalty": 1e-4, "random_state": 0}
CHANGES = ("other values", "other order", "fewer rows", "more rows", "removed", "in place")
NAMED = "an error names the file and the change"
UNCHANGED = "the fit of the file before"
MOMENTS = (stages.CHOOSING_STAGE, 2)
"""A stage before the first iteration, and an iteration."""


def table(change: str = "") -> pa.Table:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 3))
    columns = {name: X[:, j] for j, name in enumerate("abc")} | {"y": np.sin(X[:, 0])}
    whole = pa.table(columns)
    if change == "fewer rows":
        return whole.slice(0, ROWS // 2)
    if change == "more rows":
        return pa.concat_tables([whole, whole])
    if change == "other order":
        return whole.take(np.arange(ROWS)[::-1])
    if change == "other values":
        return whole.set_column(0, "a", whole["b"])
    return whole


def write_parquet(path: Path, rows: pa.Table) -> None:
    pq.write_table(rows, path, row_group_size=100)


def write_feather(path: Path, rows: pa.Table) -> None:
    pa.feather.write_feather(rows, path, compression="uncompressed", chunksize=100)


def write_npy(path: Path, rows: pa.Table) -> None:
    np.save(path, np.stack([rows[name].to_numpy() for name in "abcy"], axis=1))


WRITERS: dict[str, tuple[str, Callable[[Path, pa.Table], None]]] = {
    "parquet": ("x.parquet", write_parquet),
    "folder of parquet": ("x/part=2/x.parquet", write_parquet),
    "feather": ("x.feather", write_feather),
    "npy": ("x.npy", write_npy),
    "memory map": ("x.npy", write_npy),
}


def change_file(path: Path, change: str, write: Callable[[Path, pa.Table], None]) -> None:
    """Replace a file by another version, remove it, or change bytes of it where it is."""
    if change == "removed":
        path.unlink()
    elif change == "in place":
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(bytes(8))
    else:
        new = path.parent.parent / f"new{path.suffix}"
        write(new, table(change))
        os.replace(new, path)


@contextlib.contextmanager
def every_pass_reads() -> Iterator[None]:
    """Fit as if the rows had no room in memory or temporary files; six iterations warn."""
    none = 1 << 60  # one byte in so many
    with (
        warnings.catch_warnings(action="ignore", category=ConvergenceWarning),
        mock.patch.object(decoded, "DISK_SHARE", none),
        mock.patch.object(held_rows, "MEMORY_SHARE", none),
    ):
        yield


class Changing:
    """A callback that changes a file once, at a stage or an iteration."""

    def __init__(self, moment: str | int, change: Callable[[], None]) -> None:
        self.moment, self.change, self.done = moment, change, False

    def stage(self, name: str) -> None:
        self._at(name)

    def __call__(self, problem: Any, state: Any) -> None:
        self._at(state.iteration)

    def _at(self, moment: str | int) -> None:
        if moment == self.moment and not self.done:
            self.done = True
            self.change()


def changed_under_fit(kind: str, change: str, moment: str | int, folder: Path) -> Row:
    """Fit to a file that changes at a moment, and return what becomes of it."""
    name, write = WRITERS[kind]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, table())
    data: Any = path
    if kind == "folder of parquet":
        data = folder / "x"
        (data / "part=1").mkdir()
        write_parquet(data / "part=1" / "x.parquet", table())
    changing = Changing(moment, lambda: change_file(path, change, write))
    est = KernelRidge(callbacks=[changing], tol=0.0, max_iter=6, **SETTINGS)
    target: Any = "3" if kind == "npy" else "y"
    if kind == "memory map":
        data, target = np.load(path, mmap_mode="r")[:, :3], np.sin(np.load(path)[:, 0])
    try:
        with every_pass_reads():
            est.fit(data, target)
        outcome = UNCHANGED if is_fit_of(est, table(), kind) else "a fit of other data"
    except Exception as error:
        text = str(explain_error(error)[1])
        outcome = NAMED if f"{path} has changed" in text else text[:200]
    row = {"file": kind, "change": change, "moment": moment, "outcome": outcome}
    return row if changing.done else row | {"outcome": f"not changed: {outcome}"}


def is_fit_of(est: KernelRidge, rows: pa.Table, kind: str) -> bool:
    """Return whether an estimator has the bits of one that is fitted to rows in memory."""
    X, y = (np.stack([rows[name].to_numpy() for name in names], axis=1) for names in ("abc", "y"))
    known = KernelRidge(tol=0.0, max_iter=6, **SETTINGS)
    with every_pass_reads():
        known.fit(X, np.sin(X[:, 0]) if kind == "memory map" else y[:, 0])
    return np.array_equal(est.model_.coef, known.model_.coef)


def changes(folder: Path) -> list[Row]:
    """Return a row for each kind of file, with the errors of fits under all changes and moments."""
    rows = []
    for kind in WRITERS:
        found = [
            changed_under_fit(kind, change, moment, folder / f"{kind} {change} {moment}")
            for change in CHANGES
            for moment in MOMENTS
        ]
        outcomes = [row["outcome"] for row in found]
        others = sorted(set(outcomes) - {NAMED, UNCHANGED})
        counts = {outcome: outcomes.count(outcome) for outcome in (NAMED, UNCHANGED)}
        rows.append({"file": kind, "fits": len(found), **counts, "else": "; ".join(others)})
    return rows
