"""Linear convergence of Skotch and ASkotch (Fig. 7 of their paper), and float32 beside CG."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
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
from gramian.solvers import PCG, ASkotch, Direct, Skotch, Solver, conjugate_gradient, solve

from ..lib import plots
from ..lib.results import ROOT, Row
from ..lib.sets import data_set, load, median_distance
from ..lib.stored import StoredSquare
from ..lib.tables import Tables

PLOT = ROOT / "docs" / "plots" / "full_linear.png"
FLOAT32_PLOT = ROOT / "docs" / "plots" / "full_float32.png"
ROWS, BLOCKS = 10_000, 10
PASSES, EVERY = 160, 4
GOAL = 1e-10
RANKS = (50, 100, 200, 500)
PENALTIES = (1e-6, 1e-9)
LINEAR, FLOAT32, CURVES = "Linear convergence", "Float32", "Curves"


def synthetic(n: int) -> FullProblem:
    """Return the problem of C.2.2: y = sign(X w), lengthscale 1, ridge 0.1, float64."""
    rng = RandomStream(0)
    X = rng.standard_normal((n, 10), np.float64)
    y = np.sign(X @ rng.standard_normal((10, 1), np.float64))
    rows = as_rows(X)
    K = StoredSquare.of(KernelOperator(kernels.Gaussian(1.0), rows, rows))
    return FullProblem(K, y, 0.1 / n)


def solvers_of(b: int) -> Iterator[tuple[str, str, Solver[Any, Any]]]:
    """Yield rule, how blocks are solved, and the solver."""
    for kind, name in ((ASkotch, "ASkotch"), (Skotch, "Skotch")):
        for blocks in ("fresh", "fixed"):
            for rank in RANKS:
                yield f"{name}, {blocks}", f"rank {rank}", kind(b, min(rank, b), blocks, "nystrom")
            yield f"{name}, {blocks}", "exact", kind(b, 1, blocks, "exact")


def suboptimality(problem: FullProblem, solver: Solver[Any, Any], best: np.ndarray) -> list[Row]:
    """Return |f(w) - f*| / |f*| by passes, from (w - w*)' A (w - w*) / 2, without cancellation."""
    least = float((best * problem.rhs).sum()) / 2
    curve: list[Row] = []
    states = solver.iterate(problem, rng=RandomStream(0))
    for state in islice(states, 0, BLOCKS * PASSES + 1, BLOCKS * EVERY):
        away = state.coef - best
        value = float((away * problem.apply(away)).sum()) / 2 / least
        curve.append({"passes": state.iteration / BLOCKS, "suboptimality": value})
        if value < GOAL:
            break
    return curve


def linear(tables: Tables, n: int) -> None:
    problem = synthetic(n)
    best = solve(problem, Direct()).state.coef
    for rule, how, solver in solvers_of(n // BLOCKS):
        if tables.has(LINEAR, method=rule, blocks=how):
            continue
        curve = suboptimality(problem, solver, best)
        row: Row = {"method": rule, "blocks": how}
        for level in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
            reached = [p["passes"] for p in curve if p["suboptimality"] < level]
            row[f"passes to {level:.0e}"] = reached[0] if reached else f"> {PASSES}"
        tables.add(LINEAR, row | {"at the end": f"{curve[-1]['suboptimality']:.1e}"})
        tables.rows[CURVES].append({"of": [rule, how], "curve": curve})


def draw_linear(tables: Tables) -> None:
    curves = {tuple(row["of"]): row["curve"] for row in tables[CURVES] if len(row["of"]) == 2}
    rules = list(dict.fromkeys(rule for rule, _ in curves))
    figure, axes = plots.subplots(2, 2, width=9, height=6.4)
    hows = [*(f"rank {r}" for r in RANKS), "exact"]
    colors = dict(zip(hows, plots.COLORS.values(), strict=False))
    for axis, rule in zip(axes.flat, rules, strict=True):
        for (other, how), curve in curves.items():
            if other == rule:
                x, y = [[p[key] for p in curve] for key in ("passes", "suboptimality")]
                axis.semilogy(x, y, color=colors[how], label=how)
        axis.set(title=rule, xlabel="passes", ylabel="relative suboptimality", ylim=(1e-11, 2))
        axis.set_xlim(0, PASSES)
    axes[0, 0].legend()
    figure.savefig(PLOT)


# --- float32 ---------------------------------------------------------------------------------


def real(path: Path, n: int, penalty: float) -> FullProblem:
    split = load(path)
    X, y = split.X[:n], split.y[:n].astype(np.float32)[:, None]
    rows = as_rows(X)
    K = KernelOperator(kernels.Gaussian(median_distance(X)), rows, rows)
    return FullProblem(K, y, penalty)


def plain(problem: FullProblem) -> Iterator[Any]:
    """Yield the states of conjugate gradient all in float32, preconditioned as PCG is."""
    P = PCG(rank=500).build(problem, RandomStream(0))
    assert P is not None
    return conjugate_gradient(problem.apply, problem.rhs, precondition=lambda r: P @ r)


def true_residuals(
    problem: FullProblem, states: Iterator[Any], count: int, every: int
) -> list[Row]:
    """Return the residual of the float64 system by passes."""
    exact, curve = problem.double(), []
    problem.K.meter.evaluations = 0
    size = float(xp.norm(exact.rhs))
    for state in islice(states, 0, count + 1, every):
        spent = problem.K.meter.evaluations
        residual = float(xp.norm(exact.rhs - exact.apply(xp.to_float64(state.coef)))) / size
        curve.append({"passes": spent / len(exact.rhs) ** 2, "residual": residual})
        problem.K.meter.evaluations = spent
    return curve


def float32(tables: Tables, path: Path, n: int) -> None:
    for penalty in PENALTIES:
        problem = real(path, n, penalty)
        rng = RandomStream(0)
        b = ASkotch().block_rows(n)
        runs = {
            "CG, plain float32": (plain(problem), 300, 6),
            "PCG, float32 with refinement": (PCG(rank=500).iterate(problem, rng=rng), 300, 6),
            "ASkotch, float32": (ASkotch().iterate(problem, rng=rng), 300 * n // b, 6 * n // b),
        }
        for name, (states, count, every) in runs.items():
            if tables.has(FLOAT32, penalty=f"{penalty:.0e}", method=name):
                continue
            curve = true_residuals(problem, states, count, every)
            found = [p["residual"] for p in curve]
            row = {"penalty": f"{penalty:.0e}", "method": name}
            row |= {"least residual": f"{min(found):.1e}", "last": f"{found[-1]:.1e}"}
            row["largest after the least"] = f"{max(found[int(np.argmin(found)) :]):.1e}"
            tables.add(FLOAT32, row)
            tables.rows[CURVES].append({"of": [FLOAT32, f"{penalty:.0e}", name], "curve": curve})


def draw_float32(tables: Tables) -> None:
    figure, axes = plots.subplots(1, 2, width=9, height=3.4)
    for axis, penalty in zip(axes, PENALTIES, strict=True):
        runs = [row for row in tables[CURVES] if row["of"][:2] == [FLOAT32, f"{penalty:.0e}"]]
        for color, run in zip(plots.COLORS.values(), runs, strict=False):
            x, y = [[p[key] for p in run["curve"]] for key in ("passes", "residual")]
            axis.semilogy(x, y, color=color, label=run["of"][2])
        axis.set(title=f"penalty {penalty:.0e}", xlabel="passes", ylabel="true relative residual")
    axes[0].legend()
    figure.savefig(FLOAT32_PLOT)


NOTES = f"""\
Linear: {ROWS:,} rows of 10 normal features, y = sign(X w), Gaussian lengthscale 1, ridge 0.1 (not
per sample), float64, {BLOCKS} blocks; relative suboptimality |f(w) - f*| / |f*| of the dual, up to
{PASSES} passes over all pairs or {GOAL:.0e}. The matrix is stored: only passes mean anything here.

Float32: {ROWS:,} rows of nycflights, lengthscale the median distance; the residual of the float64
system, relative, by passes. CG and PCG have the same preconditioner (randomly pivoted Cholesky,
rank 500); a product of all pairs counts half a pass, since each is evaluated once."""


def main(options: argparse.Namespace) -> None:
    n = 1000 if options.quick else ROWS
    set_blas_threads(1)
    tables = Tables("full_linear", (LINEAR, FLOAT32, CURVES), NOTES, options, hidden=(CURVES,))
    if (path := data_set(options.data, "nycflights")) is not None:
        float32(tables, path, n)
    linear(tables, n)
    tables.save()
    if not options.quick and path is not None:
        draw_linear(tables)
        draw_float32(tables)
