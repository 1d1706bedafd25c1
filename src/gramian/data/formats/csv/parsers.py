"""Readings: possible types of the texts of a column, and their conversion to values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ...rows.arrow_compute import pc

MISSING_TEXTS = (
    *("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "?", "-"),
    *("null", "Null", "NULL", "none", "None", "NONE"),
    *("n.a.", "na", "<NA>", r"\N", ".", "--", "#DIV/0!", "#VALUE!", "#REF!"),
)
"""Texts that stand for a missing value in a column of numbers, dates or booleans. In a column of
text only the empty one does: there "?" or "None" may be a level, or "-" a class."""

Parse = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class Reading:
    """One way to read the texts of a column.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType
        Of the values.
    shape : re.Pattern
        Pattern of a whole text that may be such a value: a quick test of the first one.
    parse : callable
        Gives the values of an array of texts without space around them, nulls for nulls; raises
        `pyarrow.ArrowInvalid` if one is no such value.
    contains : tuple of str
        Names of readings whose texts this one reads as well.
    """

    name: str
    type: pa.DataType
    shape: re.Pattern[str]
    parse: Parse
    contains: tuple[str, ...] = ()

    def holds(self, texts: pa.Array) -> bool:
        """Return whether all of these texts are such values."""
        try:
            self.parse(texts)
        except pa.ArrowInvalid:
            return False
        return True

    def read(self, texts: pa.Array) -> pa.Array:
        """Return the values of texts as they are in the file; see `parse`."""
        try:
            return self.parse(texts)
        except pa.ArrowInvalid:
            # Cleaning is for the few batches that need it; it would double the time of the others.
            return self.parse(clean_texts(texts))


def clean_texts(texts: pa.Array) -> pa.Array:
    """Return texts without space around them, nulls for those that stand for a missing value."""
    bare = pc.utf8_trim_whitespace(texts)
    missing = pc.is_in(bare, value_set=pa.array(MISSING_TEXTS))
    return pc.if_else(missing, pa.scalar(None, pa.string()), bare)


def _as_text(texts: pa.Array) -> pa.Array:
    # In a column of text only the empty one is missing: other words may be levels.
    bare = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)


def _nothing(texts: pa.Array) -> pa.Array:
    if texts.null_count < len(texts):
        raise pa.ArrowInvalid("a value where there was none")
    return pa.nulls(len(texts))


def _boolean(yes: str, no: str) -> Reading:
    def parse(texts: pa.Array) -> pa.Array:
        low = pc.ascii_lower(texts)
        is_yes = pc.equal(low, yes)
        # `is False`, because it is None if all are null.
        if pc.all(pc.or_(is_yes, pc.equal(low, no))).as_py() is False:
            raise pa.ArrowInvalid("neither of both")
        return is_yes

    shape = re.compile(f"{yes}|{no}", re.IGNORECASE)
    return Reading(f"{yes}/{no}", pa.bool_(), shape, parse)


_CODE_PATTERN = r"^\s*([+-]?0(\d+|[xX].*)|\+\d{8,})\s*$"
"""A zip code, a number of a telephone or one to the base 16: its digits are no number's."""


def _check_codes(texts: pa.Array, values: pa.Array) -> None:
    # Only whole numbers look like codes: most numbers with decimals skip the regex, which is slow.
    if pa.types.is_floating(values.type):
        texts = texts.filter(pc.equal(values, pc.floor(values)))
    if pc.any(pc.match_substring_regex(texts, _CODE_PATTERN)).as_py():
        raise pa.ArrowInvalid("a code")


def _integer(texts: pa.Array) -> pa.Array:
    values = texts.cast(pa.int64())
    _check_codes(texts, values)
    return values


def _decimal(texts: pa.Array) -> pa.Array:
    values = texts.cast(pa.float64())
    # Arrow parses "nan" as a number, but here it is a word for a missing value.
    if pc.any(pc.is_nan(values)).as_py():
        raise pa.ArrowInvalid("a word for a missing value")
    return values


def _number(texts: pa.Array) -> pa.Array:
    values = _decimal(texts)
    _check_codes(texts, values)
    return values


def _comma(texts: pa.Array) -> pa.Array:
    # After the replacement 1.234,5 would have two points, but 1.234 would silently be a decimal.
    if pc.any(pc.match_substring(texts, ".")).as_py():
        raise pa.ArrowInvalid("a point")
    return _number(pc.replace_substring(texts, ",", "."))


def _group_pattern(mark: str, group: str) -> Parse:
    """Return a parser of numbers with a mark for decimals and another one between thousands.

    No group of thousands begins with 0: in 0,123 the comma is a decimal mark.
    """
    shape = rf"^[+-]?([1-9]\d{{0,2}}(\{group}\d{{3}})+|\d+)(\{mark}\d*)?$"

    def parse(texts: pa.Array) -> pa.Array:
        if pc.all(pc.match_substring_regex(texts, shape)).as_py() is False:
            raise pa.ArrowInvalid("no such groups")
        # The pattern has checked that groups have three digits; the marks can go.
        bare = pc.replace_substring(texts, group, "")
        values = _decimal(pc.replace_substring(bare, mark, "."))
        _check_codes(texts, values)
        return values

    return parse


_ANY_NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_INTEGER_PATTERN = re.compile(r"[+-]?\d+")


def _numbers() -> Iterator[Reading]:
    yield Reading("integer", pa.int64(), _INTEGER_PATTERN, _integer)
    kinds = {
        "1.5": _number,
        "1,5": _comma,
        "1,000.5": _group_pattern(".", ","),
        "1.000,5": _group_pattern(",", "."),
    }
    for name, parse in kinds.items():
        yield Reading(name, pa.float64(), _ANY_NUMBER, parse, ("integer",))


NOTHING_READING = Reading("nothing", pa.null(), re.compile(""), _nothing)
"""Of a column whose values are all missing."""

TEXT_READING = Reading("text", pa.string(), re.compile(".*", re.DOTALL), _as_text)
"""Of any column."""

BOOLEAN_READINGS = tuple(
    _boolean(*pair) for pair in (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))
)
NUMBER_READINGS = tuple(_numbers())


_DATE_ORDERS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
_TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DIGIT_PATTERNS = {"%Y": r"\d{4}", "%p": "[AaPp][Mm]"}
# `%Y` also reads a year of two digits, as one of the first century.
_EARLIEST_YEAR = 1000

AMBIGUOUS_ORDERS = {
    f"%m{mark}%d{mark}%Y{time}": f"%d{mark}%m{mark}%Y{time}"
    for mark in "/-"
    for time in _TIME_FORMATS
}
"""Readings of day and month in both orders. A column that both read stays text."""


def _iso(kind: pa.DataType) -> Parse:
    return lambda texts: texts.cast(kind)


def _parser(form: str, kind: pa.DataType) -> Parse:
    def parse(texts: pa.Array) -> pa.Array:
        parsed = pc.strptime(texts, format=form, unit="us")
        earliest = pc.min(parsed).as_py()
        if earliest is not None and earliest.year < _EARLIEST_YEAR:
            raise pa.ArrowInvalid("a year of two digits")
        _check_days(texts, parsed, form)
        return parsed.cast(kind)

    return parse


def _check_days(texts: pa.Array, dates: pa.Array, form: str) -> None:
    """Refuse the 31st of February, which is taken for the 2nd of March."""
    # `strptime` rolls a day beyond the month over into the next one: such dates have day 1 to 3,
    # and only these are compared with the text.
    early = pc.less_equal(pc.day(dates), 3)
    texts, dates = texts.filter(early), dates.filter(early)
    # The first 8 characters of a form are its date; each field becomes a group of its letter.
    pattern = "^" + re.sub("%(.)", r"0?(?P<\1>[0-9]+)", form[:8].replace(".", r"\."))
    written_days = pc.struct_field(pc.extract_regex(texts, pattern), "d").cast(pa.int64())
    if pc.all(pc.equal(written_days, pc.day(dates))).as_py() is False:
        raise pa.ArrowInvalid("no such day")


def _shape(form: str) -> re.Pattern[str]:
    escaped = re.escape(form).replace("\\ ", " ")
    return re.compile(re.sub("%.", lambda m: _DIGIT_PATTERNS.get(m[0], r"\d{1,2}"), escaped))


def _dates() -> Iterator[Reading]:
    day, time = pa.date32(), pa.timestamp("us")
    yield Reading("date", day, re.compile(r"\d{4}-\d\d-\d\d"), _iso(day))
    moment = r"\d{4}-\d\d-\d\d([ T]\d\d.*)?"
    # A column of dates and times is of times: texts of dates are read by it as well.
    yield Reading("time", time, re.compile(moment), _iso(time), ("date",))
    zoned = pa.timestamp("us", "UTC")
    yield Reading("time with zone", zoned, re.compile(moment + r"(Z|[+-]\d\d.*)"), _iso(zoned))
    for order in _DATE_ORDERS:
        for clock in _TIME_FORMATS:
            form = order + clock
            kind = time if clock else day
            yield Reading(form, kind, _shape(form), _parser(form, kind))


DATE_READINGS = tuple(_dates())
