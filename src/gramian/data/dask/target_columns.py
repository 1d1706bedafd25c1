"""Columns that lie with the rows of a cluster: of the same files, or of dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import distributed
import numpy as np

from ..remote.columns import RemoteColumns
from .part import Part, about, numbers, stitched
from .rows import DaskRows, check_one_chunk
from .workers import Workers, connected, repeated


def columns_of(
    workers: Workers, sources: Sequence[Any], homes: Sequence[Part] | None = None
) -> RemoteColumns:
    """Return numbers or texts of parts as columns that stay there.

    Parameters
    ----------
    workers : Workers
    sources : sequence of Future or callable
        Of arrays of shape (n,) or (n, t).
    homes : sequence of Part, optional
        The rows that they go with: where those are kept, these are, too.
    """
    client = workers.client
    told = workers.results(client.map(about, sources, pure=False))
    pairs = [pair for pair in zip(sources, told, strict=True) if pair[1].rows]
    if not pairs:
        raise ValueError("the dask collection has no rows")
    first = pairs[0][1]
    for _, other in pairs:
        if (other.columns, other.texts is None) != (first.columns, first.texts is None):
            raise ValueError("parts of the targets differ: some are texts, or have other columns")
    texts = [one.texts for _, one in pairs if one.texts is not None]
    labels = np.unique(np.concatenate(texts)) if texts else None
    kept = homes is None or any(isinstance(p.source, distributed.Future) for p in homes)
    sources = [source for source, _ in pairs]
    if kept:
        same = homes if homes is not None and len(homes) == len(pairs) else ()
        many = repeated([labels], len(pairs))
        found = workers.beside_parts(same or [Part(s, 0) for s in sources], numbers, sources, *many)
    else:
        found = [partial(numbers, source, labels) for source in sources]
    parts = [Part(source, one.rows) for source, (_, one) in zip(found, pairs, strict=True)]
    like = numbers(
        np.zeros((1, first.columns), first.kind) if labels is None else labels[:1], labels
    )
    workers.find(parts)
    kind = np.result_type(*[one.kind for _, one in pairs])
    return RemoteColumns(DaskRows(workers, parts, like), flat=first.flat, labels=labels, kind=kind)


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
