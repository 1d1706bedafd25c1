"""ASkotch on up to 10^8 generated rows: memory and seconds of an iteration, and of a pass."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from gramian._arrays import RandomStream
from gramian.data import RowSource
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import ASkotch

from ..lib.process import THREADS, bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import Row
from ..lib.tables import Tables
from ..lib.timing import clock

TITLE = "Generated rows"
FEATURES, BLOCK, PENALTY, TEST = 9, 100, 1e-8, 2000
"""As many features as the rides of Taxi have."""

ITERATIONS = {20_000: 200, 1_000_000: 10, 10_000_000: 4, 100_000_000: 2}
"""Iterations by the number of rows: a pass over all pairs with the fewest."""

PASS_BYTES = 1 << 28
NOTES = f"""\
n rows of {FEATURES} uniform float32 features of deviation 1, generated from their row numbers each
time they are read, a smooth target with noise of deviation 0.1, Gaussian kernel, lengthscale 3,
penalty {PENALTY:g}. `ASkotch(block={BLOCK:,})`, all n rows as centers; {PASS_BYTES >> 20} MB for
blocks. One thread, each n in a process of its own.

- MB: peak resident memory above that before the problem; vectors: targets and coefficients.
- start: CPU seconds of the setup and the first iteration; iteration: the mean of the others,
  generation of rows included, which takes `generation` of it.
- a pass is n / {BLOCK:,} iterations; it was run with {min(ITERATIONS):,} rows alone, where the
  relative residual (of the last pass) and the RMSE of {TEST:,} fresh rows are measured after it."""


class GeneratedRows(RowSource):
    """Uniform rows with mean 0 and deviation 1, computed from their numbers; nothing is kept.

    Parameters
    ----------
    n, d : int
    start : int, default=0
        Number of the first row.
    """

    def __init__(self, n: int, d: int, start: int = 0) -> None:
        self.shape, self.dtype, self._start = (n, d), np.dtype(np.float32), start

    def blocks(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        n = self.shape[0]
        for start in range(0, n, size):
            part = slice(start, min(start + size, n))
            yield part, self.take(np.arange(part.start, part.stop))

    def take(self, index: np.ndarray) -> np.ndarray:
        d = self.shape[1]
        number = (np.asarray(index, np.uint64) + np.uint64(self._start))[:, None] * np.uint64(d)
        bits = mixed(number + np.arange(d, dtype=np.uint64))
        uniform = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
        return (uniform - np.float32(0.5)) * np.float32(12**0.5)


def mixed(number: np.ndarray) -> np.ndarray:
    """Return random bits of each number, by the mixing function of SplitMix64 (Steele 2014)."""
    z = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits: np.ndarray = z ^ (z >> np.uint64(31))
    return bits


def smooth(X: np.ndarray) -> np.ndarray:
    values: np.ndarray = np.sin(X[:, 0] + X[:, 1]) + np.cos(X[:, 2] * X[:, 3])
    return values + 0.5 * X[:, 4] * X[:, 5]


def targets_of(rows: RowSource) -> np.ndarray:
    y = np.empty((rows.shape[0], 1))
    rng = np.random.default_rng(0)
    for part, X in rows.blocks(1 << 20):
        y[part, 0] = smooth(X) + 0.1 * rng.standard_normal(len(X))
    y -= y.mean()
    return y


def measured(n: int, iterations: int) -> Row:
    """Return memory and seconds of some iterations."""
    before = bytes_before_work()
    rows = GeneratedRows(n, FEATURES)
    K = KernelOperator(Gaussian(3.0), rows, rows, memory_bytes=PASS_BYTES)
    problem = FullProblem(K, targets_of(rows), PENALTY)
    states = ASkotch(block=BLOCK).iterate(problem, rng=RandomStream(0))
    with clock() as start:
        next(states)
        state = next(states)
    with clock() as others:
        for _ in range(iterations - 1):
            state = next(states)
    with clock() as generation:
        for _ in rows.blocks(1 << 16):
            pass
    row: Row = {"n": n, "iterations": iterations, "MB": round((peak_bytes() - before) / 1e6)}
    row |= {"vectors, MB": round(16 * n / 1e6), "bytes a row": round(1e6 * row["MB"] / n)}
    row |= {"start, CPU s": start.cpu, "iteration, CPU s": others.cpu / (iterations - 1)}
    row |= {"generation, CPU s": generation.cpu, "evaluations": f"{K.meter.evaluations:.2e}"}
    return row | (finish(K, state) if iterations * BLOCK >= n else {})


def finish(K: KernelOperator, state: Any) -> Row:
    """Return the residual after a pass, and the error of fresh rows over their deviation."""
    fresh = GeneratedRows(TEST, FEATURES, K.shape[0])
    truth = smooth(fresh.take(np.arange(TEST)))
    fit = (KernelOperator(K.kernel, fresh, K.rows, memory_bytes=PASS_BYTES) @ state.coef)[:, 0]
    off = fit - truth
    row: Row = {"residual": float(state.metrics["rel_residual"])}
    return row | {"RMSE / deviation": float((off - off.mean()).std() / truth.std())}


def main(options: argparse.Namespace) -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    tables = Tables("full_generated", (TITLE,), NOTES, options)
    for n, iterations in {5000: 5}.items() if options.quick else ITERATIONS.items():
        if not tables.has(TITLE, n=n):
            tables.add(TITLE, in_fresh_process(measured, n, iterations))
