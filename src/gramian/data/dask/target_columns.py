"""Columns on the workers of a cluster, from the files of the rows or from dask collections."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..remote.columns import RemoteColumns
from .part import Part, stitch_pieces
from .rows import DaskRows, check_one_chunk, columns_of
from .workers import Workers, connected_client


def remote_columns(collection: Any, rows: Any = None) -> RemoteColumns:
    """Return the numbers or labels of a dask array, series or frame, which stay on the workers.

    Parameters
    ----------
    collection : dask.array.Array, dask.dataframe.Series or DataFrame
    rows : DaskRows, optional
        The aligned rows. Dask may divide the files for some columns into parts of other lengths,
        which are then cut and joined to match the parts of the rows.
    """
    has_rows = isinstance(rows, DaskRows)
    client = rows.workers.client if has_rows else connected_client()
    if getattr(collection, "ndim", 1) == 2:
        check_one_chunk(collection)
    pieces = client.compute(np.ravel(collection.to_delayed()).tolist())
    columns = columns_of(
        rows.workers if has_rows else Workers(client),
        pieces,
        homes=rows.parts if has_rows else None,
    )
    return align_columns(columns, rows) if has_rows else columns


def align_columns(columns: RemoteColumns, rows: DaskRows) -> RemoteColumns:
    """Return columns in parts as long as the parts of rows; unchanged if the totals differ."""
    own = columns.rows
    # Columns of another total length are left as they are: the pass refuses them with both lengths.
    if not isinstance(own, DaskRows) or own.starts == rows.starts or len(own) != len(rows):
        return columns
    sources, cuts = [], []
    for start, stop in pairwise(rows.starts):
        # The parts of the columns that overlap a part of the rows.
        places = [i for i, (a, b) in enumerate(pairwise(own.starts)) if a < stop and b > start]
        # The range of each, counted from its first row; `stitch_pieces` limits the end.
        cuts.append([(max(start - own.starts[i], 0), stop - own.starts[i]) for i in places])
        sources.append([own.parts[i].source for i in places])
    tasks = rows.workers.beside_parts(rows.parts, stitch_pieces, sources, cuts)
    parts = [Part(task, part.rows) for task, part in zip(tasks, rows.parts, strict=True)]
    aligned_rows = DaskRows(rows.workers, parts, own)
    return RemoteColumns(aligned_rows, flat=columns.flat, labels=columns.labels, kind=columns.kind)
