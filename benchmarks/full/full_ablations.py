"""The worth of each part of ASkotch: momentum, preconditioner, blocks, rank (C.5 to C.8)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import ASkotch, Skotch, Solver

from ..lib import plots
from ..lib.labels import subsampled
from ..lib.results import ROOT, Row
from ..lib.sets import Split, data_set, load, median_distance
from ..lib.stored import StoredSquare
from ..lib.tables import Tables
from .full_krr import molecules

FOLDER = ROOT / "docs" / "plots"
ROWS, PASSES, LOOKS = 5_000, 50, 20
RANKS = (10, 50, 100, 200, 400)
BLOCKS = (100, 250, 500, 1000, 2500)
SUMMARY, CURVES = "Summary", "Curves"
Task = tuple[FullProblem, KernelOperator, np.ndarray]


def variants(n: int) -> Iterator[tuple[str, str, Solver[Any, Any]]]:
    """Yield the question, the variant and the solver."""
    b = n // 10
    for rank in (10, 100):
        yield "acceleration", f"ASkotch, rank {rank}", ASkotch(b, rank, block_solver="nystrom")
        yield "acceleration", f"Skotch, rank {rank}", Skotch(b, rank, block_solver="nystrom")
    yield "acceleration", "ASkotch, exact", ASkotch(b, block_solver="exact")
    yield "acceleration", "Skotch, exact", Skotch(b, block_solver="exact")
    for how in ("none", "nystrom", "exact"):
        yield "preconditioner", how, ASkotch(b, block_solver=how)
    yield "preconditioner", "none, without momentum", Skotch(b, block_solver="none")
    for rows in BLOCKS:
        few = max(2, rows * n // ROWS)
        yield "blocks", f"exact, b = {few:,}", ASkotch(few, block_solver="exact")
    for rows in BLOCKS[1:]:
        few = max(2, rows * n // ROWS)
        yield "blocks", f"rank 100, b = {few:,}", ASkotch(few, block_solver="nystrom")
    for rank in RANKS:
        yield "rank", f"rank {rank}", ASkotch(b, rank, block_solver="nystrom")


def task(split: Split, kernel: kernels.Kernel, penalty: float) -> Task:
    split = replace(split, X_test=split.X_test[:5000], y_test=split.y_test[:5000])
    rows, mean = as_rows(split.X), split.y.mean()
    y = (split.y - mean).astype(np.float64)[:, None]
    K = StoredSquare.of(KernelOperator(kernel, rows, rows))
    at_test = KernelOperator(kernel, split.X_test, rows)
    return FullProblem(K, y, penalty), at_test, split.y_test - mean


def curve(problem: FullProblem, at_test: np.ndarray, y_test: np.ndarray, solver: Any) -> list[Row]:
    """Return residual and test error by passes and CPU seconds, looking not counted."""
    n = len(problem.rhs)
    per_pass = n / solver.block_rows(n)
    step, rows = max(1, round(PASSES * per_pass / LOOKS)), []
    start = time.process_time()
    for state in solver.iterate(problem, rng=RandomStream(0)):
        if state.iteration % step == 0 and state.iteration:
            away = time.process_time()
            left = problem.rhs - problem.apply(xp.to_float64(state.coef))
            error = (at_test @ xp.cast(state.coef, np.float32))[:, 0] - y_test
            row = {"passes": state.iteration / per_pass, "seconds": away - start}
            row["residual"] = float(xp.norm(left) / xp.norm(problem.rhs))
            rows.append(row | {"error": float(np.sqrt(np.mean(error**2)))})
            start += time.process_time() - away
        if state.iteration >= PASSES * per_pass:
            return rows
    return rows


def measure(tables: Tables, name: str, found: Task) -> None:
    problem, at_test, y_test = found[0], found[1].dense(), found[2]
    for question, variant, solver in variants(len(problem.rhs)):
        if tables.has(SUMMARY, set=name, question=question, variant=variant):
            continue
        points = curve(problem, at_test, y_test, solver)
        row: Row = {"set": name, "question": question, "variant": variant}
        for passes in (10, 25, 50):
            seen = [p for p in points if p["passes"] <= 1.05 * passes]
            row[f"residual, {passes} passes"] = f"{seen[-1]['residual']:.1e}" if seen else ""
        row |= {"test RMSE": points[-1]["error"], "CPU s beside products": points[-1]["seconds"]}
        tables.add(SUMMARY, row)
        tables.rows[CURVES].append({"set": name, "of": [question, variant], "curve": points})
        tables.save()


def draw(tables: Tables, names: tuple[str, ...]) -> None:
    for question in ("acceleration", "preconditioner", "blocks", "rank"):
        figure, axes = plots.subplots(len(names), 2, width=9, height=3 * len(names))
        for (left, right), name in zip(axes, names, strict=True):
            runs = [r for r in tables[CURVES] if r["set"] == name and r["of"][0] == question]
            for color, run in zip(plots.COLORS.values(), runs, strict=False):
                x, residual, error = (
                    [p[key] for p in run["curve"]] for key in ("passes", "residual", "error")
                )
                left.semilogy(x, residual, color=color, label=run["of"][1])
                right.semilogy(x, error, color=color)
            left.set(title=name, xlabel="passes", ylabel="relative residual")
            right.set(xlabel="passes", ylabel="test RMSE")
            left.legend(fontsize=6)
        figure.savefig(FOLDER / f"full_{question}.png")


NOTES = f"""\
{ROWS:,} rows, float32, up to {PASSES} passes over all pairs, fresh blocks. nycflights: Gaussian,
median distance, penalty 1e-6; qm9_gap_31k: fingerprints, Matern 5/2, sqrt(d), penalty 1e-9.
Blocks of a tenth of the rows and rank 100 where nothing else is said. The matrix is stored: the
seconds are those of drawing, factorizing and applying blocks and of reading the stored matrix."""


def main(options: argparse.Namespace) -> None:
    n = 1000 if options.quick else ROWS
    set_blas_threads(1)
    names = ("nycflights", "qm9_gap_31k")
    tables = Tables("full_ablations", (SUMMARY, CURVES), NOTES, options, hidden=(CURVES,))
    for name in names:
        path = data_set(options.data, name)
        if path is None:
            return
        measure(tables, name, prepared(name, path, n))
    if not options.quick:
        draw(tables, names)


def prepared(name: str, path: Path, n: int) -> Task:
    if name == "nycflights":
        split = subsampled(load(path), n)
        return task(split, kernels.Gaussian(median_distance(split.X)), 1e-6)
    split = subsampled(molecules(path), n)
    return task(split, kernels.Matern52(split.X.shape[1] ** 0.5), 1e-9)
