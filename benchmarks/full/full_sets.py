"""ASkotch, Skotch and PCG with three preconditioners by time on eight sets."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import PCG, ASkotch, Skotch

from ..lib import labels
from ..lib.curves import Case, watched
from ..lib.results import Row
from ..lib.sets import Split, data_set, load
from ..lib.settings import chosen
from ..lib.tables import Tables
from ..lib.timing import set_blas_threads

SECONDS, CURVES = "CPU seconds", "Curves"
MOST_ROWS, MOST_TEST_ROWS, LIMIT = 40_000, 3000, 8.0
"""Training and test rows at most; CPU seconds of each method."""

RANK = 100
FIRST_LOOK = 0.3
PLATEAU, RESIDUAL = 1.01, 1e-2

MEDIANS = {"higgs_11k": ("gaussian", 1e-4), "bathy_celt": ("matern32", 1e-8),
           "qm9_15k": ("l1_laplacian", 1e-8)}  # fmt: skip
"""Kernel and penalty of sets whose lengthscale is the median of the distances."""

PENALTIES = {"magic": 1e-5}
"""Penalty in place of the one for 2,000 centers, with which all rows as centers overfit."""

SETS = ("qm9_15k", "higgs_11k", "magic", "adult_a9a", "nycflights", "beijing_pm25", "airs_co2",
        "bathy_celt")  # fmt: skip
METHODS: dict[str, Any] = {
    "ASkotch": ASkotch(),
    "Skotch": Skotch(),
    "PCG, Cholesky": PCG("rpcholesky", RANK),
    "PCG, Nystrom": PCG("nystrom", RANK),
    "PCG, auto": PCG("auto"),
}
NOTES = f"""\
The full problem of at most {MOST_ROWS:,} random training rows, standardised, float32; RMSE of at
most {MOST_TEST_ROWS:,} test rows, labels as -1 and 1. One thread, {LIMIT:g} CPU seconds for each
method, setup included; looks, each 1.6 times as late as the last, are not counted. Entries are
evaluated anew in each pass. Cholesky: randomly pivoted, {RANK} columns, and Nystrom: {RANK} random
vectors, as in the paper; auto: the choice of `PCG("auto")`.

Kernels and penalties were not chosen for this comparison: Gaussian with the settings of the
benchmarks `settings` and `falkon_bless` (2,000 centers;
magic: penalty {PENALTIES["magic"]:g}), and for
{", ".join(f"{name} {kernel} {penalty:g}" for name, (kernel, penalty) in MEDIANS.items())}
with the median distance.

- to the least error: CPU seconds to within 1 % of the least error of all methods.
- to residual {RESIDUAL:g}: relative, true, float64, on 2,000 rows.
- -: not reached within the time."""


def kernel_and_penalty(name: str, X: np.ndarray) -> tuple[kernels.Kernel, float]:
    if name in MEDIANS:
        kind, penalty = MEDIANS[name]
        return kernels.make(kind, lengthscale="median").resolve(X[:1000]), penalty
    if name in labels.SETTINGS:
        setting = labels.SETTINGS[name]
        return kernels.Gaussian(setting.lengthscale), PENALTIES.get(name, setting.penalty)
    lengthscale, penalty = chosen(name, "2000")
    return kernels.Gaussian(lengthscale), penalty


def rows_of(name: str, path: Any, most_rows: int) -> Split:
    """Return random training and test rows; labels of two classes as -1 and 1, centered."""
    rng = np.random.default_rng(0)
    split = load(path)
    train, test = rng.permutation(len(split.X))[:most_rows], rng.permutation(len(split.X_test))
    y, y_test = split.y.astype(np.float64), split.y_test.astype(np.float64)
    if len(values := np.unique(y)) == 2:
        y, y_test = (2 * (part - values[0]) / (values[1] - values[0]) - 1 for part in (y, y_test))
    mean, test = y[train].mean(), test[:MOST_TEST_ROWS]
    return Split(split.X[train], y[train] - mean, split.X_test[test], y_test[test] - mean)


def curve(name: str, split: Split, solver: Any, seconds: float) -> list[Row]:
    """Return error and residual by CPU seconds of one method."""
    kernel, penalty = kernel_and_penalty(name, split.X)
    rows, test = as_rows(split.X), as_rows(split.X_test)
    problem = FullProblem(KernelOperator(kernel, rows, rows), split.y[:, None], penalty)
    at_test = KernelOperator(kernel, test, rows)

    def error(coef: np.ndarray) -> float:
        return float(np.sqrt(np.square((at_test @ coef)[:, 0] - split.y_test).mean()))

    case = Case(name, lambda _: kernel, penalty, seconds, "RMSE")
    states = solver.iterate(problem, rng=RandomStream(0))
    return watched(problem, states, case, lambda c: error(xp.to_float64(c)), FIRST_LOOK)


def summary(curves: list[Row]) -> list[Row]:
    """Return when each method has the least error of all on its set, and a small residual."""
    lines: list[Row] = []
    for name in dict.fromkeys(row["set"] for row in curves):
        runs = [row for row in curves if row["set"] == name]
        least = min(point["error"] for run in runs for point in run["curve"])
        for run in runs:
            points = run["curve"]
            line: Row = {key: run[key] for key in ("set", "n", "d", "method")}
            goals = {
                "to the least error": [p for p in points if p["error"] <= PLATEAU * least],
                f"to residual {RESIDUAL:g}": [p for p in points if p["residual"] <= RESIDUAL],
            }
            line |= {key: of[0]["seconds"] if of else "-" for key, of in goals.items()}
            line["least error"] = min((p["error"] for p in points), default=math.nan)
            last = points[-1] if points else {"residual": math.nan, "iteration": 0}
            line |= {"last residual": f"{last['residual']:.1e}", "iterations": last["iteration"]}
            lines.append(line)
    return lines


def main(options: argparse.Namespace) -> None:
    tables = Tables("full_sets", (SECONDS, CURVES), NOTES, options, hidden=(CURVES,))
    set_blas_threads(1)
    for name in SETS[:2] if options.quick else SETS:
        if (path := data_set(options.data, name)) is None:
            return
        split = rows_of(name, path, 2000 if options.quick else MOST_ROWS)
        for method, solver in METHODS.items():
            about: Row = {"set": name, "n": len(split.X), "d": split.X.shape[1], "method": method}
            if tables.has(CURVES, **about):
                continue
            run = about | {"curve": curve(name, split, solver, 1 if options.quick else LIMIT)}
            tables[CURVES].append(run)
            tables.replace(SECONDS, summary(tables[CURVES]))
            print(about, run["curve"][-1:], flush=True)
