"""FALKON with thousands of outputs on fashion-MNIST: error, CPU seconds, memory."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidgeClassifier

from ..lib.images import pixels
from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import Row
from ..lib.sets import Split, data_set
from ..lib.tables import Tables

FITS = "Fits"
RUNS = (
    (10, 2000, "1GB"),
    (100, 2000, "1GB"),
    (1000, 2000, "1GB"),
    (2000, 2000, "2GB"),
    (4000, 2000, "4GB"),
)
"""Classes, landmarks, memory limit."""

DIRECTIONS, LENGTHSCALE, PENALTY, ITERATIONS = 30, 5.0, 1e-6, 10

NOTES = f"""\
fashion-MNIST, 60,000 rows of 784 pixels between 0 and 1; synthetic classes: which of k random
training images is the nearest in {DIRECTIONS} random directions of the pixels.
`KernelRidgeClassifier("gaussian", lengthscale={LENGTHSCALE:g}, penalty={PENALTY:g},
solver="falkon", max_iter={ITERATIONS})`: one output for each class. A process of its own and one
thread each; CPU seconds of the fit and of 10,000 predictions; peak: largest resident set of the fit
above what the process held before it, which is libraries, rows and labels; targets: the codes of
all classes, float32, within the peak."""


def labelled(split: Split, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of training and test rows."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(split.X.shape[1], DIRECTIONS)).astype(np.float32)
    P = split.X @ W
    nearest_to = P[rng.permutation(len(P))[:k]]
    half = (nearest_to**2).sum(axis=1) / 2

    def nearest(Q: np.ndarray) -> np.ndarray:
        parts = np.array_split(Q, max(1, len(Q) // 5000))
        return np.concatenate([(part @ nearest_to.T - half).argmax(axis=1) for part in parts])

    return nearest(P), nearest(split.X_test @ W)


def fitted(path: Path, k: int, m: int, limit: str, rows: int | None) -> Row:
    set_blas_threads(1)
    split = pixels(path, rows)
    y, y_test = labelled(split, k)
    model = KernelRidgeClassifier(
        "gaussian", lengthscale=LENGTHSCALE, penalty=PENALTY, landmarks=m, solver="falkon",
        max_iter=ITERATIONS, memory_limit=limit, random_state=0,
    )  # fmt: skip
    before, began = bytes_before_work(), time.process_time()
    model.fit(split.X, y)
    fit, peak = time.process_time() - began, peak_bytes()
    began = time.process_time()
    right = float((model.predict(split.X_test) == y_test).mean())
    outputs = len(model.classes_)
    row: Row = {"outputs": outputs, "right, %": 100 * right, "fit CPU s": fit}
    row |= {"predict CPU s": time.process_time() - began, "MB before": before / 1e6}
    return row | {"peak MB above it": (peak - before) / 1e6, "targets MB": len(y) * outputs / 25e4}


def main(options: argparse.Namespace) -> None:
    tables = Tables("many_outputs", (FITS,), NOTES, options)
    if (path := data_set(options.data, "fashion_mnist")) is None:
        return
    for k, m, limit in RUNS:
        key = {"classes": k, "landmarks": m, "limit": limit}
        if tables.has(FITS, **key):
            continue
        k, m, rows = (k // 10, m // 10, 3000) if options.quick else (k, m, None)
        tables.add(FITS, key | in_fresh_process(fitted, path, k, m, limit, rows))
