"""Learn the scale of errors from leave-one-out residuals, for deviations that rank predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._messages.errors import TextError
from ...conformal.spread import ERROR_FLOOR, negative_likelihood
from ...model import AverageModel, KernelPart, Model
from ...model.uncertainty.error_scale import ErrorScale
from ...operators import KernelOperator
from ...paths.leave_one_out_formula import Spectrum
from ..inputs.training_data import TrainingData
from .left_out_predictions import LeftOut
from .refit import Refit
from .standard_deviations import calibrate_variance

CHOICE_ROWS = 2_000
"""Rows by whose leave-one-out residuals the ridge is chosen, at most."""

RIDGE_MULTIPLES = tuple(10.0 ** (e / 2) for e in range(-1, 7))
"""Ridges of the logarithms, in units of k(x, x).

The logarithm of a normal error varies by 1.1 around its mean, more than its scale does: the ridge
does not depend on the number of rows, as the noise of a Gaussian process.
"""

LEAST_ROWS = 20
"""Rows that a scale is learned from, at least."""


def with_error_scale(
    model: Model,
    data: TrainingData,
    left_out: LeftOut,
    build_refit: Callable[[TrainingData], Refit],
    rng: RandomStream,
) -> Model:
    r"""Return a model whose variance has an `ErrorScale`.

    - `model`: a model with its variance.
    - `data`: data of its fit.
    - `left_out`: its leave-one-out residuals, and v of each row by the others.
    - `rng`: generator of the sample that chooses the ridge.

    1. :math:`\gamma` is the slope of log r over log v, at least 0, where r are the residuals, plus
       a thousandth of their mean size: an error of 0 has no logarithm.
    2. log r - γ log v is learned by a kernel ridge regression with the kernel and the centers of
       the heaviest model of an average. Its ridge, or none of it but a constant, is chosen by the
       leave-one-out likelihood of the residuals, of at most 2,000 rows.
    3. a and b of a s² + b maximise the likelihood of the same residuals, as a and b of a v + b do.

    Raise ValueError if there are fewer than 20 rows, or a target has no errors.

    Cost: n³ operations for n of at most 2,000 rows about five times, and a refit to all rows, of
    few iterations as the ridge is large.
    """
    data, n = data.without_zero_weights(), len(left_out.residuals)
    errors = xp.abs(left_out.residuals)
    if n < LEAST_ROWS or not bool((errors.mean(axis=0) > 0).all()):
        raise TextError(
            "deviations by errors are learned from leave-one-out residuals, but this fit has {}; "
            "ask for {return_std=True}",
            f"{n} rows, fewer than {LEAST_ROWS}" if n < LEAST_ROWS else "a target without any",
        )
    # 1. The logarithms, and their part that v explains.
    logs = xp.log(errors + ERROR_FLOOR * errors.mean(axis=0))
    log_v = xp.log(left_out.variance)[:, None]
    exponent = _slopes(log_v[:, 0], logs)
    local = logs - exponent * log_v
    # 2. The ridge, and the scale of each row by the others.
    number = max(range(len(model.parts)), key=lambda k: model.shares[k])
    part, level = model.parts[number], local.mean(axis=0)
    index = xp.sort(rng.sample(n, CHOICE_ROWS))
    weights = xp.ones(n, xp.float64) if data.weights is None else xp.to_float64(data.weights)
    shift, local_scales = _choose(
        part, data, index, local - level, exponent * log_v, errors, weights
    )
    lower, upper = level + local_scales.min(axis=0), level + local_scales.max(axis=0)
    # 3. Both parts of the variance, and the function of all rows.
    squares = xp.exp(2 * (local_scales + level + exponent * log_v[index]))
    calibrated = [
        calibrate_variance(square, residuals, weights[index])
        for square, residuals in zip(squares.T, left_out.residuals[index].T, strict=True)
    ]
    scale, noise = xp.contiguous(xp.array(calibrated, dtype=xp.float64).T)
    coef = xp.zeros((len(part.centers), local.shape[1]), xp.float64)
    if math.isfinite(shift):
        fitted = build_refit(data).fit_targets(data, local, shift / data.total)
        coef, level = _in_units_of_targets(fitted)
    learned = ErrorScale(coef, level, exponent, lower, upper, scale, noise)
    return _with_part(model, number, learned)


def _in_units_of_targets(fitted: KernelPart) -> tuple[Float[Array, "m t"], Float[Array, " t"]]:
    """Return the coefficients of a model that has scaled its targets, and their mean."""
    assert fitted.target_scale is not None
    assert fitted.target_shift is not None  # as `settle_settings` has it
    return xp.to_float64(fitted.coef) * fitted.target_scale, xp.to_float64(fitted.target_shift)


def _slopes(log_v: Float[Array, " n"], logs: Float[Array, "n t"]) -> Float[Array, " t"]:
    """Return the slopes of logarithms of errors by the logarithm of v, at least 0."""
    centered = log_v - log_v.mean()
    square = float(centered @ centered)
    if square == 0:
        return xp.zeros(logs.shape[1], xp.float64)
    return (centered @ (logs - logs.mean(axis=0)) / square).clip(min=0.0)


def _choose(
    part: KernelPart,
    data: TrainingData,
    index: Int[Array, " k"],
    local: Float[Array, "n t"],
    explained: Float[Array, "n t"],
    errors: Float[Array, "n t"],
    weights: Float[Array, " n"],
) -> tuple[float, Float[Array, "k t"]]:
    """Return the ridge, infinite for a constant, and leave-one-out predictions of `local`.

    - `index`: rows by which it is chosen.
    - `explained`: part of the logarithms that v explains.
    """
    rows = part.prepare_rows(data.rows).take(index)
    K = xp.to_host(KernelOperator(part.kernel, rows, rows).double().dense())
    spectrum, targets = Spectrum.of(K, weights[index]), local[index]
    unit = float(np.mean(np.diagonal(K))) or 1.0
    constant = xp.zeros_like(targets)
    candidates = [(math.inf, constant)]
    candidates += [
        (r * unit, spectrum.predict_left_out(targets, r * unit)) for r in RIDGE_MULTIPLES
    ]
    return min(
        candidates, key=lambda pair: negative_likelihood(pair[1] + explained[index], errors[index])
    )


def _with_part(model: Model, number: int, learned: ErrorScale) -> Model:
    """Return the model whose kernel model of this number has the scale of errors."""
    parts = list(model.parts)
    variance = parts[number].variance
    assert variance is not None
    parts[number] = replace(parts[number], variance=replace(variance, errors=learned))
    return replace(model, models=tuple(parts)) if isinstance(model, AverageModel) else parts[0]
