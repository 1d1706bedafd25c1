"""Forms of metrics: functions of means over rows, which are merged block by block.

For any division of the rows into blocks, a form has the same value to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .reliability import PROBABILITY_BINS, bin_sums, shown_probabilities
from .table import Metric

Array: TypeAlias = NDArray[np.float64]


class Form:
    """Function of the means of some terms over the rows; callable like a metric of scikit-learn."""

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        """Return the terms of each row, usually of each target.

        - `y`: of shape (b, t).
        - `output`: of shape (b, t).
        """
        raise NotImplementedError

    def state(self, y: np.ndarray, output: np.ndarray, weights: np.ndarray | None) -> Array:
        """Return the means of the terms over a block, weighted by the rows."""
        terms = self.terms(y, output)
        return np.stack([np.average(term, axis=0, weights=weights) for term in terms])

    def merge(self, a: Array, b: Array, share: float) -> Array:
        """Return the means over two blocks; `share` is the part of b in the weight of both."""
        return a + share * (b - a)

    def value(self, state: Array) -> Any:
        """Return the metric of each target."""
        return state[0]

    def __call__(
        self,
        y: np.ndarray,
        output: np.ndarray,
        *,
        sample_weight: np.ndarray | None = None,
        labels: object = None,
    ) -> float:
        """Return the metric, on average over the targets."""
        return float(np.mean(self.value(self.state(y, output, sample_weight))))


class RelativeError(Form):
    r"""Relative error :math:`\|f - y\| / \|y\|`; NaN or infinite if y is zero.

    Defined as by Rudi, Carratino and Rosasco, *FALKON: an optimal large scale kernel method*, 2017.
    """

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        return np.square(output - y), np.square(y)

    def value(self, state: Array) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(state[0] / state[1])


class SymmetricPercentageError(Form):
    r"""Mean of :math:`|f - y| / ((|f| + |y|) / 2)`, between 0 and 2; 0 where both are zero.

    The SMAPE of Rathore, Frangella and Udell, *Have ASkotch: fast methods for large-scale,
    memory-constrained kernel ridge regression*, 2024.
    """

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        sizes = (np.abs(output) + np.abs(y)) / 2
        return [np.divide(np.abs(output - y), sizes, out=np.zeros_like(sizes), where=sizes > 0)]


class BrierScore(Form):
    """Brier score as in scikit-learn 1.7, which for two classes uses the second class alone."""

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        k = output.shape[1]
        return [np.square(output - np.eye(k)[y]).sum(axis=1) / (2 if k == 2 else 1)]


class CalibrationError(Form):
    """Expected calibration error of the predicted class, in 15 bins.

    Each bin compares its mean predicted probability with its share of correct predictions. The
    error is the mean absolute difference over the bins, weighted by their rows.
    """

    def bin_inputs(self, y: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of one class in each row, and a mask of rows of this class."""
        return chances.max(axis=1), chances.argmax(axis=1) == y

    def state(self, y: np.ndarray, output: np.ndarray, weights: np.ndarray | None) -> Array:
        sums = bin_sums(*self.bin_inputs(y, output), PROBABILITY_BINS, weights)
        return sums / sums[0].sum()

    def value(self, state: Array) -> Any:
        return np.abs(state[1] - state[2]).sum()


class ShownClass(CalibrationError):
    """Bins of a reliability diagram."""

    def bin_inputs(self, y: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return shown_probabilities(y, chances)


@dataclass(frozen=True)
class QuantileErrors(Form):
    """Mean pinball loss of predicted quantiles, and shares of targets at most them, (2, q).

    - `levels`: levels of the columns of predictions.
    """

    levels: tuple[float, ...]

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        off, level = y - output, np.array(self.levels)
        return np.maximum(level * off, (level - 1) * off), off <= 0


@dataclass(frozen=True)
class MeanOfRows(Form):
    """Form of a metric that is a mean over rows: its own value on each block.

    - `metric`: metric of numbers, with a value for each target, or of probabilities.
    """

    metric: Metric

    def state(self, y: np.ndarray, output: np.ndarray, weights: np.ndarray | None) -> Array:
        if self.metric.output == "probabilities":
            value = self.metric(y, output, weights, labels=np.arange(output.shape[1]))
        else:
            value = self.metric(y, output, weights, multioutput="raw_values")
        return np.atleast_1d(value)[None]


class RootOfMean(MeanOfRows):
    """Form of a metric that is the root of a mean over rows."""

    def state(self, y: np.ndarray, output: np.ndarray, weights: np.ndarray | None) -> Array:
        return np.square(super().state(y, output, weights))

    def value(self, state: Array) -> Any:
        return np.sqrt(state[0])


class ExplainedVariance(MeanOfRows):
    """Form of R2: mean squared error, mean and variance of the true values, (3, t).

    R2 of a constant truth is 0, or 1 if all predictions are right, as in scikit-learn.
    """

    def state(self, y: np.ndarray, output: np.ndarray, weights: np.ndarray | None) -> Array:
        mean = y[0] + np.average(y - y[0], axis=0, weights=weights)  # exact of equal numbers
        squares = [np.square(output - y), np.square(y - mean)]
        error, variance = (np.average(part, axis=0, weights=weights) for part in squares)
        return np.stack([error, mean, variance])

    def merge(self, a: Array, b: Array, share: float) -> Array:
        """Add the variance between the blocks: the formula of Chan, Golub and LeVeque."""
        merged = super().merge(a, b, share)
        merged[2] += share * (1 - share) * np.square(b[1] - a[1])
        return merged

    def value(self, state: Array) -> Any:
        error, _, variance = state
        return 1 - np.divide(error, variance, out=(error > 0).astype(float), where=variance > 0)


FUNCTION_FORMS = {form.__name__: form for form in (MeanOfRows, RootOfMean, ExplainedVariance)}
"""Forms of functions of scikit-learn, by the name in the table of metrics."""


def form_of(metric: Metric) -> Form | None:
    """Return the form of a metric of numbers or of probabilities; None without one."""
    function = metric.resolved_function
    if isinstance(function, type) and issubclass(function, Form):
        return function()
    return FUNCTION_FORMS[metric.merge](metric) if metric.merge else None
