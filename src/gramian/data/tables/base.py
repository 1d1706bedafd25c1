"""The abstract table: what a fit or a prediction must know of named columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..._checks import it_has, listed
from ..remote.columns import RemoteColumns
from ..rows.arrow import to_numpy
from ..rows.base import RowSource


class Table(ABC):
    """Named columns of n values each, read as often as one likes.

    Attributes
    ----------
    where : str
        Subject of error messages: the path, or "the table".
    schema : pyarrow.Schema
        Names, which differ from each other, and Arrow types, which every value has.
    num_rows : int
        n, at least one.
    named : bool
        False if columns have numbers only, as in a matrix.
    random_access : bool
        False if `take` costs a pass over the table.
    remote : bool
        True if its rows are read on other machines; see `RowSource`.
    """

    where: str
    schema: pa.Schema
    num_rows: int
    named: bool = True
    random_access: bool = True
    remote: bool = False

    @abstractmethod
    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Read some columns of all rows, in order.

        Parameters
        ----------
        columns : sequence of str
            Names that are in the schema.
        size : int
            Rows of each batch but the last, exactly: what is computed from them does not depend
            on how the table is stored.

        Yields
        ------
        pyarrow.RecordBatch
        """

    def there(self, columns: Sequence[str]) -> RemoteColumns:
        """Return columns of numbers or labels that stay with remote rows."""
        raise TypeError(f"the rows of {self.where} are here: read them")

    @abstractmethod
    def take(self, columns: Sequence[str], index: np.ndarray) -> pa.RecordBatch:
        """Gather rows of some columns, in any order and with repeats.

        Parameters
        ----------
        columns : sequence of str
        index : ndarray of int64 of shape (k,)
            Row numbers in ``0 .. n-1``.

        Returns
        -------
        pyarrow.RecordBatch with k rows
        """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.schema.names)

    def spread(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that names stand for: of one of lists, those of its numbers."""
        return tuple(names)

    def rows(self, columns: Sequence[str]) -> RowSource:
        """Return columns of numbers as rows."""
        from .frame_rows import NumberRows

        return NumberRows(self, columns)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, in memory."""
        parts = [batch.column(0) for batch in self.batches([name], 1 << 16)]
        return pa.chunked_array(parts, self.schema.field(name).type)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.num_rows


def check_columns(where: str | Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse names that the table does not have, or has twice, and say which it has."""
    counts = Counter(names)
    missing = [name for name in wanted if not counts[name]]
    if missing:
        raise ValueError(f"{where} has no column {listed(missing)}; {it_has(names, missing[0])}")
    twice = sorted({name for name in wanted if counts[name] > 1})
    if twice:
        raise ValueError(f"{where} has several columns named {listed(twice)}: rename them")


def collected(parts: Iterable[pa.Array], where: str, name: str, length: int) -> np.ndarray:
    """Put the parts of a column together: numbers, booleans or text, none of them missing.

    Parameters
    ----------
    parts : iterable of pyarrow.Array
    where : str
        The table, for error messages.
    name : str
        The column, likewise.
    length : int
        Number of values. Numbers are written into one array that is there from the start, so that
        parts that are read one after the other are never in memory together.

    Returns
    -------
    ndarray of shape (length,)
    """
    chunks = (_values(part, where, name) for part in parts if len(part))
    first = next(chunks)
    if first.dtype.kind == "U":
        return np.concatenate([first, *chunks])
    out = np.empty(length, first.dtype)
    out[: len(first)], start = first, len(first)
    for chunk in chunks:
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    return out


def _values(column: pa.Array, where: str, name: str) -> np.ndarray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    values = np.asarray(column.to_pylist(), dtype=str) if text else None
    # what is missing from a text column of a CSV file is no null but an empty text
    if column.null_count or (values is not None and (values == "").any()):
        raise ValueError(
            f"{where}: the target '{name}' is missing in some rows (empty or null); drop these rows"
        )
    if values is not None:
        return values
    if pa.types.is_boolean(kind):
        return to_numpy(column).astype(bool)
    if pa.types.is_temporal(kind):
        raise TypeError(
            f"{where}: the target '{name}' holds dates or times ({kind}), not numbers or text; "
            "give the time since some day as a number"
        )
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not any(test(kind) for test in tests):
        raise TypeError(f"{where}: the target '{name}' holds neither numbers nor text, but {kind}")
    return to_numpy(column)
