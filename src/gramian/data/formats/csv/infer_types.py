"""`Inference`: for each column the first reading with which all of its values can be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from .parsers import (
    AMBIGUOUS_ORDERS,
    BOOLEAN_READINGS,
    DATE_READINGS,
    NOTHING_READING,
    NUMBER_READINGS,
    TEXT_READING,
    Reading,
    clean_texts,
)

ALL_READINGS = (*BOOLEAN_READINGS, *NUMBER_READINGS, *DATE_READINGS)
"""In the order of preference."""

_MARK_READINGS = {".": ("1.5", "1,000.5"), ",": ("1,5", "1.000,5")}
"""Readings of numbers by their mark for decimals."""


class Inference:
    """Looks at all values of a table, a batch at a time.

    Parameters
    ----------
    columns : int
    separator : str
        Of the fields. If it is a comma, a comma within a number separates thousands if possible.
    texts : collection of int
        Columns that are text, whatever they look like.
    """

    def __init__(self, columns: int, separator: str, texts: Collection[int] = ()) -> None:
        order = [() if j in texts else ALL_READINGS for j in range(columns)]
        self._possible: list[tuple[Reading, ...]] = order
        self._seen = [False] * columns
        self._grouped_first = separator == ","

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Look at more texts of each column."""
        for j, texts in enumerate(columns):
            if self._possible[j]:
                self._look(j, texts)

    def _look(self, j: int, texts: pa.Array) -> None:
        if texts.null_count == len(texts):
            return
        # Most texts are clean: trimming and missing words are tried only if no reading holds,
        # because they cost more than a parse.
        holding = _holding(self._possible[j], texts)
        if not holding:
            texts = clean_texts(texts)
            if texts.null_count == len(texts):
                return
            holding = _holding(self._possible[j], texts)
        self._seen[j] = True
        self._possible[j] = holding

    def readings(self) -> list[Reading]:
        """Return the choice for each column.

        Numbers such as 1.234 or 1,234 are read like other numbers of the file: if a column needs
        a comma for decimals, the point separates thousands, and the other way round. Dates
        whose day and month could both be the month stay text.
        """
        names = [{reading.name for reading in possible} for possible in self._possible]
        # 1. The marks for decimals that some column cannot do without.
        needed = [
            mark for mark in _MARK_READINGS if any(_needs(mark, possible) for possible in names)
        ]
        # 2. A file with both kinds tells nothing about a column that is open.
        mark = needed[0] if len(needed) == 1 else None
        return [self._choice(j, mark) for j in range(len(names))]

    def _choice(self, j: int, mark: str | None) -> Reading:
        possible = {reading.name: reading for reading in self._possible[j]}
        if not possible:
            return TEXT_READING
        # All values were missing.
        if not self._seen[j]:
            return NOTHING_READING
        first = next(iter(possible))
        # 3. A column such as 1.234, 5.678 is read like the other numbers of the file.
        if _is_open(possible):
            if mark is not None:
                return next(possible[name] for name in _MARK_READINGS[mark] if name in possible)
            # A comma between fields cannot also be the usual mark for decimals: it separates
            # thousands.
            if first == "1,5" and self._grouped_first and "1,000.5" in possible:
                return possible["1,000.5"]
        # 4. Neither order of day and month is more likely: a guess would be wrong in silence.
        if any(AMBIGUOUS_ORDERS.get(name) in possible for name in possible):
            return TEXT_READING
        return possible[first]

    def is_settled(self) -> bool:
        """Return whether the choices can only be contradicted by later values, not changed."""
        for possible in self._possible:
            names = {reading.name for reading in possible}
            if _is_open(names) or any(AMBIGUOUS_ORDERS.get(name) in names for name in names):
                return False
        return True


def _needs(mark: str, names: Collection[str]) -> bool:
    """Return whether numbers of a column can only be read with this mark for decimals."""
    other_mark = "." if mark == "," else ","
    is_needed = any(name in names for name in _MARK_READINGS[mark])
    return is_needed and not any(name in names for name in ("integer", *_MARK_READINGS[other_mark]))


def _is_open(names: Collection[str]) -> bool:
    """Return whether numbers of a column can be read with either mark for decimals."""
    both = all(any(name in names for name in readings) for readings in _MARK_READINGS.values())
    return both and "integer" not in names


def _holding(possible: Sequence[Reading], texts: pa.Array) -> tuple[Reading, ...]:
    """Return the readings that can parse all of these texts, at least one of which is valid."""
    # One value by a pattern excludes most readings, before a parse of all of them.
    value = next(text.as_py() for text in texts if text.is_valid)
    kept_readings: list[Reading] = []
    for reading in possible:
        if reading.shape.fullmatch(value) is None:
            continue
        # Texts that are integers are also numbers: this reading need not parse them again.
        if any(
            kept_reading.name in reading.contains for kept_reading in kept_readings
        ) or reading.holds(texts):
            kept_readings.append(reading)
    return tuple(kept_readings)
