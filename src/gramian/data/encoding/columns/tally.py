"""Counts of levels, and sums of the targets in each, fold by fold."""

from __future__ import annotations

import numpy as np

MEAN_FOLDS = 5
MOST_LEVELS = 1_000_000
MOST_BYTES = 1 << 26


class TooMany(ValueError):
    """Error for levels that are too many, or too long, to be kept in memory."""


class Tally:
    """Counts and sums of the levels of a column so far.

    Attributes
    ----------
    codes : dict of str to int
        Rows of the arrays, in the order of appearance; row 0 is for missing values.
    counts : ndarray of int64 of shape (capacity, 5)
    sums : ndarray of float64 of shape (capacity, 5, t)
    """

    def __init__(self) -> None:
        self.codes: dict[str | None, int] = {None: 0}
        self.counts = np.zeros((0, MEAN_FOLDS), np.int64)
        self.sums = np.zeros((0, MEAN_FOLDS, 0))
        self._bytes = 0

    def add(
        self, texts: list[str | None], index: np.ndarray, targets: np.ndarray, folds: np.ndarray
    ) -> None:
        """Count the levels of some rows, and add their targets.

        Parameters
        ----------
        texts : list of str or None
            Levels; some may have no row.
        index : ndarray of int64 of shape (b,)
            Positions in `texts`, -1 for missing values.
        targets : ndarray of float64 of shape (b, t)
        folds : ndarray of int8 of shape (b,)

        Raises
        ------
        TooMany
        """
        present_codes = np.unique(index)
        # The last place, -1, is for missing values, which are row 0.
        places = np.zeros(len(texts) + 1, np.int64)
        # Only texts that rows have get a code: a dictionary may list a million others.
        for place in present_codes[present_codes >= 0].tolist():
            places[place] = self._code(texts[place])
        self._grow(targets.shape[1])
        # Level and fold as one number, so that one `bincount` adds up both.
        cells = places[index] * MEAN_FOLDS + folds
        size = self.counts.size
        self.counts += np.bincount(cells, minlength=size).reshape(-1, MEAN_FOLDS)
        for j in range(targets.shape[1]):
            part = np.bincount(cells, targets[:, j], minlength=size)
            self.sums[:, :, j] += part.reshape(-1, MEAN_FOLDS)

    def _code(self, text: str | None) -> int:
        code = self.codes.setdefault(text, len(self.codes))
        if code == len(self.codes) - 1 and text is not None:
            self._bytes += len(text)
        if len(self.codes) > MOST_LEVELS or self._bytes > MOST_BYTES:
            raise TooMany
        return code

    def _grow(self, targets: int) -> None:
        have, need = len(self.counts), len(self.codes)
        if have < need:
            # Doubled, so that the copies of all growth together cost as much as the last one.
            more = max(need, 2 * have) - have
            self.counts = np.concatenate([self.counts, np.zeros((more, MEAN_FOLDS), np.int64)])
            old = (
                self.sums.reshape(have, MEAN_FOLDS, -1)
                if have
                else np.zeros((0, MEAN_FOLDS, targets))
            )
            self.sums = np.concatenate([old, np.zeros((more, MEAN_FOLDS, targets))])
