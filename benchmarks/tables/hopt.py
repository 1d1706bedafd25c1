"""Lengthscales by gradients beside the learned metric, in equal CPU seconds, on six tables."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import LinearMap
from gramian.kernels import make
from gramian.metric import LengthscaleDescent, RecursiveFeatureMachine
from gramian.operators import KernelOperator
from gramian.paths.closed_form import nystrom_path
from gramian.paths.sample import Sample, SampleFit, fit_sample
from gramian.problems import NystromProblem

from ..lib.results import Row
from ..lib.tables import Tables, asked
from .accuracy_sets import load, path_of

ERRORS, RUNS = "Test RMSE", "Each run"
SETS = ("pumadyn32nm", "pol", "kin40k", "elevators", "california_housing", "house_16h")
HELD = 2000
LEARNER = "matern32"
KERNELS = ("laplacian", "matern32")
START_PENALTY = 1e-4


@dataclass(frozen=True)
class Size:
    """The budget of a run.

    Attributes
    ----------
    seconds : int
        CPU seconds of everything but reading and the test rows.
    learning : float
        Seconds after which no round or step of learning begins.
    rows : int
        Rows that are learned from, at most.
    machine : RecursiveFeatureMachine
    descent : LengthscaleDescent
    choosing, final : int
        Landmarks of the fits that choose kernel and lengthscale, and of the last one.
    """

    seconds: int
    learning: float
    rows: int
    machine: RecursiveFeatureMachine
    descent: LengthscaleDescent
    choosing: int
    final: int


ENDLESS = 10**6
SIZES = (
    Size(
        10, 5.0, 8000, RecursiveFeatureMachine(),
        LengthscaleDescent(landmarks=200, batch=2000, steps=ENDLESS), 500, 2000,
    ),
    Size(
        60, 30.0, 16_000,
        RecursiveFeatureMachine(landmarks=2000, rows=16_000, gradient_rows=4000),
        LengthscaleDescent(landmarks=400, rows=16_000, batch=4000, steps=ENDLESS), 1000, 3000,
    ),
)  # fmt: skip
QUICK = Size(
    1, 0.5, 500, RecursiveFeatureMachine(landmarks=100, rows=500),
    LengthscaleDescent(landmarks=30, batch=200, steps=20), 50, 100,
)  # fmt: skip

NOTES = f"""\
Test RMSE in deviations of the training targets, and CPU seconds. Features standardized; up to
{HELD:,} training rows are held out and choose everything that is chosen, from up to 8,000 (10 s) or
16,000 (60 s) others is learned. One thread; other work ran on the machine.

- learned: `RecursiveFeatureMachine` with Matern 3/2, as the search has it; 1,000 landmarks (10 s),
  2,000 and twice the gradients (60 s). Its rounds end by themselves, or after half of the seconds.
- gradients: `LengthscaleDescent` with Matern 3/2, 200 moving landmarks and 2,000 rows a step
  (10 s), 400 and 4,000 (60 s), for half of the seconds; held-out or complexity-penalised objective.
- none: features as they are.
- Then, for each alike: kernels {" and ".join(KERNELS)} and lengthscales of 0.5, 1, 2 and 4 medians
  of the mapped rows are compared with 500 or 1,000 landmarks, and the best is fitted with 2,000 or
  3,000; penalty by held-out rows each time.
- own landmarks: the same test rows by the 200 or 400 landmarks where the gradients have moved them,
  with the lengthscales and the penalty that go with them; random: by as many that are random rows,
  with these lengthscales and the best penalty."""


@dataclass(frozen=True)
class Data:
    """A set: the rows to learn from and to choose with, and the test rows."""

    sample: Sample
    X_test: np.ndarray
    Y_test: np.ndarray

    @classmethod
    def of(cls, path: Path, rows: int) -> Data:
        table, rng = load(path), RandomStream(0)
        X = table.X.astype(np.float64)
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        X, X_test = (xp.cast(((x - mean) / scale), np.float32) for x in (X, table.X_test))
        middle, size = table.y.mean(), table.y.std()
        Y, Y_test = (((v - middle) / size)[:, None] for v in (table.y, table.y_test))
        order = rng.permutation(len(X))
        held = min(HELD, len(X) // 5)
        give, take = order[held:][:rows], order[:held]
        return cls(
            Sample(X[give], xp.cast(Y[give], np.float32), X[take], xp.cast(Y[take], np.float32)),
            X_test,
            Y_test,
        )

    def error(self, values: np.ndarray) -> float:
        """Return the RMSE of predictions of the test rows."""
        return float(np.sqrt(np.square(xp.to_float64(values) - self.Y_test).mean()))


Learned = tuple[LinearMap | None, Row]


def none(data: Data, size: Size) -> Learned:
    return None, {}


def machine(data: Data, size: Size) -> Learned:
    began, tried = time.process_time(), []
    for found in size.machine.learn_from(data.sample, make(LEARNER, lengthscale="median")):
        tried.append(found)
        if time.process_time() - began > size.learning:
            break
    best = min(tried, key=lambda found: found.fit.loss)
    return best.map, {"rounds": tried[-1].number, "best round": best.number}


def descent(objective: str) -> Callable[[Data, Size], Learned]:
    def learned(data: Data, size: Size) -> Learned:
        began, looks = time.process_time(), []
        how, rng = replace(size.descent, objective=objective), RandomStream(0)
        for look in how.descend(data.sample, make(LEARNER, lengthscale="median"), rng=rng):
            looks.append(look)
            if time.process_time() - began > size.learning:
                break
        best = min(looks, key=lambda look: look.error)
        map_ = LinearMap(scales=best.scales)
        own = nystrom(data, map_, xp.cast(best.landmarks, np.float32), [best.penalty])
        rows = data.sample.X[: len(best.landmarks)]
        random = nystrom(data, map_, rows, [10.0**-k for k in range(1, 9)])
        facts: Row = {"steps": looks[-1].steps, "best step": best.steps}
        return map_, facts | {"own landmarks": min(own), "random": min(random)}

    return learned


def nystrom(data: Data, map_: LinearMap, Z: np.ndarray, penalties: list[float]) -> Iterator[float]:
    """Yield test errors of landmarks at penalties, the learner's kernel at lengthscale 1."""
    kernel, forth = make(LEARNER, lengthscale=1.0), map_.forth
    K = KernelOperator(kernel, forth(data.sample.X), forth(Z))
    K_test = xp.to_float64(kernel(forth(data.X_test), forth(Z)))
    for _, coef in nystrom_path(NystromProblem(K, data.sample.Y, 0.0), penalties):
        yield data.error(K_test @ coef)


CONTENDERS = {
    "none": none,
    "learned": machine,
    "gradients, held-out": descent("held_out"),
    "gradients, complexity": descent("complexity"),
}


def finished(data: Data, size: Size, map_: LinearMap | None) -> tuple[SampleFit, str]:
    """Return the last fit, and which kernel it has."""
    sample = data.sample.with_map(map_)

    def fit(which: tuple[str, float], landmarks: int) -> SampleFit:
        kernel = make(which[0], lengthscale=f"{which[1]:g} median")
        return fit_sample(sample, kernel, landmarks=landmarks)

    tried = list(product(KERNELS, (0.5, 1.0, 2.0, 4.0)))
    best = min(tried, key=lambda which: fit(which, size.choosing).loss)
    return fit(best, size.final), f"{best[0]}, {best[1]:g} medians"


def measured(path: Path, name: str, size: Size) -> Row:
    data = Data.of(path, size.rows)
    began = time.process_time()
    map_, facts = CONTENDERS[name](data, size)
    learned = time.process_time() - began
    fit, which = finished(data, size, map_)
    row: Row = {"set": path.stem, "seconds": size.seconds, "metric": name}
    X = data.X_test if map_ is None else map_.forth(data.X_test)
    row["CPU s"] = time.process_time() - began
    row["learning s"] = learned
    row |= {
        "held-out RMSE": math.sqrt(fit.loss),
        "test RMSE": data.error(xp.to_float64(fit.kernel(X, fit.centers)) @ fit.coef),
    }
    return row | {"kernel": which, "penalty": f"{fit.penalty:.0e}"} | facts


def summary(runs: list[Row]) -> Iterator[Row]:
    """Yield the errors of each set, a column for each metric."""
    for name, size in product(SETS, SIZES):
        mine = [r for r in runs if (r["set"], r["seconds"]) == (name, size.seconds)]
        if mine:
            errors: Row = {r["metric"]: f"{r['test RMSE']:.4f} / {r['CPU s']:.1f}" for r in mine}
            yield {"set": name, "seconds": size.seconds} | errors


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("hopt", (ERRORS, RUNS), NOTES, options)
    for size, name in product((QUICK,) if options.quick else SIZES, SETS):
        path = path_of(options.data, name)
        for metric in CONTENDERS:
            key = {"set": name, "seconds": size.seconds, "metric": metric}
            if path is None or not asked(key, options.only) or tables.has(RUNS, **key):
                continue
            tables.add(RUNS, measured(path, metric, size))
            tables.replace(ERRORS, list(summary(tables[RUNS])))
