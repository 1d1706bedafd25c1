"""Dates, times and durations in text: orders of day, month and year, words, and parts of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import pyarrow as pa

from ....._messages.errors import ParameterError
from ....rows import arrow_compute as pc
from .clocks import (
    CLOCK_PATTERN,
    ZONE_PATTERN,
    clock_microseconds,
    number_of,
    split_fields,
    zone_microseconds,
)
from .parsers import Parse, Reading

PIVOT_YEAR = 69
"""Years of two digits from here on are of the 20th century, others of the 21st, as in POSIX."""

MONTH_NAMES = {
    name: number
    for number, names in enumerate(
        (
            "january januar janvier jan janv jän jänner enero ene gennaio januari janeiro"
            " ocak stycznia ledna января tammikuuta",
            "february februar février fevrier feb févr fév febrero febbraio februari fevereiro fev"
            " şubat lutego února февраля helmikuuta",
            "march märz maerz mars mar mär mrz marzo maart mrt março"
            " marts mart marca března марта maaliskuuta",
            "april avril apr avr abril abr aprile nisan kwietnia dubna апреля huhtikuuta",
            "may mai mayo maggio mei maio maj mayıs maja května мая toukokuuta",
            "june juni juin jun junio giugno giu junho haziran czerwca června июня kesäkuuta",
            "july juli juillet jul juil julio luglio lug julho"
            " temmuz lipca července июля heinäkuuta",
            "august août aout aug agosto ago augustus"
            " augusti ağustos sierpnia srpna августа elokuuta",
            "september septembre sep sept septiembre setiembre settembre sett setembro"
            " eylül września září сентября syyskuuta",
            "october oktober octobre oct okt octubre ottobre ott outubro"
            " ekim października října октября lokakuuta",
            "november novembre nov noviembre novembro kasım listopada listopadu ноября marraskuuta",
            "december dezember décembre decembre dec dez déc diciembre dic dicembre dezembro"
            " desember aralık grudnia prosince декабря joulukuuta",
        ),
        start=1,
    )
    for name in names.split()
}
"""Names and abbreviations of months, in English, German, French, Spanish, Italian, Dutch and
Portuguese, and names in Scandinavian languages, Finnish, Polish, Czech, Russian and Turkish; not
those that are usual words, such as set."""

_WEEKDAY_PATTERN = (
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim)"
    r"[a-z]*\.?,? +)?"
)
_MONTH_PATTERN = "|".join(sorted(MONTH_NAMES, key=len, reverse=True))
_PART_PATTERNS = {
    "%d": r"(?P<d>0?[1-9]|[12]\d|3[01])",
    "%m": r"(?P<m>0?[1-9]|1[0-2])",
    "%Y": r"(?P<Y>[1-9]\d{3})",
    "%C": r"(?P<Y>(?:1[5-9]|2[01])\d\d)",
    "%y": r"'?(?P<y>\d\d)",
    "%b": rf"(?P<b>{_MONTH_PATTERN})\.?",
    "%q": r"(?P<q>[1-4])",
    "%W": r"(?P<W>0[1-9]|[1-4]\d|5[0-3])",
    "%w": r"(?P<w>[1-7])",
    "%h": r"(?P<h>[12])",
}
_WORD_BREAK = r"(?:[ .\-/]{0,2}| del? | of )"
_ORDINAL_SUFFIX = r"(?:st|nd|rd|th|er)?"

_NUMERIC_ORDERS = {
    **dict.fromkeys(("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%y.%m.%d"), ""),
    **{f"{order}{year}".replace("/", mark): f"{mark}{year}"
       for mark in "/-" for year in ("%Y", "%y") for order in ("%d/%m/", "%m/%d/")},
    **{f"%y{mark}%m{mark}%d": f"{mark}%y" for mark in "/-"},
}  # fmt: skip
"""Orders of days in digits, with groups of those that may read the same text."""

_WORD_ORDERS = {
    "%d %b %Y": (rf"{_WEEKDAY_PATTERN}%d{_ORDINAL_SUFFIX}{_WORD_BREAK}%b,?{_WORD_BREAK}%Y", ""),
    "%b %d %Y": (
        rf"{_WEEKDAY_PATTERN}%b{_WORD_BREAK}%d{_ORDINAL_SUFFIX}(?:, ?|[ \-/]{{1,2}})%Y",
        "",
    ),
    "%Y %b %d": (rf"%Y{_WORD_BREAK}%b{_WORD_BREAK}%d", ""),
    "%d %b %y": (rf"%d{_WORD_BREAK}%b{_WORD_BREAK}%y", "b"),
    "%y %b %d": (rf"%y{_WORD_BREAK}%b{_WORD_BREAK}%d", "b"),
}
_PART_ORDERS = {
    "%Y-%m": "%C[-M]%m",
    "%m/%Y": "%m[/-]%C",
    "%Y/%m": "%C/%m",
    "%b %Y": rf"%b,?{_WORD_BREAK}%C",
    "%b %y": r"%b(?:[\-/]| ?')%y",
    "%Y Q%q": r"%C[ \-:./]?[QT]%q",
    "Q%q %Y": r"(?:[QT]%q|%q[QT]|%q\. ?Quartal)[ /\-]?%C",
    "Q%q %y": r"(?:Q%q[ '/\-]{1,2}|%qQ)%y",
    "%b %d %H:%M %Y": rf"{_WEEKDAY_PATTERN}%b +%d {CLOCK_PATTERN} %Y",
    "%b %d %H:%M zone %Y": rf"{_WEEKDAY_PATTERN}%b +%d {CLOCK_PATTERN}{ZONE_PATTERN} %Y",
    "%Y-W%W": r"%C[ \-]?W%W(?:-?%w)?",
    "%Y H%h": r"%C[ \-:./]?[HS]%h",
    "H%h %Y": r"(?:[HS]%h[ /\-]|%h[HS][ /\-]?)%C",
    "%Y年%m月%d日": r"%Y ?[年년] ?%m ?[月월] ?%d ?[日일]",
}


def _compile(template: str) -> re.Pattern[str]:
    """Return the pattern of a template, in the syntax of Python and Arrow."""
    counts: Counter[str] = Counter()

    def part(match: re.Match[str]) -> str:
        counts[match[0]] += 1
        suffix = "" if counts[match[0]] == 1 else str(counts[match[0]])
        return _PART_PATTERNS[match[0]].replace(">", f"{suffix}>", 1)

    return re.compile(re.sub("%[a-zA-Z]", part, template), re.IGNORECASE)


def _days(fields: dict[str, pa.Array]) -> pa.Array:
    """Return dates of their parts; the first day of a month, quarter or week without one."""
    if "y" in fields:
        short = number_of(fields["y"])
        year = pc.add(short, pc.if_else(pc.less(short, PIVOT_YEAR), 2000, 1900))
    else:
        year = number_of(fields["Y"])
    if "W" in fields:
        return _week_days(year, number_of(fields["W"]), number_of(fields["w"], "1"))
    if "q" in fields:
        month = pc.subtract(pc.multiply(_number_of_either(fields, "q"), 3), 2)
    elif any(name.startswith("h") for name in fields):
        month = pc.subtract(pc.multiply(_number_of_either(fields, "h"), 6), 5)
    elif "b" in fields:
        names = pa.array(list(MONTH_NAMES))
        place = pc.index_in(pc.utf8_lower(fields["b"]), value_set=names)
        month = pa.array(list(MONTH_NAMES.values())).take(place)
    else:
        month = number_of(fields["m"], "1")
    day = number_of(fields["d"]) if "d" in fields else 1
    count = pc.add(pc.add(pc.multiply(year, 10_000), pc.multiply(month, 100)), day)
    digits = count.cast(pa.string())
    parts = [pc.utf8_slice_codeunits(digits, *ends) for ends in ((0, 4), (4, 6), (6, 8))]
    return pc.binary_join_element_wise(*parts, "-").cast(pa.date32())  # refuses the 31st of June


def _number_of_either(fields: dict[str, pa.Array], letter: str) -> pa.Array:
    """Return a part that a pattern has in two places, of which one matches."""
    names = [name for name in fields if name.startswith(letter)]
    return number_of(pc.binary_join_element_wise(*(fields[name] for name in names), ""))


def _week_days(year: pa.Array, week: pa.Array, weekday: pa.Array) -> pa.Array:
    """Return days of weeks by ISO 8601: the first week of a year has the 4th of January."""
    fourth = pc.binary_join_element_wise(year.cast(pa.string()), "01-04", "-").cast(pa.date32())
    monday = pc.subtract(fourth.cast(pa.int32()), pc.day_of_week(fourth).cast(pa.int32()))
    days = pc.add(pc.multiply(pc.subtract(week, 1), 7), pc.subtract(weekday, 1))
    return pc.add(monday.cast(pa.int64()), days).cast(pa.int32()).cast(pa.date32())


def _date_parser(shape: re.Pattern[str], kind: pa.DataType) -> Parse:
    def parse(texts: pa.Array) -> pa.Array:
        fields = split_fields(texts, shape)
        days = _days(fields)
        if "H" not in fields:
            return days.cast(kind)
        moments = pc.add(days.cast(pa.timestamp("us")).cast(pa.int64()), clock_microseconds(fields))
        if "z" in fields:
            moments = pc.subtract(moments, zone_microseconds(fields["z"]))
        return moments.cast(pa.timestamp("us")).cast(kind)

    return parse


def _iso(kind: pa.DataType) -> Parse:
    return lambda texts: texts.cast(kind)


def iso_readings() -> Iterator[Reading]:
    """Yield days and times as ISO 8601 writes them, which Arrow parses fast."""
    day, time, zoned = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
    yield Reading("date", day, re.compile(r"\d{4}-\d\d-\d\d"), _iso(day))
    moment = r"\d{4}-\d\d-\d\d([ T]\d\d.*)?"
    # A column of dates and times is of times: texts of dates are read by it as well.
    yield Reading("time", time, re.compile(moment), _iso(time), ("date",))
    yield Reading("time with zone", zoned, re.compile(moment + r"(Z|[+-]\d\d.*)"), _iso(zoned))


def _order_readings(order: str, template: str, group: str = "") -> Iterator[Reading]:
    """Yield readings of one order: days, days with times, and with time zones."""
    day, time, zoned = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
    clock = rf"(?: |T|, |:){CLOCK_PATTERN}"
    for end, suffix, kind in (
        ("", "", day), (" time", f"(?:{clock})?", time), (" time zone", clock + ZONE_PATTERN, zoned)
    ):  # fmt: skip
        shape = _compile(template + suffix)
        contains = (order,) if kind is time else ()
        parse = _date_parser(shape, kind)
        yield Reading(order + end, kind, shape, parse, contains, order=order, group=group)


def dates_of_numbers() -> Iterator[Reading]:
    """Yield months such as 03.2019 and days such as 20190103, which are numbers as well."""
    year, month = r"(?P<Y>(?:19|20)\d\d)", "(?P<m>0[1-9]|1[0-2])"
    for order, pattern in (
        ("%m.%Y", rf"{month}\.{year}"),
        (COMPACT_DAYS, rf"{year}{month}(?P<d>0[1-9]|[12]\d|3[01])"),
    ):
        shape = re.compile(pattern, re.ASCII)
        yield Reading(order, pa.date32(), shape, _date_parser(shape, pa.date32()), order=order)


def digit_dates() -> Iterator[Reading]:
    """Yield days in digits, in all orders."""
    for order, group in _NUMERIC_ORDERS.items():
        end = r"\.?" if order == "%Y.%m.%d" else ""  # as in Korea
        yield from _order_readings(order, order.replace(".", r"\. ?") + end, group)
    year, month, day = r"(?P<Y>(?:19|20)\d\d)", "(?P<m>0[1-9]|1[0-2])", r"(?P<d>[0-3]\d)"
    clock = r"T(?P<H>[01]\d|2[0-3])(?P<M>[0-5]\d)(?P<S>[0-5]\d)?"
    for zone, kind in (("", pa.timestamp("us")), (ZONE_PATTERN, pa.timestamp("us", "UTC"))):
        shape = re.compile(year + month + day + clock + zone, re.ASCII)
        order = "%Y%m%dT%H%M" + " zone" * bool(zone)
        yield Reading(order, kind, shape, _date_parser(shape, kind), order=order)


def worded_dates() -> Iterator[Reading]:
    """Yield days with names of months, months, quarters and weeks."""
    for order, (template, group) in _WORD_ORDERS.items():
        yield from _order_readings(order, template, group)
    for order, template in _PART_ORDERS.items():
        shape = _compile(template)
        zone = "UTC" if "zone" in order else None
        kind = pa.timestamp("us", zone) if "%H" in order else pa.date32()
        yield Reading(order, kind, shape, _date_parser(shape, kind), order=order)


def are_seasons(reading: Reading, texts: Sequence[str]) -> bool:
    """Return whether all months are the year after theirs, as in 2009-10: seasons."""
    if reading.order not in ("%Y-%m", "%Y/%m"):
        return False
    ends = {(text[2:4], text[-2:]) for text in texts}
    are_pairs = all(a.isdigit() and b.isdigit() and (int(a) + 1) % 100 == int(b) for a, b in ends)
    return len(ends) > 1 and are_pairs


_FORMAT_PATTERNS = {
    "%d": _PART_PATTERNS["%d"], "%m": _PART_PATTERNS["%m"], "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d\d)", "%b": _PART_PATTERNS["%b"], "%B": _PART_PATTERNS["%b"],
    "%H": r"(?P<H>[01]?\d|2[0-3])", "%I": r"(?P<H>0?[1-9]|1[0-2])", "%M": r"(?P<M>[0-5]\d)",
    "%S": r"(?P<S>[0-5]\d)", "%f": r"(?P<f>\d{1,6})", "%p": r"(?P<p>[ap]\.?m\.?)", "%%": "%",
    "%a": r"[^\W\d_]+", "%A": r"[^\W\d_]+",
}  # fmt: skip
"""Codes of `datetime.datetime.strptime` and their patterns."""


@cache
def format_reading(template: str) -> Reading:
    """Return the reading of dates and times in a format of `datetime.datetime.strptime`.

    Raise ValueError if a code is unknown, or the format has no year.
    """
    codes = re.findall("%.", template)
    unknown = [code for code in codes if code not in _FORMAT_PATTERNS]
    if unknown or not {"%Y", "%y"} & set(codes) or len(set(codes)) < len(codes):
        raise ParameterError(
            "date_format",
            template,
            f"a format with %Y or %y, and each of {', '.join(_FORMAT_PATTERNS)} once at most",
        )
    literal = re.split("(%.)", template)
    pattern = "".join(_FORMAT_PATTERNS.get(part, re.escape(part)) for part in literal)
    # A month, or nothing, without a day is its first day.
    if not {"%m", "%b", "%B"} & set(codes):
        pattern += "(?P<m>)"
    kind = pa.timestamp("us") if {"%H", "%I"} & set(codes) else pa.date32()
    shape = re.compile(pattern, re.IGNORECASE | re.ASCII)
    return Reading(
        f"{FORMAT_NAME}{template}", kind, shape, _date_parser(shape, kind), order=template
    )


COMPACT_DAYS = "%Y%m%d"
"""Reading of days of eight digits, which other libraries take for numbers."""

FORMAT_NAME = "format "
"""Beginning of the names of readings of a format."""
