"""`as_table`: the entrance for everything that has named columns, and whether it is encoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from ..._messages.display import display_text
from ..encoding.table_encoding import Encoding
from ..formats import format_of
from ..local.remote_table import is_uri
from ..local.table import local_table
from ..remote.rows import client_of
from ..rows.arrow import float_of
from ..tables.base import Table
from ..tables.frames import is_pandas
from ..tables.read_options import DEFAULT_OPTIONS, ReadOptions
from ..tables.records import is_records
from .odd_values import report_odd_values
from .typed_table import read_texts


def as_table(x: Any, where: str | None = None, *, options: ReadOptions = DEFAULT_OPTIONS) -> Table:
    """Return a table of anything that has named columns.

    Parameters
    ----------
    x : Table, path, URI, pyarrow.Table, frame, mapping, or list of mappings
        A path of one of the `gramian.data.formats`, or an address of one on an object store
        (``s3://``, ``gs://``); a frame of pandas (whose index is not used) or polars, lazy or not;
        a table, batch or reader of Arrow; a relation of DuckDB; anything else with
        ``__arrow_c_stream__``, which may be a stream that can be read only once. A mapping of
        names to lists or arrays has columns; one of names to single values is a row, and a list
        of these has rows.
    where : str, optional
        Subject of error messages; the path, or "the table", by default.
    options : ReadOptions
        Of local files of text, and of columns of text of frames, which are read as the same text in
        a file. `types` and `missing` apply to all tables. Other columns keep their own types.

    Returns
    -------
    Table
        Files are streamed where their format allows it; frames are held as they are. A column
        ``x`` of lists of numbers, all of one length, is the columns ``x[0]``, ``x[1]`` and so on.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If there are no named columns, or no rows.

    Examples
    --------
    >>> import pandas as pd
    >>> as_table(pd.DataFrame({"city": ["Rome", "Bern"], 7: [1.5, None]})).schema
    city: string
    7: double
    """
    if isinstance(x, str | Path) and (client := client_of(x)) is not None:
        from ..dask import DaskTable

        return DaskTable(x, display_text(x) if where is None else where, client=client)
    table = local_table(x, where, options)
    if table.reading is None and table.takes_encoding:
        in_file, is_opened = isinstance(x, str | Path), isinstance(x, Table)
        table = read_texts(table, options, in_file=in_file, undeclared=not is_opened)
        if options.to_dict():
            table.reading = options.for_model
    if options.strict:
        report_odd_values(table, table.names, strict=True)
    return table


def encoding_table(x: Any, encoding: Encoding) -> Table:
    """Return a table that is read as the table that an encoding was learned from."""
    table = as_table(x, options=ReadOptions(columns=encoding.column_readings))
    report_odd_values(table, encoding.names)
    return table


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
    if is_pandas(X):
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
