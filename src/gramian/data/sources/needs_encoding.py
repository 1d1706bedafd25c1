"""needs_encoding: test a table for gaps and for columns that are not numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from ..formats import format_of
from ..local.remote_table import is_uri
from ..rows.arrow import float_of
from ..tables.base import Table
from ..tables.frame_rows import is_frame
from ..tables.records import is_records
from .as_table import as_table


def needs_encoding(X: Any) -> bool:
    """Return whether a table has columns that are not numbers, or, in memory, gaps.

    Parameters
    ----------
    X : whatever `as_table` takes
        A table. Of a file only the types of columns are read; a file of text and records always
        need an encoding.
    """
    if isinstance(X, str | Path):
        return _of_file(X)
    if is_frame(X):
        # Types of pandas such as categories have other kinds than NumPy's numbers.
        kinds = {getattr(kind, "kind", "O") for kind in X.dtypes}
        return not kinds <= set("biuf") or bool(X.isna().to_numpy().any())
    if isinstance(X, pa.Table | pa.RecordBatch):
        gaps = any(column.null_count for column in X.columns)
        return gaps or not are_numbers(X.schema)
    # A stream can be read once: looking for gaps would use it up. Records are no matrix.
    if hasattr(X, "read_all") or is_records(X):
        return True
    table = as_table(X)
    gaps = any(table.column(name).null_count for name in table.names)
    return gaps or not are_numbers(table.schema)


def _of_file(path: str | Path) -> bool:
    # The types of a remote file are not fetched for this: an encoding also takes plain numbers.
    if is_uri(path):
        return True
    file_format = format_of(path)
    return file_format.text or (
        file_format.named and not are_numbers(file_format.schema(Path(path)))
    )


def are_numbers(schema: pa.Schema) -> bool:
    """Return whether all columns, except a stored index of pandas, hold numbers or booleans."""
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    return all(float_of(schema.field(name).type) is not None for name in names)


def has_numeric_columns(table: Table, columns: tuple[str, ...]) -> bool:
    """Return whether all of these columns of a table hold numbers or booleans."""
    return all(float_of(table.schema.field(name).type) is not None for name in columns)
