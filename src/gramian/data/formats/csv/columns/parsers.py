"""Readings: possible types of the texts of a column, and their conversion to values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ....rows import arrow_compute as pc
from .marks import Mark

MISSING_TEXTS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "?", "-", "--", "---", ".", "..", "...", "…"),
    *("null", "Null", "NULL", "none", "None", "NONE", "nil", "(null)", "NaT"),
    *("n.a.", "na", "n.d.", "n/d", "k.A.", "<NA>", r"\N", "–", "—", "-NaN", "-nan"),
    *("#N/A", "#N/A N/A", "#NA", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),
    *("#NV", "#WERT!", "#BEZUG!", "#ZAHL!", "#N/D", "#VALEUR!", "#NOM?", "#NOMBRE!", "#¡VALOR!"),
    *("#CALC!", "#SPILL!", "#FIELD!", "#BLOCKED!", "#CONNECT!", "#GETTING_DATA", "#UNKNOWN!"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("missing", "not available", "no data", "keine Angabe", "s/d", "n. a.", "n. d.", "k. A."),
    *("not applicable", "not reported", "undefined", "[null]", "<null>", "(blank)"),
    *("n.v.t.", "b.d.", "н/д", "нет данных"),
    *(":", "*", "\u2212", "----"),  # of statistical offices
    *("0000-00-00", "0000-00-00 00:00:00", "00.00.0000", "00/00/0000"),
    *("*" * stars for stars in range(5, 13)),  # a field of Fortran that is too narrow
)
"""Texts that stand for a missing value in a column of numbers, dates or booleans, in letters of
either case. In a column of text only the empty one does: there "?" or "None" may be a level, or "-"
a class."""

_MISSING_KEYS = pa.array(sorted({text.lower() for text in MISSING_TEXTS}))

_UNSEEN_LETTERS = "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
"""Letters of no width, which copies from web pages and calendars hold."""

_WIDE_LETTERS = "[\uff01-\uff5e℃℉㎏㎜㎝㎞㎡㎥]"
"""Letters of the width of Chinese ones, and units in one sign."""

Parse = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read the texts of a column.

    - `type`: of the values.
    - `shape`: pattern of a whole text that may be such a value: a quick test of the first one.
    - `parse`: gives the values of an array of texts without space around them, nulls for nulls;
      raises `pyarrow.ArrowInvalid` if one is no such value.
    - `contains`: names of readings whose texts this one reads as well.
    - `decimal`: mark for decimals of a reading of numbers; empty for integers.
    - `mark`: currency or unit of marked numbers.
    - `order`: order of day, month and year. Orders of one `group` may read the same text.
    """

    name: str
    type: pa.DataType
    shape: re.Pattern[str]
    parse: Parse
    contains: tuple[str, ...] = ()
    decimal: str | None = None
    mark: Mark | None = None
    order: str = ""
    group: str = ""

    def holds(self, texts: pa.Array) -> bool:
        """Return whether all of these texts are such values."""
        try:
            self.parse(texts)
        except pa.ArrowInvalid:
            return False
        return True


def clean_texts(texts: pa.Array, gaps: Collection[str] = ()) -> pa.Array:
    """Return texts without space around them, nulls for texts that stand for a missing value.

    - `gaps`: texts that stand for one besides `MISSING_TEXTS`.
    """
    bare = pc.utf8_trim_whitespace(_usual_letters(texts))
    missing = pc.is_in(pc.utf8_lower(bare), value_set=_MISSING_KEYS)
    if gaps:
        missing = pc.or_(missing, pc.is_in(bare, value_set=pa.array(sorted(gaps))))
    return pc.if_else(missing, pa.scalar(None, pa.string()), bare)


def _usual_letters(texts: pa.Array) -> pa.Array:
    """Return texts without letters of no width, and with usual letters for wide ones."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    texts = pc.replace_substring_regex(texts, pattern=_UNSEEN_LETTERS, replacement="")
    is_wide = pc.match_substring_regex(texts, _WIDE_LETTERS)
    return pc.if_else(is_wide, pc.utf8_normalize(texts, form="NFKC"), texts)


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
        low = pc.utf8_lower(texts)
        is_yes = pc.equal(low, yes)
        # `is False`, because it is None if all are null.
        if pc.all(pc.or_(is_yes, pc.equal(low, no))).as_py() is False:
            raise pa.ArrowInvalid("neither of both")
        return is_yes

    shape = re.compile(f"{yes}|{no}", re.IGNORECASE)
    return Reading(f"{yes}/{no}", pa.bool_(), shape, parse)


CODE_PATTERN = r"^\s*([+-]?0(\d+|[xX].*)|\+\d{8,})\s*$"
"""A zip code, a number of a telephone or one to the base 16: its digits are no number's."""


def _check_codes(texts: pa.Array, values: pa.Array) -> None:
    # Only whole numbers look like codes: most numbers with decimals skip the regex, which is slow.
    if pa.types.is_floating(values.type):
        texts = texts.filter(pc.equal(values, pc.floor(values)))
    if pc.any(pc.match_substring_regex(texts, CODE_PATTERN)).as_py():
        raise pa.ArrowInvalid("a code")


def are_digits(texts: pa.Array) -> bool:
    """Return whether all texts that are not missing are digits, perhaps with a sign or a point."""
    values = clean_texts(texts).drop_null()
    return len(values) > 0 and bool(
        pc.all(pc.match_substring_regex(values, r"^[+-]?\d+\.?\d*$")).as_py()
    )


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
    groups = rf"[1-9]\d{{0,2}}(\{group}\d{{3}})+"
    if group == ",":  # and of India, of two digits but the last
        groups += r"|[1-9]\d?(,\d\d)+,\d{3}"
    shape = rf"^[+-]?(({groups}|\d+)(\{mark}\d*)?|\{mark}\d+)([eE][+-]?\d+)?$"

    def parse(texts: pa.Array) -> pa.Array:
        if pc.all(pc.match_substring_regex(texts, shape)).as_py() is False:
            raise pa.ArrowInvalid("no such groups")
        # The pattern has checked that groups have three digits; the marks can go.
        bare = pc.replace_substring(texts, group, "")
        values = _decimal(pc.replace_substring(bare, mark, "."))
        _check_codes(texts, values)
        return values

    return parse


_INFINITE_PATTERN = r"|[+-]?[iI]nf(inity)?"
_EXPONENT_PATTERN = r"([eE][+-]?\d+)?"


def _numbers() -> Iterator[Reading]:
    shape = re.compile(r"[+-]?\d+", re.ASCII)
    yield Reading("integer", pa.int64(), shape, _integer, decimal="")
    kinds = {
        "1.5": (rf"[+-]?[\d.]+{_EXPONENT_PATTERN}{_INFINITE_PATTERN}", _number),
        "1,5": (rf"[+-]?[\d,]+{_EXPONENT_PATTERN}{_INFINITE_PATTERN}", _comma),
        "1,000.5": (rf"[+-]?[\d.,]+{_EXPONENT_PATTERN}", _group_pattern(".", ",")),
        "1.000,5": (rf"[+-]?[\d.,]+{_EXPONENT_PATTERN}", _group_pattern(",", ".")),
    }
    for name, (pattern, parse) in kinds.items():
        shape = re.compile(pattern, re.ASCII | re.IGNORECASE)
        yield Reading(name, pa.float64(), shape, parse, ("integer",), decimal=name[-2])


NOTHING_READING = Reading("nothing", pa.null(), re.compile(""), _nothing)
"""Of a column whose values are all missing."""

TEXT_READING = Reading("text", pa.string(), re.compile(".*", re.DOTALL), _as_text)
"""Of any column."""

BOOLEAN_READINGS = tuple(
    _boolean(*pair.split("/"))
    for pair in (
        *("true/false", "yes/no", "t/f", "y/n", "ja/nein", "ja/nee", "ja/nej", "oui/non", "sí/no"),
        *("si/no", "sim/não", "да/нет", "wahr/falsch", "vrai/faux", "verdadero/falso"),
        *("vero/falso", "tak/nie", "ano/ne", "áno/nie", "da/ne", "evet/hayır", "igen/nem"),
        *("kyllä/ei", "ναι/όχι", "はい/いいえ", "是/否", "예/아니오"),
    )
)
SPELLED_BOOLEANS = tuple(reading.name for reading in BOOLEAN_READINGS[1:])
"""Readings of booleans that stay as they are written where they are labels; true and false are
booleans for every library."""
NUMBER_READINGS = tuple(_numbers())

CODE_NUMBER_READING = Reading(
    "code as number", pa.float64(), re.compile(r"[+-]?[\d.]+", re.ASCII), _decimal, decimal="."
)
"""Of a column of codes, such as 007, that is declared as numbers."""
