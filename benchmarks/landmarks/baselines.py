"""FALKON beside divide-and-conquer and random features with ridge: error, AUC, CPU seconds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg
from sklearn.metrics import roc_auc_score

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.approximations import FourierMap
from gramian.data import as_rows
from gramian.kernels import Kernel
from gramian.operators import KernelOperator
from gramian.paths.closed_form import direct_path
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Falkon, max_iterations, solve

from ..lib.results import Row
from ..lib.sets import Split, data_set, held_out, load
from ..lib.tables import Tables, asked

RESULTS = "Test error and AUC"
SETS = ("higgs_11k", "nycflights", "beijing_pm25")
CLASSES = ("higgs_11k",)
ROWS = 20_000
PENALTIES = tuple(10.0**-k for k in range(2, 9))
ITERATIONS, SEED = 20, 0

NOTES = f"""\
Up to {ROWS:,} training rows, standardized float32; Gaussian kernel with the median distance as
lengthscale. Penalty: the best of {len(PENALTIES)} by the squared error of held-out rows, for each
method and size by itself. RMSE of the test rows; on higgs_11k of the labels 0 and 1, with AUC and
percent of wrong labels. CPU seconds of one fit with that penalty, and of predicting the test rows;
one thread, other work on the machine.

- FALKON: `gramian.solvers.Falkon`, {ITERATIONS} iterations, so many uniform landmarks.
- divide and conquer: kernel ridge regression of each of so many random parts, solved directly, the
  mean of their predictions (Zhang, Duchi, Wainwright, JMLR 2015); one penalty per row for all
  parts, as there.
- random features: ridge on so many Fourier features (Rahimi, Recht 2007), the normal equations in
  float64.
- 1 part is the kernel ridge regression of all rows that the others approximate; above
  10,000 rows it is left out."""

Predictor = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Method:
    """A way to fit, with its size; gives predictors for penalties, one after the other."""

    name: str
    size: int
    path: Callable[[Kernel, np.ndarray, np.ndarray, int, Sequence[float]], Iterator[Predictor]]


def falkon(
    kernel: Kernel, X: np.ndarray, y: np.ndarray, size: int, penalties: Sequence[float]
) -> Iterator[Predictor]:
    Z = X[RandomStream(SEED).permutation(len(X))[:size]]
    K = KernelOperator(kernel, as_rows(X), as_rows(Z))
    for penalty in penalties:
        problem = NystromProblem(K, y, penalty)
        rng = RandomStream(SEED)
        coef = solve(problem, Falkon(), stop=[max_iterations(ITERATIONS)], rng=rng).state.coef
        yield lambda A, coef=coef: KernelOperator(kernel, as_rows(A), as_rows(Z)) @ coef


def divided(
    kernel: Kernel, X: np.ndarray, y: np.ndarray, size: int, penalties: Sequence[float]
) -> Iterator[Predictor]:
    order = RandomStream(SEED).permutation(len(X))
    parts = xp.array_split(order, size)
    paths = []
    for part in parts:
        rows = as_rows(X[part])
        paths.append(
            direct_path(FullProblem(KernelOperator(kernel, rows, rows), y[part], 0.0), penalties)
        )
    for found in zip(*paths, strict=False):
        coefs = [coef for _, coef in found]
        yield (
            lambda A, coefs=coefs: (
                sum(
                    KernelOperator(kernel, as_rows(A), as_rows(X[part])) @ coef
                    for part, coef in zip(parts, coefs, strict=True)
                )
                / len(parts)
            )
        )


def fourier(
    kernel: Kernel, X: np.ndarray, y: np.ndarray, size: int, penalties: Sequence[float]
) -> Iterator[Predictor]:
    rng = RandomStream(SEED)
    features = FourierMap.build(kernel, X.shape[1], size, rng=rng)
    gram, rhs = (
        xp.to_float64(np.zeros((size, size), np.float32)),
        xp.to_float64(np.zeros((size, 1), np.float32)),
    )
    for rows in xp.split(np.arange(len(X)), 2000):
        F = xp.to_float64(features.apply(X[rows]))
        xp.addmm_(gram, F.T, F)
        rhs += F.T @ xp.to_float64(y[rows])
    for penalty in penalties:
        A = xp.copy(gram)
        xp.add_(xp.diagonal(A), len(X) * penalty)
        w = scipy.linalg.cho_solve((np.linalg.cholesky(A), True), rhs)
        yield lambda A, w=w: np.concatenate(
            [xp.to_float64(features.apply(b)) @ w for b in xp.split(A, 2000)]
        )


METHODS = (
    *(Method("FALKON", m, falkon) for m in (500, 1000, 2000)),
    *(Method("divide and conquer", q, divided) for q in (1, 8, 32, 128)),
    *(Method("random features", s, fourier) for s in (1000, 2000, 4000)),
)


def measured(method: Method, whole: Split, rows: int, classes: bool) -> Row:
    """Choose the penalty, fit once with it alone, and look at the test rows."""
    split = held_out(whole, rows)
    X, held, test = (x for x in (split.X, split.X_test, whole.X_test))
    y, y_held = (v[:, None] for v in (split.y, split.y_test))
    kernel = kernels.make("gaussian", lengthscale="median").resolve(X[:1000])
    path = zip(PENALTIES, method.path(kernel, X, y, method.size, PENALTIES), strict=False)
    errors = {p: float(np.square(xp.to_float64(f(held)) - y_held).mean()) for p, f in path}
    penalty = min(errors, key=lambda p: errors[p])
    began = time.process_time()
    fitted = next(iter(method.path(kernel, X, y, method.size, [penalty])))
    fit = time.process_time() - began
    values = xp.to_float64(fitted(test))[:, 0]
    seconds = time.process_time() - began - fit
    row: Row = {
        "penalty": f"{penalty:.0e}",
        "RMSE": float(np.sqrt(((values - whole.y_test) ** 2).mean())),
    }
    if classes:
        truth = whole.y_test > 0  # labels less their mean
        row |= {
            "AUC": float(roc_auc_score(truth, values)),
            "wrong, %": 100 * float((truth != (values > 0)).mean()),
        }
    return row | {"fit CPU s": fit, "predict CPU s": seconds}


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("baselines", (RESULTS,), NOTES, options)
    for name in SETS:
        path: Path | None = data_set(options.data, name)
        if path is None:
            return
        whole = load(path)
        rows = 1000 if options.quick else ROWS
        for method in METHODS:
            key = {"set": name, "method": method.name, "size": method.size}
            too_many = (
                method.name == "divide and conquer"
                and method.size == 1
                and min(rows, len(whole.X)) > 10_000
            )
            if too_many or tables.has(RESULTS, **key) or not asked(key, options.only):
                continue
            tables.add(RESULTS, key | measured(method, whole, rows, name in CLASSES))
