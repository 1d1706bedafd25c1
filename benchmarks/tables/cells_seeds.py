"""Ten seeds of searches that fit all rows by cells: spread of the error, and bad cells."""

from __future__ import annotations

import argparse
import os

import numpy as np

from ..lib.process import THREADS
from ..lib.results import Row
from ..lib.tables import Tables, asked
from .accuracy_fit import Job, in_own_process
from .accuracy_sets import path_of
from .many_rows_contenders import name_of

SPREAD, FITS = "Spread", "Each fit"
SETS = ("nycflights", "bathy_celt", "skin", "beijing_pm25")
SEEDS, BUDGET = 10, 20
KEPT = ("set", "seed", "error", "cpu_s", "rows of a cell", "warnings", "last warning", "failed")

NOTES = f"""\
`KernelRidgeCV(budget="{BUDGET} s")`, `KernelRidgeClassifierCV` for skin, on all training rows, one
thread, ten seeds: of the sample, the splits, the kernel's candidates and the directions of cells.
Test RMSE, or share of wrong labels. "bad cells": warnings, each of a cell that was worse on
held-out rows than its mean, or diverged, and was fitted again with a larger ridge or became its
mean; "worst": largest error over the smallest."""


def spread(fits: list[Row]) -> list[Row]:
    """Return mean, spread and failures over the seeds, a row for each set."""
    found: list[Row] = []
    for name in SETS:
        mine = [row for row in fits if row["set"] == name]
        errors = np.array([row["error"] for row in mine if "error" in row])
        if len(errors) < 2:
            continue
        row: Row = {"set": name, "seeds": len(errors), "mean": float(errors.mean())}
        row |= {"deviation": float(errors.std(ddof=1)), "of the mean": 0.0}
        row["of the mean"] = row["deviation"] / row["mean"]
        row |= {"least": float(errors.min()), "most": float(errors.max())}
        row["worst"] = row["most"] / row["least"]
        row["bad cells"] = sum(one.get("warnings", 0) for one in mine)
        row["failed"] = len(mine) - len(errors)
        found.append(row | {"cpu_s": float(np.mean([one["cpu_s"] for one in mine]))})
    return found


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tables = Tables("cells_seeds", (SPREAD, FITS), NOTES, options)
    for seed in range(1 if options.quick else SEEDS):
        for name in SETS[2:3] if options.quick else SETS:
            path = path_of(options.data, name)
            wanted = asked({"set": name, "seed": seed}, options.only)
            if path is None or not wanted or tables.has(FITS, set=name, seed=seed):
                continue
            row = in_own_process(Job(str(path), name_of(BUDGET), seed, None), options.limit)
            tables.add(FITS, {key: row[key] for key in KEPT if key in row})
            tables.replace(SPREAD, spread(tables[FITS]))
