"""Tables of frames, files and addresses, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from ..._messages.display import display_text
from ..formats import format_of
from ..formats.csv.format import STANDARD_INPUT, standard_input, text_files
from ..formats.csv.table import text_table
from ..tables.base import Table
from ..tables.frames import from_pandas, is_lazy, is_pandas, is_stream
from ..tables.list_columns import ListColumns, lengths_of
from ..tables.read_options import DEFAULT_OPTIONS, ReadOptions
from ..tables.records import from_records, is_records
from ..tables.stored import MemoryTable
from .remote_table import address_of, remote_table


def local_table(x: Any, where: str | None = None, options: ReadOptions = DEFAULT_OPTIONS) -> Table:
    """Return a table as `as_table` does, without support for folders on a cluster."""
    if isinstance(x, Table):
        return x
    table = _file_table(x, where, options) if isinstance(x, str | Path) else _frame_table(x, where)
    lengths = lengths_of(table)
    return ListColumns(table, lengths) if lengths else table


def _frame_table(x: Any, where: str | None) -> Table:
    where = "the table" if where is None else where
    if is_pandas(x):
        return MemoryTable(from_pandas(x, where), where)
    if is_records(x):
        return MemoryTable(from_records(x, where), where)
    if is_lazy(x):
        # A lazy frame is computed once; each pass would compute it again.
        x = x.collect()
    if is_stream(x):
        return MemoryTable(_read_all(x, where), where)
    raise TypeError(
        f"an object of type {type(x).__name__} has no named columns; expected a path, a frame of "
        "pandas or polars, a table of Arrow, a dict of columns, or a list of dicts"
    )


def _file_table(x: str | Path, where: str | None, options: ReadOptions) -> Table:
    address = address_of(x)
    if address is not None:
        return remote_table(address, where)
    path = Path(x)
    where = display_text(x) if where is None else where
    if str(x) == STANDARD_INPUT:
        return standard_input(options)
    files = text_files(path)
    if files is not None:
        return text_table(files[0], where, options, files[1:])
    return format_of(path).table(path, where, options)


def _read_all(x: Any, where: str) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(x).read_all()
    except pa.ArrowException as error:
        raise ValueError(
            f"{where} cannot be read as a stream of Arrow: {str(error).splitlines()[0]}"
        ) from error
