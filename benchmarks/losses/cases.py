"""Cases: rows of a real set and landmarks, as a problem of a kernel and as explicit features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from gramian import _arrays as xp
from gramian import kernels
from gramian.data import as_rows
from gramian.losses import Loss
from gramian.operators import KernelOperator
from gramian.problems import LossProblem, NystromProblem

from ..lib.sets import Split, median_distance
from ..lib.timing import clock

KEPT = 1e-14
"""Eigenvalues of K_mm below so much of the largest have no feature."""

PART = 1000
"""Rows that are evaluated at once in extended precision."""


TEST_ROWS = 5_000


def read(path: Path, rows: int) -> Split:
    """Return random rows in float64, features standardized, targets as they are.

    Features are numbers of float32, so that methods in both types see the same rows.
    """
    table, rng = pq.read_table(path), np.random.default_rng(0)
    names = [name for name in table.column_names if name not in ("target", "split")]
    X = np.stack([table[name].to_numpy() for name in names], axis=1).astype(np.float64)
    y, test = table["target"].to_numpy().astype(np.float64), table["split"].to_numpy() == 1
    learn = rng.permutation(np.flatnonzero(~test))[:rows]
    held = rng.permutation(np.flatnonzero(test))[:TEST_ROWS]
    scale = X[learn].std(axis=0)
    X = (X - X[learn].mean(axis=0)) / np.where(scale > 0, scale, 1)
    X = X.astype(np.float32).astype(np.float64)
    return Split(X[learn], y[learn], X[held], y[held])


@dataclass(frozen=True)
class Case:
    """A set with the first m of its shuffled rows as landmarks.

    Attributes
    ----------
    name : str
    split : Split
        In float64.
    m : int
    lengthscale : float
    weights : array of shape (n,), optional
    """

    name: str
    split: Split
    m: int
    lengthscale: float
    weights: np.ndarray | None = None

    @classmethod
    def read(cls, path: Path, rows: int, m: int, scale: float) -> Case:
        """Return a case of random rows; the lengthscale is `scale` median distances."""
        split = read(path, rows)
        return cls(path.stem, split, m, scale * median_distance(split.X))

    @property
    def kernel(self) -> kernels.Kernel:
        return kernels.make("gaussian", lengthscale=self.lengthscale)

    @property
    def total(self) -> float:
        return float(len(self.split.X) if self.weights is None else self.weights.sum())

    def problem(self, loss: Loss, y: np.ndarray, penalty: float, dtype: np.dtype) -> LossProblem:
        """Return the problem without a constant, as scikit-learn has it without an intercept."""
        X = as_rows(xp.cast(self.split.X, dtype))
        w = None if self.weights is None else self.weights
        K = KernelOperator(self.kernel, X, X)
        at = NystromProblem.at(K, np.arange(self.m), y, penalty, w)
        offset = np.zeros(loss.outputs(y.shape[1]), np.float64)
        return LossProblem(
            at.K, y, penalty, w, at.landmark_weight, at.coverage, at.index, loss=loss, offset=offset
        )

    @cached_property
    def features(self) -> Features:
        """The features of rows and test rows, in float64."""
        X, X_test = (as_rows(part) for part in (self.split.X, self.split.X_test))
        landmarks = as_rows(self.split.X[: self.m])
        with clock() as took:
            K_mm = KernelOperator(self.kernel, landmarks, landmarks).dense()
            values, vectors = np.linalg.eigh(K_mm)
            kept = values > KEPT * values[-1]
            to_coef = vectors[:, kept] / np.sqrt(values[kept])
            F = KernelOperator(self.kernel, X, landmarks).dense() @ to_coef
        F_test = KernelOperator(self.kernel, X_test, landmarks).dense() @ to_coef
        return Features(F, F_test, took.cpu)


@dataclass(frozen=True)
class Features:
    """Features whose inner products are the Nystrom kernel: a function is F b, its norm that of b.

    Attributes
    ----------
    F, F_test : Tensor of shape (n, r) and (k, r)
    cpu : float
        Seconds to make F.
    """

    F: np.ndarray
    F_test: np.ndarray
    cpu: float


@dataclass(frozen=True)
class Found:
    """A function: its values at rows and test rows, and the square of its norm."""

    f: np.ndarray
    f_test: np.ndarray
    norm2: float


def of_features(case: Case, b: np.ndarray) -> Found:
    """Return the function F b."""
    features = case.features
    return Found(features.F @ b, features.F_test @ b, float(np.square(b).sum()))


def of_coef(case: Case, coef: np.ndarray) -> Found:
    """Return the function of coefficients of the landmarks, in extended precision.

    Landmarks that are nearly the same have coefficients of 1e7 that cancel: float64 would lose the
    norm, and features, which leave out what float64 cannot tell in K_mm, a part of the function.
    """
    c = xp.to_float64(coef).astype(np.longdouble)
    Z = case.split.X[: case.m].astype(np.longdouble)

    def values(X: np.ndarray) -> np.ndarray:
        parts = [X[i : i + PART].astype(np.longdouble) for i in range(0, len(X), PART)]
        found = [
            np.exp(-_squares(x, Z) / (2 * np.longdouble(case.lengthscale) ** 2)) for x in parts
        ]
        return np.concatenate([K @ c for K in found])

    f, f_test = (values(X).astype(float) for X in (case.split.X, case.split.X_test))
    return Found(f, f_test, float((c * values(case.split.X[: case.m])).sum()))


def _squares(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    total: np.ndarray = sum((X[:, j, None] - Z[:, j]) ** 2 for j in range(X.shape[1]))
    return total


def objective(case: Case, loss: Loss, y: np.ndarray, penalty: float, found: Found) -> float:
    """Return the objective of a function."""
    each = loss.values(found.f, y).sum(axis=1)
    w = np.ones(len(each), np.float32) if case.weights is None else case.weights
    return float((xp.to_float64(w) * each).sum() / case.total) + penalty / 2 * found.norm2
