"""Columns on the workers of a cluster, and lazy predictions for dask collections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

from ..remote.columns import RemoteColumns
from .part import Part, about, numbers, stitch_pieces
from .rows import DaskRows, check_one_chunk
from .workers import Workers, connected_client, repeat_arguments


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


def columns_of(
    workers: Workers, sources: Sequence[Any], homes: Sequence[Part] | None = None
) -> RemoteColumns:
    """Return numbers or texts of parts as columns of one type, which stay on the workers.

    - `sources`: sources of arrays of shape (n,) or (n, t).
    - `homes`: parts of the aligned rows: the worker that keeps a part of the rows keeps its
      columns, too.
    """
    client = workers.client
    facts = workers.results(client.map(about, sources, pure=False))
    # Empty partitions, as filters of data frames leave them, are no parts.
    pairs = [pair for pair in zip(sources, facts, strict=True) if pair[1].rows]
    if not pairs:
        raise ValueError("the dask collection has no rows")
    first = pairs[0][1]
    for _, labelled in pairs:
        if (labelled.columns, labelled.texts is None) != (first.columns, first.texts is None):
            raise ValueError(
                "all parts of the targets must have the same columns, and either numbers or texts"
            )
    texts = [fact.texts for _, fact in pairs if fact.texts is not None]
    # Codes must mean the same in all parts: only the distinct texts of each come to this process.
    labels = np.unique(np.concatenate(texts)) if texts else None
    # Columns of files are read again with the rows, unless these are kept in memory.
    are_kept = homes is None or any(isinstance(p.source, distributed.Future) for p in homes)
    sources = [source for source, _ in pairs]
    if are_kept:
        # Other numbers of parts are aligned later, and start where their own data are.
        same = homes if homes is not None and len(homes) == len(pairs) else ()
        many = repeat_arguments([labels], len(pairs))
        number_sources = workers.beside_parts(
            same or [Part(s, 0) for s in sources], numbers, sources, *many
        )
    else:
        number_sources = [partial(numbers, source, labels) for source in sources]
    parts = [
        Part(source, fact.rows) for source, (_, fact) in zip(number_sources, pairs, strict=True)
    ]
    # One row, through the same function as the parts, for shape and type.
    like = numbers(
        np.zeros((1, first.columns), first.kind) if labels is None else labels[:1], labels
    )
    workers.find(parts)
    kind = np.result_type(*[fact.kind for _, fact in pairs])
    rows = DaskRows(workers, parts, like)
    return RemoteColumns(rows, flat=first.flat, labels=labels, kind=kind)


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
    return RemoteColumns(aligned_rows, flat=columns.flat, labels=columns.texts, kind=columns.kind)


def lazily(estimator: Any, method: str, collection: Any) -> Any:
    """Return the results of a method, one row for each row of a dask array or data frame.

    - `estimator`: a fitted estimator that can be pickled; the graph contains it once.
    - `method`: name of a method that maps rows to an array of as many rows.

    The result is a dask array with the chunks of the collection; a data frame has chunks of unknown
    lengths. The client calls the method with a row or two of zeros, for the type and shape of the
    result.
    """
    check_one_chunk(collection)
    array = hasattr(collection, "chunks")
    if array:
        # One call with zeros tells the type and the shape of results, as Dask must know them in
        # advance.
        sample = np.zeros((1, collection.shape[1]), collection.dtype)
        lengths = collection.chunks[0]
    else:
        sample = collection._meta_nonempty
        # A data frame does not know the lengths of its partitions before they are computed.
        lengths = (math.nan,) * collection.npartitions
    meta = np.asarray(getattr(estimator, method)(sample))[:0]
    # Not searched for collections inside: it has none, and may be large.
    delayed_estimator = dask.delayed(estimator, traverse=False)
    called = dask.delayed(_call_method)
    pieces = np.ravel(collection.to_delayed()).tolist()
    parts = [
        da.from_delayed(
            called(delayed_estimator, method, piece, meta), (length, *meta.shape[1:]), meta=meta
        )
        for piece, length in zip(pieces, lengths, strict=True)
    ]
    return da.concatenate(parts)


def _call_method(estimator: Any, method: str, piece: Any, meta: np.ndarray) -> np.ndarray:
    # Estimators refuse arrays without rows, as partitions of filtered frames may be.
    if not len(piece):
        return meta
    values: np.ndarray = np.asarray(getattr(estimator, method)(piece)).astype(
        meta.dtype, copy=False
    )
    return values
