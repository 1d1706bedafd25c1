"""The full grid of `search`: every kernel, lengthscale and penalty fitted anew, as users do it."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.model_selection import PredefinedSplit

from gramian import KernelRidge, KernelRidgeClassifier

from ..lib.results import Row
from .accuracy_fit import error
from .accuracy_sets import Table

KERNELS = {"gaussian": 1, "laplacian": 4, "l1_laplacian": 4}
"""With the multiple of the median distance that the lengthscales below are multiples of."""

MULTIPLES, PENALTIES = (0.125, 0.25, 0.5, 1.0, 2.0), (1e-3, 1e-5, 1e-7, 1e-9)
FIT_ROWS, HELD_ROWS = 4000, 1000
MEDIAN_ROWS = 1000


@dataclass(frozen=True)
class Cut:
    """Training rows of a table, first those to fit, then those to choose with."""

    table: Table
    fit: int

    @classmethod
    def of(cls, table: Table, seed: int, quick: bool) -> Cut:
        """Take random rows, one of five to choose with, few of them if it has to be quick."""
        most = 200 if quick else FIT_ROWS + HELD_ROWS
        take = np.random.default_rng(seed).permutation(len(table.y))[:most]
        return cls(replace(table, X=table.X[take], y=table.y[take]), 4 * len(take) // 5)

    def held_out(self) -> Table:
        """Return the table with the rows to choose with for test rows."""
        X, y, n = self.table.X, self.table.y, self.fit
        return Table(X[:n], y[:n], X[n:], y[n:], self.table.labels)

    def splitter(self) -> PredefinedSplit:
        return PredefinedSplit(np.repeat([-1, 0], [self.fit, len(self.table.y) - self.fit]))


@dataclass(frozen=True)
class Found:
    """The cell of least held-out error, that error, and what the whole grid has cost."""

    settings: dict[str, Any]
    error: float
    evaluations: int


def grid(cut: Cut, seed: int) -> Found:
    """Fit each cell with all rows as centers; the held-out rows are predicted."""
    table, errors, evaluations = cut.held_out(), {}, 0
    medians = median_distances(table.X, seed)
    for kernel, multiple, penalty in product(KERNELS, MULTIPLES, PENALTIES):
        settings = {
            "kernel": kernel, "lengthscale": multiple * KERNELS[kernel] * medians[kernel],
            "penalty": penalty,
        }  # fmt: skip
        model = plain(table.labels, seed, **settings)
        with warnings.catch_warnings(), contextlib.suppress(np.linalg.LinAlgError, RuntimeError):
            warnings.simplefilter("ignore")  # of cells that are nearly singular
            model.fit(table.X, table.y)
            evaluations += model.history_[-1]["kernel_evaluations"]
            evaluations += len(table.y_test) * len(table.y)
            errors[kernel, multiple, penalty] = error(model.predict(table.X_test), table)
    best = min(errors, key=lambda cell: np.nan_to_num(errors[cell], nan=np.inf))
    kernel, multiple, penalty = best
    chosen = {"kernel": kernel, "multiple": multiple, "penalty": penalty}
    return Found(chosen, errors[best], evaluations)


def plain(labels: bool, seed: int, **settings: Any) -> Any:
    """Return an estimator without a search, with all rows as centers."""
    model = KernelRidgeClassifier if labels else KernelRidge
    return model(landmarks=None, solver="direct", random_state=seed, **settings)


def median_distances(X: np.ndarray, seed: int) -> dict[str, float]:
    """Return the median distance within some standardized rows, by kernel."""
    part = X[np.random.default_rng(seed).permutation(len(X))[:MEDIAN_ROWS]].astype(np.float64)
    scale = X.std(axis=0, dtype=np.float64)
    part = part / np.where(scale > 0, scale, 1)
    euclid, l1 = (float(np.median(pdist(part, name))) for name in ("euclidean", "cityblock"))
    return {"gaussian": euclid, "laplacian": euclid, "l1_laplacian": l1}


def cell_row(found: Found) -> Row:
    """Describe the best cell on one line."""
    return {"best cell": ", ".join(f"{v:g}" if v != str(v) else v for v in found.settings.values())}
