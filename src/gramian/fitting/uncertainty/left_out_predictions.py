"""Leave-one-out predictions and generalised cross-validation, in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...model import Model
from ..inputs.training_data import TrainingData
from .closed_form import Solved, solved_exactly


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out predictions of the training rows, with criteria computed from them.

    - `values`: predictions; for a row of weight zero, the prediction of the model, which did not
      learn from it.
    - `evidence`: logarithm of the marginal likelihood, see `Solved`; NaN with landmarks, and for
      an average.
    - `residuals`: targets less predictions, of the rows of positive weight.
    - `variance`: v of these rows, each by the others; for an average the weighted mean.
    """

    values: Float[Array, "n t"]
    gcv: Float[Array, " t"]
    evidence: float
    residuals: Float[Array, "p t"]
    variance: Float[Array, " p"]


def left_out(
    model: Model, data: TrainingData, penalties: Sequence[float], limit: int | None
) -> LeftOut:
    r"""Return leave-one-out predictions and generalised cross-validation in closed form.

    - `model`: the model. For an average the result is exact with fixed weights of the members.
    - `penalties`: penalty of each kernel model in the model.
    - `limit`: bytes of memory; by default the memory of the machine.

    Raise ValueError as in `solved_exactly`.

    Generalised cross-validation has the mean of all leverages in place of each: :math:`\frac1N
    \sum_i w_i r_i^2 / (1 - \mathrm{tr} H / n)^2` with residuals r = y - H y of the n rows of
    positive weight, N the sum of the weights. Without weights that is :math:`n \|r\|^2 / (n -
    \mathrm{tr} H)^2`. Weights are precisions: for noise with a variance proportional to 1 / w all
    :math:`w_i r_i^2` have the same size, so the mean leverage is over the n rows. A weight of 2 is
    not a repeated row, because a row is left out with its whole weight.

    References
    ----------
    .. [1] Golub, Heath & Wahba, *Generalized cross-validation as a method for choosing a good
       ridge parameter*, Technometrics 21, 1979.
    """
    weighted_data = data.without_zero_weights()
    parts = zip(model.parts, penalties, strict=True)
    return combine_solutions(
        model, data, (solved_exactly(part, weighted_data, p, limit) for part, p in parts)
    )


def combine_solutions(model: Model, data: TrainingData, solved: Iterable[Solved]) -> LeftOut:
    """Combine the exact solutions of all kernel models of a model."""
    weighted_data = data.without_zero_weights()
    left_residuals = off = xp.zeros_like(weighted_data.targets, dtype=xp.float64)
    free_share, evidence = 0.0, math.nan
    v = xp.zeros(len(off), xp.float64)
    for weight, solution in zip(model.shares, solved, strict=True):
        left_residuals = left_residuals + weight * solution.left_out_residuals
        off = off + weight * solution.residuals
        v = v + weight * solution.variance
        free_share += weight * float(solution.residual_leverage.mean())
        # Only a single model has a weight of 1; the evidence of an average is not defined.
        evidence = solution.evidence if weight == 1 else math.nan
    w = (
        xp.to_float64(xp.ones((len(off), 1), xp.float32))
        if weighted_data.weights is None
        else weighted_data.weights[:, None]
    )
    gcv = (w * xp.square(off)).sum(axis=0) / float(w.sum()) / free_share**2
    values = xp.to_float64(weighted_data.targets) - left_residuals
    if weighted_data is not data and data.weights is not None:
        all_values = model.predict(data.rows)
        all_values[data.weights > 0] = values
        # The fit has not seen rows of weight zero: its predictions of them are out of sample.
        values = all_values
    return LeftOut(values, gcv, evidence, left_residuals, v)
