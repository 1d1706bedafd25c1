"""Readings of dates and points in time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from ..arrow_compute import pc
from .readings import Parse, Reading

_ORDERS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DIGITS = {"%Y": r"\d{4}", "%p": "[AaPp][Mm]"}
_EARLIEST = 1000  # a year of two digits would be one of the first century

AMBIGUOUS = {
    f"%m{mark}%d{mark}%Y{time}": f"%d{mark}%m{mark}%Y{time}" for mark in "/-" for time in _TIMES
}
"""Readings of day and month in both orders. A column that both read stays text."""


def _iso(kind: pa.DataType) -> Parse:
    return lambda texts: texts.cast(kind)


def _parser(form: str, kind: pa.DataType) -> Parse:
    def parse(texts: pa.Array) -> pa.Array:
        found = pc.strptime(texts, format=form, unit="us")
        earliest = pc.min(found).as_py()
        if earliest is not None and earliest.year < _EARLIEST:
            raise pa.ArrowInvalid("a year of two digits")
        _check_days(texts, found, form)
        return found.cast(kind)

    return parse


def _check_days(texts: pa.Array, found: pa.Array, form: str) -> None:
    """Refuse the 31st of February, which is taken for the 2nd of March."""
    early = pc.less_equal(pc.day(found), 3)
    texts, found = texts.filter(early), found.filter(early)
    pattern = "^" + re.sub("%(.)", r"0?(?P<\1>[0-9]+)", form[:8].replace(".", r"\."))
    said = pc.struct_field(pc.extract_regex(texts, pattern), "d").cast(pa.int64())
    if pc.all(pc.equal(said, pc.day(found))).as_py() is False:
        raise pa.ArrowInvalid("no such day")


def _shape(form: str) -> re.Pattern[str]:
    escaped = re.escape(form).replace("\\ ", " ")
    return re.compile(re.sub("%.", lambda m: _DIGITS.get(m[0], r"\d{1,2}"), escaped))


def _dates() -> Iterator[Reading]:
    day, time = pa.date32(), pa.timestamp("us")
    yield Reading("date", day, re.compile(r"\d{4}-\d\d-\d\d"), _iso(day))
    moment = r"\d{4}-\d\d-\d\d([ T]\d\d.*)?"
    yield Reading("time", time, re.compile(moment), _iso(time), ("date",))
    zoned = pa.timestamp("us", "UTC")
    yield Reading("time with zone", zoned, re.compile(moment + r"(Z|[+-]\d\d.*)"), _iso(zoned))
    for order in _ORDERS:
        for clock in _TIMES:
            form = order + clock
            kind = time if clock else day
            yield Reading(form, kind, _shape(form), _parser(form, kind))


DATES = tuple(_dates())
