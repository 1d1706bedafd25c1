"""Test error, seconds and memory on three real sets, against scikit-learn with equal landmarks."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .common import data_set, write
from .contenders import Task, alone, gramian, scikit_learn, stages
from .sets import BOOSTING, MEAN, NAMES
from .settings import chosen

SEEDS = (0, 1, 2)
SUBSAMPLE = 40_000
NOTES = f"""\
Lengthscale and penalty from `settings`; seeds choose the landmarks. Each fit with its prediction of
the test rows is a process of its own with two threads, gramian and scikit-learn in turn. CPU and
wall seconds cover fit and prediction, not reading. MB: peak of the resident set, less what was there
once the data were loaded.

- gramian: `KernelRidge(landmarks=M, max_iter=20)`, float32 rows, other settings at their defaults.
- scikit-learn: `Nystroem` fitted on the same landmark rows, then `Ridge(alpha=n * penalty,
  fit_intercept=False)` on the same centred targets, float32: the same function.
- distance: root mean square of the difference of the two predictions.
- M = 10,000: the features of scikit-learn would take 2 x 4 n M bytes (beijing_pm25: 24 GB) and do
  not fit; both are compared at M = 5,000 on {SUBSAMPLE:,} training rows instead.
- boosting: scikit-learn's HistGradientBoostingRegressor, default settings, raw features."""


def both(task: Task) -> tuple[dict[str, Any], dict[str, Any]]:
    ours = alone(gramian, task)
    return ours, alone(scikit_learn, task, ours["index"])


def compared(name: str, task: Task) -> dict[str, Any]:
    ours, theirs = both(task)
    difference = ours["prediction"] - theirs["prediction"]
    row = {"set": name, "M": task.m, "rows": task.rows or "all", "seed": task.seed}
    row |= {"iterations": ours["iterations"], "residual": ours["residual"]}
    for key in ("RMSE", "MAE", "cpu", "wall"):
        row |= {f"{key} gramian": ours[key], f"{key} scikit-learn": theirs[key]}
    for what, result in (("gramian", ours), ("scikit-learn", theirs)):
        row[f"MB {what}"] = round(result["peak"] - result["before"])
    row["distance"] = float(np.sqrt((difference**2).mean()))
    return _shown(row | {"cpu ratio": theirs["cpu"] / ours["cpu"]})


def large(name: str, task: Task) -> dict[str, Any]:
    ours = alone(gramian, task)
    keys = ("RMSE", "MAE", "iterations", "residual", "cpu", "wall")
    row = {"set": name, "M": task.m, "lengthscale": task.lengthscale, "penalty": task.penalty}
    row |= {key: ours[key] for key in keys}
    return _shown(row | {"MB": round(ours["peak"] - ours["before"])})


def summary(name: str, seeds: list[dict[str, Any]], most: dict[str, Any]) -> dict[str, Any]:
    ours, theirs = (
        np.array([row[f"RMSE {who}"] for row in seeds]) for who in ("gramian", "scikit-learn")
    )
    ratio = sum(r["cpu scikit-learn"] for r in seeds) / sum(r["cpu gramian"] for r in seeds)
    return {
        "set": name,
        "mean": MEAN[name][0],
        "boosting": BOOSTING[name][0],
        "M = 2,000": float(ours.mean()),
        "spread over seeds": float(ours.max() - ours.min()),
        "scikit-learn, M = 2,000": float(theirs.mean()),
        "largest difference": float(np.abs(ours - theirs).max()),
        "CPU ratio": ratio,
        "M = 10,000": most["RMSE"],
    }


def precision(name: str, task: Task) -> dict[str, Any]:
    results = {
        dtype: alone(gramian, replace(task, dtype=dtype)) for dtype in ("float32", "float64")
    }
    row = {"set": name, "M": task.m}
    row |= {f"RMSE {dtype}": result["RMSE"] for dtype, result in results.items()}
    row |= {f"CPU {dtype}": result["cpu"] for dtype, result in results.items()}
    return _shown(row)


def where(name: str, task: Task) -> list[dict[str, Any]]:
    row = {"set": name, "M": task.m}
    return [
        _shown(row | {"step": k, "CPU": c, "wall": w}) for k, (c, w) in alone(stages, task).items()
    ]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    print("  ".join(f"{k}={v:.5g}" if isinstance(v, float) else f"{v}" for k, v in row.items()))
    return row


def measure(name: str, path: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    small = Task(path, 2000, *chosen(name, "2000"))
    big = Task(path, 10_000, *chosen(name, "2000"))
    seeds = [compared(name, replace(small, seed=seed)) for seed in SEEDS]
    tables["M = 2,000, per seed"] += seeds
    tables["M = 10,000"].append(large(name, big))
    tables["Test RMSE"].append(summary(name, seeds, tables["M = 10,000"][-1]))
    tables["float32 and float64 rows"].append(precision(name, small))
    tables["Where the seconds go"] += where(name, small) + where(name, big)


def main(options: argparse.Namespace) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "Test RMSE": [],
        "M = 2,000, per seed": [],
        "M = 10,000": [],
        "M = 5,000 on a subsample": [],
        "float32 and float64 rows": [],
        "Where the seconds go": [],
    }
    for name in NAMES:
        if (path := data_set(options.data, name)) is None:
            return
        measure(name, path, tables)
        if not options.quick:
            write("regression", tables, NOTES)
    task = Task(path, 5000, *chosen(name, "2000"), rows=SUBSAMPLE)
    tables["M = 5,000 on a subsample"].append(compared(name, task))
    if not options.quick:
        write("regression", tables, NOTES)
