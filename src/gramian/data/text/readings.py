"""Readings: what the texts of a column may stand for, and how they become values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ..arrow_compute import pc

MISSING = (
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
        All of a text that may be such a value: a quick look at the first one.
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
            return self.parse(cleaned(texts))


def cleaned(texts: pa.Array) -> pa.Array:
    """Return texts without space around them, nulls for those that stand for a missing value."""
    bare = pc.utf8_trim_whitespace(texts)
    missing = pc.is_in(bare, value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), bare)


def _as_text(texts: pa.Array) -> pa.Array:
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
        if pc.all(pc.or_(is_yes, pc.equal(low, no))).as_py() is False:
            raise pa.ArrowInvalid("neither of both")
        return is_yes

    shape = re.compile(f"{yes}|{no}", re.IGNORECASE)
    return Reading(f"{yes}/{no}", pa.bool_(), shape, parse)


_CODE = r"^\s*([+-]?0(\d+|[xX].*)|\+\d{8,})\s*$"
"""A zip code, a number of a telephone or one to the base 16: its digits are no number's."""


def _check_codes(texts: pa.Array, values: pa.Array) -> None:
    if pa.types.is_floating(values.type):  # few are whole, and a look at a text takes long
        texts = texts.filter(pc.equal(values, pc.floor(values)))
    if pc.any(pc.match_substring_regex(texts, _CODE)).as_py():
        raise pa.ArrowInvalid("a code")


def _integer(texts: pa.Array) -> pa.Array:
    values = texts.cast(pa.int64())
    _check_codes(texts, values)
    return values


def _decimal(texts: pa.Array) -> pa.Array:
    values = texts.cast(pa.float64())
    if pc.any(pc.is_nan(values)).as_py():
        raise pa.ArrowInvalid("a word for a missing value")
    return values


def _number(texts: pa.Array) -> pa.Array:
    values = _decimal(texts)
    _check_codes(texts, values)
    return values


def _comma(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring(texts, ".")).as_py():
        raise pa.ArrowInvalid("a point")
    return _number(pc.replace_substring(texts, ",", "."))


def _grouped(mark: str, group: str) -> Parse:
    """Return a parser of numbers with a mark for decimals and another one between thousands.

    No group of thousands begins with 0: that of 0,123 is a mark for decimals.
    """
    shape = rf"^[+-]?([1-9]\d{{0,2}}(\{group}\d{{3}})+|\d+)(\{mark}\d*)?$"

    def parse(texts: pa.Array) -> pa.Array:
        if pc.all(pc.match_substring_regex(texts, shape)).as_py() is False:
            raise pa.ArrowInvalid("no such groups")
        bare = pc.replace_substring(texts, group, "")
        values = _decimal(pc.replace_substring(bare, mark, "."))
        _check_codes(texts, values)
        return values

    return parse


_ANY_NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d+")


def _numbers() -> Iterator[Reading]:
    yield Reading("integer", pa.int64(), _INTEGER, _integer)
    kinds = {
        "1.5": _number,
        "1,5": _comma,
        "1,000.5": _grouped(".", ","),
        "1.000,5": _grouped(",", "."),
    }
    for name, parse in kinds.items():
        yield Reading(name, pa.float64(), _ANY_NUMBER, parse, ("integer",))


NOTHING = Reading("nothing", pa.null(), re.compile(""), _nothing)
"""Of a column whose values are all missing."""

TEXT = Reading("text", pa.string(), re.compile(".*", re.DOTALL), _as_text)
"""Of any column."""

BOOLEANS = tuple(
    _boolean(*pair) for pair in (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))
)
NUMBERS = tuple(_numbers())
