"""Streaming conversion between table formats."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute

from .._atomic import write_atomically
from .formats import TableFormat, WritableFormat, format_of, format_to_write

BATCH_NUMBERS = 1 << 21
"""Numbers that are converted at a time, all columns together."""

FLOATS = ("float32", "float64", "keep")


def convert(source: str | Path, target: str | Path, *, dtype: str = "float32") -> int:
    """Rewrite a table in another format, told by the name of the target.

    Parameters
    ----------
    source : str or Path
        A table of any format.
    target : str or Path
        Replaced once the new file is complete. ``.npy`` takes numbers only and keeps no names;
        the columns of a ``.npy`` source are called ``"0", "1", ...``.
    dtype : {"float32", "float64", "keep"}
        Type for floating-point columns; in ``.npy`` for all of the matrix, which with "keep" is
        float64 if any column needs it. Other columns stay as they are.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    ValueError, TypeError
        In words; also if a number is too large for float32, or an integer would be rounded.

    Notes
    -----
    Memory: some ten megabytes, whatever the size of the table.
    """
    source, target = Path(source), Path(target)
    if dtype not in FLOATS:
        raise ValueError(f"dtype is one of {', '.join(FLOATS)}, not {dtype!r}")
    work = _Conversion(source, format_of(source), target, format_to_write(target), dtype)
    if target.is_dir() or source.resolve() == target.resolve():
        raise ValueError(f"the target {target} must be a file other than the source")
    schema = work.source_format.schema(source)
    try:
        return work.run(schema)
    except pa.ArrowInvalid:  # perhaps a type that was guessed from the beginning
        wider = work.source_format.widened(source, schema)
        if wider.equals(schema):
            raise
    return work.run(wider)


@dataclass(frozen=True)
class _Conversion:
    """Paths, columns and types of a conversion."""

    source: Path
    source_format: TableFormat
    target: Path
    target_format: WritableFormat
    dtype: str

    def run(self, schema: pa.Schema) -> int:
        """Write the target, all of it or nothing, and return the number of rows."""
        rows = 0

        def write(part: Path) -> None:
            nonlocal rows
            rows = self._write(part, schema)
            if rows == 0:
                raise ValueError(f"{self.source} has 0 rows: there is nothing to convert")

        write_atomically(self.target, write)
        return rows

    def _write(self, part: Path, schema: pa.Schema) -> int:
        rows, size = 0, max(1, BATCH_NUMBERS // len(schema))
        matrix = None if self.dtype == "keep" else np.dtype(self.dtype)
        writer = self.target_format.writer(part, _written(schema, self.dtype), matrix)
        with closing(writer):
            for batch in self.source_format.batches(self.source, schema, size):
                writer.write(_narrowed(batch, self.dtype))
                rows += batch.num_rows
        return rows


def _written(schema: pa.Schema, dtype: str) -> pa.Schema:
    if dtype == "keep":
        return schema
    kind = pa.float32() if dtype == "float32" else pa.float64()
    floats = [pa.types.is_floating(t) for t in schema.types]
    return pa.schema(
        [(f.name, kind if is_float else f.type) for f, is_float in zip(schema, floats, strict=True)]
    )


def _narrowed(batch: pa.RecordBatch, dtype: str) -> pa.RecordBatch:
    schema = _written(batch.schema, dtype)
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        changed = column.cast(field.type) if column.type != field.type else column
        if changed is not column and field.type == pa.float32():
            _check_overflow(column, changed, field.name)
        columns.append(changed)
    return pa.record_batch(columns, schema=schema)


def _check_overflow(before: pa.Array, after: pa.Array, name: str) -> None:
    infinite = pa.compute.is_inf(after)
    if pa.compute.any(pa.compute.and_not(infinite, pa.compute.is_inf(before))).as_py():
        raise ValueError(
            f"column '{name}' has numbers too large for float32: convert with dtype float64"
        )
