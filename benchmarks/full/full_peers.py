"""ASkotch and PCG on 100,000 rows and more, to a residual and the least error; fast_krr's."""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import PCG, ASkotch

from ..lib.curves import residual
from ..lib.results import Row
from ..lib.sets import Split, data_set, errors, load
from ..lib.tables import Tables, asked

SECONDS, CURVES = "CPU seconds", "Curves"
SETS = {100_000: "nycflights", 200_000: "nycflights", 300_000: "beijing_pm25"}
"""Which set has so many training rows."""

TEST = 20_000
MEDIANS, SHIFT = 1.0, 1.0
LIMIT = {100_000: 120, 200_000: 480, 300_000: 900}
"""CPU seconds of each method."""

TARGET, PLATEAU = 1e-2, 1.01
"""A relative residual; and an error, over the least of all methods."""

FIRST, GROWTH = 3.0, 1.2
"""CPU seconds of the first look with 100,000 rows (as n² with more), and the factor to the next."""

NOTES = f"""\
The full problem of random rows of a set (standardized, float32, l1 Laplacian of {MEDIANS:g} median,
rows times penalty {SHIFT:g}), one thread: CPU seconds, setup included, until the true residual, on
2,000 rows, is at most {TARGET:g} of the targets, and until the RMSE of {TEST:,} test rows is within
1 % of the least of all methods; looks, each {GROWTH:g} times as late as the last, are not counted.
-: not before the run ended, after `in s`; a run is ended after
{", ".join(f"{s} s with {n:,} rows" for n, s in LIMIT.items())}. fast_krr: ASkotchV2 of Rathore et
al. as published (Nystrom blocks of n / 100 rows and rank 100, damped), whose kernels are compiled
by KeOps, on its CPU backend; compilation is not counted, and it was run on 100,000 rows alone.
Another process used the second core of the machine, a Zen 5.

On a Zen 4, an iteration of ASkotch with 1,000 of 100,000 rows takes 65 ms: 45 the product with K,
20 the entries and the factor of a block, which is a new one each time. Fixed blocks, whose factors
could be kept, need two to four times the passes (full_linear)."""


def problem(split: Split, n: int) -> FullProblem:
    rows = as_rows(split.X[:n])
    kernel = kernels.make("l1_laplacian", lengthscale=f"{MEDIANS} median")
    K = KernelOperator(kernel.resolve(split.X[:1000]), rows, rows)
    return FullProblem(K, split.y[:n].astype(np.float64)[:, None], SHIFT / n)


def ours(solver: Any) -> Callable[[FullProblem], Iterator[np.ndarray]]:
    def iterates(full: FullProblem) -> Iterator[np.ndarray]:
        for state in solver.iterate(full, rng=RandomStream(0)):
            yield state.coef

    return iterates


def theirs(full: FullProblem) -> Iterator[np.ndarray]:
    """Yield the iterates of fast_krr's ASkotch."""
    from fast_krr.models import FullKRR
    from fast_krr.opts import ASkotchV2

    torch.manual_seed(0)
    n = full.K.shape[0]
    X = full.K.rows.take(np.arange(n))
    about = {"type": "l1_laplace", "sigma": float(full.K.kernel.lengthscale)}
    y, w = xp.cast(full.targets[:, 0], np.float32), np.zeros(n, np.float32)
    model = FullKRR(X, y, None, None, about, False, full.shift, "regression", w, "cpu")
    precond = {"type": "nystrom", "r": 100, "rho": "damped"}
    steps = ASkotchV2(model, n // 100, precond_params=precond)
    while True:
        steps.step()
        yield xp.to_float64(model.w)[:, None]


METHODS = {"PCG auto": ours(PCG("auto")), "ASkotch": ours(ASkotch()), "fast_krr ASkotch": theirs}


def curve(full: FullProblem, iterates: Iterator[np.ndarray], split: Split, limit: int) -> list:
    """Return seconds, error and residual at some iterates."""
    at_test = KernelOperator(full.K.kernel, as_rows(split.X_test[:TEST]), full.K.rows)
    y, found, due = split.y_test[:TEST], [], FIRST * (full.K.shape[0] / min(SETS)) ** 2
    start = time.process_time()
    for number, coef in enumerate(iterates):
        spent = time.process_time() - start
        if spent < due and spent < limit:
            continue
        away = time.process_time()
        row = {"seconds": spent, "iteration": number} | residual(full, coef)
        found.append(row | {"RMSE": errors((at_test @ coef)[:, 0], y)[0]})
        start += time.process_time() - away
        due = max(due, spent) * GROWTH
        if spent >= limit:
            break
    return found


def summary(tables: Tables) -> list[Row]:
    lines: list[Row] = []
    for n in dict.fromkeys(row["n"] for row in tables[CURVES]):
        runs = [row for row in tables[CURVES] if row["n"] == n]
        least = min(point["RMSE"] for run in runs for point in run["curve"])
        for run in runs:
            line: Row = {"set": SETS[n], "n": n, "method": run["method"]}
            ends = {
                f"to residual {TARGET:g}": [p for p in run["curve"] if p["residual"] <= TARGET],
                "to the least error": [p for p in run["curve"] if p["RMSE"] <= PLATEAU * least],
            }
            line |= {name: seen[0]["seconds"] if seen else "-" for name, seen in ends.items()}
            last = run["curve"][-1]
            line |= {"least RMSE": min(p["RMSE"] for p in run["curve"])}
            line |= {"last residual": f"{last['residual']:.1e}", "iterations": last["iteration"]}
            lines.append(line | {"in s": last["seconds"]})
    return lines


def main(options: argparse.Namespace) -> None:
    tables = Tables("full_peers", (SECONDS, CURVES), NOTES, options, hidden=(CURVES,))
    set_blas_threads(1)
    if options.quick:
        return
    for n, set_ in SETS.items():
        path = data_set(options.data, set_)
        if path is None:
            continue
        split = load(path)
        order = np.random.default_rng(0).permutation(len(split.X))
        split = Split(split.X[order], split.y[order], split.X_test, split.y_test)
        for name, method in METHODS.items():
            about = {"n": n, "method": name}
            if tables.has(CURVES, **about) or not asked(about, options.only):
                continue
            if method is theirs:
                if importlib.util.find_spec("fast_krr") is None:
                    continue
                next(theirs(problem(split, 20_000)))  # compiled now
            full = problem(split, n)
            tables.rows[CURVES].append(
                about | {"curve": curve(full, method(full), split, LIMIT[n])}
            )
            tables.replace(SECONDS, summary(tables))
