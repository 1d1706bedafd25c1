"""From one table format to another, a little at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

from .._atomic import write_atomically
from .arrow import Columns, to_numpy
from .dtypes import NUMPY_OF
from .npy import NpyWriter, native, open_columns
from .parquet import ParquetFile, opened, parquet_paths, row_groups
from .tables import kind_of, table_schema
from .text import csv_batches, readable_csv, widened

FLOATS = ("float32", "float64", "keep")


def convert(source: str | Path, target: str | Path, *, dtype: str = "float32") -> int:
    """Rewrite a table as ``.parquet``, ``.csv`` or ``.npy``, told apart by the name.

    Parameters
    ----------
    source : str or Path
        Parquet (file or directory), CSV or ``.npy``.
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
        raise ValueError(f"dtype is one of {', '.join(FLOATS)}, not {dtype!r}.")
    kind_of(target)
    if target.is_dir() or source.resolve() == target.resolve():
        raise ValueError(f"The target {target} must be a file other than the source.")
    schema = table_schema(source)
    if kind_of(source) != ".csv":
        return _write(source, schema, target, dtype)
    try:
        return _write(source, schema, target, dtype)
    except pa.ArrowInvalid:  # perhaps a type that was guessed from the first block
        types = widened(source, dict(zip(schema.names, schema.types, strict=True)))
    with readable_csv(source):
        return _write(source, pa.schema(types), target, dtype)


def _write(source: Path, schema: pa.Schema, target: Path, dtype: str) -> int:
    rows = 0

    def write(part: Path) -> None:
        nonlocal rows
        rows = 0
        with closing(_writer(kind_of(target), part, _written(schema, dtype), dtype)) as writer:
            for batch in _batches(source, schema):
                writer.write(_narrowed(batch, dtype))
                rows += batch.num_rows
        if rows == 0:
            raise ValueError(f"{source} has 0 rows: there is nothing to convert.")

    write_atomically(target, write)
    return rows


def _batches(source: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    kind = kind_of(source)
    size = max(1, (1 << 21) // len(schema))
    if kind == ".csv":
        yield from csv_batches(source, dict(zip(schema.names, schema.types, strict=True)))
    elif kind == ".npy":
        array = open_columns(source)
        for start in range(0, len(array), size):
            block = array[start : start + size]
            columns = [pa.array(c.astype(native(c.dtype))) for c in block.T]
            yield pa.record_batch(columns, schema=schema)
    else:
        for path in parquet_paths(source):
            with opened(path) as file:
                found = ParquetFile(path, row_groups(file))
                _check_same(path, file.schema_arrow, schema)
            yield from found.batches(schema.names, size)


def _check_same(path: Path, found: pa.Schema, schema: pa.Schema) -> None:
    if not found.equals(schema):
        raise ValueError(
            f"{path} differs from the first file in columns or types: "
            f"{', '.join(found.names)} against {', '.join(schema.names)}."
        )


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
            f"Column '{name}' has numbers too large for float32: convert with dtype float64."
        )


def _writer(kind: str, path: Path, schema: pa.Schema, dtype: str) -> Any:
    """Give a writer of record batches; in Parquet a batch becomes a row group."""
    if kind == ".npy":
        return _MatrixWriter(path, schema, dtype)
    if kind == ".csv":
        return pa.csv.CSVWriter(path, schema)
    return pq.ParquetWriter(path, schema, write_page_checksum=True)


class _MatrixWriter:
    """Writes the columns side by side into a ``.npy`` file."""

    def __init__(self, path: Path, schema: pa.Schema, dtype: str) -> None:
        found = Columns.choose(schema, schema.names, "The table")
        self._dtype = NUMPY_OF[found.dtype] if dtype == "keep" else np.dtype(dtype)
        self._file = NpyWriter(path, len(schema), self._dtype)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        out = np.empty((batch.num_rows, batch.num_columns), self._dtype)
        for j, (column, name) in enumerate(zip(batch.columns, batch.schema.names, strict=True)):
            values = to_numpy(column)
            _check_exact(values, self._dtype, name)
            out[:, j] = values
        self._file.append(out)

    def close(self) -> None:
        """Complete the file."""
        self._file.close()


def _check_exact(values: np.ndarray, dtype: np.dtype[Any], name: str) -> None:
    limit = 2 ** (np.finfo(dtype).nmant + 1)
    if values.dtype.kind in "iu" and len(values) and max(values.max(), -int(values.min())) > limit:
        raise ValueError(
            f"Column '{name}' has integers beyond {limit:,}, which {dtype} would round: "
            "convert with dtype float64, or leave the column out."
        )
