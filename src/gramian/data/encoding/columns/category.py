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
from .left_out import (
    CONSTANT_COLUMN,
    EMPTY_COLUMN,
    FREE_TEXT,
    IDENTIFIER_TEXT,
    TOO_MANY_LEVELS,
    LeftOut,
)
from .one_hot import FEW_LEVELS, Levels, OneHot
from .target_means import Tally, TargetMeans, TooMany, smooth_means

IDENTIFIER_SHARE = 0.95
"""Share of rows with a text of their own from which texts are left out as identifiers."""

LONG_TEXT_CHARACTERS = 30
"""Characters of a text, on average, that nobody gives to a level."""


@column_kind(
    "category",
    "text or categories",
    lambda type_: is_text(type_) or (are_categories(type_) and not type_.ordered),
)
class CategoryObserver(Observer):
    """Observer of categories, which counts levels and chooses their encoding."""

    def __init__(self, field: pa.Field, kind: Kind, where: str, settings: Settings) -> None:
        super().__init__(field, kind, where, settings)
        # Identifiers and free text become features, too, instead of being left out.
        self._is_kept = field.name in settings.text_features
        self._tally: Tally | None = Tally()

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        if self._tally is None:
            return ()
        try:
            self._tally.add(*encode_levels(column), seen.targets, seen.folds)
        except TooMany:
            if self._is_kept:
                raise TextError(
                    f"{{}}: column '{{}}' has {{}}; {LEAVE_OUT}",
                    self.where, self.name, TOO_MANY_LEVELS,
                ) from None  # fmt: skip
            self._tally = None
        return ()

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        if self._tally is None:
            return LeftOut(self.name, TOO_MANY_LEVELS)
        rows = self._tally.counts.sum(axis=1)
        # Only levels that a training row has: a dictionary may list others. Sorted, so that the
        # order of rows does not matter.
        codes = self._tally.codes
        texts = tuple(sorted(text for text in codes if text is not None and rows[codes[text]]))
        # Missing values are a level of their own if there are any: row 0 of the tally.
        levels = Levels(texts, bool(len(rows) and rows[0]))
        if not texts:
            return LeftOut(self.name, EMPTY_COLUMN)
        if len(levels) == 1:
            return LeftOut(self.name, CONSTANT_COLUMN)
        # Only for many levels: few rows may well have different texts.
        if len(levels) > FEW_LEVELS and not self._is_kept:
            reason = _reason_to_leave_out(texts, rows[1:])
            if reason:
                return LeftOut(self.name, reason)
        # The order of levels, in which `Levels` has the missing one last and the tally first.
        order = [codes[text] for text in (*levels.texts, *([None] if levels.missing else []))]
        one_hot = OneHot.of(self.name, levels, rows[order])
        is_rare = 2 * rows[order][list(one_hot.rare)].sum() > rows.sum()
        if len(levels) <= self.settings.max_levels and not is_rare:
            return one_hot
        counts, sums = self._tally.counts[order], self._tally.sums[order]
        means, self.without = smooth_means(counts, sums, self.settings.smoothing)
        return TargetMeans.of(self.name, levels, counts, means, self.without)


def _reason_to_leave_out(texts: tuple[str, ...], rows: np.ndarray) -> str | None:
    """Return why different texts, with numbers of rows, are hardly levels; None if they are."""
    count = rows.sum()
    if np.count_nonzero(rows == 1) >= IDENTIFIER_SHARE * count:
        return IDENTIFIER_TEXT
    is_long = sum(map(len, texts)) >= LONG_TEXT_CHARACTERS * len(texts)
    return FREE_TEXT if is_long and 2 * len(texts) > count else None
