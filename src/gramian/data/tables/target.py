"""The columns to be predicted, read into memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..._messages.checks import join_words
from ..._messages.errors import TextError
from ..rows import arrow_compute as pc
from ..rows.arrow import check_columns, float_of, to_numpy
from .base import Table
from .column_reading import OddValues

_BATCH_ROWS = 1 << 16  # read at a time


def target_column(table: Table, columns: str | Sequence[str]) -> Any:
    """Read a target column, or several; targets of remote rows stay with their rows.

    Parameters
    ----------
    table : Table
    columns : str or sequence of str
        One column of numbers or of text (class labels), or several of numbers.

    Returns
    -------
    ndarray of shape (n,), or (n, t) for t > 1 columns, or Columns
        Values in the type of the table; texts and categories as NumPy strings.

    Raises
    ------
    ValueError, TypeError
        If a value is missing or infinite, which the message shows with its row, or the column holds
        dates or lists.

    Notes
    -----
    Cost: a pass over the table for each column. Memory: the result and some megabytes.
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError("target must name at least one column, got none")
    check_columns(table.where, table.names, names)
    remote_columns = table.remote_columns(names)
    if remote_columns is not None:
        return remote_columns
    parts = [_values(table, name) for name in names]
    text = [n for n, part in zip(names, parts, strict=True) if part.dtype.kind == "U"]
    if text and len(parts) > 1:
        raise TypeError(
            f"{table.where}: several targets must all be numbers, but {join_words(text)} holds text"
        )
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=1)


def has_values(table: Table, columns: Sequence[str]) -> np.ndarray:
    """Return which rows have a value in all of some columns, of shape (n,).

    Missing are nulls, NaN and empty texts.
    """
    check_columns(table.where, table.names, columns)
    parts = []
    for batch in table.batches(list(columns), _BATCH_ROWS):
        is_present = np.ones(batch.num_rows, bool)
        for column in batch.columns:
            is_present &= column.is_valid().to_numpy(zero_copy_only=False)
            if pa.types.is_floating(column.type):
                is_present &= ~np.isnan(to_numpy(column))
            elif pa.types.is_string(column.type):
                is_present &= pc.not_equal(column, "").fill_null(False).to_numpy(False)
        parts.append(is_present)
    return np.concatenate(parts)


def describe_odd_text(table: Table, texts: np.ndarray) -> str:
    """Return the first text of a target that is no number, and its row; else the first text."""
    place = next((i for i, text in enumerate(texts) if not is_number(text)), 0)
    return f"{str(texts[place])!r:.60}{table.name_row(place)}"


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def number_column(table: Table, name: str, role: str) -> Any:
    """Return a column of numbers for a role, such as the weights of rows, in float64.

    The numbers of remote rows stay with their rows, as `Columns`.

    Raise ValueError or TypeError if there is no such column, it holds no numbers, or a number is
    missing.
    """
    check_columns(table.where, table.names, [name])
    remote_columns = table.remote_columns([name])
    if remote_columns is not None:
        return remote_columns
    column = table.column(name)
    if float_of(column.type) is None:
        raise TypeError(
            f"{table.where}: the {role} '{name}' must hold numbers, but holds {column.type}"
        )
    values: np.ndarray = to_numpy(column.combine_chunks(), name).astype(np.float64)
    _refuse_gaps(table, f"{role} '{name}'", np.isnan(values))
    return values


def _refuse_gaps(table: Table, what: str, is_missing: np.ndarray) -> None:
    if is_missing.any():
        raise ValueError(
            f"{table.where}: the {what} is missing in {is_missing.sum():,} rows, the first of them "
            f"row {table.first_row + int(is_missing.argmax()):,} ({table.row_numbers}); fill the "
            "gaps, or drop these rows"
        )


def role_column(table: Table, name: str, role: str) -> np.ndarray:
    """Return a column of any type, such as the groups of rows; dates and times as numbers.

    Raise ValueError if there is no such column, or a value is missing.
    """
    check_columns(table.where, table.names, [name])
    column = table.column(name)
    _refuse_gaps(table, f"{role} '{name}'", ~has_values(table, [name]))
    if pa.types.is_temporal(column.type):
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = column.cast(width)
    return np.asarray(column.to_pylist())


def _values(table: Table, name: str) -> np.ndarray:
    parts = (batch.column(0) for batch in table.batches([name], _BATCH_ROWS))
    try:
        values = _collect_values(parts, table.where, name, table.num_rows)
    except _MissingValueError:
        raise _missing(table, name, ~has_values(table, [name]), "empty or null") from None
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values
    raise _missing(table, name, ~np.isfinite(values), "NaN or infinite")


class _MissingValueError(ValueError):
    """Error for a target with a null or an empty text."""


def _missing(table: Table, name: str, is_missing: np.ndarray, what: str) -> TextError:
    """Return the error for a target with gaps, which names the first of them."""
    row = table.first_row + int(is_missing.argmax())
    reading = table.column_readings.get(name)
    odd = OddValues() if reading is None else reading.odd
    texts = sorted([*odd.first, *([odd.written_gap] if odd.written_gap else [])])[:1]
    shown = "".join(f"; {text!r:.60} in row {number:,}" for number, text in texts)
    return TextError(
        "{}: the target '{}' is missing in some rows ({}): {:,} of {:,}, first in row {:,} "
        "({}){}; leave these rows out with {drop_missing_target=True}",
        table.where, name, what, int(is_missing.sum()), len(table), row, table.row_numbers, shown,
    )  # fmt: skip


def _collect_values(parts: Iterable[pa.Array], where: str, name: str, length: int) -> np.ndarray:
    """Concatenate the parts of a column of numbers, booleans or text without missing values.

    - `where`: the table, for error messages.
    - `name`: the column, likewise.
    - `length`: number of values. Numbers are written into one array, so that batches are never in
      memory together.
    """
    chunks = (_chunk_values(part, where, name) for part in parts if len(part))
    first = next(chunks)
    if first.dtype.kind == "U":
        # The width of NumPy's texts is known only at the end, so that these parts are collected
        # first.
        return np.concatenate([first, *chunks])
    # All parts have the type of the first one: they are batches of one table.
    out = np.empty(length, first.dtype)
    out[: len(first)], start = first, len(first)
    for chunk in chunks:
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    return out


def _chunk_values(column: pa.Array, where: str, name: str) -> np.ndarray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    values = np.asarray(column.to_pylist(), dtype=str) if text else None
    # A missing value in a text column of a CSV file is an empty text, not a null.
    if column.null_count or (values is not None and (values == "").any()):
        raise _MissingValueError
    if values is not None:
        return values
    if pa.types.is_boolean(kind):
        return to_numpy(column).astype(bool)
    if pa.types.is_temporal(kind):
        raise TypeError(
            f"{where}: the target '{name}' holds dates or times ({kind}), not numbers or text; "
            "convert it to a number, such as the days since a fixed date"
        )
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not any(test(kind) for test in tests):
        raise TypeError(f"{where}: the target '{name}' holds neither numbers nor text, but {kind}")
    return to_numpy(column)
