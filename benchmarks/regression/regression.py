"""Test error, seconds and memory on three real sets, against scikit-learn with equal landmarks."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..lib.process import in_fresh_process
from ..lib.results import Row, shown, write
from ..lib.sets import BOOSTING, MEAN, NAMES, data_set
from ..lib.settings import chosen
from .contenders import Task, gramian, scikit_learn, stages

Tables = dict[str, list[Row]]
TABLES = (
    "Test RMSE",
    "M = 2,000",
    "M = 2,000, other seeds",
    "M = 10,000",
    "M = 5,000 on a subsample",
    "nycflights to convergence",
    "float32 and float64 rows",
    "Where the seconds go",
)
SEEDS = (0, 1, 2)
SUBSAMPLE = 40_000
NOTES = f"""\
Lengthscale and penalty from `settings`; seeds choose the landmarks. Each fit with its prediction of
the test rows is a process of its own with two threads, gramian and scikit-learn in turn. CPU and
wall seconds cover fit and prediction, not reading. MB: peak of the resident set less what was
there once the data were loaded.

- gramian: `KernelRidge(landmarks=M, max_iter=20)`, float32 rows, other settings at their defaults.
- scikit-learn: `Nystroem` fitted on the same landmark rows, then `Ridge(alpha=n * penalty,
  fit_intercept=False)` on the same centered targets, float32: the same function.
- distance: root mean square of the difference of the two predictions.
- M = 10,000: the features of scikit-learn would take 2 x 4 n M bytes (beijing_pm25: 24 GB) and do
  not fit; both are compared at M = 5,000 on {SUBSAMPLE:,} training rows instead.
- boosting: scikit-learn's HistGradientBoostingRegressor, default settings, raw features."""


def both(task: Task) -> tuple[Row, Row]:
    ours = in_fresh_process(gramian, task)
    return ours, in_fresh_process(scikit_learn, task, ours["index"])


def compared(name: str, task: Task) -> Row:
    ours, theirs = both(task)
    difference = ours["prediction"] - theirs["prediction"]
    row = {"set": name, "M": task.m, "rows": task.rows or "all", "seed": task.seed}
    row |= {"iterations": ours["iterations"], "residual": ours["residual"]}
    for key in ("RMSE", "MAE", "cpu", "wall"):
        row |= {f"{key} gramian": ours[key], f"{key} scikit-learn": theirs[key]}
    for what, result in (("gramian", ours), ("scikit-learn", theirs)):
        row[f"MB {what}"] = round(result["peak"] - result["before"])
    row["distance"] = float(np.sqrt((difference**2).mean()))
    return shown(row | {"cpu ratio": theirs["cpu"] / ours["cpu"]})


def large(name: str, task: Task) -> Row:
    ours = in_fresh_process(gramian, task)
    keys = ("RMSE", "MAE", "iterations", "residual", "cpu", "wall")
    row = {"set": name, "M": task.m, "seed": task.seed}
    row |= {"lengthscale": task.lengthscale, "penalty": task.penalty}
    row |= {key: ours[key] for key in keys}
    return shown(row | {"MB": round(ours["peak"] - ours["before"])})


def summary(name: str, first: Row, others: list[Row], most: Row) -> Row:
    ours = np.array([first["RMSE gramian"], *(row["RMSE"] for row in others)])
    return {
        "set": name,
        "mean": MEAN[name][0],
        "boosting": BOOSTING[name][0],
        "M = 2,000": float(ours.mean()),
        "spread over seeds": float(ours.max() - ours.min()),
        "seed 0": first["RMSE gramian"],
        "scikit-learn, seed 0": first["RMSE scikit-learn"],
        "CPU ratio": first["cpu ratio"],
        "M = 10,000": most["RMSE"],
    }


def precision(name: str, task: Task) -> Row:
    results = {
        dtype: in_fresh_process(gramian, replace(task, dtype=dtype))
        for dtype in ("float32", "float64")
    }
    row = {"set": name, "M": task.m}
    row |= {f"RMSE {dtype}": result["RMSE"] for dtype, result in results.items()}
    row |= {f"CPU {dtype}": result["cpu"] for dtype, result in results.items()}
    return shown(row)


def converged(path: Path) -> list[Row]:
    """Compare where 20 iterations are not enough, in both precisions."""
    name = "nycflights"
    task = replace(Task(path, 2000, *chosen(name, "2000")), max_iter=100)
    return [
        {"dtype": dtype} | compared(name, replace(task, dtype=dtype))
        for dtype in ("float32", "float64")
    ]


def where(name: str, task: Task) -> list[Row]:
    row = {"set": name, "M": task.m}
    return [
        shown(row | {"step": k, "CPU": c, "wall": w})
        for k, (c, w) in in_fresh_process(stages, task).items()
    ]


def sizes(name: str, path: Path, quick: bool) -> tuple[Task, Task]:
    """Return the fits with 2,000 and with 10,000 landmarks; small ones with --quick."""
    task = Task(path, 2000, *chosen(name, "2000"))
    if quick:
        task = replace(task, m=100, rows=2000)
    return task, replace(task, m=200 if quick else 10_000)


def measure(name: str, small: Task, most: Task, tables: Tables) -> None:
    both_seeds = [compared(name, small)]
    tables["M = 2,000"] += both_seeds
    others = [large(name, replace(small, seed=seed)) for seed in SEEDS[1:]]
    tables["M = 2,000, other seeds"] += others
    tables["M = 10,000"].append(large(name, most))
    tables["Test RMSE"].append(summary(name, both_seeds[0], others, tables["M = 10,000"][-1]))


def extras(name: str, small: Task, most: Task, tables: Tables) -> None:
    tables["float32 and float64 rows"].append(precision(name, small))
    tables["Where the seconds go"] += where(name, small) + where(name, most)


def main(options: argparse.Namespace) -> None:
    tables: Tables = {name: [] for name in TABLES}
    for step in (measure, extras):
        for name in NAMES[-1:] if options.quick else NAMES:
            if (path := data_set(options.data, name)) is None:
                return
            step(name, *sizes(name, path, options.quick), tables)
            if not options.quick:
                write("regression", tables, NOTES)
            if name == "nycflights" and step is extras:
                tables["nycflights to convergence"] = converged(path)
    if not options.quick:
        task = Task(path, 5000, *chosen(name, "2000"), rows=SUBSAMPLE)
        tables["M = 5,000 on a subsample"].append(compared(name, task))
        write("regression", tables, NOTES)
