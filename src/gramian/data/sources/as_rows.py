"""`as_rows`: the only entrance for data of any kind; and targets that may be dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..local.rows import local_rows
from ..remote.rows import client_of
from ..rows.array import ArrayRows
from ..rows.base import RowSource
from ..rows.columns import as_columns
from ..rows.views import select


def as_rows(x: Any, *, columns: Sequence[str | int] | None = None) -> RowSource:
    """Return a row source of anything that holds a feature matrix.

    Parameters
    ----------
    x : RowSource, array, table or path
        A `RowSource` is returned unchanged. Otherwise a NumPy array (also memory-mapped), a torch
        tensor or another array by DLPack, a pandas DataFrame, an Arrow table (or any table that
        offers itself as an Arrow stream, such as polars), a SciPy sparse matrix, a list of lists,
        or the path of a table: a ``.npy`` file, a ``.parquet`` file or a folder of these, or a file
        of another format of `gramian.data.formats` that is not text.
    columns : sequence of str or int, optional
        The columns to use, in this order; all of them by default. Names if the data have names,
        else numbers.

    Returns
    -------
    RowSource of shape (n, d)
        float32 stays float32 and float64 stays float64. Narrower types and booleans are delivered
        as float32, integers of 32 and 64 bits as float64; a table is float64 if any of its
        columns needs it.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If there is no matrix of numbers with at least one row and one column.

    Examples
    --------
    >>> import numpy as np
    >>> as_rows(np.zeros((5, 2), np.float32))
    ArrayRows(5 x 2, float32)
    """
    if columns is None:
        if isinstance(x, RowSource):
            return x
        if type(x) is np.ndarray:
            return ArrayRows(x)
    # A text is a sequence of letters, each of which would count as a name.
    if isinstance(columns, str):
        columns = [columns]
    if is_collection(x):
        from ..dask import DaskRows

        rows = DaskRows.of(x)
        return rows if columns is None else select(rows, columns)
    if isinstance(x, str | Path) and (client := client_of(x)) is not None:
        from ..dask import DaskRows

        # Columns of files are found by name, numbers as their text.
        names = None if columns is None else [str(column) for column in columns]
        return DaskRows.open(Path(x), names, client=client)
    return local_rows(x, columns)


def is_collection(x: object) -> bool:
    """Return whether `x` is a dask array, data frame or series, without importing dask.

    `numpy.asarray` of one would load all of its rows into this process.
    """
    module = type(x).__module__.split(".")
    return module[0] == "dask_expr" or module[:2] in (["dask", "array"], ["dask", "dataframe"])


def align_collection(rows: Any, y: Any) -> Any:
    """Turn a dask collection of targets or weights into columns aligned with rows or a table.

    Local rows get the values in memory. Values other than collections stay unchanged.
    """
    if not rows.remote:
        return gather_collection(y)
    if is_collection(y):
        # Dask is optional: the import waits for a collection, which proves that it is installed.
        from ..dask import remote_columns

        y = remote_columns(y, rows)
    return y


def gather_collection(y: Any) -> Any:
    """Load targets or weights into memory if they are on a cluster."""
    if is_collection(y):
        # Imported only for a collection, as above.
        from ..dask import remote_columns

        y = remote_columns(y)
    return y if as_columns(y).fits() else np.asarray(y)
