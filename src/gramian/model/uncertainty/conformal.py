"""Conformal: intervals and sets that contain the truth at a given rate, by held-back rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...data import RowSource
from ...engines import Engine

SORTED_BOUNDS = 1 << 24
"""Most bounds of intervals in memory, with several parts."""


class Predictor(Protocol):
    """A model, as far as intervals and sets need it: see `gramian.model.Model`."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """The kernel models of the predictor."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Their weights."""

    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Tensor, "n t"]:
        """Return the value of each target at each row."""

    def predict_proba(self, X: Any, **settings: Any) -> Float[Tensor, "n k"]:
        """Return the probability of each class at each row."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A function, the spread of its errors, and the scores of rows that neither has seen.

    Attributes
    ----------
    scores : Tensor of shape (c, t)
        Increasing along columns. For a regression: errors of the held-back rows over their spread;
        for a classification, (c, 1): see `set_scores`.
    values : Model or None
        The function; None for the function of the model itself.
    spread : KernelModel or None
        The logarithm of the spread of errors; None for classes, or for a constant spread.
    """

    scores: Float[Tensor, "c t"]
    values: Predictor | None = None
    spread: Predictor | None = None

    def __post_init__(self) -> None:
        s = self.scores
        if s.ndim != 2 or 0 in s.shape or s.dtype != torch.float64:
            raise ValueError(f"scores must be float64 of shape (c, t), not {tuple(s.shape)}")
        if not bool(s.isfinite().all()) or bool((s < 0).any() or (s.diff(dim=0) < 0).any()):
            raise ValueError("scores must be finite and at least 0, and increase along columns")


@dataclass(frozen=True, eq=False)
class Conformal:
    r"""Calibration of prediction intervals of a model, or of sets of its classes.

    Attributes
    ----------
    parts : tuple of Calibrated
        One part: the split method [1]_. Several parts, one for each fold: CV+ [2]_.

    Notes
    -----
    With one part, scores :math:`R_1 \le \dots \le R_c` and k = ⌈(c + 1) level⌉ the interval is
    :math:`f(x) \pm R_k s(x)`. If rows are exchangeable, a share of at least ``level`` of new rows
    is inside, over all draws of all rows, for any f and s. With several parts and n scores the ends
    are the ⌊(n + 1) (1 - level)⌋-th smallest :math:`f_k(x) - R_i s_k(x)`, of the part k that has
    the score i, and the ⌈(n + 1) level⌉-th smallest :math:`f_k(x) + R_i s_k(x)`: the theorem gives
    a share of about 1 - 2 (1 - level), experiments mostly ``level``.

    References
    ----------
    .. [1] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, *Distribution-free predictive inference for
       regression*, 2018; scaled by a model of the errors: section 5.2.
    .. [2] Barber, Candes, Ramdas, Tibshirani, *Predictive inference with the jackknife+*, 2021.
    .. [3] Romano, Sesia, Candes, *Classification with valid and adaptive coverage*, 2020.
    """

    parts: tuple[Calibrated, ...]

    @property
    def count(self) -> int:
        """Number of held-back rows with scores."""
        return sum(len(part.scores) for part in self.parts)

    def least_level(self) -> float:
        """Return the level above which intervals are infinite: c / (c + 1)."""
        return self.count / (self.count + 1)

    def intervals(
        self, model: Predictor, rows: RowSource, level: float, **settings: Any
    ) -> Float[Tensor, "n t 2"]:
        """Return the ends of the intervals of a model, in float64.

        Parameters
        ----------
        model : Model
        rows : RowSource of shape (n, d)
        level : float
            Between 0 and 1.
        **settings
            Engine and memory, as in `Model.predict`.

        Notes
        -----
        Cost: predictions of each function and of its spread; with several parts, n c bounds for
        each target, and their order statistics.
        """
        ends = [self._centers_and_spreads(part, model, rows, settings) for part in self.parts]
        if len(ends) == 1:
            f, s = ends[0]
            half = s * self._quantile(level)
            return torch.stack([f - half, f + half], dim=2)
        n, t = ends[0][0].shape
        out = torch.empty(n, t, 2, dtype=torch.float64)
        # Several parts: a row has a bound for each score, so that blocks of rows limit the memory.
        step = max(1, SORTED_BOUNDS // (self.count * t))
        for start in range(0, n, step):
            block_rows = slice(start, start + step)
            out[block_rows] = self._order_ends(
                [(f[block_rows], s[block_rows]) for f, s in ends], level
            )
        return out

    def sets(self, chances: Sequence[Float[Tensor, "n k"]], level: float) -> Bool[Tensor, "n k"]:
        """Return which classes are in the set of each row; never none.

        Parameters
        ----------
        chances : sequence of Tensor of shape (n, k)
            Probabilities by the function of each part.
        level : float

        Notes
        -----
        A class is in the set if its score, see `set_scores`, is not above the quantile of the
        scores of the true classes of calibration rows [3]_. The likeliest class is always in the
        set. Unlike [3]_ there is no randomisation, so that a repeated call gives the same set.
        With several parts, a class is in the set if its score is above the scores of fewer than
        ⌈(n + 1) level⌉ of all calibration rows, each by its part.
        """
        counts_below = torch.zeros(chances[0].shape, dtype=torch.int64)
        # Each part counts its calibration scores below the score of the class.
        for part, p in zip(self.parts, chances, strict=True):
            mine = _class_scores(p)
            counts_below += torch.searchsorted(part.scores[:, 0].contiguous(), mine)
        is_in_set = counts_below < math.ceil(level * (self.count + 1) - 1e-9)
        # An empty set would be of no use: the likeliest class by the mean of the parts joins it.
        mean = torch.stack([p.double() for p in chances]).mean(dim=0)
        is_in_set[torch.arange(len(is_in_set)), mean.argmax(dim=1)] = True
        return is_in_set

    def sets_at(
        self, model: Predictor, rows: RowSource, level: float, **settings: Any
    ) -> Bool[Tensor, "n k"]:
        """Return `sets` of a classifier at rows; arguments as in `intervals`."""
        functions = [part.values or model for part in self.parts]
        return self.sets([f.predict_proba(rows, **settings) for f in functions], level)

    def _quantile(self, level: float) -> Float[Tensor, " t"]:
        """Return the score that bounds a share `level` of new rows; infinite with too few rows."""
        scores = self.parts[0].scores
        # The small number absorbs rounding: 100 * 0.55 is 55.00000000000001, whose ceiling is 56.
        k = math.ceil((len(scores) + 1) * level - 1e-9)
        if k > len(scores):
            return scores.new_full((scores.shape[1],), math.inf)
        return scores[max(k, 1) - 1]

    @staticmethod
    def _centers_and_spreads(
        part: Calibrated, model: Predictor, rows: RowSource, settings: Mapping[str, Any]
    ) -> tuple[Tensor, Tensor]:
        f = (part.values or model).predict(rows, **settings)
        if part.spread is None:
            return f, torch.ones_like(f)
        return f, part.spread.predict(rows, **settings).exp()

    def _order_ends(self, ends: Sequence[tuple[Tensor, Tensor]], level: float) -> Tensor:
        """Return the order statistics of the bounds of all held-back rows."""
        n, (low, high) = self.count, ([], [])
        for part, (f, s) in zip(self.parts, ends, strict=True):
            off = s[:, :, None] * part.scores.t()
            low.append(f[:, :, None] - off)
            high.append(f[:, :, None] + off)
        k = math.ceil((n + 1) * level - 1e-9)
        if k > n:
            f = ends[0][0]
            return torch.stack([torch.full_like(f, -math.inf), torch.full_like(f, math.inf)], dim=2)
        # The lower end counts from the smallest bound as many as the upper end from the largest.
        lower = torch.cat(low, dim=2).kthvalue(n + 1 - k, dim=2).values
        upper = torch.cat(high, dim=2).kthvalue(k, dim=2).values
        return torch.stack([lower, upper], dim=2)


def set_scores(chances: Float[Tensor, "c k"], index: Tensor) -> Float[Tensor, "c 1"]:
    """Return the probability of all likelier classes than the true one, plus half of its own.

    [3]_ of `Conformal` adds a random share of its own probability, uniform from 0 to 1; the share
    is one half in this library. With the full probability, the last class of each row would have
    the score 1: for two classes with more errors than the level allows, all sets would have both.

    Parameters
    ----------
    chances : Tensor of shape (c, k)
    index : Tensor of shape (c,)
        Numbers of the true classes.
    """
    return _class_scores(chances).gather(1, index[:, None])


def _class_scores(chances: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """Return the score of each class as if it were the true one."""
    # Stable: classes of equal probability keep their order, and repeated calls agree.
    ordered, order = chances.double().sort(dim=1, descending=True, stable=True)
    total = ordered.cumsum(dim=1) - ordered / 2
    return torch.empty_like(total).scatter_(1, order, total)
