"""`as_table`: the entrance for everything that has named columns."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..tables.base import Table
from ..tables.frames import from_pandas, is_lazy, is_pandas, is_stream
from ..tables.in_memory import MemoryTable
from ..tables.list_columns import ListColumns, lengths_of


def is_table(x: Any) -> bool:
    """Return whether something is a table, a path, or a frame: what `as_table` takes.

    Arrays, sparse matrices, tensors and row sources are not. Nothing is read or computed.
    """
    if isinstance(x, Table | str | Path):
        return True
    return is_pandas(x) or is_lazy(x) or is_stream(x)


def as_table(x: Any, where: str | None = None, *, texts: Collection[str] = ()) -> Table:
    """Return a table of anything that has named columns.

    Parameters
    ----------
    x : Table, path, URI, pyarrow.Table, or frame
        A path of one of the `gramian.data.formats`, or an address of one on an object store
        (``s3://``, ``gs://``); a frame of pandas (whose index is not used) or polars, lazy or not;
        a table, batch or reader of Arrow; a relation of DuckDB; anything else with
        ``__arrow_c_stream__``, which may be a stream that can be read only once.
    where : str, optional
        Subject of error messages; the path, or "the table", by default.
    texts : collection of str
        Names of columns that are read as text whatever they look like, such as codes made of
        digits: only the empty text is missing there. They need not be there. Of files of text on
        this machine only: all other tables have types of their own, which are kept.

    Returns
    -------
    Table
        Files are streamed where their format allows it; frames are held as they are. A column
        ``x`` of lists of numbers, all of one length, is the columns ``x[0]``, ``x[1]`` and so on.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        In words, if there are no named columns of at least one row.

    Examples
    --------
    >>> import pandas as pd
    >>> as_table(pd.DataFrame({"city": ["Rome", "Bern"], 7: [1.5, None]})).schema
    city: string
    7: double
    """
    if isinstance(x, Table):
        return x
    found = _file_table(x, where, texts) if isinstance(x, str | Path) else _frame_table(x, where)
    lengths = {} if found.remote else lengths_of(found)
    return ListColumns(found, lengths) if lengths else found


def _frame_table(x: Any, where: str | None) -> Table:
    where = "the table" if where is None else where
    if is_pandas(x):
        return MemoryTable(from_pandas(x, where), where)
    if is_lazy(x):
        x = x.collect()
    if is_stream(x):
        return MemoryTable(_read_all(x, where), where)
    raise TypeError(
        f"an object of type {type(x).__name__} has no named columns; expected a path, a frame of "
        "pandas or polars, or a table of Arrow"
    )


def _file_table(x: str | Path, where: str | None, texts: Collection[str]) -> Table:
    from ..._display import display_text
    from ..formats import format_of
    from ..formats.csv.format import Csv
    from ..formats.object_store import address_of, remote_table
    from ..remote.cluster import client_of

    address = address_of(x)
    if address is not None:
        return remote_table(address, where)
    path = Path(x)
    where = display_text(x) if where is None else where
    if (client := client_of(path)) is not None:
        from ..dask import DaskTable

        return DaskTable(path, where, client=client)
    found = format_of(path)
    if isinstance(found, Csv):
        return found.table(path, where, texts)
    return found.table(path, where)


def _read_all(x: Any, where: str) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(x).read_all()
    except pa.ArrowException as error:
        raise ValueError(
            f"{where} cannot be read as a stream of Arrow: {str(error).splitlines()[0]}"
        ) from error
