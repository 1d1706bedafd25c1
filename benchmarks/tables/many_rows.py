"""All training rows of eight large sets: cells within budgets, one model of all rows, trees."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ..lib.results import ROOT, Row
from ..lib.tables import Tables, asked
from .accuracy_contenders import HELD_BACK, PATIENCE, TREES
from .accuracy_fit import Job, in_own_process
from .accuracy_report import Grid, side_by_side
from .accuracy_sets import path_of
from .many_rows_contenders import (
    BUDGETS,
    CHOICE,
    CHOICE_ROWS,
    ITERATIONS,
    MANY_ROWS,
    MORE_TREES,
    ON_REQUEST,
    SECONDS,
    SLOWER,
    TOLERANCE,
    name_of,
)
from .many_rows_means import mean_of

FITS, BOTH, ASKED, MEANS = "Each fit", "Error / CPU seconds", "As asked for", "With trees"
TITLES = (BOTH, ASKED, MEANS, FITS)
SETS = (
    "beijing_pm25", "nycflights", "airs_co2", "bathy_celt", "adult_a9a", "skin", "kddcup",
    "fashion_mnist",
)  # fmt: skip
KEPT = ROOT / "build" / "many_rows"
"""Where predictions of test rows are kept, without ``--work``."""

OURS, TREE = tuple(map(name_of, (*BUDGETS, *ON_REQUEST))), "lightgbm_5000"
WANTED = (("beijing_pm25", 17.7, 100), ("beijing_pm25", 16.7, 220), ("nycflights", 30.3, 55))
"""Errors and CPU seconds, search included, that were asked for before it was written."""

QUICK = {"set": ("energy",), "contender": ("gramian falkon 2000", "gramian pcg")}
NOTES = f"""\
Test RMSE, or share of wrong labels, / CPU seconds of the fit, searches included; all training rows,
the whole test part. Each fit is a process of its own with one thread; budgets and time limits are
in its CPU seconds, which other work beside it makes longer. Features are raw float32.

- gramian cv: `KernelRidgeCV(budget=...)` or `KernelRidgeClassifierCV(budget=...)`: beyond 20,000
  rows by cells. No setting depends on the set. "rows of a cell": of the largest one; "warnings":
  what it logs, such as a cell that was fitted again with a larger shift.
  Those of other sets than beijing_pm25 were measured before cells tried flatter metrics.
- gramian falkon, pcg, askotch: one model of all rows, `KernelRidge(solver=...)` with so many
  uniform landmarks, or all rows as centers; to a relative residual of {TOLERANCE:g}, {SECONDS} CPU
  seconds or {ITERATIONS:,} iterations. Kernel, inputs, metric, lengthscale and penalty are those of
  `KernelRidgeCV(budget="{CHOICE}")` on {CHOICE_ROWS:,} random rows; the ridge, rows times penalty,
  stays. Its seconds are counted; "solver_s" is without them. "end": why iterations ended.
- lightgbm_{TREES}: learning rate 0.1; lightgbm_{MORE_TREES}: {SLOWER:g}; xgboost_{TREES}: default
  rate. Stopped {PATIENCE} trees after the least loss on 1 row of {HELD_BACK} that is held back, but
  those of classes that would be refused.
- predict_s: of the test rows. MB: peak of fit and prediction above what the process had before.
  wall_s says nothing: fits waited for other work.
- {MEANS}: the mean of predictions (of probabilities) with {TREE}: half and half; and with the
  weight of least squared error on one half of the test rows, measured on the other, both ways: what
  rows apart would choose."""


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """Return the fits that are asked for, contender after contender."""
    kept = Path(options.work or KEPT)
    for contender in MANY_ROWS:
        rare = contender in map(name_of, ON_REQUEST)
        if rare and f"contender={contender}" not in options.only:
            continue
        if options.quick and contender not in QUICK["contender"]:
            continue
        for name in QUICK["set"] if options.quick else SETS:
            if not asked({"set": name, "contender": contender}, options.only):
                continue
            if (path := path_of(options.data, name)) is not None:
                file = None if options.quick else str(file_of(kept, name, contender))
                yield Job(str(path), contender, options.seed, None, file)


def file_of(kept: Path, name: str, contender: str) -> Path:
    """Return the file of the predictions of a contender on a set."""
    return kept / f"{name} {contender}.npz"


def wanted(fits: list[Row]) -> list[Row]:
    """Return each error that was asked for beside that of the best search that took no longer."""
    rows: list[Row] = []
    for name, error, seconds in WANTED:
        mine = [r for r in fits if r["set"] == name and r["contender"] in OURS and "error" in r]
        timely = [r for r in mine if r["cpu_s"] <= seconds]
        row: Row = {"set": name, "asked for": error, "within s": seconds}
        if timely:
            best = min(timely, key=lambda r: r["error"])
            row |= {"reached": four(best["error"]), "in s": best["cpu_s"]}
            row["by"] = best["contender"]
        rows.append(row)
    return rows


def four(value: float) -> str:
    """Return four digits, as errors have them beside each other."""
    return f"{value:.4g}"


def means(fits: list[Row], kept: Path) -> Iterator[Row]:
    """Return the means of each search and trees, of predictions that are kept."""
    found = {(r["set"], r["contender"]): r for r in fits if "error" in r}
    for name in SETS:
        for contender in OURS:
            both = [found[name, who] for who in (contender, TREE) if (name, who) in found]
            files = [file_of(kept, name, row["contender"]) for row in both]
            if len(both) == 2 and all(file.is_file() for file in files):
                errors = {"ours": both[0]["error"], TREE: both[1]["error"]} | mean_of(*files)
                row: Row = {"set": name, "with": contender}
                row |= {who: four(error) for who, error in errors.items()}
                yield row | {"cpu_s": both[0]["cpu_s"] + both[1]["cpu_s"]}


def report(tables: Tables, kept: Path) -> None:
    """Set the tables that follow from the fits; means of predictions that are gone stay."""
    fits = tables[FITS]
    tables.rows[BOTH] = side_by_side(Grid.of(fits, "tables", "none", MANY_ROWS))
    tables.rows[ASKED] = wanted(fits)
    new = list(means(fits, kept))
    keys = [(row["set"], row["with"]) for row in new]
    old = [row for row in tables[MEANS] if (row["set"], row["with"]) not in keys]
    tables.replace(MEANS, old + new)


def main(options: argparse.Namespace) -> None:
    tables, kept = Tables("many_rows", TITLES, NOTES, options), Path(options.work or KEPT)
    if not options.quick:
        kept.mkdir(parents=True, exist_ok=True)
    for job in jobs(options):
        if not tables.has(FITS, **job.key):
            tables.add(FITS, in_own_process(job, options.limit))
            report(tables, kept)
    report(tables, kept)
