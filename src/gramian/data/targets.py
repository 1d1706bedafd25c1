"""The column to be predicted, read into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from .arrow import to_numpy
from .npy import native, open_columns
from .parquet import ParquetFile, opened, parquet_paths, row_groups
from .parts import column_numbers
from .tables import check_columns, kind_of, table_schema
from .text import read_csv


def read_targets(path: str | Path, columns: str | Sequence[str]) -> np.ndarray:
    """Read what is to be predicted.

    Parameters
    ----------
    path : str or Path
        Parquet (file or directory), CSV or ``.npy``.
    columns : str or sequence of str
        One column of numbers or of text (class labels), or several of numbers.

    Returns
    -------
    ndarray of shape (n,), or (n, t) for t > 1 columns
        In the type of the file; text as NumPy strings.

    Raises
    ------
    ValueError
        If a value is missing or infinite: row and column are named.

    Notes
    -----
    Memory: the result and some megabytes; for CSV also the columns as Arrow holds them.
    """
    path = Path(path)
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError("Name at least one target column.")
    check_columns(path, table_schema(path).names, names)
    parts = [_column(path, name) for name in names]
    text = [n for n, part in zip(names, parts, strict=True) if part.dtype.kind == "U"]
    if text and len(parts) > 1:
        raise TypeError(f"{path}: with several targets all must be numbers, not {', '.join(text)}.")
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=1)


def _column(path: Path, name: str) -> np.ndarray:
    kind = kind_of(path)
    if kind == ".npy":
        array = open_columns(path)
        column = array[:, column_numbers([name], None, array.shape[1])[0]]
        values = column.astype(native(column.dtype))
    elif kind == ".csv":
        table = read_csv(path, [name])
        values = _together(table.num_rows, iter(table.to_batches()), path, name)
    else:
        values = _from_parquet(path, name)
    _check_values(values, path, name)
    return values


def _from_parquet(path: Path, name: str) -> np.ndarray:
    files = []
    for part in parquet_paths(path):
        with opened(part) as file:
            files.append(ParquetFile(part, row_groups(file)))
    batches = (batch for file in files for batch in file.batches([name], 1 << 16))
    return _together(sum(file.rows for file in files), batches, path, name)


def _together(n: int, batches: Iterator[pa.RecordBatch], path: Path, name: str) -> np.ndarray:
    """Collect n values into one array that is there from the start, unless they are text."""
    if n == 0:
        raise ValueError(f"{path} has 0 rows, but at least one is needed.")
    chunks = (_values(batch.column(0), path, name) for batch in batches if batch.num_rows)
    first = next(chunks)
    if first.dtype.kind == "U":
        return np.concatenate([first, *chunks])
    out = np.empty(n, first.dtype)
    out[: len(first)], start = first, len(first)
    for chunk in chunks:
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    return out


def _values(column: pa.Array, path: Path, name: str) -> np.ndarray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    values = np.asarray(column.to_pylist(), dtype=str) if text else None
    # what is missing from a text column of a CSV file is no null but an empty text
    if column.null_count or (values is not None and (values == "").any()):
        raise ValueError(
            f"{path}: the target '{name}' is missing in some rows (empty or null). Drop these rows."
        )
    if values is not None:
        return values
    if pa.types.is_boolean(kind):
        return to_numpy(column).astype(bool)
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not any(test(kind) for test in tests):
        raise TypeError(f"{path}: the target '{name}' holds neither numbers nor text, but {kind}.")
    return to_numpy(column)


def _check_values(values: np.ndarray, path: Path, name: str) -> None:
    if values.dtype.kind not in "biufU":
        raise TypeError(
            f"{path}: the target '{name}' has type {values.dtype}, not numbers or text."
        )
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    bad = np.flatnonzero(~np.isfinite(values))
    raise ValueError(
        f"{path}: the target '{name}' is missing (NaN) or infinite in {len(bad)} rows, the first "
        f"of them row {bad[0]}. Drop these rows."
    )
