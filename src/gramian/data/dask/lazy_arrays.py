"""Lazy predictions for Dask collections."""

from __future__ import annotations

import math
from typing import Any

import dask
import dask.array as da
import numpy as np

from .rows import check_one_chunk


def lazily(estimator: Any, method: str, collection: Any) -> Any:
    """Return the results of a method, one row for each row of a dask array or data frame.

    - `estimator`: a fitted estimator that can be pickled; the graph contains it once.
    - `method`: name of a method that maps rows to an array of as many rows.

    Returns
    -------
    dask.array.Array
        An array with the chunks of the collection; a data frame has chunks of unknown lengths.

    Notes
    -----
    The client calls the method with a row or two of zeros, for the type and shape of the result.
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
