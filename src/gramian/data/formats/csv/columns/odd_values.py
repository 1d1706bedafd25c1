"""Odd values: the few values of a column that a reading of all others cannot read."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import pyarrow as pa

from ....rows import arrow_compute as pc
from .parsers import CODE_PATTERN, NUMBER_READINGS, Reading, clean_texts

ODD_SHARE = 0.02
"""Share of the values of a column that may be odd. Typing errors and notes are rarer; codes that
are mostly digits, such as house numbers with letters, have more of others."""

ONE_ODD_ROWS = 20
"""Values of a column from which on one of them may be odd."""

LOOK_SHARE = 0.08
"""Odd share of the first rows that keeps a reading: odd values may be next to each other."""


def allowed_count(values: int) -> int:
    """Return how many of the values of a column may be odd."""
    return max(int(ODD_SHARE * values), int(values >= ONE_ODD_ROWS))


def find_odd(reading: Reading, texts: pa.Array, limit: int) -> np.ndarray | None:
    """Return the places of texts that a reading cannot read.

    - `texts`: without space around them, nulls for missing values.

    The result is None if there are more of them than `limit`, or they show that the column is of
    another kind: a code among numbers, or only one of two words for booleans.
    """
    odd = _unread(reading, texts, limit)
    return odd if odd is None or len(odd) == 0 or _are_odd(reading, texts, odd) else None


def _unread(reading: Reading, texts: pa.Array, limit: int) -> np.ndarray | None:
    """Return the places of texts that a reading cannot read; None if more than `limit`."""
    # As a regular expression of Arrow that matches only whole texts.
    flags = "(?i)" if reading.shape.flags & re.IGNORECASE else ""
    pattern = f"{flags}^(?:{reading.shape.pattern})$"
    matching = pc.match_substring_regex(texts, pattern).fill_null(True)
    is_matching = matching.to_numpy(zero_copy_only=False)
    matching_places = np.flatnonzero(is_matching)
    odd = len(texts) - len(matching_places)
    if odd > limit:
        return None
    matching_texts = texts.take(pa.array(matching_places))
    if reading.mark is not None:
        # Marks are removed once, not for each half that is parsed.
        matching_texts = reading.mark.strip(matching_texts)
        reading = next(plain for plain in NUMBER_READINGS if plain.name == reading.name)
    unread = _bisect(reading, matching_texts, limit - odd)
    return (
        None
        if unread is None
        else np.union1d(np.flatnonzero(~is_matching), matching_places[unread])
    )


def read_values(
    reading: Reading, texts: pa.Array, gaps: Collection[str], limit: int
) -> tuple[pa.Array, list[int], list[str]]:
    """Return the values of texts as they are in a file, and the odd ones.

    - `gaps`: texts that are missing values, besides `MISSING_TEXTS`.
    - `limit`: odd values, at most.

    The results are values, with nulls where texts are odd, and the places and the texts of these.
    Raise pyarrow.ArrowInvalid if more texts are odd.
    """
    if not gaps and (values := _try_parse(reading, texts)) is not None:
        return values, [], []
    texts = clean_texts(texts, gaps)
    if (values := _try_parse(reading, texts)) is not None:
        return values, [], []
    odd = _unread(reading, texts, limit)
    if odd is None:
        raise pa.ArrowInvalid(f"more than {limit} values that are not {reading.name}")
    return reading.parse(without(texts, odd)), odd.tolist(), texts.take(pa.array(odd)).to_pylist()


def _try_parse(reading: Reading, texts: pa.Array) -> pa.Array | None:
    try:
        return reading.parse(texts)
    except pa.ArrowInvalid:
        return None


def _are_odd(reading: Reading, texts: pa.Array, odd: np.ndarray) -> bool:
    """Return whether values may be odd in a column of this reading."""
    if reading.decimal is not None:
        codes = pc.match_substring_regex(texts.take(pa.array(odd)), CODE_PATTERN)
        return not pc.any(codes).as_py()
    if pa.types.is_boolean(reading.type):
        values = reading.parse(without(texts, odd))
        return bool(pc.any(values).as_py() and not pc.all(values).as_py())
    return True


def without(texts: pa.Array, odd: np.ndarray) -> pa.Array:
    """Return texts with nulls at some places."""
    is_odd = np.zeros(len(texts), bool)
    is_odd[odd] = True
    return pc.if_else(pa.array(is_odd), pa.scalar(None, pa.string()), texts)


def _bisect(reading: Reading, texts: pa.Array, limit: int) -> np.ndarray | None:
    """Return the places of texts that cannot be parsed, by halves; None if more than `limit`."""
    if len(texts) == 0 or reading.holds(texts):
        return np.empty(0, np.int64)
    if limit <= 0:
        return None
    if len(texts) == 1:
        return np.zeros(1, np.int64)
    middle = len(texts) // 2
    first = _bisect(reading, texts.slice(0, middle), limit)
    if first is None:
        return None
    second = _bisect(reading, texts.slice(middle), limit - len(first))
    return None if second is None else np.concatenate([first, second + middle])
