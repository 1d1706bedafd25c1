"""Leverage scores: how accurate, in which time, at which n; and clusters that must be hit."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..lib.sets import data_set, load
from ..lib.tables import Tables
from . import clusters, growth, scores

ACCURACY, LARGE = "Accuracy, n = 20,000", "Accuracy, n = 70,000"
TRUTH, TIME, SLOPES, CLUSTERS = "True scores", "Time against n", "Growth with n", "Clusters"
TITLES = (ACCURACY, LARGE, TRUTH, SLOPES, TIME, CLUSTERS)
NOTES = f"""\
One thread; CPU: seconds of selecting, evaluations: of the kernel, by the meter. Float32 rows,
scored in float64. Gaussian kernel, lengthscale {scores.LENGTHSCALE:g} on standardized features.

- Accuracy: random training rows of nycflights, penalty {scores.PENALTY:g}. Ratio of approximate
  scores, eq. (3) from the selected dictionary, to true ones: mean and quantiles over
  {scores.CHECKED:,} random rows, averaged over the runs. landmarks: distinct rows. `paper`: as
  printed by Rudi et al. 2018, figure 1, for SUSY, n = 70,000, on their machine; its RRLS scores
  carry the factor 3/2 of that algorithm, ours are eq. (3) of its dictionary.
- True scores: of a partial Cholesky factorization of K that goes on until its scores are too small
  by a thousandth in the sum at most (which is certain: they are lower bounds, and the trace that is
  left bounds the sum). At n = 5,000 they are compared with the scores by definition, row by row.
- Time against n: training rows of {growth.SET}, penalty {growth.PENALTY:g}, selectors with their
  defaults, so oversampling 3; the accelerated recursion, RPCholesky and k-means get the number of
  landmarks that BLESS has found. Median of {growth.REPEATS} runs for BLESS and BLESS-R, one run of
  the others; none that would pass {growth.CAP} s, and no exact scores above 10,000 rows. Growth:
  exponents fitted to n >= 10,000; ratio: largest n over 10,000.
- Clusters: {clusters.ABOUT}"""


def sample(options: argparse.Namespace, name: str) -> np.ndarray | None:
    path = data_set(options.data, name)
    return None if path is None else load(path).X


def accuracy(tables: Tables, X: np.ndarray, n: int, title: str, runs: int) -> None:
    names = [(method.name, method.oversampling) for method in scores.METHODS]
    names.append(("sampled by the true scores", scores.OVERSAMPLING))
    if all(tables.has(title, method=name, oversampling=q) for name, q in names):
        return
    K = scores.operator(scores.subsample(X, n))
    true, about = scores.truth(K, exact=False)
    checked = min(n, scores.CHECKED)
    if not tables.has(TRUTH, n=n):
        tables.add(TRUTH, about)
    for method in scores.METHODS:
        if not tables.has(title, method=method.name, oversampling=method.oversampling):
            m = round(taken(tables[title]))
            tables.add(title, scores.measured(K, method, m, true, min(runs, method.runs), checked))
    if not tables.has(title, method="sampled by the true scores"):
        tables.add(title, scores.ideal(K, true, runs, checked))


def yardstick(tables: Tables, X: np.ndarray, n: int) -> None:
    """Compare the scores of the factorization with exact ones where these are quick."""
    if tables.has(TRUTH, n=n):
        return
    K = scores.operator(scores.subsample(X, n))
    exact, about = scores.truth(K, exact=True)
    found, compared = scores.truth(K, exact=False)
    ratio = found / exact
    compared |= {"over exact": float(ratio.mean())}
    compared |= {"least": float(ratio.min()), "largest": float(ratio.max())}
    tables.add(TRUTH, about, compared)


def taken(rows: list[dict[str, Any]]) -> float:
    """Return how many rows BLESS has taken."""
    return next((row["landmarks"] for row in rows if row["method"] == "BLESS"), 1.0)


def main(options: argparse.Namespace) -> None:
    tables = Tables("leverage", TITLES, NOTES, options)
    if (flights := sample(options, "nycflights")) is None:
        return
    small, large, runs = (1000, 1500, 2) if options.quick else (20_000, 70_000, 10)
    yardstick(tables, flights, small // 4)
    accuracy(tables, flights, small, ACCURACY, runs)
    clusters.measure(tables, CLUSTERS, seeds=3 if options.quick else 200)
    if (pollution := sample(options, growth.SET)) is not None:
        growth.measure(tables, TIME, SLOPES, pollution, 4000 if options.quick else None)
        if not options.quick:
            growth.plot(tables[TIME])
    accuracy(tables, flights, large, LARGE, 3 if not options.quick else 1)
