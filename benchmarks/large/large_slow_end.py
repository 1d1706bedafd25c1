"""SketchySAGA on nycflights: what its slow end is made of."""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import Falkon, SketchySAGA

from ..lib import sets
from ..lib.results import Row
from ..lib.sets import data_set, errors
from ..lib.tables import Tables
from .large_rivals import FALKON_ITERATIONS, LEVEL_CENTERS, LEVELS, NEAR, timed

ENDS = "Error over that of FALKON"
NAME, EPOCHS, LOOKS = "nycflights", 10, (1, 3, 5, 10)
RUNS = (
    ("float32", "auto", 500), ("float32", "auto", 800), ("float64", "auto", 500),
    ("float64", 1e-8, 500), ("float64", 1e-8, 800),
)  # fmt: skip
"""Rows, damping in units of the largest eigenvalue of the sketch, rank."""

NOTES = f"""\
The problem of large_rivals on {NAME}: all rows, {LEVEL_CENTERS:,} random rows as centers, Gaussian
kernel, penalty 1e-7. Test RMSE over what FALKON has after {FALKON_ITERATIONS} iterations, after so
many epochs; epochs and CPU seconds, setup included, until it is {NEAR}. One thread; other work on
the machine. Automatic damping is at least 1e-6 of the largest eigenvalue for float32 rows."""


def problem_of(split: sets.Split) -> NystromProblem:
    """Return the problem, as `large_rivals` has it."""
    _, kernel, penalty = next(level for level in LEVELS if level[0] == NAME)
    order = np.random.default_rng(0).permutation(len(split.X))
    y = split.y[order].astype(np.float64)[:, None]
    rows = as_rows(split.X[order])
    K = KernelOperator(kernel, rows, rows)
    return NystromProblem.at(K, np.arange(min(LEVEL_CENTERS, len(y) // 4)), y, penalty)


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("large_slow_end", (ENDS,), NOTES, options)
    if (path := data_set(options.data, NAME)) is None:
        return
    for dtype, damping, rank in RUNS:
        key: Row = {"rows": dtype, "damping": damping, "rank": rank}
        if tables.has(ENDS, **key):
            continue
        split = sets.load(path, dtype)
        if options.quick:
            split = sets.Split(split.X[:2000], split.y[:2000], split.X_test, split.y_test)
        problem = problem_of(split)

        def error(
            coef: np.ndarray, problem: NystromProblem = problem, split: sets.Split = split
        ) -> float:
            prediction = problem.model(xp.to_float64(coef)).predict(split.X_test)
            return errors(prediction[:, 0], split.y_test)[0]

        falkon = itertools.islice(timed(problem, Falkon(), error), FALKON_ITERATIONS)
        last = list(falkon)[-1]["error"]
        saga = timed(problem, SketchySAGA(damping=damping, rank=rank), error)
        curve = [row | {"error": row["error"] / last} for row in itertools.islice(saga, EPOCHS)]
        near = next((row for row in curve if row["error"] <= NEAR), None)
        found = {f"after {k}": curve[k - 1]["error"] for k in LOOKS}
        found |= {"epochs": near["epochs"] if near else "-", "CPU s": near and near["seconds"]}
        tables.add(ENDS, key | found)
