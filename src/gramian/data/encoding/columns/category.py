"""Learning the encoding of text and categories, by their number of levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...._messages.errors import TextError
from ..kinds import LEAVE_OUT, Kind, are_categories, column_kind, is_text
from ..moments import Summary
from ..settings import Settings
from ..values import encode_levels
from .base import ColumnEncoding, Observer, Seen
from .folded_means import FoldedMeans
from .left_out import (
    CONSTANT_COLUMN,
    EMPTY_COLUMN,
    FREE_TEXT,
    IDENTIFIER_TEXT,
    TOO_MANY_LEVELS,
    LeftOut,
)
from .levels import Levels, in_order
from .one_hot import FEW_LEVELS, OneHot
from .tally import Tally, TooMany
from .target_means import TargetMeans

LONG_TEXT_CHARACTERS = 30
"""Characters of a text, on average, that nobody gives to a level."""


def _is_category(type_: pa.DataType) -> bool:
    return is_text(type_) or (are_categories(type_) and not type_.ordered)


@column_kind("category", "text or categories", _is_category)
class CategoryObserver(Observer):
    """Observer of categories, which counts levels and chooses their encoding.

    Parameters
    ----------
    name : str
    where : str
        The table, for error messages.
    max_levels : int
        Number of levels up to which each has a column.
    smoothing : float
    is_kept : bool, default=False
        Whether identifiers and free text become features too, instead of being left out.
    """

    def __init__(
        self, name: str, where: str, max_levels: int, smoothing: float, is_kept: bool = False
    ) -> None:
        self.name = name
        self._where, self._max_levels, self._smoothing = where, max_levels, smoothing
        self._is_kept = is_kept
        self._tally: Tally | None = Tally()

    @classmethod
    def of(cls, field: pa.Field, kind: Kind, where: str, settings: Settings) -> CategoryObserver:
        name = field.name
        is_kept = name in settings.text_features
        return cls(name, where, settings.max_levels, settings.smoothing, is_kept)

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        if self._tally is None:
            return ()
        try:
            self._tally.add(*encode_levels(column), seen.targets, seen.folds)
        except TooMany:
            if self._is_kept:
                raise TextError(
                    f"{{}}: column '{{}}' has {{}}; {LEAVE_OUT}",
                    self._where, self.name, TOO_MANY_LEVELS,
                ) from None  # fmt: skip
            self._tally = None
        return ()

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        if self._tally is None:
            return LeftOut(self.name, TOO_MANY_LEVELS)
        rows = self._tally.counts.sum(axis=1)
        # Only levels that a training row has: a dictionary may list others. Sorted, so that the
        # order of rows does not matter.
        texts = in_order(text for text, code in self._tally.codes.items() if text is not None
                         and rows[code])  # fmt: skip
        # Missing values are a level of their own if there are any: row 0 of the tally.
        levels = Levels(texts, bool(len(rows) and rows[0]))
        if not texts:
            return LeftOut(self.name, EMPTY_COLUMN)
        if len(levels) == 1:
            return LeftOut(self.name, CONSTANT_COLUMN)
        # Only for many levels: few rows may well have different texts.
        if len(levels) > FEW_LEVELS and not self._is_kept:
            reason = _reason_to_leave_out(texts, int(rows[1:].sum()))
            if reason:
                return LeftOut(self.name, reason)
        # The order of levels, in which `Levels` has the missing one last and the tally first.
        codes: list[str | None] = [*levels.texts, *([None] if levels.missing else [])]
        order = [self._tally.codes[text] for text in codes]
        one_hot = OneHot.of(self.name, levels, rows[order])
        is_rare = 2 * sum(rows[order][k] for k in one_hot.rare) > rows.sum()
        if len(levels) <= self._max_levels and not is_rare:
            return one_hot
        return self._means(levels, self._tally, order)

    def _means(self, levels: Levels, tally: Tally, order: list[int]) -> TargetMeans:
        counts, sums = tally.counts[order], tally.sums[order]
        folded = FoldedMeans.of(counts, sums, self._smoothing)
        self.without = folded.without
        return TargetMeans.of(self.name, levels, counts, folded)


def _reason_to_leave_out(texts: tuple[str, ...], rows: int) -> str | None:
    """Return why different texts of some rows are hardly levels; None if they are."""
    if len(texts) == rows:
        return IDENTIFIER_TEXT
    is_long = sum(map(len, texts)) >= LONG_TEXT_CHARACTERS * len(texts)
    return FREE_TEXT if is_long and 2 * len(texts) > rows else None
