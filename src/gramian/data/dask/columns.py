"""Columns that lie with the rows of a cluster: of the same files, or of dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import distributed
import numpy as np

from ..remote_columns import RemoteColumns
from .part import Part, about, numbers
from .rows import DaskRows, check_one_chunk
from .workers import Workers, connected


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
    parts = [
        Part(
            client.submit(numbers, source, labels, pure=False)
            if kept
            else partial(numbers, source, labels),
            one.rows,
        )
        for source, one in pairs
    ]
    like = numbers(
        np.zeros((1, first.columns), first.kind) if labels is None else labels[:1], labels
    )
    workers.find(parts)
    kind = np.result_type(*[one.kind for _, one in pairs])
    return RemoteColumns(DaskRows(workers, parts, like), flat=first.flat, labels=labels, kind=kind)


def remote_columns(collection: Any, client: distributed.Client | None = None) -> RemoteColumns:
    """Return the numbers or labels of a dask array, series or data frame, which stay there."""
    client = connected(client)
    if getattr(collection, "ndim", 1) == 2:
        check_one_chunk(collection)
    pieces = client.compute(np.ravel(collection.to_delayed()).tolist())
    return columns_of(Workers(client), pieces)
