"""Rows of an Arrow table, and the conversion of Arrow columns to numbers."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.checks import it_has, join_words
from ..._messages.errors import SETTING_FORM, ParameterError, Text
from .array import check_matrix
from .base import RowSource, check_index, slices
from .dtypes import WIDE_INTEGERS, common_float, float_for, warn_of_rounding

Result = TypeVar("Result")

KEPT_SCHEMAS = 4
"""Schemas whose values are kept: a table may be read under two, before and after its texts."""

# Rows written at a time: the strip of the matrix stays in cache over all columns.
_STRIP_ROWS = 4096


class LastSchemas(Generic[Result]):
    """Function of a schema and other arguments whose last values are kept, as a decorator.

    A service reads tables of one schema, and looking at its columns takes longer than a prediction.
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._last: tuple[tuple[pa.Schema, tuple[Any, ...], Result], ...] = ()

    def __call__(self, schema: pa.Schema, *arguments: Any) -> Result:
        """Return the value, computed again for another schema or other arguments."""
        # A list may change after the call.
        arguments = tuple(tuple(a) if isinstance(a, list) else a for a in arguments)
        for last_schema, last_arguments, last_value in self._last:
            if last_arguments == arguments and last_schema.equals(schema):
                return last_value
        value = self._function(schema, *arguments)
        # One assignment, so that another thread sees all of it or nothing.
        self._last = ((schema, arguments, value), *self._last[: KEPT_SCHEMAS - 1])
        return value


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used, in order.

    Attributes
    ----------
    names : tuple of str
    types : tuple of str
        Names of their Arrow types, to compare files.
    dtype : dtype
        float64 if any column needs it, else float32.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    dtype: xp.DType


@LastSchemas
def choose_columns(schema: pa.Schema, wanted: Sequence[str] | None, where: str) -> Columns:
    """Find the wanted columns; raise TypeError for columns without numbers.

    - `wanted`: names; None for all columns except an index that pandas has stored.
    - `where`: subject of error messages: the file, or "the table".
    """
    if wanted is None:
        names = [name for name in schema.names if not name.startswith("__index_level_")]
    else:
        names = list(wanted)
    # Arrow allows several columns of one name, but then finds none of them by this name.
    check_columns(where, schema.names, names)
    if len(set(names)) < len(names):
        raise ParameterError("columns", names, "names a column twice", form=SETTING_FORM)
    types = [schema.field(name).type for name in names]
    floats = [float_of(t) for t in types]
    bad = [f"{n} ({t})" for n, t, f in zip(names, types, floats, strict=True) if f is None]
    if bad:
        raise TypeError(
            Text(
                "{} has columns that are not numbers: {}; leave them out with {columns=[...]}, "
                "or encode them as numbers first",
                where,
                join_words(bad),
            )
        )
    dtype = common_float(f for f in floats if f is not None)
    return Columns(tuple(names), tuple(str(t) for t in types), dtype)


def check_columns(where: str | Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise an error, with the existing names, for names that are missing or repeated."""
    # Files such as CSV may have two columns of one name: only those that are asked for matter.
    counts = Counter(names)
    missing = [str(name) for name in wanted if not counts[name]]
    if missing:
        raise ValueError(
            f"{where} has no column {join_words(missing)}; {it_has(names, missing[0])}"
        )
    twice = sorted({name for name in wanted if counts[name] > 1})
    if twice:
        raise ValueError(f"{where} has several columns named {join_words(twice)}: rename them")


@functools.cache
def float_of(kind: pa.DataType) -> xp.DType | None:
    """Return the type of the delivered numbers of a column; None if it has no numbers."""
    if pa.types.is_dictionary(kind):
        # Categories of numbers are delivered as the numbers that they stand for.
        return float_of(kind.value_type)
    # Decimals have up to 76 digits; float64 keeps more of them than float32.
    if pa.types.is_decimal(kind):
        return xp.float64
    if pa.types.is_null(kind):
        # A column of nulls only is NaN throughout, which the narrower type holds as well.
        return xp.float32
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return float_for(np.dtype(kind.to_pandas_dtype()).name)
    return None


def is_list(kind: pa.DataType) -> bool:
    """Return whether values are lists, of fixed or variable length."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def to_numpy(column: pa.Array, name: str | None = None) -> np.ndarray:
    """Return the numbers of an Arrow column, with NaN for nulls.

    It warns if float64 rounds whole numbers of a feature.

    - `column`: a column of a type that `choose_columns` accepts.
    - `name`: name of a feature.

    The result is a view of the column where Arrow allows it.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(kind):
        return to_numpy(column.dictionary_decode(), name)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan, np.float32)
    if pa.types.is_boolean(kind):
        # NumPy would get bits with nulls as an array of objects; integers with nulls become floats
        # with NaN.
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    # Checked before the conversion: with nulls Arrow itself converts integers to float64, and the
    # lost digits would be gone. Targets have no name, and no such warning.
    if name is not None and (pa.types.is_decimal(kind) or str(kind) in WIDE_INTEGERS):
        warn_of_rounding(column.drop_null().to_numpy(zero_copy_only=False), name)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def check_buffers(table: pa.Table, where: str) -> None:
    """Check offsets, indices and texts, which Arrow's functions use without bounds checks.

    - `table`: a table that may have been read from a file or stream without checks.
    - `where`: subject of error messages.

    Raise ValueError if a buffer is too short, an offset or an index is out of range, or a text is
    not UTF-8.

    Cost: 0.2 to 0.3 seconds per GB of texts and of categories, nothing for numbers.
    """
    try:
        # Without `full` Arrow checks the lengths of buffers only, not the offsets in them.
        table.validate(full=True)
    except pa.ArrowException as error:
        raise ValueError(
            f"{where} contains damaged Arrow data: read or create it again "
            f"(Arrow reports: {str(error).splitlines()[0]})"
        ) from error


def fill(
    out: Float[Array, "b d"],
    batch: pa.RecordBatch,
    names: Iterable[str],
    labels: Iterable[str] | None = None,
) -> None:
    """Write the columns of a batch into a matrix.

    - `out`, ndarray of shape (b, d).
    - `labels`: names of the columns in warnings, if they differ.
    """
    names = list(names)
    columns = [
        to_numpy(batch.column(name), label)
        for name, label in zip(names, names if labels is None else labels, strict=True)
    ]
    # Columns are contiguous in Arrow, rows in the matrix: writing whole columns one by one would
    # touch every cache line of the matrix once per column.
    for strip in slices(len(out), _STRIP_ROWS):
        for j, column in enumerate(columns):
            out[strip, j] = column[strip]


class TableRows(RowSource):
    """Rows of an Arrow table, converted block by block.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of str, optional
        The columns to use, in this order; all of them by default.
    """

    def __init__(self, table: pa.Table, columns: Sequence[str] | None = None) -> None:
        chosen = choose_columns(table.schema, columns, "the table")
        self.shape = check_matrix((table.num_rows, len(chosen.names)))
        self.dtype = chosen.dtype
        self.feature_names: tuple[str, ...] | None = chosen.names
        # Selected before the check, so that damage in columns that are not used does not matter.
        self._table = table.select(list(chosen.names))
        check_buffers(self._table, "the table")

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        for part in slices(self.shape[0], size):
            yield part, self._matrix(self._table.slice(part.start, part.stop - part.start))

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        # The result may have several chunks, which `_matrix` fills in one by one.
        return self._matrix(self._table.take(pa.array(xp.to_host(index))))

    def _matrix(self, table: Any) -> Array:
        out = np.empty((table.num_rows, self.shape[1]), self.dtype)
        start = 0
        for batch in table.to_batches():
            part = out[start : start + batch.num_rows]
            fill(part, batch, self._table.schema.names, self.feature_names)
            start += batch.num_rows
        return out
