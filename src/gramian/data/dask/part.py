"""Parts of the rows, on a worker or in a file, and the tasks that workers run on a part."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from dask.sizeof import sizeof

from ..._arrays import Array
from ..formats.parquet import ParquetRows
from ..local.named_table import write_table
from ..local.rows import local_rows
from ..local.table import local_table
from ..rows.array import ArrayRows
from ..rows.base import RemoteDescription, RowSource
from ..rows.file_stamp import FileStamp
from ..rows.reduce import Shifted
from ..tables.target import target_column
from .serialize import unpack_value

TIMED_ROWS = 1 << 19
"""Rows of a part by which it is measured how fast they are read."""

Changes = tuple[tuple[bytes, dict[str, Any], Any], ...]
"""Changes of rows: pickled, their large arrays by key, and the numbers of the rows that are left.

See `Workers.value`. The numbers are an array, a task that has it, or None if all rows are left.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the rows: a source, and the maps that change its rows.

    - `source`: the rows on a worker, or a function that opens them and can be pickled.
    - `changes`: arguments of `RowSource.map_rows`, in the form that is sent.
    - `path`: path of the file of the rows.
    - `stamp`: stamp of this file when the client read it.
    """

    source: Any
    rows: int
    changes: Changes = ()
    path: str | None = None
    stamp: FileStamp | None = None


def view_source(path: str | None) -> tuple[str, bool]:
    """Return the version of gramian, and whether the path, if any, exists."""
    return version("gramian"), path is None or Path(path).exists()


def parquet(path: str, columns: tuple[str, ...] | None, stamp: FileStamp) -> RowSource:
    """Open a file; raise ValueError if it has changed since the client read it."""
    with stamp.require_unchanged(Path(path)):
        # The threads of a worker are busy with other parts: reading ahead would only take memory.
        return ParquetRows(path, columns, read_ahead=False)


def keep_rows(opener: Callable[[], RowSource]) -> RowSource:
    """Read rows into the memory of the worker."""
    rows = opener()
    kept_rows = ArrayRows(rows.map(lambda block: block, size=1 << 17))
    kept_rows.feature_names = rows.feature_names
    return kept_rows


@dataclass(frozen=True, eq=False)
class About:
    """Description of the numbers or texts of a part: shape, type and labels.

    - `texts`: distinct texts, sorted; None for numbers.
    - `flat`: whether there is no second axis.
    """

    rows: int
    columns: int
    kind: np.dtype[Any]
    texts: np.ndarray | None
    flat: bool


def column(path: str, name: str, stamp: FileStamp) -> np.ndarray:
    """Read a column of numbers or texts of a file; raise ValueError for gaps or a changed file."""
    with stamp.require_unchanged(Path(path)):
        return target_column(local_table(path), name)


def about(values: Any) -> About:
    """Return the description of numbers or texts."""
    x = as_array(values() if isinstance(values, partial) else values)
    texts = np.unique(x) if x.dtype.kind == "U" else None
    columns = x.shape[1] if x.ndim == 2 else 1
    return About(len(x), columns, x.dtype, texts, x.ndim == 1)


def numbers(values: Any, labels: np.ndarray | None) -> RowSource:
    """Return numbers as rows; texts as their positions in the sorted labels."""
    x = as_array(values() if isinstance(values, partial) else values)
    if labels is not None:
        # Labels are sorted and have all texts of the part, so that each is found at its place;
        # float32 counts exactly to 16 million.
        x = np.searchsorted(labels, x).astype(np.float32)
    return ArrayRows(x.reshape(len(x), -1))


def stitch_pieces(sources: Sequence[RowSource], cuts: Sequence[tuple[int, int]]) -> RowSource:
    """Concatenate some rows of each source in memory."""
    pieces = [
        rows.take(np.arange(low, min(high, len(rows))))
        for rows, (low, high) in zip(sources, cuts, strict=True)
    ]
    return ArrayRows(np.concatenate(pieces))


def as_array(values: Any) -> np.ndarray:
    """Return the values of a partition as an array; texts as NumPy's own."""
    x = np.asarray(values)
    # Columns of text of pandas are arrays of objects, with missing values among them.
    if x.dtype.kind == "O":
        texts = [isinstance(value, str) for value in x.flat]
        if all(texts):
            return x.astype(str)
        if any(texts):
            raise ValueError(
                f"the targets have {texts.count(False):,} missing values in a partition of "
                f"{len(x):,} rows; drop these rows"
            )
    if x.dtype.kind not in "biufU":
        raise TypeError(f"targets must be numbers or texts, got type {x.dtype}")
    return x


def beside_of(numbers: Any) -> Any:
    """Return the row-aligned numbers of a part as an array, from the client or from workers."""
    if not isinstance(numbers, tuple):
        return numbers
    # Remote numbers are sent as their source and changes, and are read on the worker.
    flat, source, changes = numbers
    rows = change_rows(source, changes)
    gathered = rows.map(lambda block: block, size=1 << 17)
    return gathered[:, 0] if flat else gathered


def head(opener: partial[RowSource]) -> RowSource | None:
    """Return the shape of a file; None if it has no row."""
    # The footer has the number of rows.
    is_empty = not pq.read_metadata(opener.args[0]).num_rows
    return None if is_empty else RemoteDescription(opener())


# Dask decides where tasks run, and which results move, by the bytes of rows in the memory of a
# worker; otherwise it would not count the numbers of the rows.
sizeof.register(ArrayRows, lambda rows: len(rows) * rows.width * rows.dtype.itemsize)


def head_of(piece: Any) -> RowSource | None:
    """Return the shape of a partition; None if it has no row."""
    return RemoteDescription(local_rows(piece)) if len(piece) else None


def change_rows(source: Any, changes: Changes) -> RowSource:
    """Return the rows of a part with its changes."""
    rows = local_rows(source() if isinstance(source, partial) else source)
    for data, shared, index in changes:
        change = unpack_value(data, shared)
        rows = change(rows) if index is None else change(rows, index)
    return rows


def fold_part(
    source: Any, changes: Changes, data: bytes, shared: Any, beside: Any, start: int, size: int
) -> Any:
    """Fold the rows of one part; see `RowSource.fold`."""
    fn = Shifted(unpack_value(data, shared), start)
    along = [beside_of(aligned_part) for aligned_part in beside]
    # The plain methods, block after block: the rows on a worker are local.
    return RowSource.fold(change_rows(source, changes), fn, *along, size=size)


def map_part(
    source: Any, changes: Changes, data: bytes, shared: Any, beside: Any, start: int, size: int
) -> Array:
    """Apply a block function to the rows of one part; see `RowSource.map`."""
    along = [beside_of(aligned_part) for aligned_part in beside]
    return RowSource.map(
        change_rows(source, changes), unpack_value(data, shared), *along, size=size
    )


def write_part(source: Any, changes: Changes, data: bytes, shared: Any, path: str) -> None:
    """Write the result of one part to a file."""
    write_table(path, unpack_value(data, shared)(change_rows(source, changes)))


def take_rows(source: Any, changes: Changes, index: Array) -> Array:
    """Return some rows of one part."""
    return change_rows(source, changes).take(index)


def time_reading(source: Any, changes: Changes) -> float:
    """Return the seconds for each row of one part, by reading some of them."""
    rows, began, count = change_rows(source, changes), time.perf_counter(), 0
    for _, block in rows.blocks(1 << 15):
        count += len(block)
        # A part may take minutes to read; half a million rows tell its speed.
        if count >= TIMED_ROWS:
            break
    return (time.perf_counter() - began) / count


def merge_results(data: bytes, shared: Any, found: list[Any]) -> Any:
    """Merge the results of neighbouring parts."""
    fn = unpack_value(data, shared)
    # `merge` may write to its first argument, but a worker keeps results that another task may
    # need again, as after the loss of a worker.
    total = copy.deepcopy(found[0])
    for part_result in found[1:]:
        total = fn.merge(total, part_result)
    return total
