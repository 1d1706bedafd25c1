"""Rows of arrays, frames, files and addresses, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from ... import _arrays as xp
from ..._arrays import Array
from ..._sparse import as_scipy
from ..rows.array import ArrayRows, SparseRows
from ..rows.arrow import TableRows
from ..rows.base import RowSource
from ..rows.views import column_numbers, select
from ..tables import Table
from ..tables.frames import frame_rows, is_pandas


def local_rows(x: Any, columns: Sequence[str | int] | None = None) -> RowSource:
    """Return a row source as `as_rows` does, without support for folders on a cluster or Dask."""
    if isinstance(x, Table):
        return x.rows(x.names if columns is None else [str(c) for c in columns])
    if isinstance(x, str | Path):
        return _file_rows(x, columns)
    if is_pandas(x):
        return frame_rows(x, columns)
    if (table := _as_table(x)) is not None:
        return TableRows(table, _as_names(columns))
    # SciPy can select and sort; the memory is shared.
    if xp.is_sparse(x):
        x = as_scipy(x)
    if scipy.sparse.issparse(x):
        return _sparse_rows(x, columns)
    rows = x if isinstance(x, RowSource) else ArrayRows(_as_array(x))
    return rows if columns is None else select(rows, columns)


def _file_rows(x: str | Path, columns: Sequence[str | int] | None) -> RowSource:
    # Arrays need no format, and all formats take a tenth of a second to import.
    from ..formats import format_of
    from .remote_table import address_of, remote_table

    path, address = Path(x), address_of(x)
    if address is not None:
        return local_rows(remote_table(address), columns)
    file_format = format_of(path, text=False)
    if file_format.text:
        raise ValueError(
            f"{path} is a text file, which is slow to parse in every pass; convert it once: "
            f"gramian convert {path} {str(path).removesuffix(''.join(path.suffixes))}.parquet"
        )
    return file_format.rows(path, _as_names(columns))


def _sparse_rows(x: Any, columns: Sequence[str | int] | None) -> RowSource:
    if columns is None or x.ndim != 2:
        return SparseRows(x)
    # By columns, where selecting them is a slice; by rows each entry would be searched.
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


def _as_array(x: Any) -> np.ndarray | Array:
    # A masked array is an ndarray, and would pass with its masked numbers.
    if np.ma.is_masked(x):
        raise TypeError(
            "masked arrays are not supported, because the mask would be lost; pass x.filled(np.nan)"
        )
    if xp.is_tensor(x):
        # A tensor in the memory of the process is an array; others stay on their device.
        return xp.to_host(x) if x.device.type == xp.HOST_DEVICE else x
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, Sequence) or hasattr(x, "__array__"):
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    raise TypeError(
        f"cannot read rows from an object of type {type(x).__name__}: expected an array, a table, "
        "a sparse matrix, a path, or a RowSource"
    )
