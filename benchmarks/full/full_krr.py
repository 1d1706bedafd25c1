"""Full kernel ridge regression: ASkotch, PCG and FALKON in the same memory and CPU seconds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import RecursiveRLS
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import PCG, ASkotch, Falkon, Solver

from ..lib import labels, plots
from ..lib.curves import RESIDUAL_ROWS, Case, watched
from ..lib.results import ROOT, Row
from ..lib.sets import Split, data_set
from ..lib.tables import Tables
from ..lib.timing import interleaved

PLOT = ROOT / "docs" / "plots" / "full_krr.png"
MEMORY = 400 * 10**6
SUMMARY, CURVES, PAIRS = "Summary", "Curves", "Symmetric product"


CASES = (
    Case("qm9_gap_31k", lambda d: kernels.Matern52(d**0.5), 1e-9, 60, "RMSE"),
    Case("adult_a9a", lambda _: kernels.Gaussian(3.2), 1e-5, 50, "wrong labels, %"),
    Case("skin", lambda _: kernels.Gaussian(0.383), 1e-7, 90, "wrong labels, %"),
)


@dataclass(frozen=True)
class Task:
    """Training rows as an operator and centered targets; test rows and what they should be."""

    case: Case
    K: KernelOperator
    y: np.ndarray
    test: Any
    y_test: np.ndarray
    mean: float

    def error(self, prediction: np.ndarray) -> float:
        values = prediction[:, 0] + self.mean
        if self.case.metric == "RMSE":
            return float(np.sqrt(np.mean((values - self.y_test) ** 2)))
        return 100 * float(np.mean((values > 0) != (self.y_test > 0)))


def task(case: Case, path: Path, quick: bool) -> Task:
    split = molecules(path) if case.name.startswith("qm9") else labels.load(path)
    if quick:
        split = labels.subsampled(split, 2000)
    y, y_test = split.y.astype(np.float64), split.y_test.astype(np.float64)
    if case.metric != "RMSE":
        y, y_test = 2 * y - 1, 2 * y_test - 1
    mean = float(y.mean()) if case.metric == "RMSE" else 0.0
    rows = as_rows(split.X)
    K = KernelOperator(case.kernel(rows.shape[1]), rows, rows)
    return Task(case, K, (y - mean)[:, None], as_rows(split.X_test), y_test, mean)


def molecules(path: Path) -> Split:
    """Return 30,000 molecules to learn from and the rest, fingerprints standardized."""
    table = pq.read_table(path)
    names = [name for name in table.column_names if name.startswith("fp")]
    X = np.stack([table[name].to_numpy().astype(np.float32) for name in names], axis=1)
    order = np.random.default_rng(0).permutation(len(X))
    train = np.zeros(len(X), dtype=bool)
    train[order[:30_000]] = True
    X, y = labels.standardized(X, train), table["target"].to_numpy().astype(np.float64)
    return Split(X[train], y[train], X[~train], y[~train])


def most_landmarks(n: int) -> int:
    """Return M with which FALKON's factor and vectors take the memory."""
    return int(((MEMORY - 16 * n) / 8) ** 0.5)


def contenders(n: int) -> Iterator[tuple[str, Solver[Any, Any]]]:
    """Yield the solvers of the full problem, with preconditioners that fit into the memory."""
    yield "ASkotch", ASkotch()
    fits = MEMORY // (8 * n)
    for rank in dict.fromkeys((min(100, fits), min(1000, fits))):
        yield f"PCG, RPCholesky {rank}", PCG("rpcholesky", rank)
    yield f"PCG, Nystrom {min(100, fits // 5)}", PCG("nystrom", min(100, fits // 5))


def measure(tables: Tables, t: Task) -> None:
    n = t.K.shape[0]
    full = FullProblem(t.K, t.y, t.case.penalty)
    at_test = KernelOperator(t.K.kernel, t.test, t.K.rows)
    for name, solver in contenders(n):
        if not tables.has(SUMMARY, set=t.case.name, method=name):
            states = solver.iterate(full, rng=RandomStream(0))
            curve = watched(full, states, t.case, lambda c: t.error(at_test @ xp.to_float64(c)))
            record(tables, t, name, curve)
    name = f"FALKON, M = {min(most_landmarks(n), n):,}"
    if not tables.has(SUMMARY, set=t.case.name, method=name):
        record(tables, t, name, falkon(t, n))


def falkon(t: Task, n: int) -> list[Row]:
    start = time.process_time()
    rng = RandomStream(0)
    chosen = RecursiveRLS(min(most_landmarks(n), n), accelerated=True).select(t.K, rng=rng)
    problem = NystromProblem(t.K.against(chosen.points), t.y, t.case.penalty, None, chosen.weight)
    at_test = KernelOperator(t.K.kernel, t.test, chosen.points)
    chosen_after = time.process_time() - start
    states = Falkon().iterate(problem, rng=rng)
    curve = watched(problem, states, t.case, lambda c: t.error(at_test @ xp.to_float64(c)))
    return [row | {"seconds": row["seconds"] + chosen_after} for row in curve]


def record(tables: Tables, t: Task, name: str, curve: list[Row]) -> None:
    last = curve[-1] if curve else {}
    best = min((row["error"] for row in curve), default=float("nan"))
    row: Row = {"set": t.case.name, "n": t.K.shape[0], "method": name}
    for share in (0.1, 0.3, 1.0):
        seen = [r for r in curve if r["seconds"] <= 1.05 * share * t.case.seconds]
        row[f"{t.case.metric} at {share:.0%}"] = seen[-1]["error"] if seen else "none yet"
    row |= {"best": best, "residual": f"{last.get('residual', float('nan')):.1e}"}
    row |= {"CPU s": last.get("seconds"), "evaluations": f"{last.get('evaluations', 0):.1e}"}
    tables.add(SUMMARY, row | {"iterations": last.get("iteration")})
    about = {"set": t.case.name, "n": t.K.shape[0], "method": name}
    tables.rows[CURVES].append(about | {"curve": curve})
    tables.save()


def draw(tables: Tables) -> None:
    figure, axes = plots.subplots(len(CASES), 3, width=11, height=3.1 * len(CASES))
    shown = (("seconds", "error"), ("evaluations", "error"), ("seconds", "residual"))
    for row, case in zip(axes, CASES, strict=True):
        runs = [r for r in tables[CURVES] if r["set"] == case.name]
        for axis, (x, y) in zip(row, shown, strict=True):
            for color, run in zip(plots.COLORS.values(), runs, strict=False):
                points = [(p[x], p[y]) for p in run["curve"] if y in p]
                if points:
                    axis.loglog(*zip(*points, strict=True), ".-", color=color, label=run["method"])
            axis.set(xlabel="CPU seconds" if x == "seconds" else "kernel evaluations")
            axis.set(ylabel=case.metric if y == "error" else "relative residual")
            plots.plain_numbers(axis)
        row[0].set_title(f"{case.name}, n = {runs[0]['n']:,}")
        row[0].legend(fontsize=6)
    plots.save(figure, PLOT)


# --- each pair once --------------------------------------------------------------------------


def symmetric(tables: Tables, quick: bool) -> None:
    """Add the seconds of K v with each pair evaluated once, and twice."""
    n = 2000 if quick else 20_000
    for d in (18, 90):
        if tables.has(PAIRS, d=d):
            continue
        x = RandomStream(0).standard_normal((n, d), np.float32)
        same = KernelOperator(kernels.Gaussian(d**0.5), rows := as_rows(x), rows)
        plain = KernelOperator(kernels.Gaussian(d**0.5), rows, as_rows(xp.copy(x)))
        v = np.ones((n, 1), np.float32)
        works = {"once": partial(same.__matmul__, v), "plain": partial(plain.__matmul__, v)}
        least = interleaved(works, rounds=5)
        row: Row = {"n": n, "d": d}
        row |= {f"{name}, CPU s": seconds.cpu for name, seconds in least.items()}
        row["ratio, CPU"] = least["plain"].cpu / least["once"].cpu
        tables.add(PAIRS, row | {"ratio, wall": least["plain"].wall / least["once"].wall})


NOTES = f"""\
All n training rows as centers, float32 rows, {MEMORY / 1e6:.0f} MB for factors: M of FALKON
(landmarks by accelerated recursive RLS, selection included in the seconds) and the ranks of PCG
follow from it. CPU seconds of both cores, the same for each method. Residual: true, of float64, on
{RESIDUAL_ROWS:,} rows.

- qm9_gap_31k: 30,000 of 30,937 molecules, 1,024 fingerprint counts, standardized, Matern 5/2 with
  lengthscale sqrt(d) and penalty 1e-9, as the paper's code has them for molecules.
- adult_a9a, skin: Gaussian, lengthscale and penalty as in the benchmark falkon_bless, chosen there
  with 2,000 centers and not for this comparison."""


def main(options: argparse.Namespace) -> None:
    tables = Tables("full_krr", (SUMMARY, PAIRS, CURVES), NOTES, options, hidden=(CURVES,))
    symmetric(tables, options.quick)
    for case in CASES:
        if (path := data_set(options.data, case.name)) is None:
            return
        if options.quick:
            case = replace(case, seconds=3)
        measure(tables, task(case, path, options.quick))
    if not options.quick:
        draw(tables)
