"""Streaming conversion between table formats."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..._files.atomic import check_output, write_atomically
from ..formats import WritableFormat, format_to_write
from ..formats.csv.columns.parsers import SPELLED_BOOLEANS
from ..local.remote_table import is_uri
from ..rows import arrow_compute as pc
from ..tables import Table
from ..tables.column_reading import TEXT_COLUMN
from ..tables.read_options import ReadLike, ReadOptions
from .as_table import as_table
from .odd_values import report_odd_values
from .typed_table import TypedTable

BATCH_NUMBERS = 1 << 21
"""Numbers that are converted at a time, all columns together."""

FLOAT_TYPES = ("float32", "float64", "keep")


def convert(
    source: str | Path, target: str | Path, *, dtype: str = "keep", read: ReadLike = None
) -> int:
    """Rewrite a table in the format of the target's suffix.

    Parameters
    ----------
    source : str or Path
        A table of any format, also by its address on an object store; see `as_table`.
    target : str or Path
        Replaced once the new file is complete. ``.npy`` takes numbers only and keeps no names;
        the columns of a ``.npy`` source are called ``"0", "1", ...``.
    dtype : {"float32", "float64", "keep"}
        Type of floating-point columns; in ``.npy`` of the whole matrix, which with "keep" is
        float64 if any column needs it. Other columns keep their types, except that categories
        become their values in a format without categories.
    read : dict or ReadOptions, optional
        How to read the source; see `ReadOptions`.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    ValueError, TypeError
        If the table cannot be read or converted, a number is too large for float32, or an integer
        would be rounded.
    OSError
        If the target cannot be written.

    Notes
    -----
    Memory: some ten megabytes, whatever the size of the table.
    """
    target = Path(target)
    if dtype not in FLOAT_TYPES:
        raise ValueError(f"dtype must be one of {', '.join(FLOAT_TYPES)}, got {dtype!r}")
    output_format = format_to_write(target)
    # The new file replaces the target at the end: the source would be gone.
    if target.is_dir() or (not is_uri(source) and Path(source).resolve() == target.resolve()):
        raise ValueError(f"the target {target} must be a file other than the source")
    # Before the source is read, which may take long.
    check_output(target)
    options = ReadOptions.of(read)
    table = as_table(source, options=options)
    kept_texts = table.texts if isinstance(table, TypedTable) else ()
    if spelled_columns := [
        name
        for name, reading in table.column_readings.items()
        if name in kept_texts
        or reading.name in SPELLED_BOOLEANS
        or (output_format.text and reading.name == "true/false")
    ]:
        # Once more, as texts: `Y` and `N` would become `true` and `false`.
        texts = dict.fromkeys(spelled_columns, TEXT_COLUMN)
        table = as_table(source, options=replace(options, columns=texts))
    report_odd_values(table, table.names)
    write_atomically(target, lambda part: _write(table, output_format, part, dtype))
    return table.num_rows


def _write(table: Table, found: WritableFormat, part: Path, dtype: str) -> None:
    size = max(1, BATCH_NUMBERS // len(table.schema))
    rows = 0
    matrix = None if dtype == "keep" else np.dtype(dtype)
    with closing(found.writer(part, _write_batches(table.schema, dtype), matrix)) as writer:
        for batch in table.batches(table.names, size):
            writer.write(_narrow_type(batch, dtype))
            rows += batch.num_rows
    if rows != table.num_rows:
        raise ValueError(
            f"{table.where} has {table.num_rows:,} rows, but {rows:,} could be read: it is damaged "
            "or was changed meanwhile; copy or write it again"
        )


def _write_batches(schema: pa.Schema, dtype: str) -> pa.Schema:
    if dtype == "keep":
        return schema
    kind = pa.float32() if dtype == "float32" else pa.float64()
    floats = [pa.types.is_floating(t) for t in schema.types]
    return pa.schema(
        [(f.name, kind if is_float else f.type) for f, is_float in zip(schema, floats, strict=True)]
    )


def _narrow_type(batch: pa.RecordBatch, dtype: str) -> pa.RecordBatch:
    schema = _write_batches(batch.schema, dtype)
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        changed = column.cast(field.type) if column.type != field.type else column
        if changed is not column and field.type == pa.float32():
            _check_overflow(column, changed, field.name)
        columns.append(changed)
    return pa.record_batch(columns, schema=schema)


def _check_overflow(before: pa.Array, after: pa.Array, name: str) -> None:
    # Arrow casts numbers beyond float32 to infinity without an error; infinite ones of the source
    # may stay.
    infinite = pc.is_inf(after)
    if pc.any(pc.and_not(infinite, pc.is_inf(before))).as_py():
        raise ValueError(
            f"column '{name}' has numbers too large for float32: convert with dtype float64"
        )
