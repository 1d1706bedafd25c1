"""Learning the encoding of text and categories, by their number of levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...._messages.errors import TextError
from ..kinds import LEAVE_OUT
from ..moments import Summary
from ..values import encode_levels
from .base import ColumnEncoding, Observer, Seen
from .folded_means import FoldedMeans
from .left_out import CONSTANT_COLUMN, EMPTY_COLUMN, LeftOut
from .levels import Levels, in_order
from .one_hot import OneHot
from .tally import Tally, TooMany
from .target_means import TargetMeans

LONG_TEXT_CHARACTERS = 30
"""Characters of a text, on average, that nobody gives to a level."""


class CategoryObserver(Observer):
    """Counts levels, and chooses between one column each and means.

    Parameters
    ----------
    name : str
    where : str
        The table, for error messages.
    max_levels : int
        Number of levels up to which each has a column.
    smoothing : float
    """

    def __init__(self, name: str, where: str, max_levels: int, smoothing: float) -> None:
        self.name = name
        self._where, self._max_levels, self._smoothing = where, max_levels, smoothing
        self._tally = Tally()
        self.without: np.ndarray | None = None

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        try:
            self._tally.add(*encode_levels(column), seen.targets, seen.folds)
        except TooMany:
            raise self._error("too many texts to be a category") from None
        return ()

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
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
        if len(levels) <= self._max_levels:
            return OneHot(self.name, levels)
        # Only for many levels: few rows may well have different texts.
        self._refuse_texts(texts, int(rows[1:].sum()))
        return self._means(levels)

    def _refuse_texts(self, texts: tuple[str, ...], rows: int) -> None:
        what = None
        # Means of levels of one row each would be the target itself, or nothing.
        if len(texts) == rows:
            what = "a different text in every row, as an identifier has"
        elif 2 * len(texts) > rows and sum(map(len, texts)) >= LONG_TEXT_CHARACTERS * len(texts):
            what = "free text, long and seldom the same"
        if what is not None:
            raise self._error(what)

    def _error(self, what: str) -> ValueError:
        return TextError(f"{{}}: column '{{}}' has {{}}; {LEAVE_OUT}", self._where, self.name, what)

    def _means(self, levels: Levels) -> TargetMeans:
        # The order of levels, in which `Levels` has the missing one last and the tally first.
        codes: list[str | None] = [*levels.texts, *([None] if levels.missing else [])]
        order = [self._tally.codes[text] for text in codes]
        counts, sums = self._tally.counts[order], self._tally.sums[order]
        folded = FoldedMeans.of(counts, sums, self._smoothing)
        self.without = folded.without
        return TargetMeans.of(self.name, levels, counts, folded)
