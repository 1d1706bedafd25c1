"""Variance of a model, calibrated by its leave-one-out residuals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.machine import machine_memory
from ...model import AverageModel, KernelPart, Model
from ...model.uncertainty.factors import Variance
from ..inputs.training_data import TrainingData
from .closed_form import Solved, solved_exactly
from .left_out_predictions import LeftOut, combine_solutions

IN_RANGE = 0.99
"""Share of the training rows that are in range of the other rows."""

LOG_ODDS = [0.25 * step * math.log(10) for step in range(-20, 21)]
"""Grid of log(a v / b) at the mean of v; the best point is refined."""


def with_variance(
    model: Model,
    data: TrainingData,
    penalties: Sequence[float],
    limit: int | None,
    *,
    calibrated: bool = True,
) -> tuple[Model, LeftOut]:
    r"""Return a model with its variance, and the leave-one-out predictions.

    - `model`: a regression of squared errors.
    - `data`: data of the fit.
    - `penalties`: penalty of each kernel model in the model.
    - `limit`: bytes of memory; by default the memory of the machine.
    - `calibrated`: whether the factors of the variance are fitted to leave-one-out residuals.
      False: the variance of a Gaussian process, with the amplitude of the kernel and the noise N λ.

    Raise ValueError as in `solved_exactly`.

    :math:`a\,v(x) + b` is fitted to the squared leave-one-out residuals of the model, and to v of
    each row without it, by the closed form of `solved_exactly`. The residuals are out of sample, no
    row is lost, and nothing is refitted. Kernel, penalty and landmarks may have been chosen with
    the same rows; this is not corrected. For an average, the residuals are the residuals of the
    average, v is the weighted mean over its models, and all models get the same a and b.

    a v + b is the variance in the range of the training rows, see `IN_RANGE`. Residuals in this
    range have about the same v, and hardly determine a. Beyond the range, c is added for each unit
    of v, such that a + c is at least the most likely amplitude of a Gaussian process, see `Solved`.
    Far from all rows, where v = k(x, x), the variance is at least the mean squared difference
    between the targets and the prediction, which is their mean, or 0 if they were not shifted.
    """
    weighted_data, free_bytes = data.without_zero_weights(), limit
    solved: list[Solved] = []
    for part, penalty in zip(model.parts, penalties, strict=True):
        solved.append(solved_exactly(part, weighted_data, penalty, free_bytes))
        # The factors of each model stay in memory with the result.
        free_bytes = (machine_memory() if free_bytes is None else free_bytes) - solved[
            -1
        ].factors.bytes
    shares = xp.array(model.shares, dtype=xp.float64)
    left_residuals = xp.einsum(
        "k,knt->nt", shares, xp.stack([part.left_out_residuals for part in solved])
    )
    v = shares @ xp.stack([part.variance for part in solved])
    weights = (
        xp.ones_like(v) if weighted_data.weights is None else xp.to_float64(weighted_data.weights)
    )
    if not calibrated:
        return _process_variance(model, weighted_data, penalties, solved, v), combine_solutions(
            model, data, solved
        )
    fits = [calibrate_variance(v, off, weights) for off in left_residuals.T]
    scale, noise = xp.contiguous(xp.array(fits, dtype=xp.float64).T)
    # Up to here rows are in range of the training; beyond, the variance grows faster.
    far_variance = _largest_in_range(v)
    full = sum(share * fit.diagonal for share, fit in zip(model.shares, solved, strict=True))
    # At k(x, x), the variance must reach the variance of the targets.
    missing = (_spread(model, weighted_data, weights) - scale * full - noise).clip(min=0.0)
    slope = missing / (full - far_variance) if full > far_variance else xp.zeros_like(missing)
    amplitude = shares @ xp.stack([fit.amplitude for fit in solved])
    beyond = xp.maximum(slope, amplitude - scale)
    parts = tuple(
        replace(part, variance=Variance(scale, noise, beyond, far_variance, fit.factors))
        for part, fit in zip(model.parts, solved, strict=True)
    )
    return _made_of(model, parts), combine_solutions(model, data, solved)


def _process_variance(
    model: Model,
    data: TrainingData,
    penalties: Sequence[float],
    solved: Sequence[Solved],
    v: Float[Array, " n"],
) -> Model:
    """Return a model with the variance of the Gaussian process of its kernel and penalty."""
    parts = []
    for part, penalty, fit in zip(model.parts, penalties, solved, strict=True):
        t = part.outputs
        scale = xp.ones(t, xp.float64) if part.target_scale is None else part.target_scale**2
        noise = penalty * data.total * scale
        parts.append(
            replace(
                part,
                variance=Variance(
                    scale, noise, xp.zeros(t, xp.float64), _largest_in_range(v), fit.factors
                ),
            )
        )
    return _made_of(model, tuple(parts))


def _largest_in_range(v: Float[Array, " n"]) -> float:
    return float(xp.kth_smallest(v, math.ceil(IN_RANGE * len(v))))


def calibrate_variance(
    v: Float[Array, " n"], off: Float[Array, " n"], weights: Float[Array, " n"]
) -> tuple[float, float]:
    """Fit variances a v + b, with a and b >= 0, to the residuals `off`, and return (a, b).

    a and b maximise the weighted Gaussian likelihood. For a given a / b the best scale has a closed
    form; a / b is searched on a grid and refined. Both are 0 if all residuals are 0.
    """
    from scipy.optimize import minimize_scalar  # a tenth of a second, for those who need it

    mean, w = float(v.mean()), weights / weights.sum()
    # 1. In units of the mean of v, the ratio of the parts has no unit.
    unit, squares = (v / mean if mean > 0 else xp.ones_like(v)), xp.square(off)
    if not bool(squares.any()):
        return 0.0, 0.0

    def size(odds: float) -> tuple[float, float]:
        # 2. Variances up to a factor, whose best value is the mean of squares over u.
        u = (odds * unit + 1) / (odds + 1)
        total = float(w @ (squares / u))
        return total, math.log(total) + float(w @ xp.log(u))

    def loss(log_odds: float) -> float:
        return size(math.exp(log_odds))[1]

    # 3. The likelihood may have several minima: a grid finds the right
    # one, and a bounded search refines it.
    best = min(LOG_ODDS, key=loss)
    step = LOG_ODDS[1] - LOG_ODDS[0]
    ends = max(best - step, LOG_ODDS[0]), min(best + step, LOG_ODDS[-1])
    minimum = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6})
    # The search may end above the grid point.
    odds = math.exp(min((float(minimum.x), best), key=loss))
    total = size(odds)[0] / (odds + 1)
    return total * odds / (mean or 1.0), total


def _spread(model: Model, data: TrainingData, weights: Float[Array, " n"]) -> Float[Array, " t"]:
    """Return the mean squared difference of targets and the predictions far from all rows."""
    off = xp.to_float64(data.targets)
    for share, part in zip(model.shares, model.parts, strict=True):
        off = off - (0.0 if part.target_shift is None else share * part.target_shift)
    return weights @ xp.square(off) / weights.sum()


def _made_of(model: Model, parts: tuple[KernelPart, ...]) -> Model:
    if isinstance(model, AverageModel):
        return replace(model, models=parts)
    return parts[0]
