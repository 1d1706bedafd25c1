"""`DeclaredColumn`: the type a user declares for a column, and the readings that agree with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from .dates import COMPACT_DAYS, format_reading
from .parsers import CODE_NUMBER_READING, Reading
from .readings import ALL_READINGS


@dataclass(frozen=True)
class DeclaredColumn:
    """Type and format of a column that a user gave.

    Attributes
    ----------
    type : {"number", "date", "boolean"} or None
        Any share of its values may then be odd.
    date_format : str or None
        In the codes of `datetime.datetime.strptime`, or an order such as ``"dmy"``.
    is_new : bool
        Whether a model stores its reading: numbers of training may look like days in a few rows.
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

    def readings(self) -> Mapping[Reading, int]:
        """Return the readings to try first, in the order of preference, and no odd values."""
        return _first_readings(self)


@cache
def _first_readings(declared: DeclaredColumn) -> Mapping[Reading, int]:
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
