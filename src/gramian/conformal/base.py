"""Base class and registry of conformal methods."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from .. import _arrays as xp
from .._arrays import Array, Bool, Float, Int, RandomStream
from .._registries.registry import Registry
from ..data import RowSource
from .parts import CalibratedPart, CalibrationRows, Predictor, Refit, prediction_sets

SORTED_BOUNDS = 1 << 24
"""Most bounds of intervals in memory, with several parts."""


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of calibration rows, by functions that did not learn from these rows.

    Attributes
    ----------
    rows : RowSource of shape (c, d)
    scores : Array of shape (c, t)
        Scores in the order of the rows.
    functions : mapping of str to Model
        Functions of the method, as in `CalibratedPart`.
    """

    rows: RowSource
    scores: Float[Array, "c t"]
    functions: Mapping[str, Predictor] = field(default_factory=dict)


class ConformalMethod(ABC):
    """A method that computes prediction intervals, or sets of classes, from scores of rows.

    The fields of a method are parameters that JSON can hold, because model files contain them.

    Attributes
    ----------
    supports_classes : bool
        Whether it also makes sets of classes.
    has_signed_scores : bool
        Whether scores may be negative.
    scores_all_rows : bool
        Whether every row has a score: none is lost to the fit.
    """

    supports_classes: ClassVar[bool] = True
    has_signed_scores: ClassVar[bool] = False
    scores_all_rows: ClassVar[bool] = False

    @abstractmethod
    def divide(
        self,
        n: int,
        new_draws: Callable[[], RandomStream],
        classes: Int[Array, " n"] | None = None,
    ) -> Int[Array, " c"] | None:
        """Return the increasing indices of rows to hold out before a fit; None to hold none out.

        Parameters
        ----------
        n : int
            Rows of positive weight.
        new_draws : callable
            Returns the generator that divides rows.
        classes : Array of shape (n,), optional
            Indices of the classes of the rows.

        Raises
        ------
        ValueError
            If there are too few rows.
        """

    @abstractmethod
    def calibrate(
        self,
        refit: Refit,
        data: CalibrationRows,
        held_data: CalibrationRows | None,
        new_draws: Callable[[], RandomStream],
    ) -> Iterable[RowScores]:
        """Return the scores of rows, in a part for each model that predicted them.

        Parameters
        ----------
        refit : Refit
            Refit of the fitted model.
        data : TrainingData
            The rows of its fit.
        held_data : TrainingData or None
            The rows of `divide`; None if it returned None, or was not called: intervals of a model
            that was fitted without a method then come from rows of its fit.
        new_draws : callable
            Returns the generator that divides rows, at its start.
        """

    def intervals(
        self,
        parts: Sequence[CalibratedPart],
        model: Predictor,
        rows: RowSource,
        level: float,
        settings: Mapping[str, Any],
    ) -> Float[Array, "n t 2"]:
        r"""Return the ends of the intervals of a model, in float64.

        Parameters
        ----------
        parts : sequence of CalibratedPart
        model : Model
        rows : RowSource of shape (n, d)
        level : float
            Between 0 and 1.
        settings : mapping
            Engine and memory, as in `Model.predict`.

        Notes
        -----
        With one part, scores :math:`R_1 \le \dots \le R_c` and k = ⌈(c + 1) level⌉ the interval is
        from :math:`l(x) - R_k s(x)` to :math:`u(x) + R_k s(x)`, see `bounds`. If rows are
        exchangeable, a share of at least ``level`` of new rows is inside, over all draws of all
        rows, for any l, u and s. With several parts and n scores the ends are the ⌊(n + 1) (1 -
        level)⌋-th smallest :math:`l_k(x) - R_i s_k(x)`, of the part k that has the score i, and the
        ⌈(n + 1) level⌉-th smallest :math:`u_k(x) + R_i s_k(x)`.

        Cost: predictions of the functions of each part; with several parts n c bounds for each
        target, which are sorted.
        """
        ends = [self.bounds(part, model, rows, settings) for part in parts]
        # One part: all scores belong to the same functions, so that one quantile serves all rows.
        if len(ends) == 1:
            low, high, s = ends[0]
            half = s * quantile_of_scores(parts[0].scores, level)
            return xp.stack([low - half, high + half], axis=2)
        n, t = ends[0][0].shape
        out = xp.empty((n, t, 2), xp.float64)
        # Several parts: each held-out row bounds each new row by the functions that did not see it.
        # These n c bounds are sorted block by block, as all of them may exceed the memory.
        step = max(1, SORTED_BOUNDS // (sum(len(part.scores) for part in parts) * t))
        for start in range(0, n, step):
            block = slice(start, start + step)
            of_block = [(low[block], high[block], s[block]) for low, high, s in ends]
            out[block] = _order_ends(parts, of_block, level)
        return out

    def bounds(
        self,
        part: CalibratedPart,
        model: Predictor,
        rows: RowSource,
        settings: Mapping[str, Any],
    ) -> tuple[Float[Array, "n t"], Float[Array, "n t"], Float[Array, "n t"]]:
        """Return l, u and s of a part at rows: by default both are f, and log s is "spread"."""
        f = part.functions.get("values", model).predict(rows, **settings)
        if "spread" not in part.functions:
            return f, f, xp.ones_like(f)
        return f, f, xp.exp(part.functions["spread"].predict(rows, **settings))

    def sets(
        self,
        parts: Sequence[CalibratedPart],
        model: Predictor,
        rows: RowSource,
        level: float,
        settings: Mapping[str, Any],
    ) -> Bool[Array, "n k"]:
        """Return a mask of the classes in the set of each row; arguments as in `intervals`."""
        functions = [part.functions.get("values", model) for part in parts]
        chances = [f.predict_proba(rows, **settings) for f in functions]
        return prediction_sets(parts, chances, level)

    def describe(self, parts: Sequence[CalibratedPart]) -> str:
        """Return the method in words, for `gramian info`."""
        return methods.name_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the parameters, for JSON."""
        parameters = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"name": methods.name_of(self), **parameters}


methods: Registry[ConformalMethod] = Registry("conformal method")


def least_scores(level: float) -> int:
    """Return how many scores finite intervals need: the least c with c / (c + 1) >= level."""
    # The small number absorbs rounding: 0.9 / (1 - 0.9) is 9.000000000000002, not 9.
    return math.ceil(level / (1 - level) - 1e-9)


def quantile_of_scores(scores: Float[Array, "c t"], level: float) -> Float[Array, " t"]:
    """Return the score that bounds a share `level` of new rows; infinite with too few rows."""
    # The small number absorbs rounding: 100 * 0.55 is 55.00000000000001, whose ceiling is 56.
    k = math.ceil((len(scores) + 1) * level - 1e-9)
    if k > len(scores):
        return xp.full((scores.shape[1],), math.inf, scores.dtype, like=scores)
    return scores[max(k, 1) - 1]


def _order_ends(
    parts: Sequence[CalibratedPart], ends: Sequence[tuple[Array, ...]], level: float
) -> Float[Array, "n t 2"]:
    """Return the order statistics of the bounds of all held-out rows."""
    lows, highs = [], []
    for part, (low, high, s) in zip(parts, ends, strict=True):
        off = s[:, :, None] * part.scores.T
        lows.append(low[:, :, None] - off)
        highs.append(high[:, :, None] + off)
    n = sum(len(part.scores) for part in parts)
    k = math.ceil((n + 1) * level - 1e-9)
    # Too few scores for this level: only infinite ends keep the guarantee.
    if k > n:
        f = ends[0][0]
        return xp.stack([xp.full_like(f, -math.inf), xp.full_like(f, math.inf)], axis=2)
    # Order statistics by selection, because a sort of all bounds would take longer.
    lower = xp.kth_smallest(xp.concat(lows, axis=2), n + 1 - k, 2)
    upper = xp.kth_smallest(xp.concat(highs, axis=2), k, 2)
    return xp.stack([lower, upper], axis=2)
