"""Columns of Arrow as arrays: texts as codes, dates and times as microseconds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..tables import MemoryTable, Table
from .kinds import is_text

MISSING_LEVELS = frozenset(
    (
        *("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "None", "NULL", "null"),
        *("#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    )
)
"""Texts that pandas reads as missing: missing values among levels too, so that a file and its frame
give the same model."""

_UNIT_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
_DAY_MICROSECONDS = 86_400 * 10**6


def missing(column: pa.Array) -> np.ndarray:
    """Return a mask of the null values."""
    if column.null_count == 0:
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null())


def encode_levels(column: pa.Array) -> tuple[list[str | None], np.ndarray]:
    """Return the distinct texts of a column, and the position of each value among them.

    - `column`, pyarrow.Array of length b: text of any width, a dictionary of it or of other values,
      or nulls.

    Some texts may occur twice, or be absent from the column. The positions are an int64 array of
    shape (b,), with -1 for a missing value, or one of `MISSING_LEVELS`.
    """
    if pa.types.is_null(column.type):
        return [], np.full(len(column), -1, np.int64)
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.large_string()).dictionary_encode()
    # A few rows of a column with many categories, as `take` gives them: decoding them is cheaper
    # than converting all categories.
    elif len(column.dictionary) > len(column):
        column = column.dictionary_decode()
        return encode_levels(_as_text(column))
    # -1 is the last place of a list, where callers put the entry for missing values.
    index = column.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    texts = _as_text(column.dictionary).to_pylist()
    if not MISSING_LEVELS.isdisjoint(texts):
        is_missing = np.array([text in MISSING_LEVELS for text in texts])
        index = np.where(is_missing[index], -1, index)
    return texts, index


def _as_text(values: pa.Array) -> pa.Array:
    if is_text(values.type):
        return values.cast(pa.large_string())
    # Adding 0 turns -0 into 0: both are one level.
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False) + values.type.to_pandas_dtype()(0)
        values = pa.array(numbers, values.type, mask=missing(values))
    return values.cast(pa.large_string())


def microseconds(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return dates, times or durations as whole microseconds.

    - `column`, pyarrow.Array of length b: dates count from 1970, in UTC if they have a time zone;
      times of day from midnight.

    The results are microseconds, int64 of shape (b,), 0 in gaps, and a mask of the gaps.
    Raise OverflowError if a value is farther than 290,000 years from 1970.
    """
    gaps, type_ = missing(column), column.type
    if pa.types.is_null(type_):
        return np.zeros(len(column), np.int64), gaps
    # Arrow casts dates and times to integers of their own width only.
    narrow = type_.bit_width == 32
    raw = column.cast(pa.int32() if narrow else pa.int64()).fill_null(0).to_numpy()
    values = raw.astype(np.int64)
    unit = "ms" if pa.types.is_date64(type_) else getattr(type_, "unit", "day")
    if unit == "ns":
        # Rounded down, also before 1970, so that the order of times is kept.
        return values // 1000, gaps
    factor = _DAY_MICROSECONDS if unit == "day" else _UNIT_MICROSECONDS[unit]
    # In float64, because the product in int64 would wrap around in silence.
    if np.abs(values.astype(np.float64)).max(initial=0) * factor >= 2.0**63:
        raise OverflowError
    return values * factor, gaps


def array_table(array: np.ndarray) -> Table:
    """Return the columns of an array of numbers of shape (n, d), copied."""
    columns = np.ascontiguousarray(array.T)
    names = [f"x{j}" for j in range(len(columns))]
    return MemoryTable(pa.table(list(columns), names=names), "X")
