"""Intervals between two fitted quantiles, which held-out rows shift by a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_share
from ..data import RowSource
from .base import RowScores, methods
from .held_out import HeldOutMethod
from .parts import CalibratedPart, CalibrationRows, Predictor, Refit

LOCAL_ROWS = 10_000
"""Rows that quantiles are fitted to, at most, where rows are on other machines."""


@methods.register("cqr")
@dataclass(frozen=True)
class ConformalQuantiles(HeldOutMethod):
    r"""Conformalised quantile regression.

    Quantiles :math:`q_\text{low}` and :math:`q_\text{high}` at the levels (1 - ``level``) / 2 and
    (1 + ``level``) / 2 are fitted to the training rows, with the kernel, metric and landmarks of
    the model and the pinball loss. The scores of held-out rows are :math:`\max(q_\text{low}(x) - y,
    y - q_\text{high}(x))`, and the interval is :math:`[q_\text{low}(x) - R_k, q_\text{high}(x) +
    R_k]`, :math:`R_k` their quantile. Intervals need not be symmetric about the prediction of the
    model.

    Parameters
    ----------
    level : float, default=0.9
        Coverage between the fitted quantiles, between 0 and 1. An interval of another level shifts
        the same quantiles by another quantile of the scores. Its coverage holds over all rows; at
        the level of the quantiles, intervals are narrowest, and their coverage is most nearly equal
        for all kinds of rows.

    Notes
    -----
    The penalty of each quantile is chosen by the pinball loss, on rows that are held out of the
    training rows. Centers are the landmarks of the model; without any, or with cells, sqrt(n)
    log(n) random rows. Of an average of models, quantiles have the kernel of the heaviest one. An
    interval whose ends would cross is the point between them. Remote rows: quantiles are fitted to
    a random part of at most 10,000 rows, in memory.

    Cost: two fits with `Quantile`, each with its choice of a penalty.

    References
    ----------
    .. [1] Romano, Patterson, Candes, *Conformalized quantile regression*, 2019.
    """

    supports_classes: ClassVar[bool] = False
    has_signed_scores: ClassVar[bool] = True

    level: float = 0.9

    def __post_init__(self) -> None:
        as_share(self.level, "level")

    def score_rows(
        self, refit: Refit, learned: CalibrationRows, held_data: Any, draws: RandomStream
    ) -> RowScores:
        n, tail, sample = len(learned.targets), (1 - self.level) / 2, None
        if n > LOCAL_ROWS and not learned.rows.fits():
            sample = xp.sort(draws.sample(n, LOCAL_ROWS))
        learned = learned.local_part(sample)
        functions = {"low": refit.fit_quantile(learned, tail)}
        functions["high"] = refit.fit_quantile(learned, 1 - tail)
        low, high = _sorted_ends(functions, held_data.rows, {})
        y = xp.to_float64(held_data.targets)
        return RowScores(held_data.rows, xp.maximum(low - y, y - high), functions)

    def intervals(
        self,
        parts: Sequence[CalibratedPart],
        model: Predictor,
        rows: RowSource,
        level: float,
        settings: Mapping[str, Any],
    ) -> Float[Array, "n t 2"]:
        """Return the moved quantiles; ends that cross are replaced by their mean."""
        ends = super().intervals(parts, model, rows, level, settings)
        is_empty = ends[..., :1] > ends[..., 1:]
        # The mean of ends at infinity is not used.
        with np.errstate(invalid="ignore"):
            return np.where(is_empty, ends.mean(axis=2, keepdims=True), ends)

    def bounds(
        self,
        part: CalibratedPart,
        model: Predictor,
        rows: RowSource,
        settings: Mapping[str, Any],
    ) -> tuple[Float[Array, "n t"], Float[Array, "n t"], Float[Array, "n t"]]:
        """Return both quantiles, and a spread of one."""
        low, high = _sorted_ends(part.functions, rows, settings)
        return low, high, xp.ones_like(low)


def _sorted_ends(
    functions: Mapping[str, Predictor], rows: RowSource, settings: Mapping[str, Any]
) -> tuple[Float[Array, "n t"], Float[Array, "n t"]]:
    """Return the quantiles at rows; where they cross, the lower one first."""
    low, high = (functions[name].predict(rows, **settings) for name in ("low", "high"))
    return xp.minimum(low, high), xp.maximum(low, high)
