"""Intervals and sets of a model that contain the truth at a given rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Bool, Float
from .._messages.checks import join_words
from .._messages.errors import Text
from ..data import RowSource, subset
from .base import ConformalMethod, RowScores, least_scores
from .groups import RowGroups
from .parts import CalibratedPart, Predictor

LISTED_GROUPS = 5
"""Most groups that a warning names."""


@dataclass(frozen=True, eq=False)
class ConformalPredictor:
    """Calibration of prediction intervals of a model, or of sets of its classes.

    Attributes
    ----------
    method : ConformalMethod
    parts : tuple of CalibratedPart
        Scores of disjoint calibration rows.
    groups : RowGroups or None
        Groups of rows that are calibrated each by itself (Mondrian conformal prediction): a share
        of at least the level of the new rows of each group is inside.
    """

    method: ConformalMethod
    parts: tuple[CalibratedPart, ...]
    groups: RowGroups | None = None

    def __post_init__(self) -> None:
        # Checked here and not only in `from_scores`, because files of models come this way, too.
        for s in (part.scores for part in self.parts):
            if s.ndim != 2 or 0 in s.shape or s.dtype != xp.float64:
                raise ValueError(f"scores must be float64 of shape (c, t), not {tuple(s.shape)}")
            # Quantile regression has negative scores, which shrink intervals that are too wide; a
            # distance has none.
            is_refused = not self.method.has_signed_scores and bool((s < 0).any())
            if is_refused or not bool(xp.isfinite(s).all()) or bool((xp.diff(s, 0) < 0).any()):
                raise ValueError("scores must be finite and at least 0, and increase along columns")
        for part in self.parts:
            if (part.groups is None) is not (self.groups is None) or (
                part.groups is not None and part.groups.shape != part.scores.shape
            ):
                raise ValueError("each score of a calibration by groups has a group")

    @classmethod
    def from_scores(
        cls,
        method: ConformalMethod,
        scored: Iterable[RowScores],
        learn_groups: Callable[[Sequence[RowSource]], RowGroups] | None = None,
    ) -> ConformalPredictor:
        """Build the calibration from the scores of `ConformalMethod.calibrate`."""
        scored = tuple(scored)
        groups = None if learn_groups is None else learn_groups([part.rows for part in scored])
        parts = tuple(
            CalibratedPart.from_scores(
                part.scores, part.functions, None if groups is None else groups.codes(part.rows)
            )
            for part in scored
        )
        return cls(method, parts, groups)

    @property
    def count(self) -> int:
        """Number of held-out rows with scores."""
        return sum(len(part.scores) for part in self.parts)

    def least_level(self) -> float:
        """Return the level above which intervals are infinite: c / (c + 1)."""
        return self.count / (self.count + 1)

    def describe(self) -> str:
        """Return the calibration in one line."""
        text = f"{self.method.describe(self.parts)}: scores of {self.count:,} held-out rows"
        if self.groups is None:
            return text
        return f"{text}, in {len(self.groups.labels)} groups by {self.groups.column!r}"

    def intervals(
        self, model: Predictor, rows: RowSource, level: float, **settings: Any
    ) -> Float[Array, "n t 2"]:
        """Return the ends of the intervals of a model; see `ConformalMethod.intervals`.

        With groups, a row is compared with the scores of its group. Rows of a group with too few
        scores for the level, or without any, are compared with all scores: the level then holds
        over all rows, and `shortfalls` names these groups.

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
        Cost: see `ConformalMethod.intervals`; with groups, a pass over the rows for each group and
        one
        more.
        """
        return self._each_group(self.method.intervals, model, rows, level, settings)

    def sets(
        self, model: Predictor, rows: RowSource, level: float, **settings: Any
    ) -> Bool[Array, "n k"]:
        """Return a mask of the classes in the set of each row; arguments as in `intervals`."""
        return self._each_group(self.method.sets, model, rows, level, settings)

    def _each_group(
        self,
        predict: Callable[..., Array],
        model: Predictor,
        rows: RowSource,
        level: float,
        settings: dict[str, Any],
    ) -> Array:
        # Without rows there is no group, and the result still has its shape.
        if self.groups is None or len(rows) == 0:
            return predict(self.parts, model, rows, level, settings)
        codes = self.groups.codes(rows)
        # Small groups join the rows of no known group: one prediction for all of them.
        for code in self._small_groups(level):
            codes[codes == code] = -1
        pieces, order = [], []
        for code in xp.unique(codes).tolist():
            index = xp.flatnonzero(codes == code)
            parts = self.parts
            if code >= 0:
                of_group = (part.of_group(code) for part in self.parts)
                parts = tuple(part for part in of_group if len(part.scores))
            # One prediction for each group, although the model is the same: the quantile of the
            # scores is not.
            pieces.append(predict(parts, model, subset(rows, index), level, settings))
            order.append(index)
        return xp.concat(pieces)[xp.concat(order).argsort(stable=True)]

    def _small_groups(self, level: float) -> list[int]:
        """Return the groups with too few scores for a level."""
        return [code for code, c in enumerate(self._group_counts()) if c < least_scores(level)]

    def _group_counts(self) -> list[int]:
        codes = xp.concat([part.groups[:, 0] for part in self.parts if part.groups is not None])
        return xp.bincount(codes, minlength=len(self.groups.labels)).tolist() if self.groups else []

    def shortfalls(self, level: float, rows: RowSource | None = None) -> Iterator[Text]:
        """Yield a warning if there are too few scores, of all rows or of a group, for a level.

        Parameters
        ----------
        level : float
        rows : RowSource, optional
            Rows in which, with groups, rows without a known group are counted, in one pass.
        """
        if level > self.least_level():
            yield self._few_scores(level)
        elif self.groups is not None:
            if small := self._small_groups(level):
                yield self._few_of_groups(small, level)
            unknown = 0 if rows is None else int((self.groups.codes(rows) < 0).sum())
            if unknown:
                yield Text(
                    "{} rows are in no group by {conformal_groups=} that the calibration has: "
                    "their intervals and sets come from the scores of all groups",
                    unknown,
                    self.groups.column,
                )

    def _few_scores(self, level: float) -> Text:
        remedy = (
            Text("fit to more rows, or ask for a lower level")
            if self.method.scores_all_rows
            else Text("with {conformal='cv+'} every row has a score; or ask for a lower level")
        )
        return Text(
            "{} held-out rows are too few for a level of {:g}, which requires {}: intervals are "
            "infinite, and sets have all classes; {}",
            self.count,
            level,
            least_scores(level),
            remedy,
        )

    def _few_of_groups(self, small: Sequence[int], level: float) -> Text:
        assert self.groups is not None
        counts = self._group_counts()
        names = [f"{self.groups.labels[code]} ({counts[code]})" for code in small[:LISTED_GROUPS]]
        more = [f"{len(small) - LISTED_GROUPS} more"] if len(small) > LISTED_GROUPS else []
        return Text(
            "groups with fewer than the {} held-out rows that a level of {:g} needs: {}; their "
            "intervals and sets come from the scores of all groups, and their coverage may be "
            "another{}",
            least_scores(level),
            level,
            join_words([*names, *more]),
            ""
            if self.method.scores_all_rows
            else Text("; with {conformal='cv+'} every row has a score"),
        )
