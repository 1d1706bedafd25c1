"""`as_rows`: the only entrance for data of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
import torch
from torch import Tensor

from ..._sparse import as_scipy
from ..formats import format_of
from ..formats.object_store import address_of, remote_table
from ..remote.cluster import client_of
from ..rows.array import ArrayRows, SparseRows
from ..rows.arrow import TableRows
from ..rows.base import RowSource
from ..rows.views import column_numbers, select
from ..tables import Table
from ..tables.frame_rows import frame_rows, is_frame


def as_rows(x: Any, *, columns: Sequence[str | int] | None = None) -> RowSource:
    """Make a row source of anything that holds a feature matrix.

    Parameters
    ----------
    x : RowSource, array, table or path
        A `RowSource` is given back as it is. Otherwise a NumPy array (also memory-mapped), a
        torch tensor, a pandas DataFrame, an Arrow table (or any table that offers itself as an
        Arrow stream, like those of polars), a SciPy sparse matrix, a list of lists, or the path
        of a table: a ``.npy`` file, a ``.parquet`` file or a folder of these, or a file of
        another format of `gramian.data.formats` that is no text.
    columns : sequence of str or int, optional
        The columns to use, in this order; all of them by default. Names where the data have
        names, else numbers.

    Returns
    -------
    RowSource of shape (n, d)
        float32 stays float32 and float64 stays float64. Narrower types and booleans are delivered
        as float32, integers of 32 and 64 bits as float64; a table is float64 if any of its
        columns needs it.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        In words, if there is no matrix of numbers with at least one row and one column.

    Examples
    --------
    >>> import numpy as np
    >>> as_rows(np.zeros((5, 2), np.float32))
    ArrayRows(5 x 2, float32)
    """
    if isinstance(columns, str):
        columns = [columns]
    if isinstance(x, Table):
        return x.rows(x.names if columns is None else [str(c) for c in columns])
    if isinstance(x, str | Path):
        return _file_rows(x, columns)
    if is_frame(x):
        return frame_rows(x, columns)
    if (table := _as_table(x)) is not None:
        return TableRows(table, _as_names(columns))
    if isinstance(x, Tensor) and x.layout == torch.sparse_csr:
        x = as_scipy(x)
    if scipy.sparse.issparse(x):
        return _sparse_rows(x, columns)
    rows = x if isinstance(x, RowSource) else _matrix_rows(x)
    return rows if columns is None else select(rows, columns)


def _matrix_rows(x: Any) -> RowSource:
    if not is_collection(x):
        return ArrayRows(_as_array(x))
    from ..dask import DaskRows

    return DaskRows.of(x)


def is_collection(x: object) -> bool:
    """Tell a dask array, data frame or series without importing dask.

    They are never asked for an array, which would bring all rows here.
    """
    module = type(x).__module__.split(".")
    return module[0] == "dask_expr" or module[:2] in (["dask", "array"], ["dask", "dataframe"])


def _file_rows(x: str | Path, columns: Sequence[str | int] | None) -> RowSource:
    path, address = Path(x), address_of(x)
    if address is not None:
        return as_rows(remote_table(address), columns=columns)
    if (client := client_of(path)) is not None:
        from ..dask import DaskRows

        return DaskRows.open(path, _as_names(columns), client=client)
    found = format_of(path, text=False)
    if found.text:
        raise ValueError(
            f"{path} is text, which is slow to read again and again; convert it once: "
            f"gramian convert {path} {str(path).removesuffix(''.join(path.suffixes))}.parquet"
        )
    return found.rows(path, _as_names(columns))


def _sparse_rows(x: Any, columns: Sequence[str | int] | None) -> RowSource:
    if columns is None or x.ndim != 2:
        return SparseRows(x)
    return SparseRows(x.tocsc()[:, list(column_numbers(columns, None, x.shape[1]))])


def _as_table(x: Any) -> pa.Table | None:
    if isinstance(x, pa.Table):
        return x
    if isinstance(x, pa.RecordBatch):
        return pa.Table.from_batches([x])
    if (
        hasattr(x, "__arrow_c_stream__")
        and not hasattr(x, "iloc")
        and len(getattr(x, "shape", ())) == 2
    ):
        return pa.table(x)
    return None


def _as_names(columns: Sequence[str | int] | None) -> list[str] | None:
    return None if columns is None else [str(c) for c in columns]


def _as_array(x: Any) -> np.ndarray | Tensor:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("masked arrays are not read, as the mask would be lost: x.filled(np.nan)")
    if isinstance(x, Tensor | np.ndarray):
        return x
    if isinstance(x, Sequence) or hasattr(x, "__array__"):
        return np.asarray(x)
    raise TypeError(
        f"cannot read rows from an object of type {type(x).__name__}: expected an array, a table, "
        "a sparse matrix, a path, or a RowSource"
    )
