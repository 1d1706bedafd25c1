"""EigenPro: the automatic step against a grid of others, and cost per epoch against centers."""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Kernel
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem, Problem
from gramian.solvers import EigenPro2, EigenPro3, Solver

from ..lib import plots, sets
from ..lib.results import ROOT, Row
from ..lib.sets import data_set
from ..lib.tables import Tables

PLOT = ROOT / "docs" / "plots" / "large_cost.png"
STEPS, SUMMARY, COST, EXPONENTS = "Steps", "Automatic step", "Cost per epoch", "Exponents"
SCALES = (0.5, 1.0, 1.5, 2.0, 3.0)
PROBLEMS, EPOCHS, PER_EPOCH = 20, 5, 4
SUBSAMPLE = 500
KERNELS = ("gaussian", "laplacian", "matern32", "matern52")
CENTERS = (500, 1000, 2000, 4000, 8000)
ROWS = 40_000
SHARES = {"delayed": 1, "inexact": 32}
"""Cost is measured on this part of an epoch: all batches of `inexact` cost the same."""


# --- the automatic step ----------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A random problem: rows with noisy targets, fresh rows with clean ones."""

    about: Row
    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    truth: np.ndarray

    def problem(self, solver: str) -> Problem:
        rows = as_rows(self.X)
        K = KernelOperator(self.kernel, rows, rows)
        if solver == "EigenPro 2":
            return FullProblem(K, self.y, self.about["penalty"])
        centers = np.arange(len(self.X) // 5)
        return NystromProblem.at(K, centers, self.y, self.about["penalty"])

    def error(self, problem: Problem, coef: np.ndarray) -> float:
        """Return the root mean square distance from the truth, relative to it, on fresh rows."""
        at_fresh = KernelOperator(self.kernel, as_rows(self.fresh), problem.K.cols)
        return float(xp.norm(at_fresh @ coef - self.truth) / xp.norm(self.truth))


def drawn(seed: int, quick: bool) -> Drawn:
    """Draw kernel, sizes, clusters, noise and penalty; the function is one of the kernel's."""
    rng = np.random.default_rng(seed)
    name, d = str(rng.choice(KERNELS)), int(rng.choice((2, 5, 20, 50)))
    n = 600 if quick else int(rng.choice((1500, 2000, 2500)))
    clustered, penalty = bool(seed % 2), float(rng.choice((0.0, 1e-8, 1e-5)))
    X = rng.standard_normal((n + 500, d))
    if clustered:
        middles = 3 * rng.standard_normal((10, d))
        share = rng.dirichlet(np.full(10, 0.5))
        X = middles[rng.choice(10, len(X), p=share)] + 0.2 * X
    scale = float(rng.choice((0.3, 1.0, 3.0))) * d**0.5
    noise = float(rng.choice((0.01, 0.1, 0.5)))
    kernel = kernels.make(name, lengthscale=scale)
    points = X.astype(np.float32)
    some = as_rows(points[rng.choice(len(X), 50, replace=False)])
    weights = rng.standard_normal((50, 1))
    truth = KernelOperator(kernel, as_rows(points), some) @ weights
    truth /= truth.std()
    y = truth + noise * rng.standard_normal(truth.shape)
    about = {"problem": seed, "kernel": name, "d": d, "n": n, "clusters": clustered}
    about |= {"lengthscale": scale, "noise": noise, "penalty": penalty}
    return Drawn(about, kernel, points[:n], y[:n], points[n:], truth[n:])


def path(d: Drawn, solver: str, scale: float) -> Row:
    """Return the error after each quarter of an epoch, and the CPU seconds of an epoch."""
    problem = d.problem(solver)
    kind = EigenPro2 if solver == "EigenPro 2" else EigenPro3
    chosen = kind(step_scale=scale, subsample=SUBSAMPLE, states_per_epoch=PER_EPOCH)
    states = chosen.iterate(problem, rng=RandomStream(0))
    errors, seconds = [d.error(problem, next(states).coef)], 0.0
    for _ in range(EPOCHS * PER_EPOCH):
        start = time.process_time()
        coef = next(states).coef
        seconds += time.process_time() - start
        errors.append(d.error(problem, coef))
        if not errors[-1] < 1e3:
            break
    # some steps beyond stability are only seen later: the last error is above all before
    diverged = not errors[-1] < 3 * min(errors) + errors[0]
    epochs = (len(errors) - 1) / PER_EPOCH
    return {"errors": errors, "diverged": diverged, "CPU s per epoch": seconds / epochs}


def first_below(errors: list[float], level: float) -> float:
    """Return the epochs until the error is at most `level`, between states by its logarithm."""
    for i, (before, after) in enumerate(itertools.pairwise(errors)):
        if after <= level < before:
            return (i + math.log(before / level) / math.log(before / after)) / PER_EPOCH
    return 0.0 if errors[0] <= level else math.inf


def steps(tables: Tables, quick: bool) -> None:
    for seed, solver in itertools.product(range(PROBLEMS), ("EigenPro 2", "EigenPro 3")):
        if tables.has(SUMMARY, problem=seed, solver=solver):
            continue
        d = drawn(seed, quick)
        paths = {scale: path(d, solver, scale) for scale in SCALES}
        tables.rows[STEPS].append({"problem": seed, "solver": solver, "paths": paths})
        tables.add(SUMMARY, summary(d, solver, paths))


def summary(d: Drawn, solver: str, paths: dict[float, Row]) -> Row:
    """Return epochs to what the automatic step reaches, within 2 %, and of the best step."""
    auto = paths[1.0]["errors"]
    # half of the way where hardly anything can be learned
    level = min(1.02 * min(auto), (auto[0] + min(auto)) / 2)
    epochs = {scale: first_below(run["errors"], level) for scale, run in paths.items()}
    best = min(epochs, key=lambda scale: epochs[scale])
    row = d.about | {"solver": solver, "diverged": paths[1.0]["diverged"], "error": min(auto)}
    row |= {"epochs": epochs[1.0], "best": epochs[best], "best scale": best}
    ratio = epochs[1.0] / epochs[best] if epochs[best] else 1.0
    unstable = [scale for scale, run in paths.items() if run["diverged"]]
    row |= {"ratio": ratio, "diverges from": min(unstable, default=None)}
    return row | {"CPU s per epoch": paths[1.0]["CPU s per epoch"]}


# --- cost per epoch --------------------------------------------------------------------------


def cost(tables: Tables, path: Path, quick: bool) -> None:
    split = sets.load(path)
    rows, y = as_rows(split.X[: 2000 if quick else ROWS]), split.y[:, None]
    K = KernelOperator(kernels.Gaussian(2.68), rows, rows)
    sizes = CENTERS[:1] if quick else CENTERS
    for p, projection in itertools.product(sizes, SHARES):
        if tables.has(COST, p=p, projection=projection):
            continue
        problem = NystromProblem.at(K, np.arange(p), y[: len(rows)], 1e-7)
        least = min(itertools.islice(epochs(problem, projection), 2))
        tables.add(COST, {"projection": projection, "p": p, "n": len(rows), "CPU s": least})
    if not quick:
        tables.replace(EXPONENTS, [exponent(tables[COST], name) for name in SHARES])


def epochs(problem: NystromProblem, projection: str) -> Iterator[float]:
    """Yield CPU seconds per epoch, the setup left out."""
    share = SHARES[projection]
    solver: Solver[Any, Any] = EigenPro3(projection=projection, states_per_epoch=share)
    states = solver.iterate(problem, rng=RandomStream(0))
    next(states)
    while True:
        start = time.process_time()
        next(states)
        yield share * (time.process_time() - start)


def exponent(rows: list[Row], projection: str) -> Row:
    """Fit a power of p, to all sizes and to the largest three."""
    mine = sorted((r["p"], r["CPU s"]) for r in rows if r["projection"] == projection)
    p, seconds = np.log(np.array(mine)).T
    slopes = {"all sizes": slice(None), "largest three": slice(-3, None)}
    fits = {name: float(np.polyfit(p[at], seconds[at], 1)[0]) for name, at in slopes.items()}
    return {"projection": projection, "sizes": len(mine)} | fits


def draw(tables: Tables) -> None:
    figure, axis = plots.subplots(1, 1, width=5, height=3.6)
    for color, row in zip(plots.COLORS.values(), tables[EXPONENTS], strict=False):
        mine = [r for r in tables[COST] if r["projection"] == row["projection"]]
        label = f"{row['projection']}, p^{row['all sizes']:.2f}"
        axis.loglog([r["p"] for r in mine], [r["CPU s"] for r in mine], "o-", color=color)
        axis.lines[-1].set_label(label)
    axis.set(xlabel="centers p", ylabel="CPU seconds per epoch", title=f"n = {ROWS:,}")
    axis.legend()
    plots.save(figure, PLOT)


NOTES = f"""\
One thread, float32 rows. CPU seconds are the process's own: other work on the machine lengthens
the wall time only.

- Automatic step: {PROBLEMS} random problems, each with `EigenPro2` (n centers) and `EigenPro3`
  (n / 5 centers), a subsample of {SUBSAMPLE} rows, and with the automatic step times
  {", ".join(f"{s:g}" for s in SCALES)}.
  Error: distance from the noiseless function on 500 fresh rows, relative to that function.
  Epochs: until the error is within 2 % of the least that the automatic step reaches in {EPOCHS}
  epochs (half of the way to it, if 2 % above is more than that), looked at {PER_EPOCH} times
  per epoch; best: of all steps. An epoch costs the same with
  each, so that this is the ratio of seconds, too. Diverged: error above 3 times the least plus
  that of zero.
- Cost per epoch: `EigenPro3` on {ROWS:,} rows of nycflights, Gaussian kernel, setup left out,
  less of two; "inexact" measured on 10 of 313 batches. The subsample of the rows adds
  n · 2,000 kernel evaluations to each epoch whatever p is."""


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    titles = (SUMMARY, COST, EXPONENTS, STEPS)
    tables = Tables("large_steps", titles, NOTES, options, hidden=(STEPS,))
    if (path := data_set(options.data, "nycflights")) is not None:
        cost(tables, path, options.quick)
    steps(tables, options.quick)
    if not options.quick and tables[EXPONENTS]:
        draw(tables)
