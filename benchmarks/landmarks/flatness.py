"""Leverage scores against uniform landmarks: errors by rows and by unevenness of the scores."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.approximations import NystromMap
from gramian.data import as_rows
from gramian.fitting.settings import landmarks as landmark_settings
from gramian.kernels import Gaussian
from gramian.landmarks import Landmarks, RecursiveRLS, Selector, Uniform
from gramian.operators import KernelOperator

from ..lib import labels
from ..lib.results import Row
from ..lib.sets import data_set, load
from ..lib.tables import Tables, asked
from ..lib.timing import clock, set_blas_threads
from .nystrom import LENGTHSCALES
from .scores import subsample

RATIOS, RUNS = "Error over that of uniform landmarks", "Runs"
SEEDS = {1000: 10, 2000: 10, 5000: 6, 10_000: 4, 20_000: 3, 50_000: 1}
"""Seeds by the number of rows."""

FEW, FEW_ROWS = 100, 5000
"""A small number of landmarks, and the most rows with which it is measured."""

STEPS = 10
"""Steps of the Lanczos method."""

CASES = LENGTHSCALES | {name: labels.SETTINGS[name].lengthscale for name in ("adult_a9a", "skin")}
NOTES = f"""\
Spectral norm of K - K_hat by landmarks of leverage scores, over the median of uniform landmarks:
random training rows, standardised, float64, Gaussian kernel with the lengthscales of `nystrom` and
`falkon_bless`. m: the number that landmarks="auto" takes, and {FEW} up to {FEW_ROWS:,} rows. K is
not held: {STEPS} steps of the Lanczos method from the same start, the differences of all selectors
in one pass. One thread.

- uneven: n times the sum of the squared probabilities of the rows, estimated from the landmarks of
  `auto`: 1 if all scores are equal.
- uniform, worst: the largest error of uniform landmarks over their median.
- rls: `RecursiveRLS(m)`; auto: `RecursiveRLS(m, accelerated=True)`, medians over the seeds; worst:
  the largest error.
- seconds: CPU seconds of the selection, medians."""


@dataclass(frozen=True)
class Residual:
    """K - K_hat of one choice of landmarks, as products."""

    across: KernelOperator
    normalizer: np.ndarray

    @classmethod
    def build(cls, K: KernelOperator, points: Any) -> Residual:
        across = KernelOperator(K.kernel, K.rows, as_rows(points), memory_bytes=K.memory_bytes)
        return cls(across, NystromMap.build(K.kernel, points).normalizer)

    def approximate(self, v: np.ndarray) -> np.ndarray:
        """Return K_hat v."""
        inner = self.normalizer @ (self.normalizer.T @ (self.across.T @ v))
        return np.asarray(self.across @ inner)


def residual_norms(K: KernelOperator, residuals: list[Residual], steps: int) -> np.ndarray:
    """Return the largest eigenvalue of each difference; products with K are shared."""
    n, count = K.shape[0], len(residuals)
    start = np.random.default_rng(0).standard_normal(n)
    basis = np.zeros((count, steps, n))
    alpha, beta = np.zeros((count, steps)), np.zeros((count, steps))
    current = np.tile(start / np.linalg.norm(start), (count, 1))
    for step in range(steps):
        basis[:, step] = current
        product = np.array(K @ np.ascontiguousarray(current.T)).T
        for i, residual in enumerate(residuals):
            w = product[i] - residual.approximate(current[i][:, None])[:, 0]
            alpha[i, step] = w @ current[i]
            # Twice: rounding of the first subtraction would leave copies of the largest vector.
            for _ in range(2):
                w = w - basis[i, : step + 1].T @ (basis[i, : step + 1] @ w)
            beta[i, step] = np.linalg.norm(w)
            current[i] = w / max(beta[i, step], 1e-300)
    return np.array([_largest(a, b[:-1]) for a, b in zip(alpha, beta, strict=True)])


def _largest(diagonal: np.ndarray, off_diagonal: np.ndarray) -> float:
    T = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    return float(np.linalg.eigvalsh(T)[-1])


def counts(n: int) -> list[int]:
    """Return the number of landmarks of landmarks="auto", and few where rows are few."""
    usual = landmark_settings.landmark_count("auto", n)
    assert usual is not None
    return [usual, FEW] if n <= FEW_ROWS else [usual]


def contenders(n: int, m: int) -> dict[str, Selector]:
    """Return uniform landmarks, the plain recursion, and the selector of landmarks="auto"."""
    auto = landmark_settings.selector("auto", n)
    assert isinstance(auto, RecursiveRLS)
    return {"uniform": Uniform(m), "rls": RecursiveRLS(m), "auto": replace(auto, m=m)}


def unevenness(chosen: Landmarks) -> float:
    """Return n times the sum of squared probabilities, by the landmarks that were drawn."""
    return float((1 / xp.to_float64(chosen.weight)).mean())


def runs(name: str, X: np.ndarray, m: int, seeds: int) -> Iterator[Row]:
    """Yield the error of each selector and seed on some rows."""
    rows = as_rows(X)
    K = KernelOperator(Gaussian(CASES[name]), rows, rows, memory_bytes=1 << 28)
    lines, residuals = [], []
    for label, selector in contenders(len(X), m).items():
        for seed in range(seeds):
            with clock() as seconds:
                chosen = selector.select(K, rng=RandomStream(seed))
            residuals.append(Residual.build(K, chosen.points))
            line: Row = {"set": name, "n": len(X), "m": m, "selector": label}
            lines.append(line | {"seed": seed, "uneven": unevenness(chosen), "CPU s": seconds.cpu})
    for line, error in zip(lines, residual_norms(K, residuals, STEPS), strict=True):
        yield line | {"error": float(error)}


def ratios(rows: list[Row]) -> list[Row]:
    """Return medians and the worst seed by set and size, relative to uniform landmarks."""
    summary = []
    for case in dict.fromkeys((row["set"], row["n"], row["m"]) for row in rows):
        name, n, m = case
        of = [row for row in rows if (row["set"], row["n"], row["m"]) == case]
        errors = {
            key: np.array([row["error"] for row in of if row["selector"] == key])
            for key in ("uniform", "rls", "auto")
        }
        middle = float(np.median(errors["uniform"]))
        uneven = float(np.median([row["uneven"] for row in of if row["selector"] == "auto"]))
        line: Row = {"set": name, "n": n, "m": m, "seeds": len(errors["auto"])}
        line |= {"uneven": uneven, "uniform, worst": float(errors["uniform"].max()) / middle}
        for key in ("rls", "auto"):
            line[key] = float(np.median(errors[key])) / middle
            line[f"{key}, worst"] = float(errors[key].max()) / middle
        for key in ("rls", "auto"):
            seconds = [row["CPU s"] for row in of if row["selector"] == key]
            line[f"{key}, seconds"] = float(np.median(seconds))
        summary.append(line)
    return summary


def main(options: argparse.Namespace) -> None:
    tables = Tables("flatness", (RATIOS, RUNS), NOTES, options, hidden=(RUNS,))
    set_blas_threads(1)
    for n, seeds in {500: 2}.items() if options.quick else SEEDS.items():
        for name in CASES:
            if (path := data_set(options.data, name)) is None:
                return
            keys: list[Row] = [{"set": name, "n": n, "m": m} for m in counts(n)]
            sizes = [
                key["m"] for key in keys if asked(key, options.only) and not tables.has(RUNS, **key)
            ]
            split = labels.load(path) if name in labels.SETTINGS else load(path)
            for m in sizes if len(split.X) >= n else []:
                tables[RUNS].extend(runs(name, subsample(split.X.astype(np.float64), n), m, seeds))
                tables.replace(RATIOS, ratios(tables[RUNS]))
                print(tables[RATIOS][-1], flush=True)
