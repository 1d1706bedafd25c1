"""Marks of numbers: currencies, percent and units, signs and groups as people write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ....rows import arrow_compute as pc

MARKED_SHARE = 0.75
"""Share of sampled texts that must be numbers with one mark for the mark to be tried."""

_CURRENCY_CODES = (
    "USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|CNY|RMB|INR|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|ILS|"
    "BRL|MXN|ARS|CLP|COP|PEN|ZAR|EGP|NGN|KES|KRW|TWD|HKD|SGD|THB|IDR|MYR|PHP|VND|AED|SAR|ISK"
)
_CURRENCY_SIGNS = r"(?:US|AU|CA|NZ|HK|NT|MX|[ACRS])?[$€£¥₩₹₽₺₫₪₱฿₴₦₡₲₵₸₼₾₿₭₮₨¢]"
_CURRENCY_WORDS = r"Rs\.?|kr\.?|S?Fr\.|S/\.?|zł|Kč|Ft|lei|руб\.?|р\.|원|円|元"
_CURRENCY_PATTERN = rf"(?:{_CURRENCY_SIGNS}|{_CURRENCY_CODES}|{_CURRENCY_WORDS})"
# Rand: R 5 is a code as well, but not with cents.
_RAND_PATTERN = r"R(?= ?\d[\d ]*[.,]\d\d$)"
_UNIT_LETTER = r"(?:[^\W\d_]|[/·²³^.-]|(?<=[^\W\d_^])[23]|(?<=/)\d{1,4})"
_UNIT_PATTERN = (
    rf"(?:[\"″'′°‰]|%(?: ?[^\W\d_]{{2,9}}\.?)?|(?!x\d)°?[^\W\d_]{_UNIT_LETTER}{{0,13}}"
    rf"(?: (?!x\d)[^\W\d_]{_UNIT_LETTER}{{0,9}}){{0,2}}(?:\([A-Z]\))?)"
)
_SPACE_MARKS = " \u00a0\u2009\u202f"
# The minus, the dash that word processors write for it, and the minus of full width.
_DASH_MARKS = "\u2212\u2013\uff0d"
_SIGN_PATTERN = rf"[+\-{_DASH_MARKS}]?[{_SPACE_MARKS}]*"
_NUMBER_PATTERN = (
    rf"(?:\d(?:[\d.,'’_{_SPACE_MARKS}]*[\d.,])?|[.,]\d+)"
    rf"(?:(?:[eEdD]| ?[×x*] ?10\^)[+\-{_DASH_MARKS}]?\d+)?"
)
# Of a price per hour, or of a number of stars.
_PRICED_UNIT = rf"(?:{_CURRENCY_PATTERN})?/ ?[^\W\d_]{_UNIT_LETTER}{{0,9}}|/\d{{1,3}}"
# For no cents, as in 12,- €. Before a unit a dash is no minus: 3-Jan, 12-B.
_NO_CENTS = "(?: ?[-–—]+)?"
_END_PATTERN = rf"[{_SPACE_MARKS}]*[-{_DASH_MARKS}]?\)?\)?"
_MARKED_NUMBER = re.compile(
    rf"\(?{_SIGN_PATTERN}(?P<before>{_CURRENCY_PATTERN}|{_RAND_PATTERN}|%)?"
    rf"[{_SPACE_MARKS}]*\(?{_SIGN_PATTERN}{_NUMBER_PATTERN}"
    rf"(?: ?[-–—]+(?=[{_SPACE_MARKS}]*{_CURRENCY_PATTERN}?\)?$))?"
    rf"[{_SPACE_MARKS}]*(?P<after>{_CURRENCY_PATTERN}|{_PRICED_UNIT}|{_UNIT_PATTERN})?{_END_PATTERN}"
)
_GAP_PATTERN = "(?:null|nan|NaN|NA|N/A|None|none)"
"""Words for a missing number before a unit."""

MULTIPLE_EXPONENTS = {"[kK]": "E3", "(?:M|m|Mn|mn|Mio)": "E6", "(?:B|b|bn|Bn|Mrd)": "E9"}
"""Letters for thousands, millions and billions, and their exponents."""

MULTIPLE_MARK = "k/M/B"
"""Mark of numbers of which some have such letters."""

_MULTIPLE_LETTERS = "|".join(MULTIPLE_EXPONENTS)
_PLURAL_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True)
class Mark:
    """Currency or unit of the numbers of a column; both empty for signs and groups alone.

    - `before`, `after`: of words in the plural, the singular.
    """

    before: str = ""
    after: str = ""

    @property
    def is_currency(self) -> bool:
        """Whether the mark may be left out: a number without its currency is the same number."""
        marks = [mark for mark in (self.before, self.after) if mark]
        return all(re.fullmatch(_CURRENCY_PATTERN, mark) for mark in marks)

    @property
    def shape(self) -> re.Pattern[str]:
        """Pattern of a number with this mark, in the syntax of Python and Arrow."""
        before = f"(?:{_escape(self.before)})" + "?" * (self.before != "%") if self.before else ""
        before += f"[{_SPACE_MARKS}]*" * bool(before)
        is_optional = self.is_currency or self.after == MULTIPLE_MARK
        after = f"[{_SPACE_MARKS}]*{self._after}" + "?" * is_optional if self.after else ""
        zero = "|-+" if self.before else ""
        gap = rf"|{_GAP_PATTERN}{after}" * bool(after)
        cents = _NO_CENTS if self.is_currency else ""
        number = rf"(?:{_NUMBER_PATTERN}{cents}{after}|0{zero}{gap})"
        return re.compile(
            rf"\(?{_SIGN_PATTERN}{before}\(?{_SIGN_PATTERN}{number}{_END_PATTERN}", re.ASCII
        )

    @property
    def _after(self) -> str:
        if self.after == MULTIPLE_MARK:
            return f"(?:{_MULTIPLE_LETTERS})"
        plural = "s?" if _PLURAL_WORD.fullmatch(self.after) else ""
        # Kg is kg, but mW is not MW.
        case = "?i:" if len(self.after) > 1 and self.after[0] not in "mMpP" else "?:"
        return f"({case}{_escape(self.after)}{plural})"

    def strip(self, texts: pa.Array) -> pa.Array:
        """Return texts of plain numbers, with marks for decimals and perhaps groups.

        Texts that are no number with this mark hold something that no number has.
        """
        texts = _replace(texts, rf"[{_DASH_MARKS}]", "-")
        if self.before:
            pattern = rf"^(\(?[+-]?)[{_SPACE_MARKS}]*{_escape(self.before)}[{_SPACE_MARKS}]*"
            bare = _replace(texts, pattern, r"\1")
            texts = bare if self.before != "%" else _only_marked(texts, bare)
            texts = _replace(texts, "^-+$", "0")  # as accountants write it
        texts = _replace(texts, r"^\((.*)\)$", r"-\1")
        if self.after:
            texts = self._strip_after(texts)
        texts = _replace(texts, r"^(.*\d) ?-$", r"-\1")
        texts = _replace(texts, r"[.,] ?[-—]+$", "")
        texts = _replace(texts, rf"^([+-])[{_SPACE_MARKS}]+", r"\1")
        texts = _replace(texts, r"(\d)(?:[dD]| ?[×x*] ?10\^)([+-]?\d+)$", r"\1E\2")
        groups = rf"^[+-]?[1-9]\d{{0,2}}([{_SPACE_MARKS}'’_]\d{{3}})+([.,]\d+)?$"
        bare = _replace(texts, rf"[{_SPACE_MARKS}'’_]", "")
        return pc.if_else(pc.match_substring_regex(texts, groups), bare, texts)

    def _strip_after(self, texts: pa.Array) -> pa.Array:
        if self.after == MULTIPLE_MARK:
            for letters, exponent in MULTIPLE_EXPONENTS.items():
                texts = _replace(texts, rf"[{_SPACE_MARKS}]*{letters}$", exponent)
            return texts
        pattern = rf"[{_SPACE_MARKS}]*{self._after}$"
        stripped = _replace(texts, pattern, "")
        if self.is_currency:
            return stripped
        gaps = pc.match_substring_regex(stripped, f"^{_GAP_PATTERN}$")
        stripped = pc.if_else(gaps, pa.scalar(None, pa.string()), stripped)
        return _only_marked(texts, stripped)


def _only_marked(texts: pa.Array, stripped: pa.Array) -> pa.Array:
    """Return texts without their mark; a text without a mark, except 0, becomes no number."""
    is_marked = pc.or_(pc.not_equal(texts, stripped), pc.equal(texts, "0"))
    return pc.if_else(is_marked, stripped, pc.binary_join_element_wise(texts, "unmarked", " "))


def _replace(texts: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return pc.replace_substring_regex(texts, pattern=pattern, replacement=replacement)


def _escape(text: str) -> str:
    return re.escape(text).replace("\\ ", " ")


def detect_mark(sample: Sequence[str]) -> Mark | None:
    """Return the mark that nearly all of these texts have.

    - `sample`: without texts for missing values.

    The mark is without currency and unit if numbers have other signs or groups; it is None if too
    few of the texts are numbers, or they have different marks.
    """
    matches = [_MARKED_NUMBER.fullmatch(text) for text in sample]
    marks = Counter(_mark_of(match) for match in matches if match is not None)
    if not marks:
        return None
    common = _common_mark(marks)
    alike = [mark for mark in marks if common.shape.fullmatch(f"{mark.before}1{mark.after}")]
    count = sum(marks[mark] for mark in alike)
    count += sample.count("0") * (Mark() not in alike)
    if common.before:
        dashes = re.compile(f"{_escape(common.before)}[{_SPACE_MARKS}]*-+")
        count += sum(dashes.fullmatch(text) is not None for text in sample)
    if common.after:
        gaps = re.compile(f"{_GAP_PATTERN}[{_SPACE_MARKS}]*{_escape(common.after)}")
        count += sum(gaps.fullmatch(text) is not None for text in sample)
    is_repeated = count > 1 or common.is_currency or "%" in (common.before, common.after)
    return common if is_repeated and count >= MARKED_SHARE * len(sample) else None


def _common_mark(marks: Counter[Mark]) -> Mark:
    """Return the mark that most numbers have; a currency although most numbers lack it."""
    common = marks.most_common(1)[0][0]
    if common == Mark() and len(marks) > 1:
        second = marks.most_common(2)[1][0]
        common = second if second.is_currency else common
    befores = {mark.before for mark in marks} - {""}
    afters = {mark.after for mark in marks} - {""}
    are_multiples = all(re.fullmatch(_MULTIPLE_LETTERS, after) for after in afters)
    if afters and are_multiples and (befores or len(afters) > 1) and len(befores) < 2:
        return Mark("".join(befores), MULTIPLE_MARK)
    return common


def _mark_of(match: re.Match[str]) -> Mark:
    after = match["after"] or ""
    if _PLURAL_WORD.fullmatch(after) and len(after) > 3:
        after = after.removesuffix("s")
    return Mark(match["before"] or "", after)


def are_marked_numbers(texts: Sequence[str]) -> bool:
    """Return whether nearly all texts are numbers with currencies or percent, alike or not."""
    matches = [_MARKED_NUMBER.fullmatch(text) for text in texts]
    marks = [_mark_of(match) for match in matches if match is not None]
    count = sum(mark != Mark() and (mark.is_currency or mark.after == "%") for mark in marks)
    return count >= MARKED_SHARE * len(texts)
