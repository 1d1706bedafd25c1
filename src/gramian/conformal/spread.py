"""Spread of errors: a ridge regression of their logarithms, chosen by likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from .base import RowScores
from .parts import CalibrationRows, Predictor, Refit

SPREAD_PENALTIES = tuple(10.0 ** (-e / 2) for e in range(0, 10))
"""Penalties of the spread, per row, decreasing; the first one leaves little but a constant."""

PATIENCE_STEPS = 2
"""Penalties in a row that are no better, after which smaller ones are not tried."""

ERROR_FLOOR = 1e-3
"""Share of the mean error that is added to errors before their logarithm is taken.

With 0.1 intervals are narrower by 2 % in the mean of eight tables, at the cost of rows with small
errors: where noise differs tenfold, 0.98 of the quiet rows and 0.80 of the loud ones were inside,
instead of 0.93 and 0.86.
"""

SPREAD_ROWS = 10_000
"""Rows that the spread is learned from, at most."""


def choose_spread(
    refit: Refit,
    learned: Any,
    judges: tuple[CalibrationRows, Float[Array, "c t"]] | None,
    draws: RandomStream,
) -> Predictor | None:
    """Return the model of the logarithm of the spread; None if the spread is constant.

    - `refit`: refit of the model.
    - `learned`: the training rows of the model.
    - `judges`: held-out rows and their errors, which choose the ridge. None: a fifth of the errors
      that the spread is fitted to afterwards.

    1. The rows of the fit, at most 10,000, are divided into halves. Each half is predicted by a fit
       to the other half with the same kernel, maps, landmarks and ridge; r are the errors.
    2. A spread s(x) is learned: log s is the same ridge regression, fitted to log(|r| + 1e-3 mean
       |r|), for several ridges.
    3. The judges choose the ridge of log s, or a constant s, by the likelihood of their errors
       under Laplace distributions of scale s: the least mean of log s plus the logarithm of the
       mean of |r| / s.
    """
    n, sample = len(learned.targets), None
    # 1. Limit the cost: the path of the spread has up to ten fits.
    if n > SPREAD_ROWS:
        sample = xp.sort(draws.sample(n, SPREAD_ROWS))
        n = SPREAD_ROWS
    # 2. Bring remote rows to this machine: they are few, and fitted a dozen times.
    learned = learned.local_part(sample)
    # 3. Predict each half by a fit to the other one: residuals of the fit itself are too small.
    errors = xp.abs(errors_of_halves(refit, learned, draws.permutation(n)))
    # Without errors there is no logarithm to learn.
    if not bool((errors.mean(axis=0) > 0).all()):
        return None
    # 4. Fit logarithms, with a floor: an error of 0 would be minus infinity.
    logs = xp.log(errors + ERROR_FLOOR * errors.mean(axis=0))
    # 5. Without held-out rows, a fifth of these errors judges the penalties.
    if judges is None:
        order = draws.permutation(n)
        train_rows, judge_rows = xp.sort(order[n // 5 :]), xp.sort(order[: n // 5])
        own_judges = learned.part(judge_rows), errors[judge_rows]
        best = _best_of_path(refit, learned.part(train_rows), logs[train_rows], own_judges)
        # Rows that have judged take part in the final fit.
        return None if best.model is None else refit.fit_targets(learned, logs, best.penalty)
    return _best_of_path(refit, learned, logs, judges).model


@dataclass(frozen=True, eq=False)
class Candidate:
    """Candidate for the spread, by default a constant."""

    loss: float
    penalty: float = math.inf
    model: Predictor | None = None


def _best_of_path(
    refit: Refit,
    learned: CalibrationRows,
    logs: Float[Array, "n t"],
    judges: tuple[CalibrationRows, Float[Array, "c t"]],
) -> Candidate:
    """Return the spread of the best penalty on a path that ends after several worse penalties."""
    validation, errors = judges
    best, rises = Candidate(negative_likelihood(xp.zeros_like(errors), errors)), 0
    for penalty in SPREAD_PENALTIES:
        spread_model = refit.fit_targets(learned, logs, penalty)
        loss = negative_likelihood(spread_model.predict(validation.rows), errors)
        rises += 1
        if loss < best.loss:
            best, rises = Candidate(loss, penalty, spread_model), 0
        # The first penalties leave a constant, and are no reason to give up.
        elif best.model is not None and rises == PATIENCE_STEPS:
            break
    return best


def negative_likelihood(log_s: Float[Array, "c t"], errors: Float[Array, "c t"]) -> float:
    """Return the negative log likelihood of errors of a Laplace distribution of these scales."""
    losses = log_s.mean(axis=0) + xp.log((xp.abs(errors) / xp.exp(log_s)).mean(axis=0))
    value = float(losses.sum())
    return value if math.isfinite(value) else math.inf


def scale_errors(
    errors: Float[Array, "c t"], held_data: CalibrationRows, spread: Predictor | None
) -> RowScores:
    """Return errors over their spread as scores."""
    if spread is None:
        return RowScores(held_data.rows, xp.abs(errors))
    return RowScores(
        held_data.rows, xp.abs(errors) / xp.exp(spread.predict(held_data.rows)), {"spread": spread}
    )


def errors_of_halves(refit: Refit, data: Any, order: Int[Array, " n"]) -> Float[Array, "n t"]:
    """Return the errors of each half of the rows by the fit to the other half."""
    first, second = divide_order(order, 2)
    errors = xp.empty(data.targets.shape, xp.float64)
    for held_rows, train_rows in ((first, second), (second, first)):
        f = refit.fit_rows(data.part(train_rows))
        errors[held_rows] = xp.to_float64(data.targets[held_rows]) - f.predict(
            data.part(held_rows).rows
        )
    return errors


def divide_order(index: Int[Array, " n"], count: int) -> Sequence[Int[Array, " _"]]:
    """Return `count` parts of a random order, each increasing."""
    return [xp.sort(part) for part in xp.chunk(index, count)]
