"""How the seconds of solvers and of selectors grow with rows, centers, features and targets."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge, kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import (
    Bless,
    BlessR,
    KMeans,
    RecursiveRLS,
    RPCholesky,
    Squeak,
    TwoPass,
    Uniform,
)
from gramian.operators import KernelOperator

from ..lib import plots
from ..lib.process import in_fresh_process
from ..lib.results import ROOT, Row
from ..lib.tables import Tables
from ..lib.timing import clock

SECONDS, SLOPES = "Seconds", "Slopes"
ROUNDS = 2
NOTES = """\
CPU seconds of one thread, float32, normal rows, Gaussian kernel of lengthscale sqrt(d); the lesser
of two fits after a small one, on a machine that others use. One size changes, the others stay as
they are in the first row of each contender. Solvers: `KernelRidge` with all settings given,
uniform landmarks: 10 iterations of `falkon`, an epoch of `eigenpro3`, and with all rows as centers,
of fewer rows, 5 iterations of `askotch`, each of which passes over all of K. Selectors: `select`
alone, of M landmarks (not `exact_rls`, which forms a matrix of n x n: see `leverage`). `slope` is
that of the logarithm of the seconds over the logarithm of the size, by least squares: 1 is linear
growth."""


@dataclass(frozen=True)
class Size:
    """Rows, features, centers and targets."""

    n: int = 20_000
    d: int = 10
    M: int = 400
    t: int = 1


AXES: dict[str, tuple[int, ...]] = {
    "n": (20_000, 40_000, 80_000),
    "M": (400, 800, 1_600),
    "d": (10, 40, 160),
    "t": (1, 4, 16),
}
SELECTORS: dict[str, Callable[[int], Any]] = {
    "uniform": Uniform,
    "recursive_rls": RecursiveRLS,
    "recursive_rls, accelerated": lambda m: RecursiveRLS(m, accelerated=True),
    "bless": Bless,
    "bless_r": BlessR,
    "squeak": Squeak,
    "two_pass": TwoPass,
    "rpcholesky": RPCholesky,
    "kmeans": KMeans,
}
SOLVERS: dict[str, dict[str, Any]] = {
    "falkon": {"max_iter": 10},
    "eigenpro3": {"max_iter": 1},
    "askotch": {"max_iter": 5, "landmarks": None},
}
ROWS = {
    "falkon": (100_000, 200_000, 400_000),
    "eigenpro3": (40_000, 80_000, 160_000),
    "askotch": (5_000, 10_000, 20_000, 40_000),
}
"""Rows of solvers, instead of those of all: with few, most of FALKON's seconds are its setup, and
an iteration of ASkotch is a pass over all pairs."""

TICKS = {"n": (5_000, 40_000, 400_000)}
"""Sizes that are named along an axis, where these are not those of all contenders."""

CONTENDERS = [*SOLVERS, *SELECTORS]
WITHOUT = {"askotch": {"M"}, **{name: {"t"} for name in SELECTORS}}
"""Sizes that a contender does not have."""


def draw(size: Size) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size.n, size.d), dtype=np.float32)
    W = rng.standard_normal((size.d, size.t), dtype=np.float32) / np.float32(size.d**0.5)
    return X, np.sin(2 * X @ W)


def fit(name: str, size: Size) -> float:
    """Return CPU seconds of one fit, or of one selection."""
    X, y = draw(size)
    if name in SELECTORS:
        rows = as_rows(X)
        K = KernelOperator(kernels.Gaussian(size.d**0.5), rows, rows)
        selector = SELECTORS[name](size.M)
        with clock() as seconds:
            selector.select(K, rng=RandomStream(0))
        return seconds.cpu
    est = KernelRidge(
        **{"landmarks": Uniform(size.M)} | SOLVERS[name], solver=name, kernel="gaussian",
        lengthscale=size.d**0.5, penalty=1e-6, standardize=False, tol=0.0, random_state=0,
    )  # fmt: skip
    with clock() as seconds:
        est.fit(X, y)
    return seconds.cpu


def all_of(name: str, sizes: list[Size]) -> list[float]:
    set_blas_threads(1)
    warnings.simplefilter("ignore")
    fit(name, Size(600, sizes[0].d, 50))
    return [min(fit(name, size) for _ in range(ROUNDS)) for size in sizes]


def measure(tables: Tables, name: str, quick: bool) -> None:
    rows = ROWS.get(name, AXES["n"])
    start = Size(n=1_000, M=50) if quick else Size(n=rows[0])
    sizes: list[tuple[str, Size]] = []
    for axis, values in (AXES | {"n": rows}).items():
        if axis not in WITHOUT.get(name, ()):
            some = [getattr(start, axis) * 2**i for i in range(2)] if quick else values
            sizes += [(axis, replace(start, **{axis: value})) for value in some]
    different = list(dict.fromkeys(size for _, size in sizes))
    spent = dict(zip(different, in_fresh_process(all_of, name, different), strict=True))
    slopes: Row = {"contender": name}
    for axis in dict.fromkeys(axis for axis, _ in sizes):
        along = [size for each, size in sizes if each == axis]
        x, y = [getattr(size, axis) for size in along], [spent[size] for size in along]
        slopes[axis] = float(np.polyfit(np.log(x), np.log(y), 1)[0])
    tables.add(SECONDS, *({"contender": name, **vars(size), "s": spent[size]} for size in spent))
    tables.add(SLOPES, slopes)


def plot(rows: list[Row], path: Path = ROOT / "docs" / "plots" / "slopes.png") -> None:
    """Draw seconds over each size, of all contenders."""
    figure, axes = plots.subplots(1, 4, width=12.5, height=4.0)
    for axis, panel in zip(AXES, axes, strict=True):
        ends = []
        for name in CONTENDERS:
            first = vars(Size(n=ROWS.get(name, AXES["n"])[0]))
            points = sorted(
                (row[axis], row["s"])
                for row in rows
                if row["contender"] == name
                and all(row[other] == first[other] for other in AXES if other != axis)
            )
            if len(points) < 2:
                continue
            x, y = zip(*points, strict=True)
            style = plots.STYLES.get(name, {"linewidth": 2.2, "marker": "o", "markersize": 4.5})
            (line,) = panel.plot(x, y, **style)
            ends.append((x[-1], y[-1], plots.LABELS.get(name, name), line.get_color()))
        panel.set(xscale="log", yscale="log", xlabel=axis, title=f"CPU seconds by {axis}")
        ticks = TICKS.get(axis, AXES[axis])
        panel.set_xticks(ticks, [f"{value:,}" for value in ticks])
        plots.few_along_x(panel)
        right = max(x for x, _, _, _ in ends)  # names stand in one column, wherever lines end
        plots.label_ends(panel, [(right, *rest) for _, *rest in ends])
    plots.save(figure, path)


def main(options: argparse.Namespace) -> None:
    tables = Tables("slopes", (SLOPES, SECONDS), NOTES, options)
    for name in CONTENDERS:
        if not tables.has(SLOPES, contender=name):
            measure(tables, name, options.quick)
    if not options.quick:
        plot(tables[SECONDS])
