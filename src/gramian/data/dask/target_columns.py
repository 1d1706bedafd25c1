"""Columns that lie with the rows of a cluster: of the same files, or of dask collections."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..remote.columns import RemoteColumns
from .part import Part, stitched
from .rows import DaskRows, check_one_chunk, columns_of
from .workers import Workers, connected


def remote_columns(collection: Any, rows: Any = None) -> RemoteColumns:
    """Return the numbers or labels of a dask array, series or data frame, which stay there.

    Parameters
    ----------
    collection : dask.array.Array, dask.dataframe.Series or DataFrame
    rows : DaskRows, optional
        The rows that they go with, in their order: parts of other lengths are cut and put together
        as those of the rows, which Dask makes of files for some columns and not for others.
    """
    there = isinstance(rows, DaskRows)
    client = rows.workers.client if there else connected()
    if getattr(collection, "ndim", 1) == 2:
        check_one_chunk(collection)
    pieces = client.compute(np.ravel(collection.to_delayed()).tolist())
    found = columns_of(
        rows.workers if there else Workers(client), pieces, homes=rows.parts if there else None
    )
    return aligned(found, rows) if there else found


def aligned(columns: RemoteColumns, rows: DaskRows) -> RemoteColumns:
    """Return columns in parts as long as those of rows; as they are if there are more or fewer."""
    own = columns.rows
    if not isinstance(own, DaskRows) or own.starts == rows.starts or len(own) != len(rows):
        return columns
    sources, cuts = [], []
    for start, stop in pairwise(rows.starts):
        places = [i for i, (a, b) in enumerate(pairwise(own.starts)) if a < stop and b > start]
        cuts.append([(max(start - own.starts[i], 0), stop - own.starts[i]) for i in places])
        sources.append([own.parts[i].source for i in places])
    tasks = rows.workers.beside_parts(rows.parts, stitched, sources, cuts)
    parts = [Part(task, part.rows) for task, part in zip(tasks, rows.parts, strict=True)]
    found = DaskRows(rows.workers, parts, own)
    return RemoteColumns(found, flat=columns.flat, labels=columns.labels, kind=columns.kind)
