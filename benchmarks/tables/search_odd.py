"""Tables that are no tables of a textbook: what `search` must not fail on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .accuracy_sets import Table

ROWS, TEST_ROWS = 1500, 1000
FEW = 30


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 0.5 * X[:, -1]


def near_duplicates(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a hundred points, a millionth apart."""
    X = rng.standard_normal((100, 4))[rng.integers(100, size=n)]
    X += 1e-6 * rng.standard_normal(X.shape)
    return X, smooth(X) + 0.1 * rng.standard_normal(n)


def constant_columns(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, 6))
    X[:, 1:4] = 7
    return X, smooth(X) + 0.1 * rng.standard_normal(n)


def one_feature(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-5, 5, (n, 1))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def one_hot_only(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return three categories of five levels, as columns of zeros and ones."""
    levels = rng.integers(5, size=(n, 3))
    X = np.concatenate([np.eye(5)[levels[:, j]] for j in range(3)], axis=1)
    return X, levels[:, 0] - levels[:, 1] * (levels[:, 2] > 2) + 0.1 * rng.standard_normal(n)


def heavy_tails(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Cauchy features, and a target with noise of two degrees of freedom."""
    X = rng.standard_cauchy((n, 5))
    return X, np.tanh(X[:, 0]) + np.sign(X[:, 1]) + 0.3 * rng.standard_t(2, n)


def constant_target(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((n, 3)), np.full(n, 5.0)


def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((n, 10)), rng.standard_normal(n)


Maker = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
TABLES: dict[str, tuple[Maker, int]] = {
    "near-duplicates": (near_duplicates, ROWS),
    "constant columns": (constant_columns, ROWS),
    "one feature": (one_feature, ROWS),
    "30 rows": (constant_columns, FEW),
    "one-hot only": (one_hot_only, ROWS),
    "heavy tails": (heavy_tails, ROWS),
    "constant target": (constant_target, ROWS),
    "noise only": (noise, ROWS),
}
"""By name: what makes rows and targets, and how many training rows there are."""


def odd(name: str, labels: bool, seed: int) -> Table:
    """Return a table; labels are whether the target is above its median."""
    make, n = TABLES[name]
    X, y = make(np.random.default_rng(seed), n + TEST_ROWS)
    y = (y > np.median(y)).astype(np.int64) if labels else y
    return Table(X[:n].astype(np.float32), y[:n], X[n:].astype(np.float32), y[n:], labels)
