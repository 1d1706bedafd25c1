"""Columns in parts on the workers: numbers of one type, or codes of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import distributed
import numpy as np

from ..rows.base import RowSource
from .part import Part, about, numbers
from .workers import Workers, repeat_arguments


@dataclass(frozen=True, eq=False)
class ColumnParts:
    """Columns in parts, from which `RemoteColumns` are made.

    Attributes
    ----------
    parts : list of Part
    like : RowSource
        Empty rows with the number and type of the columns.
    flat : bool
        Whether there is no second axis.
    labels : ndarray or None
        Sorted texts, whose positions 0, 1, ... are the codes.
    kind : numpy.dtype
        Type in which the numbers are stored.
    """

    parts: list[Part]
    like: RowSource
    flat: bool
    labels: np.ndarray | None
    kind: np.dtype[Any]


def column_parts(
    workers: Workers, sources: Sequence[Any], homes: Sequence[Part] | None = None
) -> ColumnParts:
    """Convert the numbers or texts of all parts to one type, on the workers.

    Parameters
    ----------
    workers : Workers
    sources : sequence of Future or callable
        Sources of arrays of shape (n,) or (n, t).
    homes : sequence of Part, optional
        Parts of the aligned rows: the worker that keeps a part of the rows keeps its columns, too.
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
    return ColumnParts(parts, like, first.flat, labels, kind)
