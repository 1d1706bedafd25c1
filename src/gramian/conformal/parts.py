"""Parts of a calibration, and models, rows and refits as far as conformal methods need them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from .. import _arrays as xp
from .._arrays import Array, Bool, Float, Int
from ..data import RowSource
from ..engines import Engine

Rows = TypeVar("Rows", bound="CalibrationRows")


@runtime_checkable
class Predictor(Protocol):
    """A model, as far as intervals and sets need it: see `gramian.model.Model`."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels of a classifier; None for a regression."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """The kernel models of the predictor."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Weights of the kernel models."""

    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t"]:
        """Return the value of each target at each row."""

    def predict_proba(self, X: Any, **settings: Any) -> Float[Array, "n k"]:
        """Return the probability of each class at each row."""


@runtime_checkable
class CalibrationRows(Protocol):
    """Rows with targets, as far as methods need them: see `gramian.fitting.TrainingData`."""

    @property
    def rows(self) -> RowSource:
        """The n rows."""

    @property
    def targets(self) -> Any:
        """Targets of the rows, (n, t)."""

    @property
    def coded(self) -> bool:
        """Whether targets are codes of classes."""

    def part(self: Rows, index: Int[Array, " k"]) -> Rows:
        """Return the data of the rows at increasing indices."""

    def local_part(self: Rows, index: Int[Array, " k"] | None) -> Rows:
        """Return some or all rows in memory, including remote rows."""


@runtime_checkable
class Refit(Protocol):
    """Fits with the configuration of a fitted model: see `gramian.fitting.uncertainty.refit`."""

    @property
    def model(self) -> Predictor:
        """The fitted model."""

    def to_fewer(self, data: Any) -> Refit:
        """Return the refit for a model fitted to a part of the rows."""

    def fit_rows(self, data: Any) -> Predictor:
        """Return the model fitted to other rows, with the same landmarks."""

    def fit_targets(self, data: Any, targets: Float[Array, "n t"], penalty: float) -> Predictor:
        """Return the ridge regression of other targets, by squared errors."""

    def fit_quantile(self, data: Any, level: float) -> Predictor:
        """Return a quantile of the targets, by the pinball loss."""

    def class_numbers(self, data: Any) -> Int[Array, " n"] | None:
        """Return the index of the class of each row; None for a regression."""


@dataclass(frozen=True, eq=False)
class CalibratedPart:
    """Scores of calibration rows, and functions that were fitted without these rows.

    Attributes
    ----------
    scores : Array of float64 of shape (c, t)
        Increasing along columns.
    functions : mapping of str to Model
        The functions of the method, by names of its choice. ``"values"`` replaces the predictions
        of the model.
    groups : Array of int64 of shape (c, t), or None
        Index of the group of each score.
    """

    scores: Float[Array, "c t"]
    functions: Mapping[str, Predictor] = field(default_factory=dict)
    groups: Int[Array, "c t"] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: Float[Array, "c t"],
        functions: Mapping[str, Predictor],
        codes: Int[Array, " c"] | None,
    ) -> CalibratedPart:
        """Sort the scores of rows, together with the indices of their groups."""
        ordered, order = xp.sort_with_order(xp.to_float64(scores), 0)
        return cls(xp.contiguous(ordered), functions, None if codes is None else codes[order])

    def of_group(self, code: int) -> CalibratedPart:
        """Return the part with the scores of one group."""
        if self.groups is None:
            return self
        columns = [
            column[codes == code]
            for column, codes in zip(self.scores.T, self.groups.T, strict=True)
        ]
        return replace(self, scores=xp.stack(columns, axis=1), groups=None)


def prediction_sets(
    parts: Sequence[CalibratedPart], chances: Sequence[Float[Array, "n k"]], level: float
) -> Bool[Array, "n k"]:
    """Return a mask of the classes in the set of each row, which is never empty.

    - `parts`: parts with scores of shape (c, 1), see `set_scores`.
    - `chances`: probabilities by the function of each part.

    Notes
    -----
    A class is in the set if its score, see `set_scores`, is not above the quantile of the scores of
    the true classes of calibration rows [1]_. The likeliest class is always in the set. Unlike
    [1]_ there is no randomisation, so that a repeated call gives the same set. With several parts,
    a class is in the set if its score is above the scores of fewer than ⌈(n + 1) level⌉ of all
    calibration rows, each by its part.

    References
    ----------
    .. [1] Romano, Sesia, Candes, *Classification with valid and adaptive coverage*, 2020.
    """
    counts_below = xp.zeros(chances[0].shape, xp.int64)
    for part, p in zip(parts, chances, strict=True):
        # Each part counts its calibration scores below the score of the class.
        counts_below += xp.find_insertions(xp.contiguous(part.scores[:, 0]), _class_scores(p))
    count = sum(len(part.scores) for part in parts)
    is_in_set = counts_below < math.ceil(level * (count + 1) - 1e-9)
    # An empty set would be of no use: the likeliest class by the mean of the parts joins it.
    mean = xp.stack([xp.to_float64(p) for p in chances]).mean(axis=0)
    is_in_set[xp.arange(len(is_in_set)), mean.argmax(axis=1)] = True
    return is_in_set


def set_scores(chances: Float[Array, "c k"], index: Array) -> Float[Array, "c 1"]:
    """Return the probability of all classes likelier than the true class, plus half of its own.

    Romano, Sesia and Candes add a random share of its own probability, uniform from 0 to 1; the
    share is one half in this library. With the full probability, the last class of each row would
    have the score 1: for two classes with more errors than the level allows, all sets would have
    both.

    - `index`: of shape (c,); indices of the true classes.
    """
    return xp.take_along(_class_scores(chances), index[:, None], axis=1)


def _class_scores(chances: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Return the score that each class would have if it were the true class."""
    # Stable: classes of equal probability keep their order, and repeated calls agree.
    ordered, order = xp.sort_with_order(xp.to_float64(chances), 1, descending=True)
    total = ordered.cumsum(axis=1) - ordered / 2
    return xp.put_along(xp.empty_like(total), order, total, 1)
