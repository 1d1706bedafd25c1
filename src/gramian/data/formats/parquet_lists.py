"""Rows in list columns of Parquet files: numbers of one length, or sparse entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.sparse

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._sparse import WIDE_FEATURES
from ..rows import arrow_compute as pc
from ..rows.array import ENTRY_NUMBERS, canonical, check_matrix, csr_block
from ..rows.arrow import float_of, is_list
from ..rows.base import RowSource, check_index, check_size
from ..tables.stored import BATCH_NUMBERS, exactly, join_pieces, take_pieces
from .parquet_folder import ParquetPieces

ASSUMED_ENTRIES = 256
"""Entries of a row, as it is supposed to be, when rows are decoded."""


class ParquetLists(RowSource):
    """Rows in one or two list columns of a Parquet file or folder, never loaded as a whole.

    With `values` alone each list is a row, as embeddings are written; all lists have one length.
    With `indices` a row is sparse: `values` are its entries, `indices` their columns, from 0 on.

    Parameters
    ----------
    path : str or Path
        A file, or a folder of them; see `ParquetRows`.
    values : str
        The column of lists, of fixed or variable length, of numbers.
    indices : str, optional
        The column of lists of whole numbers, as long as the lists of `values`.
    features : int, optional
        Number of features of a sparse row, larger than any index.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, it has no lists of numbers, lists have different lengths or
        gaps, or an index is too large; the message says where.

    Notes
    -----
    Indices of a row that are repeated are added up. Memory: a block, and what decoding needs.
    `take` is a pass over the row groups that hold wanted rows.
    """

    random_access = False

    def __init__(
        self,
        path: str | Path,
        values: str,
        indices: str | None = None,
        *,
        features: int | None = None,
    ) -> None:
        if (indices is None) != (features is None):
            raise ValueError("sparse rows need both indices and features; pass both, or neither")
        self.path, self.values, self.indices = Path(path), values, indices
        self._names = [values] if indices is None else [values, indices]
        self._pieces = ParquetPieces.at(path)
        self._kinds = [self._kind(name) for name in self._names]
        # After the types of the first file, whose messages name the column.
        self._pieces.check_alike(self._names)
        n = sum(self._pieces.counts)
        if n == 0:
            raise ValueError(f"{path} has 0 rows, but at least one is needed")
        dtype = float_of(self._kinds[0])
        if dtype is None:
            raise TypeError(
                f"the lists of column {values!r} must hold numbers, got {self._kinds[0]}"
            )
        self.dtype = dtype
        if indices is not None and not pa.types.is_integer(self._kinds[1]):
            raise TypeError(
                f"the lists of column {indices!r} must hold integers, got {self._kinds[1]}"
            )
        self.sparse = features is not None
        # The first list tells the number of features of dense rows.
        first = next(self._pieces.read([values], 1))
        self.shape = check_matrix((n, len(first.column(0)[0]) if features is None else features))
        if self.sparse and self.shape[1] > WIDE_FEATURES:
            # Rows of more features are never made dense: memory is planned by their mean entries.
            lists = next(self._pieces.read([self.values], 1000)).column(0)
            mean = int(pc.sum(pc.list_value_length(lists)).as_py() or 0) // len(lists)
            self.entries = min(self.shape[1], 1 + ENTRY_NUMBERS * mean)

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        check_size(size)
        # The true number of entries is known only after decoding.
        numbers = ASSUMED_ENTRIES if self.sparse else self.shape[1]
        batch_rows = max(1, BATCH_NUMBERS // max(numbers, 1))
        read, start = self._pieces.read(self._names, min(size, batch_rows)), 0
        for batch in exactly(read, self._schema, size):
            yield slice(start, start + batch.num_rows), self._matrix(batch, f"from row {start} on")
            start += batch.num_rows

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        """Gather rows in one pass; see `RowSource.take`."""
        check_index(index, self.shape[0])
        distinct_index, inverse = np.unique(xp.to_host(index), return_inverse=True)
        batches = [batch for _, batch in take_pieces(self._pieces, self._names, distinct_index)]
        batch = join_pieces(batches, self._schema).take(pa.array(inverse))
        matrix = self._matrix(batch, "in rows that were asked for")
        # Arrow's memory must not be written to, but gathered rows may be.
        return matrix if self.sparse else matrix.copy()

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([self._pieces.schema.field(name) for name in self._names])

    def _kind(self, name: str) -> pa.DataType:
        schema = self._pieces.schema
        if name not in schema.names:
            raise ValueError(f"{self.path} has no column {name!r}; it has {schema.names}")
        kind = schema.field(name).type
        if not is_list(kind):
            raise TypeError(
                f"the column {name!r} of {self.path} must hold lists, got {kind}; open a table of "
                "plain numbers with as_rows(path)"
            )
        return kind.value_type

    def _matrix(self, batch: pa.RecordBatch, where: str) -> Array:
        values, lengths = self._numbers(batch, 0, where)
        if not self.sparse:
            if bool((lengths != self.shape[1]).any()):
                at = int((lengths != self.shape[1]).argmax())
                raise ValueError(
                    f"{self.path} has a list of {lengths[at]} numbers in {self.values!r} {where}, "
                    f"but {self.shape[1]} in the first row"
                )
            return values.reshape(-1, self.shape[1])
        columns, other_columns = self._numbers(batch, 1, where)
        if not np.array_equal(lengths, other_columns):
            raise ValueError(f"{self.path} has lists of different lengths in {self._names} {where}")
        if len(columns) and not 0 <= columns.min() <= columns.max() < self.shape[1]:
            raise ValueError(
                f"{self.path} has an index outside 0 .. {self.shape[1] - 1} {where}; increase "
                "features"
            )
        # `lists.flatten()` starts at the slice of this batch, unlike the offsets, so that row
        # starts are made of lengths.
        start = np.concatenate([[0], np.cumsum(lengths)])
        shape = (len(lengths), self.shape[1])
        # SciPy sorts the indices of each row, and adds up repeated ones.
        rows = canonical(scipy.sparse.csr_array((values, columns, start), shape=shape))
        return csr_block(rows.indptr, rows.indices, rows.data, self.shape[1], self.dtype)

    def _numbers(
        self, batch: pa.RecordBatch, column: int, where: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated lists of a column, and their lengths."""
        lists = batch.column(column)
        inside = lists.flatten()
        if lists.null_count or inside.null_count:
            raise ValueError(
                f"{self.path} has missing lists or numbers in {self._names[column]!r} {where}; "
                "fill them, or drop these rows"
            )
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        dtype = np.int64 if column else self.dtype
        return inside.to_numpy(zero_copy_only=False).astype(dtype, copy=False), lengths
