"""`Inference`: for each column the reading that reads all, or nearly all, of its values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy

import pyarrow as pa

from ....tables.column_reading import TEXT_COLUMN
from ....tables.read_options import DEFAULT_OPTIONS, ReadOptions
from .candidates import ColumnCandidates, has_either_mark
from .dates import FORMAT_NAME
from .marks import Mark
from .parsers import NOTHING_READING, TEXT_READING, Reading
from .readings import DeclaredColumn

USUAL_ORDER = "%d %b %y"
"""Order of days such as 03-JAN-19, unless another one puts them nearer to each other."""


class Inference:
    """Look at all values of a table, a batch at a time.

    - `names`: of the columns; some may be empty.
    - `options`: stored readings, declared types and formats, and the mark for decimals.
    - `separator`: of the fields. If it is a comma, a comma within a number separates thousands if
      possible.
    - `first_row`: number of the first row, for errors: the header line of a file is row 1.
    - `texts`: columns that stay text.
    """

    def __init__(
        self,
        names: Sequence[str],
        options: ReadOptions = DEFAULT_OPTIONS,
        separator: str = ",",
        first_row: int = 2,
        texts: Collection[str] = (),
    ) -> None:
        self.names, self.options, self.first_row = names, options, first_row
        self._columns = [_start(name, options, is_text=name in texts) for name in names]
        self._grouped_first = separator == ","
        self._decimal, self._rows = options.decimal, first_row

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take more texts of each column into account."""
        for column, texts in zip(self._columns, columns, strict=True):
            column.look(texts, self._rows)
        self._rows += len(columns[0]) if len(columns) else 0

    def look(self, batches: Iterable[pa.RecordBatch]) -> Inference:
        """Take batches into account, until all columns are text; return self."""
        for batch in batches:
            self.add(batch.columns)
            if self.is_text:
                break
        return self

    def look_twice(self, batches: Callable[[], Iterable[pa.RecordBatch]]) -> Inference:
        """Take all batches into account, in a second pass for readings that came late."""
        self.look(batches())
        if not any(column.is_late for column in self._columns):
            return self
        second_inference = copy(self)
        second_inference._rows = self.first_row
        second_inference._columns = [column.second_look() for column in self._columns]
        return second_inference.look(batches())

    @property
    def is_text(self) -> bool:
        """Whether all columns are text, whatever follows."""
        return not any(column.counts for column in self._columns)

    def has_odd(self, readings: Sequence[Reading]) -> bool:
        """Return whether a column has values that its reading cannot read."""
        pairs = zip(self._columns, readings, strict=True)
        return any(column.counts.get(reading, 0) > 0 for column, reading in pairs)

    def readings(self) -> list[Reading]:
        """Return the choice for each column.

        Numbers such as 1.234 or 1,234 are read like other numbers of the file: if a column needs
        a comma for decimals, the point separates thousands, and the other way round. Likewise days
        such as 03/04/2019. If no other column tells, they stay text.
        """
        # 1. The marks for decimals, and the orders of days, that some column cannot do without.
        best = [self._with_decimal(column.best()) for column in self._columns]
        needed = {mark for mark in ".," if any(_needs(mark, possible) for possible in best)}
        rivals = [_rivals(possible) for possible in best]
        orders = {same[0].order[:2] for same in rivals if len({r.order for r in same}) == 1}
        return [
            self._choose(column, possible, needed, orders)
            for column, possible in zip(self._columns, best, strict=True)
        ]

    def guessed_marks(self) -> list[tuple[int, str]]:
        """Return columns of numbers such as 1,234 that others may read otherwise, and readings."""
        best = [self._with_decimal(column.best()) for column in self._columns]
        needed = {mark for mark in ".," if any(_needs(mark, possible) for possible in best)}
        guesses = []
        for j, (column, possible) in enumerate(zip(self._columns, best, strict=True)):
            if column.stored or not has_either_mark(possible) or possible[0].mark is not None:
                continue
            name = self._choose_mark(column, possible, needed).name
            # Other libraries read the point as a mark for decimals. They take no comma for one, and
            # keep text, in which frames have thousands.
            is_decimal = any(reading.name == "1.5" for reading in possible)
            if name == ("1.000,5" if is_decimal else "1,5") and (is_decimal or not needed):
                guesses.append((j, name))
        return guesses

    def contradictions(self) -> dict[int, tuple[int, str]]:
        """Return rows and texts, by column, that the readings of training do not read."""
        pairs = [
            (j, column)
            for j, column in enumerate(self._columns)
            if column.stored or column.declared.type
        ]
        return {
            j: column.contradiction
            for j, column in pairs
            if column.contradiction is not None and not column.best()
        }

    def other_decimals(self) -> list[int]:
        """Return the columns of numbers that can only be read with another mark for decimals."""
        best = [column.best() for column in self._columns]
        return [
            j for j, possible in enumerate(best) if possible and not self._with_decimal(possible)
        ]

    def _with_decimal(self, best: list[Reading]) -> list[Reading]:
        """Return the readings with the mark for decimals that was given, if one was."""
        if self._decimal is None or not any(reading.decimal for reading in best):
            return best
        return [reading for reading in best if reading.decimal in (None, "", self._decimal)]

    def _choose(
        self, column: ColumnCandidates, best: list[Reading], needed: set[str], orders: set[str]
    ) -> Reading:
        if not best:
            return TEXT_READING
        if not column.values:
            return NOTHING_READING
        # A format that the user gave is no guess.
        if best[0].name.startswith(FORMAT_NAME):
            return best[0]
        # 2. A column such as 1.234, 5.678 is read like the other numbers of the file.
        if has_either_mark(best):
            return self._choose_mark(column, best, needed)
        # 3. Without a sign of the order of day and month, a guess would be wrong in silence.
        rivals = _rivals(best)
        if len({reading.order for reading in rivals}) > 1:
            return _choose_order(column, rivals, orders)
        return best[0]

    def _choose_mark(
        self, column: ColumnCandidates, best: list[Reading], needed: set[str]
    ) -> Reading:
        """Return the reading of numbers such as 1,234: with the mark that other columns need.

        Otherwise the comma separates thousands in a file that commas separate, and next to short
        whole numbers; either mark does in amounts of money.
        """
        if len(needed) == 1:
            return next(reading for reading in best if reading.decimal in needed)
        first = best[0]
        is_money = first.mark is not None and first.mark != Mark() and first.mark.is_currency
        has_groups = self._grouped_first or (column.has_short and not needed)
        if is_money or (first.name == "1,5" and has_groups):
            other_mark = "." if first.decimal == "," else ","
            return next(reading for reading in best if reading.decimal == other_mark)
        return first

    def is_settled(self) -> bool:
        """Return whether later values can only contradict the choices, not change them."""
        return not any(
            column.is_late
            or any(column.counts.values())
            or (has_either_mark(best) and self._decimal is None)
            or len({reading.order for reading in _rivals(best)}) > 1
            for column in self._columns
            for best in (column.best(),)
        )


def _start(name: str, options: ReadOptions, *, is_text: bool) -> ColumnCandidates:
    """Return the possible readings of a column before its first value."""
    kind = options.types.get(name)
    if is_text or kind in ("category", "ignore"):
        return ColumnCandidates.start(TEXT_COLUMN)
    declared = DeclaredColumn(kind, options.date_format, options.is_stored)
    return ColumnCandidates.start(options.columns.get(name), declared)


def _needs(mark: str, best: Sequence[Reading]) -> bool:
    """Return whether numbers of a column can only be read with this mark for decimals."""
    return {reading.decimal for reading in best} - {None} == {mark}


def _rivals(best: Sequence[Reading]) -> list[Reading]:
    """Return the readings of the same texts as the first, in several orders of day and month."""
    return [reading for reading in best if reading.group and reading.group == best[0].group]


def _choose_order(column: ColumnCandidates, rivals: Sequence[Reading], orders: set[str]) -> Reading:
    """Return the order that other columns have, or in which years of two digits are near."""
    agreeing = [reading for reading in rivals if reading.order[:2] in orders]
    if len(orders) == 1 and agreeing:
        return agreeing[0]
    spans = {reading: high - low for reading, (low, high) in column.spans.items()}
    near = min((spans[reading] for reading in rivals if reading in spans), default=0)
    nearest = [r for r in rivals if r in spans and spans[r] <= 2 * near]
    if spans and near and len({reading.order for reading in nearest}) == 1:
        return nearest[0]
    usual = [reading for reading in nearest if reading.order == USUAL_ORDER]
    return usual[0] if usual else TEXT_READING
