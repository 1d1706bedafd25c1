"""Rows of data sets, and rows of results that other benchmarks have measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..lib import results
from ..lib.results import Row
from ..lib.sets import load
from .item import Scale


def stored_rows(benchmark: str, title: str, **key: object) -> list[Row]:
    """Return the rows of a table in ``benchmarks/results`` that have these values."""
    rows = results.read(benchmark)[title]
    return [row for row in rows if key.items() <= row.items()]


def stored_row(benchmark: str, title: str, **key: object) -> Row:
    """Return the only such row."""
    (row,) = stored_rows(benchmark, title, **key)
    return row


def sample_rows(
    scale: Scale, name: str, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, str]:
    """Return training and test rows and targets in float64, and the name of the set.

    Rows are standardised. If the folder has no such set, rows of a mixture of clusters replace it.
    """
    path = Path(scale.data) / f"{name}.parquet"
    rng = np.random.default_rng(0)
    if not path.is_file():
        return (*generated_rows(n, rng), "generated clusters")
    split = load(path, "float64")
    train, test = (rng.permutation(len(x))[:n] for x in (split.X, split.X_test))
    arrays = (split.X[train], split.y[train], split.X_test[test], split.y_test[test])
    X, y, X_test, y_test = (np.ascontiguousarray(a) for a in arrays)
    return X, y[:, None], X_test, y_test[:, None], name


def generated_rows(
    n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return n training and n test rows of eight features in clusters of very unequal size."""
    sizes = np.array([0.7, 0.2, 0.08, 0.02])
    centers = 4 * rng.standard_normal((len(sizes), 8))
    X = centers[rng.choice(len(sizes), 2 * n, p=sizes)] + rng.standard_normal((2 * n, 8))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(2 * n)
    whole = X, (y - y.mean())[:, None]
    return whole[0][:n], whole[1][:n], whole[0][n:], whole[1][n:]
