"""Checks of arguments that name the value and the remedy."""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from .display import escape_controls
from .errors import SETTING_FORM, ParameterError

_BYTE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def as_bytes(limit: object, name: str = "memory_limit") -> int:
    """Return a number of bytes from an integer or a text such as "500MB", "2 GB", "1.5GiB".

    - `limit`: kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024.
    - `name`: name of the parameter, for the error.

    Raise ValueError if it is not a positive size.
    """
    # The pattern excludes signs, exponents and "nan", which `float` alone would accept.
    text = f"{limit:f}" if is_real(limit) else str(limit)  # `str` gives 1e+16 an exponent
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kKMGT]?)(i?)[bB]?\s*", text)
    try:
        if match is None:
            raise ValueError(limit)
        number, prefix, binary = match.groups()
        unit = _BYTE_UNITS[prefix.upper()]
        # A third of the digits of the decimal unit is the power of 1024: 1 for K, 4 for T.
        size = float(number) * (2 ** (10 * (len(str(unit)) // 3)) if binary else unit)
        # `float` also refuses texts such as "1.2.3", which match the pattern: one error for all.
        if not 1 <= size < 2**63:
            raise ValueError(limit)
    except ValueError:
        remedy = "give a positive number of bytes, or a text such as '500MB' or '2GiB'"
        raise ParameterError(name, limit, "is not a size", remedy, SETTING_FORM) from None
    return int(size)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer and not a boolean."""
    # NumPy's integers count, too. bool is a subclass of int: without the test, True would be 1.
    # The type comes first, because a test with an abstract class takes ten times as long.
    return type(value) is int or (
        isinstance(value, numbers.Integral) and not isinstance(value, bool)
    )


def is_real(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number and not a boolean."""
    return type(value) is float or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def as_count(value: object, name: str) -> int:
    """Return a whole number of at least 1; raise ValueError for another `value` of `name`."""
    if not is_integer(value) or value < 1:
        raise ParameterError(name, value, "a whole number of at least 1")
    # NumPy stores sizes in 64 bits: their OverflowError would not name the parameter.
    if value >= 2**63:
        raise ParameterError(name, value, "below 2**63")
    return int(value)


def check_count_or_auto(value: object, name: str) -> None:
    """Raise ValueError if `value`, called `name`, is neither a whole number nor "auto"."""
    if value != "auto":
        try:
            as_count(value, name)
        except ValueError:
            # The error of `as_count` does not mention 'auto'.
            expected = "a whole number of at least 1 or 'auto'"
            raise ParameterError(name, value, expected) from None


def as_positive(value: object, name: str) -> float:
    """Return a finite number above zero; raise ValueError for another `value` of `name`."""
    if not is_real(value) or not 0 < float(value) < math.inf:
        raise ParameterError(name, value, "positive and finite")
    return float(value)


def as_share(value: object, name: str, *, example: float = 0.9) -> float:
    """Return a number between 0 and 1, exclusive; raise ValueError for another `value`."""
    if not is_real(value) or not 0 < float(value) < 1:
        raise ParameterError(name, value, f"between 0 and 1, such as {example:g}")
    return float(value)


def readable_bytes(size: int | float) -> str:
    """Format a number of bytes, such as "1.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


NEAR_NAME_RATIO = 0.75
"""Similarity of a proposed name: latitude and longitude, at 0.71, are two names."""

MOST_NAMES = 20
"""Most names in the list of an error."""


def join_words(names: Sequence[str]) -> str:
    """Join escaped names with commas, up to `MOST_NAMES`."""
    # Names are columns of tables, too: there may be thousands, with any characters.
    more = len(names) - MOST_NAMES
    shown = ", ".join(map(escape_controls, names[:MOST_NAMES]))
    return f"{shown} and {more:,} more" if more > 0 else shown


def it_has(names: Sequence[str], wanted: str) -> str:
    """Return a text with the known names and the name nearest to `wanted`."""
    return f"it has {join_words(names)}{did_you_mean(wanted, names)}"


def did_you_mean(wanted: object, names: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: a near name, or nothing."""
    # Without regard to case: PRICE is near to price. A name that was given is no correction.
    by_case = {name.lower(): name for name in names if name != str(wanted)}
    near = difflib.get_close_matches(str(wanted).lower(), by_case, n=1, cutoff=NEAR_NAME_RATIO)
    return f"; did you mean {escape_controls(by_case[near[0]])}?" if near else ""
