"""Kernels combined with boosted trees: weights, columns and residuals, errors and seconds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..lib.process import THREADS, in_fresh_process
from ..lib.results import Row
from ..lib.tables import Tables, asked
from .accuracy_contenders import package
from .accuracy_sets import path_of
from .stacking_fits import (
    FOLDS,
    KERNEL,
    LEAF_TREES,
    MEMBERS,
    SMALL_LEAVES,
    SMALL_TREES,
    longer,
    measured,
)

SIDE, SUMMARY, EACH = "Errors and seconds", "Against the members", "Each combination"
TITLES = (SIDE, SUMMARY, EACH)
SETS = (
    "higgs_11k", "beijing_pm25", "adult_a9a", "magic", "california_housing", "bathy_celt", "pol",
    "house_16h", "nycflights", "kin40k",
)  # fmt: skip
QUICK_SET = "energy"
CAP, BUDGET, LONGER, QUICK_BUDGET = 10_000, "10 s", "60 s", "1 s"
TIE = 0.01

NOTES = f"""\
At most {CAP:,} training rows, the whole test part; one thread, a process for each set; one seed and
one split, so that differences below 1 % say nothing. Test RMSE or share of wrong labels / CPU
seconds of everything that a combination needs, predictions of the test rows included. Nothing is
chosen by test rows.

- kernel: `KernelRidgeCV(budget="{BUDGET}")`, or the classifier, and with {LONGER}, which most
  searches do not need; budgets are CPU seconds. trees: LightGBM, at most 1,000 trees,
  stopped 50 after the least loss on a fifth of the rows.
- mean: of both, 1/2 each. held-out weight: the one of 21 that is best on a fifth of the rows; then
  both are fitted to all rows.
- stack: non-negative least squares, of classes a logistic regression, on out-of-fold values of
  {FOLDS} folds, each with a search of its own; "chosen once": folds fit `best_params_` of the
  search of all rows.
- column of trees: their out-of-fold prediction is one more column of the kernel's rows, of test
  rows the prediction of trees of all rows; and the reverse.
- residual: the second is fitted to what the out-of-fold prediction of the first leaves, of classes
  to 0 or 1 less the share. Small trees: {SMALL_TREES} of {SMALL_LEAVES} leaves.
- leaves: {LEAF_TREES} trees of {SMALL_LEAVES} leaves, fitted to the same rows; each leaf is a
  column of 0 and 1.
- Shares of two classes: (1 + f) / 2 of the kernel, cut at 0 and 1."""


def best_member(rows: list[Row], name: str) -> float:
    """Return the smaller test error of the two members: a bound, since nobody knows it before."""
    return min(row["error"] for row in rows if row["set"] == name and row["contender"] in MEMBERS)


def side_by_side(rows: list[Row]) -> list[Row]:
    """Return the combinations of a set in one row, as error and seconds."""
    found: list[Row] = []
    for name in dict.fromkeys(row["set"] for row in rows):
        some = [row for row in rows if row["set"] == name]
        found.append({"set": name} | {
            row["contender"]: f"{row['error']:.4g} / {row['cpu_s']:.3g}" for row in some
        })  # fmt: skip
    return found


def summary(rows: list[Row]) -> list[Row]:
    """Compare each combination with the kernel and with the better member, over sets."""
    found: list[Row] = []
    kernel = {row["set"]: row["error"] for row in rows if row["contender"] == KERNEL}
    for name in dict.fromkeys(row["contender"] for row in rows):
        some = [row for row in rows if row["contender"] == name]
        alone = np.array([row["error"] / kernel[row["set"]] for row in some])
        best = np.array([row["error"] / best_member(rows, row["set"]) for row in some])
        found.append({
            "contender": name, "sets": len(some),
            "error / kernel, geometric mean": _mean(alone),
            "error / better member, geometric mean": _mean(best),
            f"better by {TIE:.0%}": int((best < 1 - TIE).sum()),
            f"worse by {TIE:.0%}": int((best > 1 + TIE).sum()),
            "worst": float(best.max()), "there": some[int(best.argmax())]["set"],
            "cpu_s, mean": float(np.mean([row["cpu_s"] for row in some])),
        })  # fmt: skip
    return found


def _mean(ratios: np.ndarray) -> float:
    return float(np.exp(np.log(ratios).mean()))


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield names and files of the sets that are asked for."""
    for name in (QUICK_SET,) if options.quick else SETS:
        if asked({"set": name}, options.only) and (path := path_of(options.data, name)):
            yield name, path


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    package("lightgbm")
    tables = Tables("stacking", TITLES, NOTES, options, hidden=(EACH,))
    for name, path in wanted(options):
        budget = QUICK_BUDGET if options.quick else BUDGET
        works = {KERNEL: (measured, budget), f"{KERNEL}, {LONGER}": (longer, LONGER)}
        for contender, (work, seconds) in works.items():
            if tables.has(EACH, set=name, contender=contender):
                continue
            rows = in_fresh_process(work, str(path), CAP, seconds)
            tables.add(EACH, *({"set": name} | row for row in rows))
            tables.rows[SIDE] = side_by_side(tables[EACH])
            tables.replace(SUMMARY, summary(tables[EACH]))
