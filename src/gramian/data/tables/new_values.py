"""Gaps and levels of new rows that training did not have, and rows whose gaps are filled."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._arrays import Array, Float
from ..._messages.display import escape_controls
from ..checks import FiniteCheck
from ..rows.base import RowSource
from ..rows.transform import Blockwise

SHOWN_COLUMNS = 10
"""Columns that a warning names one by one."""

SHOWN_LEVELS = 3
"""Levels of a column that a warning names."""


@dataclass
class NewValues:
    """Counts of gaps and levels of new rows that the training rows did not have.

    - `where`: the table, for the warning.
    - `gaps`: gaps of the columns that had none in training.
    - `levels`: levels that training did not have, of the columns of which all are such.
    - `examples`: some of these levels.
    - `known_columns`: columns with a level that training had.
    """

    where: str
    gaps: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    examples: dict[str, dict[str, None]] = field(default_factory=dict)
    known_columns: set[str] = field(default_factory=set)

    def add_gaps(self, name: str, is_gap: np.ndarray) -> None:
        """Count the gaps of a column that had none in training."""
        if count := int(np.count_nonzero(is_gap)):
            self.gaps[name] += count

    def add_levels(
        self, name: str, texts: list[str | None], unknown: np.ndarray, rows: int
    ) -> None:
        """Count the levels of a column that training did not have.

        - `unknown`, ndarray of int64: place in `texts` of each such level.
        - `rows`: rows that have a level, known or not.
        """
        if len(unknown) < rows:
            self.known_columns.add(name)
        if name in self.known_columns or len(unknown) == 0:
            return
        self.levels[name] += len(unknown)
        examples = self.examples.setdefault(name, {})
        for place in np.unique(unknown)[:SHOWN_LEVELS].tolist():
            examples.setdefault(str(texts[place]))

    def report(self) -> None:
        """Warn once of all columns with new gaps or levels, and clear the counts."""
        if self.gaps:
            shown = _shorten([f"'{escape_controls(name)}' {n:,}" for name, n in self.gaps.items()])
            warnings.warn(
                f"{self.where}: gaps in columns that had none in training: {shown}; they are "
                "filled with the median, in booleans with the more frequent value, and in text or "
                "categories count as an unknown level",
                stacklevel=2,
            )
        strange = [name for name in self.levels if name not in self.known_columns]
        if strange:
            warnings.warn(
                f"{self.where}: no value of these columns is a level of training: "
                f"{_shorten([self._describe(name) for name in strange])}; their rows are predicted "
                "without them",
                stacklevel=2,
            )
        self.gaps.clear()
        self.levels.clear()

    def _describe(self, name: str) -> str:
        examples = ", ".join(repr(text)[:60] for text in list(self.examples[name])[:SHOWN_LEVELS])
        return f"'{escape_controls(name)}' ({self.levels[name]:,} rows, such as {examples})"


def _shorten(texts: list[str]) -> str:
    more = len(texts) - SHOWN_COLUMNS
    return ", ".join(texts[:SHOWN_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")


class FilledRows(Blockwise):
    """Row source whose gaps are filled when rows are read, and reported once.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense; NaN for gaps.
    medians : ndarray of shape (d,)
        In float64.
    names : sequence of d str
    where : str
        Subject of errors and of the warning.

    Notes
    -----
    An infinite number raises ValueError.
    """

    def __init__(
        self, rows: RowSource, medians: Float[Array, " d"], names: Sequence[str], where: str
    ) -> None:
        super().__init__(rows)
        self._medians = medians.astype(self.dtype, copy=False)
        self._names, self._where = tuple(names), where
        self._is_reported = False

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        new_values = NewValues(self._where)
        for part, block in self.rows.blocks(size):
            yield part, self._fill(block, part.start, new_values)
        if not self._is_reported:
            self._is_reported = True
            new_values.report()

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b d"]:
        return self._fill(block, 0, None)

    def _fill(self, block: Array, start: int, new_values: NewValues | None) -> Array:
        check = FiniteCheck(self._names)
        if check.add(start, block):
            return block
        is_gap = np.isnan(block)
        if check.infinities:
            infinite = FiniteCheck(self._names)
            infinite.add(start, np.where(is_gap, self.dtype.type(0), block))
            infinite.finish(self._where)
        if new_values is not None:
            for j in np.flatnonzero(is_gap.any(axis=0)).tolist():
                new_values.add_gaps(self._names[j], is_gap[:, j])
        return np.where(is_gap, self._medians, block)
