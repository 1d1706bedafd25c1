"""Times of day, time zones and durations in text, by the fields of a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from ....rows import arrow_compute as pc
from .parsers import Parse, Reading

CLOCK_PATTERN = (
    r"(?P<H>[01]?\d|2[0-3]):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d)(?:[.,](?P<f>\d{1,6})\d*)?)?"
    r"(?: ?(?P<p>[ap]\.?m\.?))?(?: ?(?:uhr|hrs?|h))?"
)
ZONE_OFFSETS = {
    "UTC": "0", "GMT": "0", "Z": "0", "WET": "0", "WEST": "1", "BST": "1", "CET": "1",
    "CEST": "2", "EET": "2", "EEST": "3", "MSK": "3", "JST": "9",
    "EST": "-5", "EDT": "-4", "CST": "-6", "CDT": "-5",
    "MST": "-7", "MDT": "-6", "PST": "-8", "PDT": "-7",
}  # fmt: skip
"""Names of time zones, and how many hours their clocks are ahead of UTC; of the United States, as
in RFC 2822."""

ZONE_PATTERN = (
    rf"(?: ?(?P<z>{'|'.join(ZONE_OFFSETS)}|(?:GMT|UTC)?[+-]\d\d(?::?\d\d)?)"
    r"(?:\[[\w/]+\]| \([^)]+\))?)"
)


def clock_microseconds(fields: dict[str, pa.Array]) -> pa.Array:
    """Return microseconds since midnight."""
    hour = number_of(fields["H"])
    if "p" in fields:
        half = pc.utf8_lower(pc.utf8_slice_codeunits(fields["p"], 0, 1))
        is_half, is_noon = pc.not_equal(half, ""), pc.equal(hour, 12)
        outside = pc.and_(is_half, pc.or_(pc.greater(hour, 12), pc.equal(hour, 0)))
        if pc.any(outside).as_py():
            raise pa.ArrowInvalid("no such hour")
        hour = pc.if_else(pc.and_(is_half, is_noon), 0, hour)
        hour = pc.add(hour, pc.if_else(pc.equal(half, "p"), 12, 0))
    seconds = pc.multiply(hour, 3600)
    if "M" in fields:
        seconds = pc.add(seconds, pc.multiply(number_of(fields["M"]), 60))
    if "S" in fields:
        seconds = pc.add(seconds, number_of(fields["S"]))
    micros = pc.multiply(seconds, 10**6)
    if "f" not in fields:
        return micros
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(fields["f"], 6, "0"), 0, 6)
    return pc.add(micros, digits.cast(pa.int64()))


def zone_microseconds(zones: pa.Array) -> pa.Array:
    """Return microseconds that clocks of zones are ahead of UTC."""
    place = pc.index_in(pc.utf8_upper(zones), value_set=pa.array(list(ZONE_OFFSETS)))
    named = pa.array(list(map(int, ZONE_OFFSETS.values()))).take(place)
    digits = pc.replace_substring_regex(zones, pattern="[^0-9]", replacement="")
    digits = pc.utf8_rpad(digits, 4, "0")
    hours, minutes = (pc.utf8_slice_codeunits(digits, *ends) for ends in ((0, 2), (2, 4)))
    total = pc.add(pc.multiply(hours.cast(pa.int64()), 60), minutes.cast(pa.int64()))
    sign = pc.if_else(pc.match_substring(zones, "-"), -1, 1)
    written = pc.multiply(total, sign)
    return pc.multiply(pc.coalesce(pc.multiply(named, 60), written), 60 * 10**6)


def _time_parser(shape: re.Pattern[str]) -> Parse:
    return lambda texts: clock_microseconds(split_fields(texts, shape)).cast(pa.time64("us"))


_UNIT_SECONDS = {"D": 86_400, "H": 3600, "M": 60, "S": 1}


def _duration_parser(shape: re.Pattern[str]) -> Parse:
    def parse(texts: pa.Array) -> pa.Array:
        fields = split_fields(texts, shape)
        if pc.any(pc.equal(pc.binary_join_element_wise(*fields.values(), ""), "")).as_py():
            raise pa.ArrowInvalid("no part of a duration")
        seconds = pa.scalar(0.0)
        clock_sign = pc.if_else(pc.equal(fields["c"], "-"), -1.0, 1.0) if "c" in fields else 1.0
        for name, unit in _UNIT_SECONDS.items():
            count = pc.if_else(pc.equal(fields[name], ""), "0", fields[name])
            count = pc.replace_substring(count, ",", ".").cast(pa.float64())
            # In "-1 days +23:00:00" the sign is of the days alone.
            sign = 1.0 if name == "D" else clock_sign
            seconds = pc.add(seconds, pc.multiply(pc.multiply(count, float(unit)), sign))
        if "n" in fields:
            seconds = pc.multiply(seconds, pc.if_else(pc.equal(fields["n"], "-"), -1.0, 1.0))
        micros = pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())
        return micros.cast(pa.duration("us"))

    return parse


def clock_readings() -> Iterator[Reading]:
    """Yield times of day, and durations that are written as clocks show them."""
    colons = rf"(?:{CLOCK_PATTERN})"
    hours = r"(?P<H>0?[1-9]|1[0-2]) ?(?P<p>[ap]\.?m\.?)"
    digits = r"(?P<H>[01]\d|2[0-3])(?P<M>[0-5]\d)"
    seconds = digits + r"(?P<S>[0-5]\d)"
    french = r"(?P<H>[01]?\d|2[0-3])h(?P<M>[0-5]\d)"
    for name, pattern in (
        ("%H:%M", colons), ("%I %p", hours), ("%H%M", digits), ("%H%M%S", seconds),
        ("%Hh%M", french),
    ):  # fmt: skip
        shape = re.compile(pattern, re.IGNORECASE | re.ASCII)
        yield Reading(name, pa.time64("us"), shape, _time_parser(shape))
    elapsed = (
        r"(?:(?P<D>[+-]?\d+) ?d(?:ays?)?,? ?)?(?P<c>[+-]?)"
        r"(?P<H>\d+):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d(?:[.,]\d+)?))?"
    )
    yield _duration("hours:minutes", elapsed)
    laps = r"(?P<n>[+-]?)(?P<D>)(?P<H>)(?P<M>\d+):(?P<S>[0-5]\d[.,]\d+)"
    yield _duration("minutes:seconds", laps)


def worded_durations() -> Iterator[Reading]:
    """Yield durations in words and in the letters of ISO 8601."""
    number = r"\d+(?:[.,]\d+)?"
    words = (
        rf"(?P<n>-?)(?:(?P<D>{number}) ?(?:d|days?|tage?|jours?))?,? ?"
        rf"(?:(?P<H>{number}) ?(?:h|hrs?|hours?|std\.?|stunden?|heures?))?,? ?"
        rf"(?:(?P<M>{number}) ?(?:m|mins?\.?|minutes?|minuten))?,? ?"
        rf"(?:(?P<S>{number}) ?(?:s|secs?\.?|seconds?|sekunden?|sek\.?))?"
    )
    yield _duration("duration in words", words)
    letters = (
        rf"(?P<n>[+-]?)P(?:(?P<D>{number})D)?"
        rf"(?:T(?:(?P<H>{number})H)?(?:(?P<M>{number})M)?(?:(?P<S>{number})S)?)?"
    )
    yield _duration("duration", letters)


def _duration(name: str, pattern: str) -> Reading:
    shape = re.compile(pattern, re.IGNORECASE | re.ASCII)
    return Reading(name, pa.duration("us"), shape, _duration_parser(shape))


def split_fields(texts: pa.Array, shape: re.Pattern[str]) -> dict[str, pa.Array]:
    """Return the groups of a pattern as texts; ArrowInvalid if a text does not match."""
    parts = pc.extract_regex(texts, f"(?i)^(?:{shape.pattern})$")
    if parts.null_count > texts.null_count:
        raise pa.ArrowInvalid("another order")
    return {name: pc.struct_field(parts, name) for name in shape.groupindex}


def number_of(field: pa.Array, default: str = "0") -> pa.Array:
    """Return a field as whole numbers; `default` where it is empty."""
    return pc.if_else(pc.equal(field, ""), default, field).cast(pa.int64())
