"""Error of Nystrom approximations against landmarks and against seconds, on four real sets."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.approximations import FourierMap, NystromMap
from gramian.landmarks import (
    Bless,
    KMeans,
    RecursiveRLS,
    RPCholesky,
    Selector,
    Uniform,
)
from gramian.landmarks.leverage.exact_rls import exact_scores
from gramian.operators import KernelOperator

from ..lib import plots
from ..lib.results import ROOT, Row
from ..lib.sets import data_set, load
from ..lib.tables import Tables
from ..lib.timing import clock
from .scores import operator, subsample

SELECTORS: dict[str, Callable[[int], Selector]] = {
    "uniform": Uniform,
    "recursive_rls": RecursiveRLS,
    "recursive_rls, accelerated": lambda m: RecursiveRLS(m, accelerated=True),
    "bless": Bless,
    "rpcholesky": RPCholesky,
    "kmeans": KMeans,
}
METHODS = ("uniform", "rff", *tuple(SELECTORS)[1:])
LENGTHSCALES = {
    "kddcup": 5.0,
    "california_housing": 1.27,
    "beijing_pm25": 7.16,
    "nycflights": 2.68,
}
ROWS = 5000
SIZES = (25, 50, 100, 200, 400, 800)
SEEDS = 10
AT = 400
LARGE = {"nycflights": (50_000, 200_000), "kddcup": (50_000, 200_000)}
SETS, ERRORS, RELATIVE, SPEED, MEDIANS, RUNS, TIMES = (
    "Sets",
    "Error at equal landmarks, over that of uniform ones",
    "Percent of seeds in which the error is below that of uniform landmarks",
    "CPU seconds to the error of 400 uniform landmarks",
    "Medians over the seeds",
    "Runs, in the JSON only",
    "Seconds on many rows",
)
TITLES = (SETS, ERRORS, RELATIVE, SPEED, TIMES, MEDIANS, RUNS)
NOTES = f"""\
Spectral norm of K - K_hat over that of K; {ROWS:,} random training rows, standardized, float64;
Gaussian kernel, lengthscales from `settings` and from small searches; seeds: see the medians;
{SEEDS} if the run was not stopped before. K is held, its product is given to a Lanczos method
(ARPACK, tolerance 2 %). One thread.

- select, factor: CPU seconds of selecting m landmarks, and of forming the features F of all rows,
  K_hat = F F', by `NystromMap` (for rff by `FourierMap`, m features), which is the same for all
  landmarks. RPCholesky has such a factor already when it has selected; it is formed again here.
- Sets: effective dimension at penalty 1e-4, and the share of it that 1 % of the rows hold: scores
  are uneven if that is much more than 1 %.
- Over that of uniform: ratio of medians. CPU seconds to the error of {AT} uniform landmarks: select
  and factor, by interpolation of the medians' logarithms; none where the error is not reached.
- Seconds on many rows: float32 rows; m landmarks; over uniform: of select + factor."""


def spectral(times: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    A = LinearOperator((n, n), matvec=times, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    values = eigsh(A, k=1, which="LM", tol=2e-2, ncv=8, v0=start, return_eigenvectors=False)
    return float(abs(values[0]))


def error(dense: np.ndarray, F: np.ndarray) -> float:
    return spectral(lambda v: dense @ v - F @ (F.T @ v), len(dense))


@dataclass
class Formed:
    """Features of all rows, and what they have cost."""

    F: np.ndarray
    select: float
    factor: float
    evaluations: int


def formed(K: KernelOperator, method: str, m: int, seed: int) -> Formed:
    rng = RandomStream(seed)
    if method == "rff":
        with clock() as factor:
            F = FourierMap.build(K.kernel, K.rows.shape[1], m, rng=rng).features(K.rows)
        return Formed(F, 0.0, factor.cpu, 0)
    before = K.meter.evaluations
    with clock() as select:
        chosen = SELECTORS[method](m).select(K, rng=rng)
    with clock() as factor:
        features = NystromMap.build(K.kernel, chosen.points)
        F = features.features(K.rows)
    return Formed(F, select.cpu, factor.cpu, K.meter.evaluations - before)


def one_set(tables: Tables, name: str, X: np.ndarray, sizes: tuple[int, ...], seeds: int) -> None:
    K = operator(X.astype(np.float64), LENGTHSCALES[name])
    dense = K.dense()
    norm = spectral(lambda v: dense @ v, len(dense))
    if not tables.has(SETS, set=name):
        scores = xp.sort(exact_scores(K, 1e-4), descending=True)
        row = {"set": name, "d": X.shape[1], "lengthscale": LENGTHSCALES[name]}
        row |= {"effective dimension": float(scores.sum())}
        tables.add(SETS, row | {"1 % hold": float(scores[: len(X) // 100].sum() / scores.sum())})
    for seed in range(seeds):
        for m in sizes:
            for method in METHODS:
                key = {"set": name, "m": m, "selector": method, "seed": seed}
                if tables.has(RUNS, **key):
                    continue
                got = formed(K, method, m, seed)
                row = key | {"error": error(dense, got.F) / norm}
                row |= {"select": got.select, "factor": got.factor}
                tables[RUNS].append(row | {"evaluations, 10^6": got.evaluations / 1e6})
        summarize(tables)
        tables.save()
        print(name, "seed", seed, flush=True)


def column(rows: list[Row], key: str, **given: Any) -> np.ndarray:
    return np.array([row[key] for row in rows if given.items() <= row.items()])


def summarize(tables: Tables) -> None:
    runs = tables[RUNS]
    names = list(dict.fromkeys(row["set"] for row in runs))
    sizes = sorted({row["m"] for row in runs})
    medians = []
    for name in names:
        for m in sizes:
            for method in METHODS:
                given = {"set": name, "m": m, "selector": method}
                errors = column(runs, "error", **given)
                if len(errors):
                    medians.append(given | median(runs, given, errors))
    tables.rows[MEDIANS] = medians
    tables.rows[ERRORS] = [
        over_uniform(medians, name, method) for name in names for method in METHODS
    ]
    tables.rows[RELATIVE] = [
        better(runs, name, method, sizes) for name in names for method in METHODS[1:]
    ]
    tables.rows[SPEED] = [speed(medians, name) for name in names]


def median(runs: list[Row], given: Row, errors: np.ndarray) -> Row:
    row: Row = {"seeds": len(errors), "error": float(np.median(errors))}
    row |= {f"{q} %": float(np.quantile(errors, q / 100)) for q in (10, 90)}
    for key in ("select", "factor", "evaluations, 10^6"):
        row[key] = float(np.median(column(runs, key, **given)))
    return row


def over_uniform(medians: list[Row], name: str, method: str) -> Row:
    ours = [row for row in medians if (row["set"], row["selector"]) == (name, method)]
    uniform = [row for row in medians if (row["set"], row["selector"]) == (name, "uniform")]
    row: Row = {"set": name, "selector": method}
    return row | {
        f"m = {a['m']}": a["error"] / b["error"] for a, b in zip(ours, uniform, strict=True)
    }


def better(runs: list[Row], name: str, method: str, sizes: list[int]) -> Row:
    row: Row = {"set": name, "selector": method}
    for m in sizes:
        ours = column(runs, "error", set=name, m=m, selector=method)
        uniform = column(runs, "error", set=name, m=m, selector="uniform")
        row[f"m = {m}"] = float(100 * (ours < uniform[: len(ours)]).mean())
    return row


def speed(medians: list[Row], name: str) -> Row:
    here = [row for row in medians if row["set"] == name]
    goal = next((row["error"] for row in here if (row["selector"], row["m"]) == ("uniform", AT)), 0)
    row: Row = {"set": name, "error": goal}
    if goal == 0:
        return row
    return row | {
        method: seconds_to(goal, [r for r in here if r["selector"] == method]) for method in METHODS
    }


def seconds_to(goal: float, rows: list[Row]) -> float | None:
    """Return the seconds after which the error is at the goal, on the way from size to size."""
    points = [(np.log(row["error"]), np.log(row["select"] + row["factor"])) for row in rows]
    for (e0, t0), (e1, t1) in pairwise(points):
        if e1 <= np.log(goal) <= e0 and e1 < e0:
            return float(np.exp(t0 + (t1 - t0) * (e0 - np.log(goal)) / (e0 - e1)))
    return None


def many_rows(tables: Tables, name: str, X: np.ndarray, sizes: tuple[int, ...]) -> None:
    K = operator(X, LENGTHSCALES[name])
    for m in sizes:
        for method in METHODS:
            key = {"set": name, "n": len(X), "m": m, "selector": method}
            if tables.has(TIMES, **key):
                continue
            got = formed(K, method, m, seed=0)
            row = key | {"select": got.select, "factor": got.factor}
            row["evaluations, 10^6"] = got.evaluations / 1e6
            same = {"set": name, "n": len(X), "m": m, "selector": "uniform"}
            both = ("select", "factor")
            uniform = sum(column(tables[TIMES], k, **same).sum() for k in both)
            row["over uniform"] = (got.select + got.factor) / (uniform or got.select + got.factor)
            tables.add(TIMES, row)


def plot(medians: list[Row], path: Path = ROOT / "docs" / "plots" / "nystrom_error.png") -> None:
    names = list(dict.fromkeys(row["set"] for row in medians))
    figure, axes = plots.subplots(2, len(names), width=3.3 * len(names), height=6.6)
    axes = np.asarray(axes).reshape(2, -1)
    for j, name in enumerate(names):
        for i, label in enumerate(("landmarks m", "CPU seconds")):
            for method in METHODS:
                rows = [r for r in medians if (r["set"], r["selector"]) == (name, method)]
                draw(axes[i, j], rows, method, shift=METHODS.index(method) - 3, against_m=i == 0)
            axes[i, j].set_xlabel(label)
        axes[0, j].set_title(name)
        axes[0, j].set_xticks(SIZES, [str(m) for m in SIZES])
        axes[0, j].minorticks_off()
        axes[1, j].sharey(axes[0, j])
    for axis in axes[:, 0]:
        axis.set_ylabel("spectral error / norm of K")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(METHODS))
    plots.save(figure, path)


def draw(axis: Any, rows: list[Row], method: str, shift: int, against_m: bool) -> None:
    """Draw medians with bars from the 10 to the 90 % quantile, moved aside where they coincide."""
    x = [r["m"] * 1.03**shift if against_m else r["select"] + r["factor"] for r in rows]
    y = np.array([r["error"] for r in rows])
    bars = np.abs(np.array([[r[f"{q} %"] for r in rows] for q in (10, 90)]) - y)
    axis.errorbar(
        x, y, yerr=bars, elinewidth=0.8, label=plots.LABELS[method], **plots.STYLES[method]
    )
    axis.set(xscale="log", yscale="log")


def main(options: argparse.Namespace) -> None:
    tables = Tables("nystrom", TITLES, NOTES, options, hidden=(RUNS,))
    n, sizes, seeds = (500, SIZES[:2], 2) if options.quick else (ROWS, SIZES, SEEDS)
    sets = {}
    for name in LENGTHSCALES:
        if (path := data_set(options.data, name)) is None:
            return
        sets[name] = load(path).X
    for done in range(1, seeds + 1):
        for name, X in sets.items():
            one_set(tables, name, subsample(X, n), sizes, done)
    for name, rows in LARGE.items():
        for many in (2000,) if options.quick else rows:
            many_rows(
                tables,
                name,
                subsample(sets[name], many),
                sizes[:1] if options.quick else (300, 1000),
            )
    if not options.quick:
        plot(tables[MEDIANS])
