"""The search: against a full grid, its budget, features of noise, seeds, and odd tables."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..lib.process import THREADS, in_fresh_process
from ..lib.results import Row
from ..lib.tables import Tables, asked
from .accuracy_sets import path_of
from .search_fits import (
    PLAIN,
    SHARE,
    Task,
    against_grid,
    contender,
    odd_table,
    repeated,
    within_budget,
)
from .search_grid import FIT_ROWS, HELD_ROWS, KERNELS, MULTIPLES, PENALTIES
from .search_odd import TABLES

GRID, BUDGET, NOISE, FEATURES = "Against the grid", "Budgets", "Noise", "Four of 32 features"
SEEDS, SPREAD, ODD, KEPT = "Each seed", "Seeds", "Odd tables", "Budgets kept"
TITLES = (GRID, KEPT, BUDGET, NOISE, FEATURES, SPREAD, SEEDS, ODD)
SETS = ("kin40k", "california_housing", "elevators", "house_16h", "magic", "pol")
BUDGETS = (2.0, 5.0, 10.0, 30.0)
BUDGET_SETS = ("energy", "gas", "usps", "adult_a9a", "fashion_mnist", *SETS[:3], "magic")
LARGE = "beijing_pm25"
MOST = 1.1
"""Times the budget that a search may take."""

COUNT, SECONDS = 10, "10 s"
WITH_NOISE = (
    "gramian cv 10 s", "gramian default", PLAIN, "hist_gradient_boosting", "lightgbm_1000"
)  # fmt: skip
QUICK_SET = "energy"
NOTES = f"""\
One thread, each measurement in a process of its own. At most 20,000 training rows, where nothing
else is said. Budgets are CPU seconds, as other processes ran beside; those of "{BUDGET}" are
seconds on the wall.

- {GRID}: {FIT_ROWS:,} rows to fit and {HELD_ROWS:,} to choose with, the same for all. Grid:
  {len(KERNELS)} kernels x {len(MULTIPLES)} lengthscales x {len(PENALTIES)} penalties, each cell a
  fit with all rows as centers and its predictions. Searches have {SHARE:.0%} of its evaluations:
  one among the same kernels, without metric, quantiles and mean; one with all ("whole").
  Errors are held-out ones, where no "test" is said.
- {BUDGET}: wall seconds of `fit` over the budget; at most {MOST} is asked for. {LARGE} has all its
  rows.
- {NOISE}: each column is appended once more with its rows in random order. {PLAIN}: Gaussian,
  median lengthscale, penalty 1e-6.
- {FEATURES}: pumadyn32nm; numbers of the four most important features, of 32.
- {SEEDS}: budget {SECONDS}; the seed is that of the search, rows stay.
- {ODD}: fine if no NaN was chosen and the error is not above that of the mean by more than 1 %."""

Measure = Callable[..., Row]
Work = Iterator[tuple[str, Row, Measure, tuple[Any, ...]]]
"""Title, the key of a row, and what measures the rest of it."""


class Sets:
    """The sets that a folder has; one small one if it has to be quick."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.folder, self.quick = options.data, options.quick

    def of(self, names: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
        for name in (QUICK_SET,) if self.quick else names:
            if (path := path_of(self.folder, name)) is not None:
                yield name, path


def grids(sets: Sets) -> Work:
    for name, path in sets.of(SETS):
        yield GRID, {"set": name}, against_grid, (Task(path, quick=sets.quick),)


def budgets(sets: Sets) -> Work:
    for name, path in sets.of((*BUDGET_SETS, LARGE)):
        for budget in BUDGETS[:1] if sets.quick else BUDGETS:
            task = Task(path, cap=None if name == LARGE else 20_000, quick=sets.quick)
            yield BUDGET, {"set": name, "budget": budget}, within_budget, (task, budget)


def noises(sets: Sets) -> Work:
    for name, path in sets.of(SETS):
        for who in WITH_NOISE[:4] if sets.quick else WITH_NOISE:
            for noise in (False, True):
                key = {"set": name, "contender": who, "noise": noise}
                yield NOISE, key, contender, (Task(path, quick=sets.quick), who, noise)
    for name, path in sets.of(("pumadyn32nm",)):
        for who in WITH_NOISE[:2] if sets.quick else (*WITH_NOISE, "xgboost", "catboost"):
            task = Task(path, quick=sets.quick)
            yield FEATURES, {"set": name, "contender": who}, contender, (task, who, False)


def seeds(sets: Sets) -> Work:
    for name, path in sets.of(SETS):
        for seed in range(2 if sets.quick else COUNT):
            task = Task(path, seed, quick=sets.quick)
            yield SEEDS, {"set": name, "seed": seed}, repeated, (task, SECONDS)


def odds(sets: Sets) -> Work:
    for name in list(TABLES)[:1] if sets.quick else TABLES:
        for labels in (False, True):
            if not (labels and name == "constant target"):  # one class is no classification
                yield ODD, {"table": name, "labels": labels}, odd_table, (name, labels, 0, SECONDS)


def kept(rows: list[Row]) -> list[Row]:
    """Return how many searches ended within their budget, and the longest."""
    return [
        {
            "budget": budget, "searches": len(some), "most, of the budget": max(some),
            f"within {MOST}": sum(share <= MOST for share in some),
        }
        for budget in BUDGETS
        if (some := [row["of the budget"] for row in rows if row["budget"] == budget])
    ]  # fmt: skip


def spread(rows: list[Row]) -> list[Row]:
    """Return mean, spread and number of different choices over seeds."""
    found = []
    for name in dict.fromkeys(row["set"] for row in rows):
        some = [row for row in rows if row["set"] == name]
        errors = np.array([row["error"] for row in some])
        found.append({
            "set": name, "seeds": len(some), "mean": float(errors.mean()),
            "deviation, %": float(100 * errors.std() / errors.mean()),
            "least": float(errors.min()), "most": float(errors.max()),
            "different choices": len({row["chosen"] for row in some}),
        })  # fmt: skip
    return found


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tables, sets = Tables("search", TITLES, NOTES, options), Sets(options)
    for part in (grids, budgets, noises, seeds, odds):
        for title, key, measure, arguments in part(sets):
            if asked(key | {"part": title}, options.only) and not tables.has(title, **key):
                tables.add(title, key | in_fresh_process(measure, *arguments))
                tables.rows[KEPT] = kept(tables[BUDGET])
                tables.replace(SPREAD, spread(tables[SEEDS]))
