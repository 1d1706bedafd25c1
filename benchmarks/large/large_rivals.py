"""EigenPro 3 and SketchySAGA beside FALKON: equal seconds, bounded memory, statistical level."""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Kernel
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import EigenPro3, Falkon, SketchySAGA, Solver

from ..lib import plots, sets
from ..lib.curves import Case, watched
from ..lib.images import BANDWIDTH, pixels
from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import ROOT, Row
from ..lib.sets import data_set
from ..lib.tables import Tables
from ..lib.timing import clock

PLOT = ROOT / "docs" / "plots" / "large_rivals.png"
RACE, LIMIT, LEVEL, CURVES = "Equal seconds", "One gigabyte", "Statistical level", "Curves"
CENTERS, MANY, ROWS, LEVEL_CENTERS = 5000, 40_000, 60_000, 1000
MEMORY, TEST_ROWS = "1GB", 5000
FALKON_ITERATIONS, MOST_EPOCHS, NEAR = 25, 40, 1.01

RACES = (
    Case("fashion_mnist", lambda _: kernels.Laplacian(BANDWIDTH), 1e-8, 60, "wrong labels, %"),
    Case("beijing_pm25", lambda _: kernels.Gaussian(7.16), 1e-7, 60, "RMSE"),
)
LEVELS: tuple[tuple[str, Kernel, float], ...] = (
    ("california_housing", kernels.Gaussian(1.27), 1e-5),
    ("airs_co2", kernels.Gaussian(0.422), 1e-5),
    ("nycflights", kernels.Gaussian(2.68), 1e-7),
)
CONTENDERS: dict[str, Callable[[], Solver[Any, Any]]] = {
    "FALKON": Falkon,
    "EigenPro 3, exact": lambda: EigenPro3(projection="exact", states_per_epoch=8),
    "EigenPro 3, delayed": lambda: EigenPro3(projection="delayed", states_per_epoch=4),
    "SketchySAGA": lambda: SketchySAGA(states_per_epoch=4),
}


@dataclass(frozen=True)
class Task:
    """A Nystrom problem and a way to measure coefficients on test rows."""

    problem: NystromProblem
    error: Callable[[np.ndarray], float]


def task(name: str, path: Path, kernel: Kernel, penalty: float, p: int, quick: bool) -> Task:
    """Return the problem with p random rows as centers, the same ones for each solver."""
    images = name == "fashion_mnist"
    split = pixels(path) if images else sets.load(path)
    order = np.random.default_rng(0).permutation(len(split.X))[: 2000 if quick else None]
    y = split.y[order]
    targets = 2 * np.eye(10)[y] - 1 if images else y[:, None].astype(np.float64)
    rows = as_rows(split.X[order])
    K = KernelOperator(kernel, rows, rows)
    problem = NystromProblem.at(K, np.arange(min(p, len(order) // 4)), targets, penalty)

    def error(coef: np.ndarray) -> float:
        prediction = problem.model(xp.to_float64(coef)).predict(split.X_test)
        if images:
            return 100 * float((prediction.argmax(axis=1) != split.y_test).mean())
        return sets.errors(prediction[:, 0], split.y_test)[0]

    return Task(problem, error)


# --- equal seconds ---------------------------------------------------------------------------


def race(tables: Tables, case: Case, path: Path, quick: bool) -> None:
    t = task(case.name, path, case.kernel(0), case.penalty, CENTERS, quick)
    for name, solver in CONTENDERS.items():
        if tables.has(RACE, set=case.name, method=name):
            continue
        states = solver().iterate(t.problem, rng=RandomStream(0))
        curve = watched(t.problem, states, case, t.error)
        about: Row = {"set": case.name, "method": name}
        tables.rows[CURVES].append(about | {"curve": curve})
        row = about | {"n": t.problem.K.shape[0], "p": t.problem.K.shape[1]}
        for share in (0.25, 0.5, 1.0):
            seen = [r for r in curve if r["seconds"] <= 1.05 * share * case.seconds]
            row[f"{share:.0%}"] = seen[-1]["error"] if seen else "none yet"
        tables.add(RACE, row | {"last": curve[-1]["error"], "CPU s": curve[-1]["seconds"]})


# --- one gigabyte ----------------------------------------------------------------------------


def limited(path: Path, solver: Any, rows: int, p: int) -> Row:
    """Fit one epoch within the memory limit."""
    set_blas_threads(1)
    split, before = sets.load(path), bytes_before_work()
    est = KernelRidge(
        standardize=False,
        lengthscale=2.68, penalty=1e-7, landmarks=p, solver=solver, max_iter=1, tol=1e-9,
        memory_limit=MEMORY, random_state=0,
    )  # fmt: skip
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            with clock() as fit:
                est.fit(split.X[:rows], split.y[:rows])
        except ValueError as error:
            return {"RMSE": None, "what": str(error)}
    peak = peak_bytes()
    told = est.predict(split.X_test[:TEST_ROWS])
    rmse, _ = sets.errors(told, split.y_test[:TEST_ROWS])
    row = {"RMSE": rmse, "what": f"{est.stop_reason_}, {est.n_iter_} epoch", "CPU s": fit.cpu}
    return row | {"MB before": before / 1e6, "peak MB": peak / 1e6, "fit MB": (peak - before) / 1e6}


def bounded(tables: Tables, path: Path, rows: int, p: int) -> None:
    solvers: dict[str, Any] = {
        "FALKON": "falkon",
        "EigenPro 3, delayed": EigenPro3(projection="delayed"),
        "SketchySAGA": SketchySAGA(),
    }
    for name, solver in solvers.items():
        if not tables.has(LIMIT, method=name):
            result = in_fresh_process(limited, path, solver, rows, p)
            tables.add(LIMIT, {"method": name, "p": p, "n": rows} | result)


# --- the statistical level -------------------------------------------------------------------


def timed(
    problem: NystromProblem, solver: Any, error: Callable[[np.ndarray], float]
) -> Iterator[Row]:
    """Yield iteration, CPU seconds with setup and error of each state but the first."""
    spent, start = 0.0, time.process_time()
    for state in solver.iterate(problem, rng=RandomStream(0)):
        spent += time.process_time() - start
        if state.iteration:
            done = state.metrics.get("epoch", state.iteration)
            yield {"epochs": done, "seconds": spent, "error": error(state.coef)}
        start = time.process_time()


def level(tables: Tables, name: str, path: Path, kernel: Kernel, penalty: float, q: bool) -> None:
    """Add epochs and seconds until the test error is within 1 % of FALKON's last one."""
    if tables.has(LEVEL, set=name):
        return
    t = task(name, path, kernel, penalty, LEVEL_CENTERS, q)
    falkon = list(itertools.islice(timed(t.problem, Falkon(), t.error), FALKON_ITERATIONS))
    converged = falkon[-1]["error"]
    runs: dict[str, list[Row]] = {"FALKON": falkon}
    runs["SketchySAGA"] = []
    for row in timed(t.problem, SketchySAGA(), t.error):
        runs["SketchySAGA"].append(row)
        if row["error"] <= NEAR * converged or row["epochs"] >= MOST_EPOCHS:
            break
    for method, rows in runs.items():
        there = next((row for row in rows if row["error"] <= NEAR * converged), None)
        row = {"set": name, "n": t.problem.K.shape[0], "method": method, "level": converged}
        row |= {"least": min(r["error"] for r in rows)}
        reached = there or {"epochs": f"over {rows[-1]['epochs']:g}", "seconds": None}
        tables.add(LEVEL, row | {"epochs": reached["epochs"], "CPU s": reached["seconds"]})
        tables.rows[CURVES].append({"set": f"{name}, level", "method": method, "curve": rows})
    tables.save()


# --- all of it -------------------------------------------------------------------------------


def draw(tables: Tables) -> None:
    names = list(dict.fromkeys(run["set"] for run in tables[CURVES]))
    figure, axes = plots.subplots(2, -(-len(names) // 2), width=10, height=6)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names, strict=False):
        runs = [run for run in tables[CURVES] if run["set"] == name]
        for color, run in zip(plots.COLORS.values(), runs, strict=False):
            points = [(row["seconds"], row["error"]) for row in run["curve"]]
            if points:
                axis.semilogx(*zip(*points, strict=True), ".-", color=color, label=run["method"])
        least = min(row["error"] for run in runs for row in run["curve"])
        axis.set(xlabel="CPU seconds", title=name, ylim=(0.98 * least, 1.5 * least))
        axis.legend(fontsize=7)
        plots.few_along_x(axis)
    plots.save(figure, PLOT)


NOTES = f"""\
One thread, float32 rows, random rows as centers, the same for each method; CPU seconds with setup.

- {RACE}: p = {CENTERS:,}; test error at a quarter, half and all of the seconds: {{}}.
  fashion_mnist: percent of wrong labels, Laplacian kernel, lengthscale {BANDWIDTH:.0f}, penalty
  1e-8; beijing_pm25: RMSE, lengthscale and penalty of the benchmark settings.
- {LIMIT}: `KernelRidge(landmarks=p, memory_limit="{MEMORY}", max_iter=1)` on {ROWS:,} rows of
  nycflights, settings as there; one epoch, RMSE of {TEST_ROWS:,} test rows, each in a process of
  its own. fit MB: growth of the resident set over what data and libraries take.
- {LEVEL}: p = {LEVEL_CENTERS:,}, all rows; epochs (FALKON: iterations) and CPU seconds until the
  test RMSE is within 1 % of what FALKON has after {FALKON_ITERATIONS} iterations. At most
  {MOST_EPOCHS} epochs. FALKON's iteration passes once over the rows, as an epoch does.""".replace(
    "{}", ", ".join(f"{case.name} {case.seconds:g}" for case in RACES)
)


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    quick = options.quick
    tables = Tables("large_rivals", (RACE, LIMIT, LEVEL, CURVES), NOTES, options, hidden=(CURVES,))
    for name, kernel, penalty in LEVELS:
        if (path := data_set(options.data, name)) is not None:
            level(tables, name, path, kernel, penalty, quick)
    if (path := data_set(options.data, "nycflights")) is not None:
        bounded(tables, path, *((2000, 500) if quick else (ROWS, MANY)))
    for case in RACES:
        if (path := data_set(options.data, case.name)) is not None:
            race(tables, brief(case) if quick else case, path, quick)
    if not quick and tables[CURVES]:
        draw(tables)


def brief(case: Case) -> Case:
    return Case(case.name, case.kernel, case.penalty, 3, case.metric)
