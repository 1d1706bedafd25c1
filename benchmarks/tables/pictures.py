"""Pictures of a learned metric: importances, the matrix and the error by round, of two sets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.ticker import MaxNLocator

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import QuantileMap, Standardizer, as_rows, sample_path
from gramian.kernels import Matern32
from gramian.metric import LearnedMetric, RecursiveFeatureMachine

from ..lib import plots

PLOTS = Path(__file__).parents[2] / "docs" / "plots"
SETS = {
    "california_housing": "California housing: the price of a block",
    "energy": "Energy: the heat that a building needs",
}
COLOR = plots.COLORS["bless"]


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    figure, axes = plots.subplots(len(SETS), 3, width=13, height=7)
    for row, (name, title) in zip(axes, SETS.items(), strict=True):
        names, found = learned(name, 500 if options.quick else None)
        bars(row[0], names, found, title)
        matrix(row[1], names, found)
        rounds(row[2], found)
        for number, error in by_round(found):
            print(f"{name}: round {number}, held-out error {error:.3f} deviations")
    if not options.quick:
        plots.save(figure, PLOTS / "accuracy_metric.png")


def learned(name: str, most: int | None) -> tuple[list[str], LearnedMetric]:
    """Return the names of the features, and the metric that training rows teach."""
    table = pq.read_table(sample_path(name))
    table = table.filter(pc.field("split") == 0).slice(0, most)
    names = table.column_names[: table.column_names.index("target")]
    X, y = np.column_stack([table[each] for each in names]), table["target"].to_numpy()
    rows = as_rows(X.astype(np.float64))
    rows = Standardizer.fit(rows).apply(rows)
    rng = RandomStream(0)
    rows = QuantileMap.fit(rows, rng=rng).apply(rows)
    targets = xp.to_float64(((y - y.mean()) / y.std())[:, None])
    return names, RecursiveFeatureMachine().learn(Matern32("median"), rows, targets, rng=rng)


def bars(axis: Any, names: list[str], found: LearnedMetric, title: str) -> None:
    shares = found.importances
    order = np.argsort(shares)
    axis.barh([names[i] for i in order], shares[order], color=COLOR)
    axis.set(xlabel="importance: share in the diagonal of M", title=title)
    axis.grid(visible=False, axis="y")


def matrix(axis: Any, names: list[str], found: LearnedMetric) -> None:
    M = found.matrix
    most = float(np.abs(M).max())
    image = axis.imshow(M, cmap="RdBu_r", vmin=-most, vmax=most)
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axis.set_yticks(range(len(names)), names)
    axis.grid(visible=False)
    axis.set_title("the metric M")
    axis.figure.colorbar(image, ax=axis, shrink=0.8)


def rounds(axis: Any, found: LearnedMetric) -> None:
    points = [(one.round, one.error**0.5) for one in found.rounds]
    axis.plot(*zip(*points, strict=True), ".", color="0.7", label="each power of M")
    axis.plot(*zip(*by_round(found), strict=True), "o-", color=COLOR, label="the better one")
    axis.set(xlabel="round; 0: features as they are", title="held-out error")
    axis.set_ylabel("deviations of the target")
    axis.set_ylim(bottom=0, top=1.1 * max(error for _, error in points))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend()


def by_round(found: LearnedMetric) -> list[tuple[int, float]]:
    """Return the least error of each round, in deviations of the target."""
    least: dict[int, float] = {}
    for one in found.rounds:
        least[one.round] = min(least.get(one.round, np.inf), one.error**0.5)
    return list(least.items())
