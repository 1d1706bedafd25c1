"""Intervals on eight tables over twenty seeds: coverage, by thirds of difficulty, and widths."""

from __future__ import annotations

import argparse
import math
import os
import warnings
from typing import Any

import numpy as np

from ..lib.process import THREADS
from ..lib.results import Row
from ..lib.tables import Tables, asked
from ..lib.timing import clock
from .accuracy_sets import load, path_of

SETS = (
    "california_housing", "elevators", "bike", "kin40k", "pol", "house_16h", "nycflights",
    "beijing_pm25",
)  # fmt: skip
SEEDS, TRAINING, TEST = 20, 4000, 4000
LEVELS = (0.8, 0.9, 0.95)
SCALED, PLAIN, TREES = "gramian", "plain split", "lightgbm cqr"
COVERAGE, THIRDS, WIDTH, EACH = "Coverage", "Coverage by thirds", "Width", "Each seed"

NOTES = f"""\
{TRAINING:,} random training rows and up to {TEST:,} others of a table, for each of {SEEDS} seeds;
kernel, lengthscale, penalty and inputs of a table are those that `KernelRidge()` chose once, on
other draws (seed {SEEDS}); all rows are centers, as they are where these were chosen.

- {SCALED}: `KernelRidge(conformal="split")`: 800 of the training rows are held back, 400 of them
  for scores. {PLAIN}: the same function, all 800 errors, not scaled.
- {TREES}: LightGBM's quantile pair of the level, 100 trees each, fitted to the same rows as the
  function and corrected by the 800 (Romano, Patterson, Candes 2019).
- z: distance of the mean coverage from the level, in its standard deviations if each seed has the
  binomial spread of 400 scores and its test rows (800 for the others).
- Thirds: of the test rows by the spread that is predicted; coverage at 0.9 over all seeds.
- Width: mean, in deviations of the target, over all seeds; "of plain": over that of {PLAIN}."""


def drawn(data: tuple[np.ndarray, np.ndarray], seed: int) -> tuple[np.ndarray, ...]:
    """Return training rows and targets, and others."""
    X, y = data
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:TRAINING], order[TRAINING : TRAINING + TEST]
    return X[train], y[train], X[test], y[test]


def chosen(data: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Return the settings that `KernelRidge` chooses for a table."""
    from gramian import KernelRidge

    X, y, _, _ = drawn(data, SEEDS)
    found = KernelRidge(random_state=0).fit(X, y)
    inputs = True if found.model_.quantiles is None else "quantile"
    return {"kernel": found.kernel_, "penalty": found.penalty_, "standardize": inputs}


def measured(data: tuple[np.ndarray, np.ndarray], choice: dict[str, Any], seed: int) -> list[Row]:
    """Return a row for each level and contender."""
    from gramian import KernelRidge
    from gramian.conformal.held_out import hold_out

    X, y, X_test, y_test = drawn(data, seed)
    model = KernelRidge(**choice, conformal="split", random_state=seed)
    with clock() as took:
        model.fit(X, y)
    learn, held = (index for index in hold_out(len(y), model._draws()))
    error = np.sort(np.abs(y[held] - model.predict(X[held])))
    values, spread = model.predict(X_test), np.diff(model.predict_interval(X_test, 0.9))[:, 0]
    thirds = np.array_split(np.argsort(spread, kind="stable"), 3)
    unit, rows = data[1].std(), []
    for level in LEVELS:
        ends = {SCALED: model.predict_interval(X_test, level)}
        q = error[min(math.ceil((len(error) + 1) * level), len(error)) - 1]
        ends[PLAIN] = np.column_stack([values - q, values + q])
        with clock() as trees:
            ends[TREES] = by_trees(X[learn], y[learn], X[held], y[held], X_test, level, seed)
        for name, both in ends.items():
            inside = (y_test >= both[:, 0]) & (y_test <= both[:, 1])
            row: Row = {"level": level, "contender": name, "coverage": float(inside.mean())}
            row |= {f"third {k + 1}": float(inside[some].mean()) for k, some in enumerate(thirds)}
            row |= {"width": float(np.diff(both).mean() / unit), "test rows": len(y_test)}
            rows.append(row | {"cpu_s": trees.cpu if name == TREES else took.cpu})
    return rows


def by_trees(
    X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray, X_test: np.ndarray,
    level: float, seed: int,
) -> np.ndarray:  # fmt: skip
    """Return the ends of a quantile pair that is corrected by held-back rows."""
    from lightgbm import LGBMRegressor

    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        model = LGBMRegressor(
            objective="quantile", alpha=share, random_state=seed, n_jobs=1, verbose=-1
        ).fit(X, y)
        ends.append((model.predict(X_held), model.predict(X_test)))
    (low, low_test), (high, high_test) = ends
    scores = np.sort(np.maximum(low - y_held, y_held - high))
    q = scores[min(math.ceil((len(scores) + 1) * level), len(scores)) - 1]
    return np.column_stack([low_test - q, high_test + q])


def report(tables: Tables) -> None:
    """Set the tables that follow from the seeds."""
    coverage, thirds, width = [], [], []
    for name in SETS:
        mine = [row for row in tables[EACH] if row["set"] == name]
        if not mine:
            continue
        for level in LEVELS:
            line: Row = {"set": name, "level": level}
            widths: Row = {"set": name, "level": level}
            for who in (SCALED, PLAIN, TREES):
                some = [r for r in mine if r["contender"] == who and r["level"] == level]
                found = np.array([row["coverage"] for row in some])
                scores = TRAINING // 10 if who == SCALED else TRAINING // 5
                each = level * (1 - level) * (1 / scores + 1 / some[0]["test rows"])
                line[who] = f"{found.mean():.3f}"
                line[f"z {who}"] = f"{(found.mean() - level) / math.sqrt(each / len(some)):+.1f}"
                widths[who] = float(np.mean([row["width"] for row in some]))
            coverage.append(line | {"seeds": len(some)})
            widths["of plain"] = widths[SCALED] / widths[PLAIN]
            widths["of trees"] = widths[SCALED] / widths[TREES]
            width.append(widths)
        row: Row = {"set": name}
        for who in (SCALED, PLAIN, TREES):
            some = [r for r in mine if r["contender"] == who and r["level"] == 0.9]
            shares = [np.mean([r[f"third {k}"] for r in some]) for k in (1, 2, 3)]
            row[who] = " / ".join(f"{share:.3f}" for share in shares)
        thirds.append(row)
    for level in LEVELS:
        some = [row["of plain"] for row in width if row["level"] == level]
        others = [row["of trees"] for row in width if row["level"] == level]
        if some:
            medians = {"of plain": float(np.median(some)), "of trees": float(np.median(others))}
            width.append({"set": "median", "level": level} | medians)
    tables.rows[COVERAGE], tables.rows[THIRDS], tables.rows[WIDTH] = coverage, thirds, width
    tables.save()


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tables = Tables("intervals", (COVERAGE, THIRDS, WIDTH, EACH), NOTES, options)
    for name in SETS[:1] if options.quick else SETS:
        path = path_of(options.data, name)
        if path is None or not asked({"set": name}, options.only):
            continue
        table, choice = load(path, None), None
        data = np.concatenate([table.X, table.X_test]), np.concatenate([table.y, table.y_test])
        for seed in range(2 if options.quick else SEEDS):
            if tables.has(EACH, set=name, seed=seed):
                continue
            choice = chosen(data) if choice is None else choice
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for row in measured(data, choice, seed):
                    tables.add(EACH, {"set": name, "seed": seed} | row)
        report(tables)
