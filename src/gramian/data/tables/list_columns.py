"""Tables that split columns of lists of another table, or have some of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from ..._messages.errors import TextError
from ..rows import arrow_compute as pc
from ..rows.arrow import LastSchemas, is_list
from ..rows.base import slices
from .base import DerivedTable, Table
from .stored import exactly


class ListColumns(DerivedTable):
    """A table that splits each column ``x`` of lists of numbers into ``x[0]``, ``x[1]``, ...

    Embeddings of texts and images are often stored as lists. All lists of a column have one length
    k. A missing list gives k missing numbers.

    - `table`: local table.
    - `lengths`: lengths k of the columns of lists; see `lengths_of`.

    Reading raises ValueError if a list has another length.
    """

    def __init__(self, table: Table, lengths: Mapping[str, int]) -> None:
        self._lengths: dict[str, int] = dict(lengths)
        fields, self._place = [], {}
        for field in table.schema:
            k = self._lengths.get(field.name)
            if k is None:
                fields.append(field)
                continue
            for i, name in enumerate(self._elements(field.name, k)):
                self._place[name] = field.name, i
                fields.append(pa.field(name, field.type.value_type))
        super().__init__(table, pa.schema(fields))

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Read the lists, and divide them; see `Table.batches`."""
        for batch in self.source.batches(self._read(columns), size):
            yield self._divide_lists(batch, columns)

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        return self._divide_lists(self.source.take(self._read(columns), index), columns)

    def spread(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return names with each column of lists replaced by the columns of its numbers."""
        spread_names: list[str] = []
        for name in names:
            k = self._lengths.get(name)
            spread_names += [name] if k is None else self._elements(name, k)
        return tuple(spread_names)

    @staticmethod
    def _elements(name: str, k: int) -> list[str]:
        return [f"{name}[{i}]" for i in range(k)]

    def _read(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of the underlying table for these columns."""
        # A list column is read once, however many of its numbers are asked for; the order of the
        # first mention is kept.
        return list(dict.fromkeys(self._place.get(name, (name, 0))[0] for name in columns))

    def _divide_lists(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        for name, k in self._lengths.items():
            if name in batch.schema.names:
                self._check_lengths(name, batch.column(name), k)
        schema = pa.schema([self.schema.field(name) for name in columns])
        divided_columns = []
        for name in columns:
            list_name, i = self._place.get(name, (None, 0))
            divided_columns.append(
                batch.column(name) if list_name is None else _element(batch.column(list_name), i)
            )
        return pa.record_batch(divided_columns, schema=schema)

    def _check_lengths(self, name: str, lists: pa.Array, k: int) -> None:
        lengths = pc.unique(pc.list_value_length(lists)).to_pylist()
        other_lengths = [length for length in lengths if length not in (k, None)]
        # A missing list has length None, and becomes missing numbers.
        if other_lengths:
            raise TextError(
                "{}: the column '{}' has lists of {} numbers, but {} in the first row; leave it "
                "out with {columns=[...]}, or if its numbers are entries of sparse rows, use "
                "gramian.data.ParquetLists(path, values, indices, features=...) in Python",
                self.where,
                name,
                other_lengths[0],
                k,
            )


def _element(lists: pa.Array, i: int) -> pa.Array:
    """Return the number at position i of each list; null for a missing list."""
    if len(lists) == 0 or lists.null_count == len(lists):
        return pa.nulls(len(lists), lists.type.value_type)
    return pc.list_element(lists, i)


def lengths_of(table: Table) -> dict[str, int]:
    """Return the columns of lists of numbers, with the length of the list in the first row.

    - `table`: local table. Its first row is read if there is a column of lists; a column whose
      first list is missing or empty is left out.
    """
    names = _lists_of_numbers(table.schema)
    if not names:
        return {}
    # The first row decides, so that opening a table needs no pass; each batch is checked later.
    first = next(table.batches(names, 1))
    lengths = {name: pc.list_value_length(first.column(name))[0].as_py() for name in names}
    # Without a length, null or 0, the column stays a list, and is refused where it is used.
    return {name: k for name, k in lengths.items() if k}


@LastSchemas
def _lists_of_numbers(schema: pa.Schema) -> list[str]:
    """Return the columns whose values are lists of numbers or booleans."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    lists = [field for field in schema if is_list(field.type)]
    return [field.name for field in lists if any(test(field.type.value_type) for test in tests)]


class FilteredTable(DerivedTable):
    """Some rows of another table, in order.

    - `is_kept`: at least one.

    A pass reads all rows of the other table.
    """

    def __init__(self, table: Table, is_kept: np.ndarray) -> None:
        super().__init__(table, table.schema)
        self._is_kept, self._index = is_kept, np.flatnonzero(is_kept)
        self.num_rows = len(self._index)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Read batches, and join batches that became short; see `Table.batches`."""
        parts = slices(len(self.source), size)
        kept_batches = (
            batch.filter(pa.array(self._is_kept[part]))
            for part, batch in zip(parts, self.source.batches(columns, size), strict=False)
        )
        return exactly(kept_batches, pa.schema([self.schema.field(name) for name in columns]), size)

    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        return self.source.take(columns, self._index[index])
