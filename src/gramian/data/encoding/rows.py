"""Rows of a table as numbers, encoded block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..base import RowSource, check_index, check_size
from ..tables.base import Table
from .column import Part
from .encoding import Encoding


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
        start = 0
        for batch in self._table.batches(self._encoding.names, size):
            stop = start + batch.num_rows
            yield slice(start, stop), self._encoded(batch, np.arange(start, stop))
            start = stop

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        rows = index.cpu().numpy()
        return self._encoded(self._table.take(self._encoding.names, rows), rows)

    def _encoded(self, batch: pa.RecordBatch, rows: np.ndarray) -> Tensor:
        folds = None if self._folds is None else self._folds[rows]
        part = Part(self._table.where, rows, folds, self._without)
        out = torch.empty((batch.num_rows, self.shape[1]), dtype=self.dtype)
        matrix, start = out.numpy(), 0
        for one, column in zip(self._encoding.used, batch.columns, strict=True):
            features = one.encode(column, part)
            matrix[:, start : start + features.shape[1]] = features
            start += features.shape[1]
        return out
