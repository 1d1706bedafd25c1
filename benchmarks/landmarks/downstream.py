"""Kernel PCA, kernel k-means, and k-means centers for regression, on fashion-MNIST."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelKMeans, KernelPCA, KernelRidgeClassifier, kernels
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.landmarks import KMeans, Selector, Uniform
from gramian.operators import KernelOperator

from ..lib.images import BANDWIDTH, pixels
from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import Row, shown, write
from ..lib.sets import Split, data_set
from ..lib.timing import clock
from .selectors import Timed

Tables = dict[str, list[Row]]
TABLES = ("Centers", "Other bandwidth", "Kernel PCA", "Kernel k-means")
PAPER = {
    "kmeans": {100: 78.66, 1000: 85.55, 10_000: 88.13},
    "uniform": {100: 76.24, 1000: 84.59, 10_000: 87.84},
}
CENTERS: dict[str, Callable[[int], Selector]] = {"uniform": Uniform, "kmeans": KMeans}
COMPONENTS = 20
CLUSTERS = 10
STARTS = 5
EXACT_ROWS = 10_000
NOTES = f"""\
fashion-MNIST, pixels between 0 and 1, float32; 60,000 training rows of 784 features, 10,000 test
rows. One thread. CPU: seconds of all that is named, reading not included.

- Centers: percent of right test labels. `KernelRidgeClassifier(kernel="laplacian",
  lengthscale={BANDWIDTH:.0f}, penalty=1e-8, landmarks=KMeans(p) or Uniform(p))`, Falkon, 20
  iterations (p = 10,000: 15); paper: table 2 of EigenPro 3 (arXiv 2302.02605), whose text does not
  give the bandwidth; {BANDWIDTH:.0f} is that of the authors' code. ±: half the range over seeds.
- Kernel PCA: {COMPONENTS} components, Gaussian kernel of the median lengthscale, each fit with
  `transform` of its rows in a process of its own. MB: peak of its resident set, data and libraries
  included. Explained: share of the variance in the kernel's space. Agreement: mean cosine of the
  principal angles between the exact and the approximate components on the same rows.
  scikit-learn's "arpack" is exact and several times as fast as its default for 20 components.
- Kernel k-means: {CLUSTERS} clusters, best of {STARTS} starts, same kernel. Exact: Lloyd's
  algorithm on the dense kernel matrix, from k-means++. Objective: sum of the squared distances in
  the space of the exact kernel, per row. Rand: adjusted Rand index against the classes."""


# --- centers for regression ------------------------------------------------------------------


def accuracy(split: Split, name: str, p: int, bandwidth: float, seed: int) -> Row:
    timed = Timed(CENTERS[name](p), p)
    est = KernelRidgeClassifier(
        standardize=False,
        kernel="laplacian",
        lengthscale=bandwidth,
        penalty=1e-8,
        landmarks=timed,
        max_iter=20 if p < 10_000 else 15,
        tol=1e-4,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with clock() as fit:
            est.fit(split.X, split.y)
    row = {"accuracy": 100 * float((est.predict(split.X_test) == split.y_test).mean())}
    row |= {"selection": timed.seconds[0].cpu, "fit": fit.cpu, "iterations": est.n_iter_}
    return row | {"residual": est.history_[-1]["rel_residual"]}


def centers_row(split: Split, name: str, p: int, bandwidth: float, seeds: tuple[int, ...]) -> Row:
    runs = [accuracy(split, name, p, bandwidth, seed) for seed in seeds]
    values = [run["accuracy"] for run in runs]
    row = {"p": f"{p:,}", "centers": name, "bandwidth": bandwidth, "seeds": len(seeds)}
    row |= {"accuracy": f"{np.mean(values):.2f}", "±": (max(values) - min(values)) / 2}
    row |= {"paper": f"{PAPER[name].get(p, 0):.2f}"}
    means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    del means["accuracy"]
    return shown(row | means)


# --- kernel PCA ------------------------------------------------------------------------------


def lengthscale(X: np.ndarray) -> float:
    """Return the median distance, the same for all methods and sizes."""
    sample = X[np.random.default_rng(0).permutation(len(X))[:1000]]
    return float(kernels.Gaussian("median").resolve(sample).lengthscale)


def _finished(row: Row, before: int, seconds: Any) -> Row:
    peak = peak_bytes()
    return row | {"CPU": seconds.cpu, "MB": peak / 1e6, "MB more than data": (peak - before) / 1e6}


def approximate_pca(path: Path, rows: int | None, m: int, scale: float) -> Row:
    set_blas_threads(1)
    split, before = pixels(path, rows), bytes_before_work()
    pca = KernelPCA(COMPONENTS, lengthscale=scale, landmarks=m, random_state=0)
    with threadpool_limits(1), clock() as seconds:
        scores = pca.fit(split.X).transform(split.X)
    row = {"n": len(split.X), "method": "gramian", "m": m, "scores": scores}
    row["explained"] = float(pca.explained_variance_ratio_.sum())
    return _finished(row, before, seconds)


def exact_pca(path: Path, rows: int, solver: str, scale: float) -> Row:
    set_blas_threads(1)
    split, before = pixels(path, rows), bytes_before_work()
    gamma = 0.5 / scale**2
    pca = decomposition.KernelPCA(
        COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0
    )
    with threadpool_limits(1), clock() as seconds:
        scores = pca.fit_transform(split.X)
    row = {"n": len(split.X), "method": f"scikit-learn, {solver}", "scores": scores}
    row = _finished(row, before, seconds)
    # the kernel is one on the diagonal, so that the variance is n less the mean of the matrix
    inside = float(rbf_kernel(split.X, gamma=gamma).mean(dtype=np.float64))
    variance = len(split.X) * (1 - inside)
    return row | {"explained": float(pca.eigenvalues_.sum()) / variance}


def agreement(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mean cosine of the principal angles between two sets of components."""
    bases = [
        np.linalg.qr(x.astype(np.float64) - x.mean(axis=0, dtype=np.float64))[0] for x in (a, b)
    ]
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).mean())


def pca_rows(
    path: Path, scale: float, small: int, sizes: tuple[int, ...], all_rows: Any
) -> list[Row]:
    exact = [in_fresh_process(exact_pca, path, small, solver, scale) for solver in ("arpack",)]
    rows = exact + [in_fresh_process(approximate_pca, path, small, m, scale) for m in sizes]
    reference = exact[0]["scores"]
    for row in rows:
        row["agreement"] = f"{agreement(reference, row.pop('scores')):.5f}"
        row["explained / exact"] = f"{row['explained'] / exact[0]['explained']:.5f}"
        shown(row)
    for m in sizes[1:]:
        row = in_fresh_process(approximate_pca, path, all_rows, m, scale)
        del row["scores"]
        rows.append(shown(row))
    return [{"m": None} | row for row in rows]


# --- kernel k-means --------------------------------------------------------------------------


def operator(X: np.ndarray, scale: float) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernels.Gaussian(scale), rows, rows)


def objective(X: np.ndarray, labels: np.ndarray, scale: float) -> float:
    """Return the mean squared distance from the centers in the space of the exact kernel."""
    members = xp.to_float64(np.eye(CLUSTERS, dtype=np.int64)[xp.cast(labels, np.int64)])
    inside = (members * (operator(X, scale) @ members)).sum(axis=0)
    return float(len(X) - (inside / members.sum(axis=0).clip(min=1)).sum()) / len(X)


def _quality(row: Row, split: Split, labels: np.ndarray, scale: float) -> Row:
    if len(labels) <= EXACT_ROWS:
        row["objective"] = objective(split.X, labels, scale)
    return row | {"rand": float(adjusted_rand_score(split.y, labels))}


def approximate_clusters(path: Path, rows: int | None, m: int, scale: float) -> Row:
    set_blas_threads(1)
    split, before = pixels(path, rows), bytes_before_work()
    est = KernelKMeans(CLUSTERS, lengthscale=scale, landmarks=m, n_init=STARTS, random_state=0)
    with threadpool_limits(1), clock() as seconds:
        est.fit(split.X)
    row = {"n": len(split.X), "method": "gramian", "m": m}
    return _quality(_finished(row, before, seconds), split, est.labels_, scale)


def exact_clusters(path: Path, rows: int, scale: float) -> Row:
    set_blas_threads(1)
    split, before = pixels(path, rows), bytes_before_work()
    with threadpool_limits(1), clock() as seconds:
        matrix = operator(split.X, scale).dense()
        rng = np.random.default_rng(0)
        found = [_lloyd(matrix, _spread(matrix, rng)) for _ in range(STARTS)]
        labels = min(found, key=lambda result: result[0])[1]
    row = {"n": len(split.X), "method": "dense kernel"}
    return _quality(_finished(row, before, seconds), split, labels, scale)


def _spread(K: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return labels by nearest of rows that k-means++ has chosen, greedily among four."""
    chosen = [int(rng.integers(len(K)))]
    nearest = xp.to_float64(2 - 2 * K[chosen[0]]).clip(min=0)
    while len(chosen) < CLUSTERS:
        p = nearest / nearest.sum()
        tried = rng.choice(len(K), 4, p=p / p.sum())
        closer = np.minimum(nearest, xp.to_float64(2 - 2 * K[tried]).clip(min=0))
        best = int(closer.sum(axis=1).argmin())
        chosen.append(int(tried[best]))
        nearest = closer[best]
    return K[:, chosen].argmax(axis=1)


def _lloyd(K: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    for _ in range(300):
        members = xp.cast(np.eye(CLUSTERS, dtype=np.int64)[labels], K.dtype)
        members = members / members.sum(axis=0).clip(min=1)
        to_center = K @ members
        distance = (members * to_center).sum(axis=0) - 2 * to_center
        before, (least, labels) = labels, distance.min(dim=1)
        if bool((labels == before).all()):
            break
    return float(xp.to_float64(least).sum()), labels


def cluster_rows(
    path: Path, scale: float, small: int, sizes: tuple[int, ...], all_rows: Any
) -> list[Row]:
    exact = in_fresh_process(exact_clusters, path, small, scale)
    rows = [exact] + [in_fresh_process(approximate_clusters, path, small, m, scale) for m in sizes]
    for row in rows:
        row["objective / exact"] = f"{row['objective'] / exact['objective']:.5f}"
        shown(row)
    rows += [
        shown(in_fresh_process(approximate_clusters, path, all_rows, m, scale)) for m in sizes[1:]
    ]
    return [{"m": None} | row for row in rows]


# --- all of it -------------------------------------------------------------------------------


def steps(path: Path, quick: bool) -> list[tuple[str, Callable[[], list[Row]]]]:
    """Return the tables and how to compute them, one after the other."""
    rows = 1500 if quick else None
    split = pixels(path, rows)
    scale, small = lengthscale(split.X), 1000 if quick else EXACT_ROWS
    sizes, seeds = ((50,), (0,)) if quick else ((500, 1000, 2000), (0, 1, 2))

    def centers(p: int, bandwidth: float, some: tuple[int, ...]) -> Callable[[], list[Row]]:
        return lambda: [centers_row(split, name, p, bandwidth, some) for name in CENTERS]

    work = [("Centers", centers(100, BANDWIDTH, seeds))]
    if not quick:
        work += [("Centers", centers(1000, BANDWIDTH, seeds))]
    work += [("Kernel PCA", lambda: pca_rows(path, scale, small, sizes, rows))]
    work += [("Kernel k-means", lambda: cluster_rows(path, scale, small, sizes, rows))]
    if not quick:
        work += [("Centers", centers(10_000, BANDWIDTH, seeds[:1]))]
        work += [("Other bandwidth", centers(p, 10.0, seeds[:1])) for p in (100, 1000)]
    return work


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables: Tables = {name: [] for name in TABLES}
    if (path := data_set(options.data, "fashion_mnist")) is None:
        return
    with threadpool_limits(1):
        for name, compute in steps(path, options.quick):
            tables[name] += compute()
            if not options.quick:
                write("downstream", {k: v for k, v in tables.items() if v}, NOTES)
