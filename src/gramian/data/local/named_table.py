"""Tables for the command line: their columns, reading of rows, writing of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..._files.atomic import write_atomically
from ..._messages.checks import join_words
from ..formats import Column, WritableFormat, format_of, format_to_write
from ..formats.csv.format import without_formulas
from ..rows.arrow import check_columns
from ..rows.base import RowSource
from ..tables import Table

# Rows of kept columns that are copied at a time.
_COPIED_ROWS = 1 << 14


def table_schema(path: str | Path) -> pa.Schema:
    """Return names and Arrow types of a table's columns; names ``"0", "1", ...`` for ``.npy``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    pyarrow.Schema
    """
    return format_of(path).schema(Path(path))


def open_rows(path: str | Path, columns: Sequence[str] | None = None) -> RowSource:
    """Open a table of any format as rows; text is loaded, Parquet streamed, ``.npy`` mapped.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str, optional

    Returns
    -------
    RowSource of shape (n, d)
    """
    return format_of(path).rows(Path(path), columns)


def write_table(
    path: str | Path, columns: Mapping[str, Column], *, escape_formulas: bool = False
) -> None:
    """Write columns in the format of the file's suffix; the file is complete or missing.

    Parameters
    ----------
    path : str or Path
        An older file is replaced once the new one is complete.
    columns : mapping of name to ndarray or Arrow array of shape (n,)
        In ``.npy``, which keeps no names, a single column, or several as a matrix.
    escape_formulas : bool, default=False
        Whether texts that a spreadsheet would compute get an apostrophe; see
        `gramian.data.formats.csv.format.without_formulas`.
    """
    output_format = format_to_write(path)
    if escape_formulas:
        arrays = [pa.array(values) for values in columns.values()]
        batch = without_formulas(pa.record_batch(arrays, names=list(columns)))
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    write_atomically(path, lambda part: output_format.write(part, columns))


def write_with_columns(
    path: str | Path,
    table: Table,
    keep: Sequence[str],
    columns: Mapping[str, np.ndarray],
    *,
    escape_formulas: bool = False,
) -> None:
    """Write columns of a table, of any type, and additional columns with as many rows.

    Parameters
    ----------
    path : str or Path
        An older file is replaced once the new one is complete.
    table : Table of n rows
        Read in batches.
    keep : sequence of str
        Columns of the table to copy; they come first.
    columns : mapping of name to ndarray of shape (n,)
    escape_formulas : bool, default=False
        See `write_table`.

    Raises
    ------
    ValueError
        If the table has no such column, a name would occur twice, or the format keeps no names.
    """
    output_format = check_kept(path, table, keep, list(columns))
    arrays = {name: pa.array(values) for name, values in columns.items()}
    fields = [table.schema.field(name) for name in keep]
    schema = pa.schema([*fields, *((name, array.type) for name, array in arrays.items())])

    change = without_formulas if escape_formulas else lambda batch: batch
    # Escaping turns categories into texts: the writer needs the schema after it, found by a batch
    # without rows.
    written = change(pa.RecordBatch.from_pylist([], schema)).schema

    def write(part: Path) -> None:
        start = 0
        with closing(output_format.writer(part, written)) as writer:
            for batch in table.batches(keep, _COPIED_ROWS):
                # Predictions are in memory, the table is read in batches: both go along row by row.
                new = [array.slice(start, batch.num_rows) for array in arrays.values()]
                writer.write(change(pa.record_batch([*batch.columns, *new], schema=schema)))
                start += batch.num_rows

    write_atomically(path, write)


def check_kept(
    path: str | Path, table: Table, keep: Sequence[str], new: Sequence[str]
) -> WritableFormat:
    """Raise ValueError if `write_with_columns` would fail; return the format of the path."""
    output_format = format_to_write(path)
    if not output_format.named:
        raise ValueError(
            f"{path} keeps no names and no text, so no columns can be added to the predictions; "
            "use a name ending in .csv or .parquet"
        )
    check_columns(table.where, table.names, keep)
    twice = [name for name in dict.fromkeys(keep) if name in new or keep.count(name) > 1]
    if twice:
        raise ValueError(
            f"{path} would have two columns named {join_words(twice)}; name each column once, and "
            f"rename it in {table.where} if a column of predictions has the same name"
        )
    return output_format
