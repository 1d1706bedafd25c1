"""500,000 centers in a gigabyte: ASkotch's progress by the clock, PCG's first iteration beside."""

from __future__ import annotations

import argparse
import time
from itertools import islice
from typing import Any

import numpy as np

from gramian import KernelRidge
from gramian.data import as_rows
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import PCG, ASkotch

from ..lib.process import peak_bytes, reset_peak, resident_bytes
from ..lib.results import Row
from ..lib.tables import Tables

ROWS, FEATURES, NOISE = 500_000, 10, 0.1
MINUTES = (1, 3, 10)
LIMIT = "1GB"
TITLE = "Half a million centers"


def smooth(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal rows and a smooth function of them with noise, float32."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    y = np.sin(X[:, 0] + X[:, 1]) + np.cos(X[:, 2] * X[:, 3]) + 0.5 * X[:, 4] * X[:, 5]
    return X, (y + NOISE * rng.standard_normal(n)).astype(np.float32)


class Clocked:
    """A callback that looks at validation rows after some minutes, and stops after the last."""

    def __init__(self, X: np.ndarray, y: np.ndarray, mean: float, minutes: tuple[float, ...]):
        self.X, self.y, self.mean, self.minutes = X, y, mean, list(minutes)
        self.rows: list[Row] = []

    def __call__(self, problem: Any, state: Any) -> bool:
        if state.metrics["seconds"] >= 60 * self.minutes[0]:
            seconds = state.metrics["seconds"]
            off = problem.model(state.coef).predict(self.X)[:, 0] + self.mean - self.y
            row: Row = {"minutes": self.minutes.pop(0), "seconds": seconds}
            row |= {"iterations": state.iteration, "RMSE": float(np.sqrt(np.mean(off**2)))}
            row["evaluations"] = f"{state.metrics['kernel_evaluations']:.2e}"
            row["residual of blocks"] = state.metrics["rel_residual"]
            row["peak RSS, MB"] = peak_bytes() / 1e6
            self.rows.append(row)
        return not self.minutes


def askotch(n: int, minutes: tuple[float, ...]) -> list[Row]:
    X, y = smooth(n, 0)
    X_test, y_test = smooth(5000, 1)
    before = resident_bytes() / 1e6
    reset_peak()
    look = Clocked(X_test, y_test, float(y.mean()), minutes)
    KernelRidge(
        standardize=False,
        lengthscale=3.0, penalty=1e-7, solver=ASkotch(), memory_limit=LIMIT, tol=1e-12,
        max_iter=10**6, callbacks=[look],
    ).fit(X, y - y.mean())  # fmt: skip
    spread = float(np.sqrt(np.mean((y_test - y.mean()) ** 2)))
    return [{"solver": "askotch", "n": n} | row | {"before, MB": before, "RMSE of the mean": spread}
            for row in look.rows]  # fmt: skip


def pcg(n: int) -> Row:
    """Return the seconds of the preconditioner and of the first iteration."""

    X, y = smooth(n, 0)
    rows = as_rows(X)
    K = KernelOperator(Gaussian(3.0), rows, rows, memory_bytes=300 << 20)
    problem = FullProblem(K, (y - y.mean())[:, None], 1e-7)
    reset_peak()
    states, start = PCG(memory_bytes=250 * 10**6).iterate(problem), time.perf_counter()
    seconds = [time.perf_counter() - start for _ in islice(states, 2)]
    row: Row = {"solver": "pcg", "n": n, "minutes": "setup and one iteration"}
    row |= {"seconds": seconds[1], "setup, s": seconds[0], "iterations": 1}
    return row | {"peak RSS, MB": peak_bytes() / 1e6}


NOTES = f"""\
{ROWS:,} rows of {FEATURES} normal features, float32, a smooth target with noise {NOISE}, Gaussian
lengthscale 3, penalty 1e-7, memory_limit {LIMIT}. ASkotch with automatic settings through
`KernelRidge`; RMSE on 5,000 fresh rows; minutes of the solver by the clock, two cores. RSS holds
the libraries and the data (the column before), which the limit does not count."""


def main(options: argparse.Namespace) -> None:
    n = 20_000 if options.quick else ROWS
    tables = Tables("full_memory", (TITLE,), NOTES, options)
    if not tables.has(TITLE, solver="askotch"):
        minutes = (0.05, 0.1) if options.quick else MINUTES
        tables.add(TITLE, *askotch(n, minutes))
    if not tables.has(TITLE, solver="pcg"):
        tables.add(TITLE, pcg(n))
