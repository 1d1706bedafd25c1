"""Hyper-parameters of a kernel, and the noise, by the likelihood or by leave-one-out errors."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, RandomStream
from ..._sparse import dense
from ...kernels import Kernel
from ...kernels._hyperparameters import (
    amplify,
    contract_gradients,
    hyperparameters,
    times_lengthscales,
    with_factors,
    with_hyperparameters,
)
from ...paths.work import Work
from ..inputs.training_data import TrainingData

logger = logging.getLogger("gramian")

MOST_ROWS = 2_000
"""Rows by which hyper-parameters are tuned; of more, a random sample."""

START_ROWS = 300
"""Rows by which starting values are compared."""

START_MULTIPLES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Multiples of all lengthscales from which the descent may start."""

START_NOISES = (1e-4, 1e-2, 0.2)
"""Noise variances from which the descent may start, in units of the targets' mean square."""

LENGTHSCALE_RANGE, FACTOR_RANGE = 1e3, 1e6
"""Largest ratio of a hyper-parameter, or its inverse, to the start."""

NOISE_RANGE = (1e-9, 10.0)
"""Least and largest noise variance, in units of the targets' mean square."""

START_STEPS, MOST_STEPS = 15, 200
"""Steps of the descents on 300 rows, and on all rows."""

TYPICAL_STEPS = 20
"""Typical number of evaluations of the criterion by all rows."""

SINGULAR_VALUE = 1e10
"""Criterion of values at which the matrix is singular to rounding, from which the descent turns."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """Kernel and noise variance that minimise a criterion.

    - `noise`: noise variance of a row of weight one.
    - `value`: the criterion; see `Criterion`.
    """

    kernel: Kernel
    noise: float
    value: float


@dataclass(frozen=True, eq=False)
class Criterion:
    r"""A function of the matrix :math:`A = K + \sigma^2 W^{-1}` and its gradient.

    ``"likelihood"``: minus the logarithm of the marginal likelihood, a number of the targets.
    ``"leave_one_out"``: the logarithm of the weighted mean square of the leave-one-out residuals
    [1]_, which does not determine the amplitude.

    - `X`: dense rows.
    - `Y`: targets of mean zero.

    References
    ----------
    .. [1] Rasmussen & Williams, *Gaussian processes for machine learning*, 2006, sections 5.4.1 and
       5.4.2.
    """

    name: str
    X: Float[Array, "n d"]
    Y: Float[Array, "n t"]
    weights: Float[Array, " n"] | None = None

    def __call__(self, kernel: Kernel, noise: float) -> tuple[float, Float[Array, "n n"]]:
        """Return the criterion, and its gradient G with respect to A.

        Cost: n² kernel evaluations and n³ operations, 24 n² bytes.

        Raise NotPositiveDefinite if A is singular to rounding.
        """
        inverse, log_determinant = self._invert(kernel, noise)
        alpha, (n, t) = inverse @ self.Y, self.Y.shape
        if self.is_likelihood:
            constant = n * math.log(2 * math.pi)
            value = 0.5 * (float((self.Y * alpha).sum()) + t * (log_determinant + constant))
            return value, 0.5 * (t * inverse - alpha @ alpha.T)
        weights = 1.0 if self.weights is None else self.weights[:, None]
        diagonal = xp.diagonal(inverse)[:, None]
        residuals = alpha / diagonal
        square = float((weights * residuals**2).mean())
        # d log S = (2 / S) sum w r dr, where dr = -(C dA alpha) / c + r (C dA C) / c.
        u = 2 * weights * residuals / (diagonal * square * n * t)
        outer = (inverse @ u) @ alpha.T
        G = (inverse * (u * residuals).sum(axis=1)) @ inverse - 0.5 * (outer + outer.T)
        return math.log(square), G

    def amplitude(self, kernel: Kernel, noise: float) -> float:
        """Return the most likely factor of kernel and noise."""
        inverse, _ = self._invert(kernel, noise)
        # Constant targets, which are 0, are as likely with any small factor.
        return float((self.Y * (inverse @ self.Y)).mean()) or 1.0

    def noise_gradient(self, G: Float[Array, "n n"], noise: float) -> float:
        """Return the derivative with respect to the logarithm of the noise."""
        return float((noise * self._shares * xp.diagonal(G)).sum())

    @property
    def is_likelihood(self) -> bool:
        """Whether it is the likelihood, which determines the amplitude."""
        return self.name == "likelihood"

    def first(self, n: int) -> Criterion:
        """Return the criterion of the first n rows."""
        weights = None if self.weights is None else self.weights[:n]
        return Criterion(self.name, self.X[:n], self.Y[:n], weights)

    @property
    def _shares(self) -> Array | float:
        return 1.0 if self.weights is None else 1 / self.weights

    def _invert(self, kernel: Kernel, noise: float) -> tuple[Float[Array, "n n"], float]:
        """Return the inverse of A, and the logarithm of its determinant."""
        A = la.by_columns(kernel(self.X, self.X))
        la.prepare_(A)
        xp.add_(xp.diagonal(A), noise * self._shares)
        la.cholesky_(A)
        log_determinant = 2 * float(xp.log(xp.diagonal(A)).sum())
        la.invert_triangle_(A)
        la.times_transpose_(A)
        la.mirror_upper_(A)
        return A, log_determinant


def criterion_of(data: TrainingData, name: str, rng: RandomStream) -> Criterion:
    """Return a criterion of all rows up to 2,000, or of a random sample; in random order."""
    order = rng.sample(len(data.rows), MOST_ROWS)
    sample = data.part(xp.sort(order)).with_local_numbers()
    mixed = rng.permutation(len(order))
    X = xp.to_float64(dense(sample.rows.take(xp.arange(len(order)))))[mixed]
    weights = None if sample.weights is None else xp.to_float64(sample.weights)[mixed]
    return Criterion(name, xp.to_host(X), xp.to_host(xp.to_float64(sample.targets))[mixed], weights)


def tune(criterion: Criterion, kernel: Kernel, noise: float | None = None) -> Tuned:
    """Minimise a criterion over all hyper-parameters of a kernel, and the noise.

    - `kernel`: kernel whose values are the start; each term of its sums gets a factor, if it has
      none.
    - `noise`: the noise variance if it is known; None to tune it.

    The likelihood may have several maxima. From five multiples of the lengthscales (nine starts if
    there is a period), each with the best of three noises, L-BFGS descends on the first 300 rows,
    in logarithms, with gradients of `contract_gradients`; the best result is the start of the
    descent on all rows, of 20 to 60 evaluations of the criterion.
    """
    unit = float(xp.square(criterion.Y).mean()) or 1.0
    subset = criterion.first(START_ROWS)
    starts = [_best_noise(subset, start, noise, unit) for start in _starts(with_factors(kernel))]
    # Values that all fail are descended from, too: the caller then gets an error that says why.
    usable = [s for s in starts if s.value < SINGULAR_VALUE] or starts[:1]
    best = min(
        (_descend(subset, start, noise, unit, START_STEPS) for start in usable),
        key=lambda tuned: tuned.value,
    )
    tuned = _descend(criterion, best, noise, unit, MOST_STEPS)
    if not criterion.is_likelihood and noise is None:
        # The errors are the same for any amplitude: take the most likely one.
        tuned = _most_likely(criterion, tuned)
    logger.info("%s: %r, noise variance %.3g", criterion.name, tuned.kernel, tuned.noise)
    return tuned


def tuning_work(n: int) -> Work:
    """Return the work of `tune` for n rows, with gradients of a few hyper-parameters."""
    n, start_rows = min(n, MOST_ROWS), min(n, START_ROWS)
    of_start = 2 * len(START_NOISES) + START_STEPS
    return (
        _evaluation(start_rows) * (len(START_MULTIPLES) * of_start) + _evaluation(n) * TYPICAL_STEPS
    )


def _evaluation(n: int) -> Work:
    """Return the work of the criterion and its gradient for n rows."""
    square = float(n) ** 2
    return Work(
        double_evaluations=4 * square, operations=n * square, moved_bytes=100 * square,
        peak_bytes=32 * square,
    )  # fmt: skip


def _starts(kernel: Kernel) -> list[Kernel]:
    """Return the kernel at several multiples of its lengthscales, once if it has none.

    Lengthscales of kernels with a period do not depend on the unit of the features, so that they
    also stay while the others are multiplied.
    """
    starts = [
        times_lengthscales(kernel, multiple, circles=circles)
        for circles in (True, False)
        for multiple in START_MULTIPLES
    ]
    return list(dict.fromkeys(starts))


def _best_noise(criterion: Criterion, kernel: Kernel, noise: float | None, unit: float) -> Tuned:
    """Return a kernel with the best of some noise variances, and its most likely amplitude."""
    tried = [noise] if noise is not None else [unit * ratio for ratio in START_NOISES]
    best = Tuned(kernel, tried[0], SINGULAR_VALUE)
    for level in tried:
        start = Tuned(kernel, level, SINGULAR_VALUE)
        try:
            # Known noise determines the amplitude, which the descent then finds.
            start = start if noise is not None else _most_likely(criterion, start)
            start = replace(start, value=criterion(start.kernel, start.noise)[0])
        except la.NotPositiveDefinite:
            continue
        best = min((best, start), key=lambda tuned: tuned.value)
    return best


def _most_likely(criterion: Criterion, tuned: Tuned) -> Tuned:
    amplitude = criterion.amplitude(tuned.kernel, tuned.noise)
    return replace(tuned, kernel=amplify(tuned.kernel, amplitude), noise=tuned.noise * amplitude)


def _descend(
    criterion: Criterion, start: Tuned, noise: float | None, unit: float, steps: int
) -> Tuned:
    """Minimise a criterion by L-BFGS from a start, with at most some steps."""
    from scipy.optimize import minimize  # a tenth of a second, for those who need it

    names = hyperparameters(start.kernel)
    values = list(names.values())
    reach = [FACTOR_RANGE if name.endswith("factor") else LENGTHSCALE_RANGE for name in names]
    bounds = [(value / ratio, value * ratio) for value, ratio in zip(values, reach, strict=True)]
    if noise is None:
        bounds.append((unit * NOISE_RANGE[0], unit * NOISE_RANGE[1]))
        values.append(min(max(start.noise, bounds[-1][0]), bounds[-1][1]))
    # Of the likelihood, a mean over the rows: the stopping rule then means the same for any number.
    scale = len(criterion.Y) if criterion.is_likelihood else 1

    def read(logarithms: Iterable[float]) -> tuple[Kernel, float]:
        numbers = [math.exp(number) for number in logarithms]
        level = numbers[-1] if noise is None else noise
        return with_hyperparameters(start.kernel, numbers), level

    def evaluate(logarithms: Float[Array, " p"]) -> tuple[float, list[float]]:
        tried, level = read(logarithms)
        try:
            value, G = criterion(tried, level)
        except la.NotPositiveDefinite:
            return SINGULAR_VALUE, [0.0] * len(logarithms)
        gradient = contract_gradients(tried, criterion.X, G)
        if noise is None:
            gradient.append(criterion.noise_gradient(G, level))
        return value / scale, [number / scale for number in gradient]

    minimum = minimize(
        evaluate,
        [math.log(value) for value in values],
        jac=True,
        method="L-BFGS-B",
        bounds=[(math.log(low), math.log(high)) for low, high in bounds],
        options={"maxiter": steps},
    )
    return Tuned(*read(minimum.x), float(minimum.fun) * scale)
