"""All readings of columns, in the order in which they are tried, and those that a user declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from ....tables.column_reading import ColumnReading
from .clocks import clock_readings, worded_durations
from .dates import (
    COMPACT_DAYS,
    FORMAT_NAME,
    are_seasons,
    dates_of_numbers,
    digit_dates,
    format_reading,
    iso_readings,
    worded_dates,
)
from .marks import Mark, detect_mark
from .parsers import BOOLEAN_READINGS, CODE_NUMBER_READING, NUMBER_READINGS, Reading

ALL_READINGS = (
    *BOOLEAN_READINGS,
    *dates_of_numbers(),
    *NUMBER_READINGS,
    *iso_readings(),
    *digit_dates(),
    *clock_readings(),
)
"""In the order of preference."""

DIGIT_READINGS = {COMPACT_DAYS: 8, "%H%M": 4, "%H%M%S": 6, "%m.%Y": 0}
"""Readings of dates and times whose texts other libraries read as numbers, and how many digits such
a number has; 0 if it cannot be a date again."""

WORDED_DATES = tuple(worded_dates())
WORDED_DURATIONS = tuple(worded_durations())


def late_readings(sample: Sequence[str]) -> tuple[Reading, ...]:
    """Return readings to try where none of `ALL_READINGS` reads every value, in order.

    - `sample`: values of the column, from which the currency or unit of marked numbers is taken.
    """
    dates = [date for date in WORDED_DATES if not are_seasons(date, sample)]
    mark = detect_mark(sample)
    marked = () if mark is None else marked_numbers(mark)
    return (*dates, *marked, *WORDED_DURATIONS)


@cache
def marked_numbers(mark: Mark) -> tuple[Reading, ...]:
    """Return readings of numbers with a mark, one for each reading of plain numbers."""
    return tuple(_mark_reading(reading, mark) for reading in NUMBER_READINGS)


def _mark_reading(reading: Reading, mark: Mark) -> Reading:
    def parse(texts: pa.Array) -> pa.Array:
        return reading.parse(mark.strip(texts)).cast(pa.float64())

    return replace(
        reading, type=pa.float64(), shape=mark.shape, parse=parse, contains=(), mark=mark
    )


def readings_of(stored: ColumnReading) -> tuple[Reading, ...]:
    """Return the readings of a new file that agree with the reading of training.

    Numbers keep their mark for decimals, their currency or unit, and dates their order; thousands
    may be grouped or not, days may have times or not.

    Raise ValueError if no reading has this name.
    """
    if stored.name.startswith(FORMAT_NAME):
        return (format_reading(stored.name.removeprefix(FORMAT_NAME)),)
    if stored.name == CODE_NUMBER_READING.name:
        return (*NUMBER_READINGS[:2], CODE_NUMBER_READING)
    numbers = NUMBER_READINGS if stored.mark is None else marked_numbers(Mark(*stored.mark))
    known_readings = (*BOOLEAN_READINGS, *numbers, *ALL_READINGS, *WORDED_DATES, *WORDED_DURATIONS)
    trained = next((reading for reading in known_readings if reading.name == stored.name), None)
    if trained is None:
        raise ValueError(f"unknown reading of a column: {stored.name!r:.40}")
    if trained.decimal is not None:
        marks = ("", ".", ",") if not trained.decimal else ("", trained.decimal)
        return tuple(reading for reading in numbers if reading.decimal in marks)
    if trained.order:
        is_zoned = pa.types.is_timestamp(trained.type) and trained.type.tz is not None
        return tuple(
            reading
            for reading in known_readings
            if reading.order == trained.order and is_zoned == ("zone" in reading.name)
        )
    return (trained,)


@dataclass(frozen=True)
class DeclaredColumn:
    """Type and format of a column that a user gave.

    - `type`, {"number", "date", "boolean"} or None: any share of its values may then be odd.
    - `date_format`: in the codes of `datetime.datetime.strptime`, or an order such as ``"dmy"``.
    - `is_new`: whether a model stores its reading: numbers of training may look like days in a few
      rows.
    """

    type: str | None = None
    date_format: str | None = None
    is_new: bool = False

    def allows(self, reading: Reading) -> bool:
        """Return whether a reading agrees with the type and the order of days."""
        kind = reading.type
        if self.is_new and reading.name == COMPACT_DAYS:
            return False
        if (
            self.type is not None
            and not {
                "number": reading.decimal is not None,
                "date": pa.types.is_date(kind)
                or pa.types.is_timestamp(kind)
                or pa.types.is_time(kind),
                "boolean": pa.types.is_boolean(kind),
            }[self.type]
        ):
            return False
        if self.date_format is None or not reading.group:
            return True
        orders = order_letters(reading.order), order_letters(self.date_format)
        return orders[0] == orders[1] or len(orders[1]) < 3


@cache
def first_readings(declared: DeclaredColumn) -> Mapping[Reading, int]:
    """Return the readings to try first, in the order of preference, and no odd values."""
    own: list[Reading] = []
    if declared.date_format is not None and "%" in declared.date_format:
        own.append(format_reading(declared.date_format))
    codes = [CODE_NUMBER_READING] if declared.type == "number" else []
    return {reading: 0 for reading in (*own, *ALL_READINGS, *codes) if declared.allows(reading)}


def order_letters(order: str) -> str:
    """Return the order of day, month and year of a format, such as ``"dmy"``."""
    directives = re.findall(r"%([a-zA-Z])", order) if "%" in order else order
    letters = {"d": "d", "m": "m", "b": "m", "B": "m", "y": "y", "Y": "y", "C": "y"}
    return "".join(letters.get(letter, "") for letter in directives)
