"""Studies of a model on samples: linear ridge, learning curve, effective dimension, residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._sparse import dense
from ..data import RowSource, Subset, as_rows
from ..estimators import KernelRidge, KernelRidgeClassifier
from ..model import KernelPart
from ..operators import KernelOperator
from ..scoring.predictions import Predictions
from ..scoring.table import MAIN_METRIC, METRIC_TABLE
from ..scoring.truth import Truth

RIDGE_ALPHAS = np.geomspace(1e-3, 1e6, 19)
"""Ridge penalties of the linear model, which chooses by leave-one-out errors."""

LEAST_LANDMARKS, MOST_LANDMARKS = 25, 1600

SPECTRUM_ROWS = 2000
"""Rows of the kernel matrix for its eigenvalues, about 2 seconds."""

SPECTRUM_PENALTIES = np.geomspace(1e-10, 1.0, 61)


def linear_predictions(learn: Sample, test: Sample, classes: bool) -> np.ndarray:
    """Return the test predictions of ridge regression on standardised features.

    - `classes`: whether targets are labels.
    """
    kind = RidgeClassifierCV if classes else RidgeCV
    linear = make_pipeline(StandardScaler(), kind(alphas=RIDGE_ALPHAS))
    linear.fit(xp.to_float64(learn.features), learn.y)
    return linear.predict(xp.to_float64(test.features))


def error_of(y: np.ndarray, predicted: np.ndarray, classes: bool) -> float:
    """Return the main metric: the root mean squared error, or the share of wrong labels."""
    predictions = Predictions(y, predicted, classes=tuple(np.unique(y)) if classes else ())
    return predictions.measure(METRIC_TABLE[MAIN_METRIC[predictions.task]])


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Errors on test rows by the number of landmarks.

    - `penalty`: penalty of all fits.
    """

    landmarks: list[int]
    errors: list[float]
    penalty: float


def learning_curve(
    part: KernelPart, penalty: float | None, learn: Sample, test: Sample, classes: bool
) -> LearningCurve:
    """Fit the kernel of a model again with 25, 50, ... random landmarks, and return the errors.

    - `penalty`: if None, chosen once with the most landmarks.
    - `classes`: whether targets are labels.

    Cost: about twice the last fit, which has half as many landmarks as rows, at most 1,600.
    """
    kind = KernelRidgeClassifier if classes else KernelRidge
    sizes = landmark_numbers(len(learn.y))
    # The rows of a sample are mapped already, as the kernel of the model takes them.
    fixed: dict[str, Any] = {"standardize": False, "landmarks": sizes[-1], "random_state": 0}
    if not classes:
        # By default targets are scaled only with the features.
        fixed["standardize_target"] = True
    if penalty is None:
        chosen = kind(part.kernel, penalty="auto", **fixed).fit(learn.mapped, learn.y)
        penalty = float(chosen.penalty_)
    errors = []
    for m in sizes:
        # In closed form: the curve shows landmarks, not the stopping of a solver.
        fit = kind(part.kernel, penalty=penalty, solver="direct", **{**fixed, "landmarks": m})
        predicted = fit.fit(learn.mapped, learn.y).predict(test.mapped)
        errors.append(error_of(test.y, predicted, classes))
    return LearningCurve(sizes, errors, penalty)


def landmark_numbers(n: int) -> list[int]:
    """Return 25, 50, 100, ... up to half of n rows and `MOST_LANDMARKS`.

    Below 200 rows they start below 25, to give three numbers; very few rows give one.
    """
    largest = max(1, min(n // 2, MOST_LANDMARKS))
    smallest = max(1, min(LEAST_LANDMARKS, largest // 4))
    return [smallest * 2**k for k in range(largest.bit_length()) if smallest * 2**k <= largest]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of a kernel matrix of k rows, divided by k, and effective dimensions.

    - `eigenvalues`: of shape (k,); the largest first.
    """

    eigenvalues: np.ndarray

    @classmethod
    def of(cls, part: KernelPart, rows: RowSource, most: int) -> Spectrum:
        """Return the spectrum of a model's kernel on the first mapped rows.

        Cost: k² kernel evaluations and about 2 k³ operations for k rows.
        """
        rows = Subset(rows, xp.arange(min(len(rows), most)))
        K = KernelOperator(part.kernel, rows, rows).double().dense()
        values = xp.to_host(xp.flip(xp.eigvalsh(K / len(rows)), 0))
        # Eigenvalues of a kernel matrix are negative only by rounding.
        return cls(values.clip(min=0))

    def effective_dimensions(self, penalties: np.ndarray) -> np.ndarray:
        """Return the effective dimension, tr(K (K + k λ I)⁻¹), for each penalty λ.

        k is the number of rows. The result has shape (p,).
        """
        return (self.eigenvalues / (self.eigenvalues + penalties[:, None])).sum(axis=1)

    def effective_dimension(self, penalty: float) -> float:
        """Return the effective dimension at one penalty."""
        return float(self.effective_dimensions(np.array([penalty]))[0])


def residual(
    part: KernelPart, rows: RowSource, targets: Array, penalty: float, memory: int
) -> float:
    """Return the relative residual of the coefficients in float64, the largest over targets.

    The equations are (K + n penalty I) coef = y if all rows are centers; with landmarks, the
    normal equations (K_nm' K_nm + n penalty K_mm) coef = K_nm' y.

    - `rows`: of shape (n, p); training rows, mapped for the kernel.
    - `targets`: of shape (n, t); numbers in the units of the target, or codes of classes.
    - `memory`: bytes for blocks.
    """
    # 1. Targets as the coefficients predict them: shifted and scaled.
    y = xp.to_float64(targets)
    if part.target_shift is not None:
        y = y - part.target_shift
    if part.target_scale is not None:
        y = y / part.target_scale
    # 2. In float64, because the residual is a small difference of large numbers.
    coef, n = xp.to_float64(part.coef), len(rows)
    K = KernelOperator(part.kernel, rows, part.centers, "auto", memory).double()
    off = y - K @ coef
    # 3. As many centers as rows: all rows are centers. Otherwise the normal equations.
    if len(part.centers) == n:
        return _relative(off - n * penalty * coef, y)
    centers = KernelOperator(part.kernel, part.centers, part.centers, "auto", memory).double()
    return _relative(K.T @ off - n * penalty * (centers @ coef), K.T @ y)


def _relative(off: Array, of: Array) -> float:
    # A target of zeros has no relative residual: NaN.
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((xp.norm(off, axis=0) / xp.norm(of, axis=0)).max())


MOST_ROWS = 10_000
"""Most sampled rows; metrics use all rows."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows of a table and their target.

    - `features`: features, encoded if the model has an encoding.
    - `mapped`: of shape (k, p); the same rows as the kernel takes them: standardised and mapped.
    - `y`: of shape (k,).
    """

    features: Float[Array, "k d"]
    mapped: RowSource
    y: np.ndarray

    @classmethod
    def of(cls, truth: Truth, part: KernelPart, index: Array) -> Sample:
        """Return the sample of the rows at given indices."""
        features = dense(truth.rows.take(index))
        return cls(features, part.prepare_rows(as_rows(features)), truth.y[index])


def draw_sample(n: int, rng: RandomStream) -> Array:
    """Draw up to `MOST_ROWS` of n row indices, in random order."""
    return rng.permutation(n)[:MOST_ROWS]
