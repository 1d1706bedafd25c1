"""Columns of a table by name: whether they are there, and one of them as an array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from .._checks import it_has, listed
from .arrow import to_numpy


def check_columns(where: str | Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse names that the table does not have, or has twice, and say which it has."""
    counts = Counter(names)
    missing = [name for name in wanted if not counts[name]]
    if missing:
        raise ValueError(f"{where} has no column {listed(missing)}; {it_has(names, missing[0])}")
    twice = sorted({name for name in wanted if counts[name] > 1})
    if twice:
        raise ValueError(f"{where} has several columns named {listed(twice)}: rename them")


def collected(parts: Iterable[pa.Array], where: str, name: str, length: int) -> np.ndarray:
    """Put the parts of a column together: numbers, booleans or text, none of them missing.

    Parameters
    ----------
    parts : iterable of pyarrow.Array
    where : str
        The table, for error messages.
    name : str
        The column, likewise.
    length : int
        Number of values. Numbers are written into one array that is there from the start, so that
        parts that are read one after the other are never in memory together.

    Returns
    -------
    ndarray of shape (length,)
    """
    chunks = (_values(part, where, name) for part in parts if len(part))
    first = next(chunks)
    if first.dtype.kind == "U":
        return np.concatenate([first, *chunks])
    out = np.empty(length, first.dtype)
    out[: len(first)], start = first, len(first)
    for chunk in chunks:
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    return out


def _values(column: pa.Array, where: str, name: str) -> np.ndarray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    values = np.asarray(column.to_pylist(), dtype=str) if text else None
    # what is missing from a text column of a CSV file is no null but an empty text
    if column.null_count or (values is not None and (values == "").any()):
        raise ValueError(
            f"{where}: the target '{name}' is missing in some rows (empty or null); drop these rows"
        )
    if values is not None:
        return values
    if pa.types.is_boolean(kind):
        return to_numpy(column).astype(bool)
    if pa.types.is_temporal(kind):
        raise TypeError(
            f"{where}: the target '{name}' holds dates or times ({kind}), not numbers or text; "
            "give the time since some day as a number"
        )
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not any(test(kind) for test in tests):
        raise TypeError(f"{where}: the target '{name}' holds neither numbers nor text, but {kind}")
    return to_numpy(column)
