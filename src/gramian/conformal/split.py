"""Intervals by errors of held-out rows, divided by a model of their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._arrays import RandomStream
from .base import RowScores, methods
from .held_out import HeldOutMethod, errors_of
from .parts import CalibrationRows, Refit
from .spread import choose_spread, divide_order, scale_errors


@methods.register("split")
@dataclass(frozen=True)
class ConformalSplit(HeldOutMethod):
    r"""Split conformal prediction, scaled by a model of the spread of errors.

    The interval is :math:`f(x) \pm R_k s(x)`, f the model, s the spread of its errors, see
    `choose_spread`, and :math:`R_k` a quantile of the scores \|r\| / s of held-out rows with errors
    r. A set takes classes in the order of their probabilities, see `prediction_sets`.

    Notes
    -----
    One half of the held-out rows chooses the ridge of the spread; the other half, which has chosen
    nothing, gives the scores. Of classes all held-out rows give scores.

    Cost: two fits to half of the rows, up to ten of the spread to at most 10,000: of few
    iterations, as its penalties are large.

    References
    ----------
    .. [1] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, *Distribution-free predictive inference for
       regression*, 2018; scaled by a model of the errors: section 5.2.
    """

    def score_rows(
        self, refit: Refit, learned: CalibrationRows, held_data: Any, draws: RandomStream
    ) -> RowScores:
        # 1. One half chooses the spread; scores of the other half alone keep the guarantee.
        first, second = divide_order(draws.permutation(len(held_data.targets)), 2)
        errors = errors_of(refit, held_data)
        judges = held_data.part(first), errors[first]
        # 2. Learn the spread from rows of the fit, whose errors come from refits on halves.
        spread = choose_spread(refit, learned, judges, draws)
        return scale_errors(errors[second], held_data.part(second), spread)
