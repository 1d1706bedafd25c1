"""Whether ten landmarks hit a small cluster beside two large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.kernels import Gaussian
from gramian.landmarks import (
    Bless,
    BlessR,
    ExactRLS,
    KMeans,
    RecursiveRLS,
    RPCholesky,
    Selector,
    Squeak,
    TwoPass,
    Uniform,
)
from gramian.landmarks.leverage.candidates import Candidates
from gramian.landmarks.leverage.exact_rls import exact_scores
from gramian.landmarks.leverage.selecting import draw_exactly
from gramian.operators import KernelOperator

from ..lib.tables import Tables
from ..lib.timing import clock

SIZES = (100, 5000, 4900)
M = 10
WIDTH, APART = 0.05, 10.0
ABOUT = f"""\
{", ".join(f"{size:,}" for size in SIZES)} points in the plane, normal with deviation
  {WIDTH:g} about the corners of a triangle with sides of {APART:g}, in random order; Gaussian
  kernel of lengthscale 1; {M} landmarks. Percent of the seeds in which every cluster has one;
  small: in which the small one has. The points are the same for all seeds; exact scores are
  computed once."""
SELECTORS: dict[str, Callable[[int], Selector]] = {
    "uniform": Uniform,
    "exact_rls": ExactRLS,
    "two_pass": TwoPass,
    "two_pass, first 1,000": lambda m: TwoPass(m, first=1000),
    "recursive_rls": RecursiveRLS,
    "recursive_rls, accelerated": lambda m: RecursiveRLS(m, accelerated=True),
    "squeak": Squeak,
    "bless": Bless,
    "bless_r": BlessR,
    "rpcholesky": RPCholesky,
    "kmeans": KMeans,
}


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return the points and the number of the cluster of each."""
    rng = RandomStream(0)
    corners = APART * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]], dtype=np.float64)
    label = xp.repeat(np.arange(3), np.array(SIZES))
    label = label[rng.permutation(len(label))]
    noise = rng.standard_normal((len(label), 2), np.float64)
    return corners[label] + WIDTH * noise, label


def nearest(chosen: np.ndarray, X: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the clusters that points, which may be means, belong to."""
    return label[xp.cdist(xp.to_float64(chosen), X).argmin(axis=1)]


def drawn_by(selector: Selector, K: KernelOperator) -> Callable[[RandomStream], np.ndarray]:
    return lambda rng: selector.select(K, rng=rng).points


def drawn_by_exact_scores(K: KernelOperator) -> Callable[[RandomStream], np.ndarray]:
    level = ExactRLS(M).sample_of_size(K, M, rng=RandomStream(0))
    rows = Candidates.all(K)
    scores = exact_scores(K, level.penalty)[rows.index]
    return lambda rng: K.rows.take(draw_exactly(rows, scores, M, rng).index)


def measure(tables: Tables, title: str, seeds: int) -> None:
    X, label = points()
    K = KernelOperator(Gaussian(1.0), X, X)
    K = KernelOperator(K.kernel, K.rows, K.rows)
    for name, make in SELECTORS.items():
        if tables.has(title, selector=name):
            continue
        select = drawn_by_exact_scores(K) if name == "exact_rls" else drawn_by(make(M), K)
        with clock() as seconds:
            hit = [
                set(nearest(select(RandomStream(seed)), X, label).tolist()) for seed in range(seeds)
            ]
        row: dict[str, Any] = {"selector": name, "seeds": seeds}
        row["every cluster, %"] = 100 * sum(len(found) == 3 for found in hit) / seeds
        row["small, %"] = 100 * sum(0 in found for found in hit) / seeds
        tables.add(title, row | {"CPU / seed": seconds.cpu / seeds})
