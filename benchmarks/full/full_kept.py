"""Entries of K that are kept beside entries that are evaluated anew: products, and whole fits."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem, Problem
from gramian.solvers import (
    PCG,
    ASkotch,
    Direct,
    EigenPro2,
    Falkon,
    Solver,
    max_iterations,
    solve,
    tolerance,
)

from ..lib.results import Row
from ..lib.sets import data_set
from ..lib.tables import Tables, asked
from ..lib.timing import interleaved

PRODUCTS, FITS = "Products", "Fits"
FEATURES = (4, 10, 20, 48, 90, 435, 784)
ROWS, LANDMARK_ROWS, LANDMARKS, BLOCK = 10_000, 50_000, 2000, 1000
FEW = 20
"""Iterations in which fits with and without entries that are kept are compared."""

WIDE = 1 << 34
"""Bytes for entries: more than any of these takes."""

NOTES = f"""\
CPU seconds of one thread, the least of three that take turns; float32 rows.

- {PRODUCTS}: K v of {ROWS:,} rows with themselves, with the lower triangle of K kept and without;
  K' (K v) of {LANDMARK_ROWS:,} rows and {LANDMARKS:,} landmarks; {BLOCK:,} rows of K times a
  vector, as ASkotch and EigenPro 2 take them, K of {ROWS:,} rows kept. "first": to evaluate them.
- {FITS}: molecules and pictures, the setup and {FEW} iterations (epochs: 10) with entries computed
  anew and kept, and the whole fit with entries that are kept, to a tolerance; "off": the difference
  of coefficients after {FEW} iterations, over their norm; "direct": the same problem factorised.
- `solver="auto"` keeps to 10,000 rows for `direct`: beyond, PCG was faster in each case measured,
  to a residual of 1e-3. 12,000 rows of beijing_pm25 (l1, half a median), rows times penalty 1e-1,
  1e-3, 1e-4, 1e-6: 3.9, 5.1, 8.9, 8.2 s, direct 13.5 to 13.8; 11,000 of qm9_15k (l1, a median),
  1e-4, entries kept: 9.5 s, direct 14.4.
- Other processes shared the machine."""


@dataclass(frozen=True)
class Fit:
    """A problem and a solver, which keeps no entries as it stands here."""

    name: str
    kernel: kernels.Kernel
    rows: int
    penalty: float
    solver: Callable[[int], Solver[Any, Any]]
    landmarks: int | None = None
    tol: float = 1e-4
    iterations: int = 300


CASES = (
    Fit("qm9_15k", kernels.L1Laplacian(5120.0), 4000, 1e-8, lambda b: PCG(store_bytes=b)),
    Fit("qm9_15k", kernels.L1Laplacian(5120.0), 4000, 1e-5, lambda b: PCG(store_bytes=b)),
    Fit(
        "qm9_15k", kernels.L1Laplacian(5120.0), 11_000, 1e-7, lambda b: Falkon(store_bytes=b), 2000
    ),
    Fit(
        "fashion_mnist", kernels.Gaussian(28.0), 20_000, 1e-6, lambda b: Falkon(store_bytes=b), 2000
    ),
    Fit(
        "qm9_15k", kernels.L1Laplacian(5120.0), 8000, 1e-5, lambda b: ASkotch(store_bytes=b),
        tol=1e-2,
    ),
    Fit(
        "qm9_15k", kernels.L1Laplacian(5120.0), 8000, 1e-5, lambda b: EigenPro2(store_bytes=b),
        iterations=10,
    ),
)  # fmt: skip


def products(d: int, kernel: kernels.Kernel) -> Iterator[Row]:
    """Yield the seconds of each kind of product."""
    rng = RandomStream(0)
    X = as_rows(rng.standard_normal((ROWS, d), np.float32))
    K = KernelOperator(kernel, X, X, memory_bytes=WIDE)
    for t in (1, 7):
        v = rng.standard_normal((ROWS, t), np.float32)
        yield {"product": "K v", "t": t} | _both(K, v, lambda K, v: K @ v, whole=False)
    some, v = rng.permutation(ROWS)[:BLOCK], rng.standard_normal((ROWS, 1), np.float32)
    yield {"product": f"{BLOCK} rows", "t": 1} | _both(K, v, lambda K, v: K[some] @ v)
    X = as_rows(rng.standard_normal((LANDMARK_ROWS, d), np.float32))
    K = KernelOperator(kernel, X, rng.standard_normal((LANDMARKS, d), np.float32))
    for t in (1, 7):
        v = rng.standard_normal((LANDMARKS, t), np.float64)
        yield {"product": "K'K v", "t": t} | _both(K, v, lambda K, v: K.normal(v))


def _both(
    K: KernelOperator,
    v: np.ndarray,
    work: Callable[[KernelOperator, np.ndarray], np.ndarray],
    *,
    whole: bool = True,
) -> Row:
    start = time.process_time()
    kept = K.keeping(WIDE, whole=whole)
    first = time.process_time() - start
    exact = work(K.double(), xp.to_float64(v))
    off = float(xp.norm(xp.to_float64(work(kept, v)) - exact) / xp.norm(exact))
    took = interleaved({"anew": lambda: work(K, v), "kept": lambda: work(kept, v)}, rounds=3)
    anew, read = took["anew"].cpu, took["kept"].cpu
    return {"anew": anew, "kept": read, "times": anew / read, "first": first, "error": f"{off:.0e}"}


def problem(case: Fit, path: Path) -> Problem:
    table = pq.read_table(path)
    names = [c for c in table.column_names if c.startswith(("cm_", "p")) and c[-1].isdigit()]
    train = np.flatnonzero(table["split"].to_numpy() == 0)
    train = train[np.random.default_rng(0).permutation(len(train))[: case.rows]]
    X = np.stack([table[c].to_numpy().astype(np.float32)[train] for c in names], axis=1)
    y = table["target"].to_numpy()[train].astype(np.float64)
    if case.name == "fashion_mnist":
        X, y = (X - X.mean(axis=0)) / X.std(axis=0).clip(1e-3), np.eye(10)[y.astype(int)]
    y = (y - y.mean(axis=0)).reshape(len(y), -1)
    rows = as_rows(X)
    K = KernelOperator(case.kernel, rows, rows, memory_bytes=1 << 31)
    if case.landmarks is None:
        return FullProblem(K, y, case.penalty)
    return NystromProblem.at(K, np.arange(case.landmarks), y, case.penalty)


def fitted(case: Fit, path: Path) -> Row:
    """Return the seconds of a fit with entries that are kept, and without."""
    found: Row = {}
    coefs = []
    for name, most in (("anew", 0), ("kept", WIDE)):
        one, start = problem(case, path), time.process_time()
        stop = [max_iterations(min(FEW, case.iterations))]
        coefs.append(solve(one, case.solver(most), stop=stop).state.coef)
        found[name] = time.process_time() - start
    found["times"] = found["anew"] / found["kept"]
    found["off"] = f"{float((coefs[1] - coefs[0]).norm() / coefs[0].norm()):.0e}"
    one, start = problem(case, path), time.process_time()
    stop = [tolerance(case.tol), max_iterations(case.iterations)]
    result = solve(one, case.solver(WIDE), stop=stop)
    found["whole fit, kept"] = time.process_time() - start
    found |= {"iterations": result.state.iteration, "end": result.reason}
    if case.landmarks is None:
        start = time.process_time()
        solve(problem(case, path), Direct())
        found["direct"] = time.process_time() - start
    return found


def main(options: argparse.Namespace) -> None:
    tables = Tables("full_kept", (PRODUCTS, FITS), NOTES, options)
    set_blas_threads(1)
    for d in FEATURES[:1] if options.quick else FEATURES:
        for name, kernel in (
            ("gaussian", kernels.Gaussian(d**0.5)), ("l1_laplacian", kernels.L1Laplacian(float(d))),
        ):  # fmt: skip
            about = {"kernel": name, "d": d}
            if not tables.has(PRODUCTS, **about):
                for row in products(d, kernel):
                    tables.add(PRODUCTS, about | row)
    for case in [] if options.quick else CASES:
        solver = type(case.solver(0)).__name__
        about = {"set": case.name, "n": case.rows, "m": case.landmarks or "all", "solver": solver}
        about |= {"penalty": case.penalty}
        path = data_set(options.data, case.name)
        if path is None or not asked(about, options.only) or tables.has(FITS, **about):
            continue
        tables.add(FITS, about | fitted(case, path))
