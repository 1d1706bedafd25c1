"""EigenPro 3 on fashion-MNIST: accuracy against training rows and against centers."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem, Problem
from gramian.solvers import EigenPro2, EigenPro3

from ..lib import plots
from ..lib.images import BANDWIDTH, pixels
from ..lib.results import ROOT
from ..lib.sets import Split, data_set
from ..lib.tables import Tables

PLOTS = ROOT / "docs" / "plots"
SCALING, BASELINE = "Rows and centers", "EigenPro 2 on the centers"
ROWS = (2000, 5000, 10_000, 20_000, 60_000)
CENTERS = (500, 1000, 2000, 5000)
MOST_EPOCHS, LEAST_EPOCHS, VISITS = 10, 3, 100_000


@dataclass(frozen=True)
class Images:
    """Training images in random order, targets of +1 and -1, and images to be told."""

    X: np.ndarray
    Y: np.ndarray
    test: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, split: Split) -> Images:
        order = np.random.default_rng(0).permutation(len(split.X))
        Y = 2 * np.eye(10)[split.y[order]] - 1
        X, test = split.X[order], split.X_test
        return cls(X, Y, test, split.y_test)

    def held_out(self, rows: int) -> Images:
        """Return training images only, the last ones to be told, so that no test image is seen."""
        labels = self.Y[-rows:].argmax(axis=1)
        return Images(self.X[:-rows], self.Y[:-rows], self.X[-rows:], labels)

    def problem(self, n: int, p: int | None = None) -> Problem:
        """Return the regression on the first n images, with the first p as centers, or all."""
        rows = as_rows(self.X[:n])
        K = KernelOperator(kernels.Laplacian(BANDWIDTH), rows, rows)
        if p is None:
            return FullProblem(K, self.Y[:n], 0.0)
        return NystromProblem.at(K, np.arange(p), self.Y[:n], 0.0)

    def accuracy(self, problem: Problem, coef: np.ndarray) -> float:
        told = problem.model(coef).predict(self.test).argmax(axis=1)
        return 100 * float((told == self.labels).mean())


def trained(problem: Problem, solver: Any) -> Iterator[tuple[float, np.ndarray]]:
    """Yield CPU seconds, setup included, and coefficients after each state."""
    spent, start = 0.0, time.process_time()
    for state in solver.iterate(problem, rng=RandomStream(0)):
        spent += time.process_time() - start
        if state.iteration:
            yield spent, state.coef
        start = time.process_time()


def after(problem: Problem, solver: Any, states: int) -> tuple[float, np.ndarray]:
    return next(itertools.islice(trained(problem, solver), states - 1, None))


# --- rows and centers ------------------------------------------------------------------------


def epochs(n: int) -> int:
    return min(MOST_EPOCHS, max(LEAST_EPOCHS, VISITS // n))


def scaling(tables: Tables, images: Images) -> None:
    for p in CENTERS:
        if p <= len(images.X) and not tables.has(BASELINE, p=p):
            full = images.problem(p)
            seconds, coef = after(full, EigenPro2(), MOST_EPOCHS)
            row = {"p": p, "accuracy": images.accuracy(full, coef)}
            tables.add(BASELINE, row | {"epochs": MOST_EPOCHS, "CPU s": seconds})
    for p, n in itertools.product(CENTERS, ROWS):
        if n <= p or n > len(images.X) or tables.has(SCALING, p=p, n=n):
            continue
        problem = images.problem(n, p)
        seconds, coef = after(problem, EigenPro3(), epochs(n))
        row = {"p": p, "n": n, "accuracy": images.accuracy(problem, coef)}
        tables.add(SCALING, row | {"epochs": epochs(n), "CPU s": seconds})


# --- all of it -------------------------------------------------------------------------------


def draw_scaling(tables: Tables) -> None:
    figure, (left, right) = plots.subplots(1, 2, width=9, height=3.5)
    for color, p in zip(plots.COLORS.values(), CENTERS, strict=False):
        line = [(r["n"], r["accuracy"]) for r in tables[SCALING] if r["p"] == p]
        left.semilogx(*zip(*line, strict=True), "o-", color=color, label=f"p = {p:,}")
        base = next(r["accuracy"] for r in tables[BASELINE] if r["p"] == p)
        left.axhline(base, color=color, linestyle=":", linewidth=1)
    for color, n in zip(plots.COLORS.values(), ROWS[2:], strict=False):
        line = [(r["p"], r["accuracy"]) for r in tables[SCALING] if r["n"] == n]
        right.semilogx(*zip(*line, strict=True), "o-", color=color, label=f"n = {n:,}")
    left.set(xlabel="training rows n", ylabel="test accuracy, %")
    left.set_title("fixed p; dotted: EigenPro 2 on the centers")
    right.set(xlabel="centers p", ylabel="test accuracy, %", title="fixed n")
    for axis in (left, right):
        axis.legend()
    plots.save(figure, PLOTS / "large_scaling.png")


NOTES = f"""\
fashion-MNIST, pixels between 0 and 1, float32; Laplacian kernel, lengthscale {BANDWIDTH:.0f}, no
penalty. One thread; CPU seconds, setup included, and accuracy in percent of right test labels at
the end of the run.

- {SCALING}: `EigenPro3()`; centers are the first p of n training images in random order; epochs:
  {VISITS:,} / n, between {LEAST_EPOCHS} and {MOST_EPOCHS} (paper: 50).
- {BASELINE}: `EigenPro2()`, rows and centers the same p images."""


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    if (path := data_set(options.data, "fashion_mnist")) is None:
        return
    tables = Tables("large_models", (SCALING, BASELINE), NOTES, options)
    scaling(tables, Images.of(pixels(path, 3000 if options.quick else None)))
    if not options.quick:
        draw_scaling(tables)
