"""Rows of a table as numbers, encoded block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..rows.base import RowSource, check_index, check_size
from ..rows.prefetch import new_block, prefetch
from ..tables.base import Table
from .columns.base import Part
from .table_encoding import Encoding

ENCODED_NUMBERS = 1 << 18
"""Values that are encoded at a time, all columns together: 2 MB of float64."""


class EncodedRows(RowSource):
    """Rows of a table, encoded as they are read.

    Parameters
    ----------
    table : Table of n rows
    encoding : Encoding
    folds : ndarray of int8 of shape (n,), optional
        Folds of training rows; -1 for others.
    without : mapping of str to ndarray, optional
        Means without each fold; see `FittedEncoding`.
    """

    def __init__(
        self,
        table: Table,
        encoding: Encoding,
        folds: np.ndarray | None = None,
        without: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        encoding.check(table)
        self.shape = (table.num_rows, encoding.width)
        self.dtype = encoding.dtype
        self.feature_names: tuple[str, ...] | None = encoding.feature_names
        self.random_access = table.random_access
        self._table, self._encoding = table, encoding
        self._folds, self._without = folds, without or {}

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        check_size(size)
        blocks = self._blocks(size)
        return blocks if self.random_access or size >= len(self) else prefetch(blocks)

    def _blocks(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """Encode a little at a time, so that what lies between table and block stays in cache."""
        n, width = self.shape
        start, stop = 0, 0  # of the block that is being filled, up to `stop`
        out = new_block(min(size, n), width, self.dtype)
        few = max(1, min(size, ENCODED_NUMBERS // max(1, len(self._encoding.names))))
        for batch in self._table.batches(self._encoding.names, few):
            while batch.num_rows:
                part = batch.slice(0, start + len(out) - stop)
                rows = np.arange(stop, stop + part.num_rows)
                self._encode(part, rows, out[stop - start :][: len(rows)])
                batch, stop = batch.slice(len(rows)), stop + len(rows)
                if stop == start + len(out):
                    yield slice(start, stop), out
                    start = stop
                    if stop < n:
                        out = new_block(min(size, n - stop), width, self.dtype)

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        rows = index.cpu().numpy()
        out = torch.empty((len(rows), self.shape[1]), dtype=self.dtype)
        self._encode(self._table.take(self._encoding.names, rows), rows, out)
        return out

    def _encode(self, batch: pa.RecordBatch, rows: np.ndarray, out: Tensor) -> None:
        """Write the features of some rows."""
        folds = None if self._folds is None else self._folds[rows]
        part = Part(self._table.where, rows, folds, self._without)
        matrix, start = out.numpy(), 0
        for one, column in zip(self._encoding.used, batch.columns, strict=True):
            features = one.encode(column, part)
            matrix[:, start : start + features.shape[1]] = features
            start += features.shape[1]
