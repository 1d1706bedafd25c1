"""Rows in parts on the workers of a cluster, where a pass is a graph of tasks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeVar

import dask
import distributed
import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._files.atomic import check_output
from ..remote.columns import RemoteColumns
from ..remote.rows import RemoteRows
from ..rows.base import (
    NO_ROWS_MESSAGE,
    RemoteDescription,
    RowSource,
    Spread,
    check_index,
    check_size,
    slices,
    some_rows,
)
from ..rows.file_stamp import FileStamp
from ..rows.reduce import BlockFn, BlockReduction, Rowwise
from ..rows.views import check_increasing
from .files import check_alike, files_of, names_in
from .groups import bundle, bundles_of, solve_group, split
from .part import (
    Part,
    column,
    fold_part,
    head,
    head_of,
    keep_rows,
    map_part,
    merge_results,
    parquet,
    take_rows,
    time_reading,
    write_part,
)
from .workers import Sent, Workers, connected_client, repeat_arguments

Result = TypeVar("Result")

MOST_TIMED = 16
"""Parts by which it is measured how fast rows are read."""

FAN_IN = 16
"""Results that one task merges."""


class DaskRows(RemoteRows):
    """Rows in parts on the workers of a Dask cluster.

    `open` and `of` create them. Functions that pass over all rows are sent to the workers; results
    of parts are merged in their order, by a tree that depends only on the number of parts: bits do
    not depend on the number of workers, on whether parts are kept or read again, or on lost
    workers.

    Parameters
    ----------
    workers : Workers
    parts : sequence of Part
    like : RowSource
        Empty rows with the features, type and names of the rows.

    Notes
    -----
    A pass sends an array of 4 kB or more once to the scheduler, which gives it once to each
    worker; smaller values are sent with each task. Workers hold nothing that cannot be recreated.
    """

    def __init__(self, workers: Workers, parts: Sequence[Part], like: RowSource) -> None:
        self.workers, self.parts = workers, tuple(parts)
        self.starts = [0, *accumulate(part.rows for part in parts)]
        self.shape = (self.starts[-1], like.shape[1])
        self.dtype, self.feature_names = like.dtype, like.feature_names
        # Without its rows, which would hold a file or memory open.
        self._like = RemoteDescription(like, 1)

    @classmethod
    def open(
        cls,
        path: str | Path,
        columns: Sequence[str] | None = None,
        *,
        client: distributed.Client | None = None,
        keep: bool | None = None,
        stamps: Mapping[Path, FileStamp] | None = None,
    ) -> DaskRows:
        """Return the rows of a Parquet file or folder, which workers read.

        Parameters
        ----------
        path : str or Path
            Path that is the same on all workers and on the client. Each file is a part.
        columns : sequence of str, optional
        client : distributed.Client, optional
            The newest client by default.
        keep : bool, optional
            Whether workers keep the rows in memory; otherwise they are read in each pass. By
            default ``gramian.keep`` in Dask's configuration, or False.
        stamps : mapping of Path to FileStamp, optional
            Stamps of all files when the table was opened; by default, their present stamps.

        Raises
        ------
        ValueError
            If there is no client; if a worker has another gramian, or cannot see the path; if files
            have other columns or types than the first one, or further columns in their path; if
            workers have no room to keep the rows; later, if a worker opens a file that has changed.

        Notes
        -----
        Columns are matched by name, in the order of the first file. Files without rows are left
        out.
        """
        client = connected_client(client)
        keep = bool(dask.config.get("gramian.keep", False)) if keep is None else keep
        if stamps is None:
            stamps = {file: FileStamp.of(file) for file in files_of(path)}
        files, names = list(stamps), None if columns is None else tuple(columns)
        workers = Workers(client)
        # Before any task, so that an error names the worker and the reason.
        workers.check(str(path))
        heads = workers.results(
            workers.map(head, [partial(parquet, str(file), names, stamps[file]) for file in files])
        )
        non_empty = [pair for pair in zip(files, heads, strict=True) if pair[1] is not None]
        if not non_empty:
            raise ValueError(f"{path} has no rows")
        check_alike(non_empty)
        names = names_in(path, non_empty) if names is None else names
        openers = [partial(parquet, str(file), names, stamps[file]) for file, _ in non_empty]
        if keep:
            like = non_empty[0][1]
            row_bytes = like.shape[1] * like.dtype.itemsize
            workers.check_room(row_bytes * sum(len(file_rows) for _, file_rows in non_empty))
        sources = workers.map(keep_rows, openers) if keep else openers
        parts = [
            Part(source, file_rows.shape[0], path=str(file), stamp=stamps[file])
            for source, (file, file_rows) in zip(sources, non_empty, strict=True)
        ]
        if keep:
            # Waits until all are read, so that errors come now and `find` knows all homes.
            workers.results(sources, bring=False)
            workers.find(parts)
        return cls(workers, parts, non_empty[0][1])

    @classmethod
    def of(cls, collection: Any, *, client: distributed.Client | None = None) -> DaskRows:
        """Return the rows of a dask array or data frame, which workers then keep in memory.

        Raises
        ------
        ValueError
            If there is no client, or the features of an array are in several chunks.
        """
        workers = Workers(connected_client(client))
        check_one_chunk(collection)
        workers.check()
        # Computed once and kept: a collection may be the result of hours of other work.
        pieces = workers.client.compute(np.ravel(collection.to_delayed()).tolist())
        heads = workers.results(workers.map(head_of, pieces))
        non_empty = [pair for pair in zip(pieces, heads, strict=True) if pair[1] is not None]
        if not non_empty:
            raise ValueError("the dask collection has no rows")
        parts = [Part(piece, head.shape[0]) for piece, head in non_empty]
        workers.find(parts)
        return cls(workers, parts, non_empty[0][1])

    def column(self, name: str) -> RemoteColumns:
        """Return a column of the files of these rows, such as the target; it stays on the workers.

        Parameters
        ----------
        name : str
            Name of a column of numbers, or of texts that are labels.

        Raises
        ------
        ValueError
            If the rows are not from files, or have been mapped since they were read.
        """
        from .collections import columns_of  # it imports this module

        openers = []
        for part in self.parts:
            if part.path is None or part.stamp is None or part.changes:
                raise ValueError(
                    "only unchanged rows of files have further columns; open them with "
                    "DaskRows.open(path)"
                )
            # The stamp of the features: a target from another version of the file is refused.
            openers.append(partial(column, part.path, name, part.stamp))
        return columns_of(self.workers, openers, homes=self.parts)

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        """Fetch all rows to the client, block by block; see `RowSource.blocks`."""
        check_size(size)
        for part, start in zip(self.parts, self.starts, strict=False):
            # One task per block, and one block at a time: rows larger than memory may pass through
            # this process.
            for piece in slices(part.rows, size):
                task = self.workers.start(take_rows, [part], [np.arange(piece.start, piece.stop)])
                yield slice(start + piece.start, start + piece.stop), self.workers.results(task)[0]

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        """Gather rows in one round trip; see `RowSource.take`."""
        check_index(index, self.shape[0])
        index = xp.cast(xp.to_host(index), xp.int64)
        # The part of each row: the last one that starts at or before it.
        home = np.searchsorted(self.starts, index, side="right") - 1
        part_numbers, counts = np.unique(home, return_counts=True)
        # One task for each part, with the places of its rows in the result.
        numbers = part_numbers.tolist()
        places = np.split(home.argsort(stable=True), np.cumsum(counts))[:-1]
        inside = [
            index[place] - self.starts[number]
            for number, place in zip(numbers, places, strict=True)
        ]
        tasks = self.workers.start(take_rows, [self.parts[number] for number in numbers], inside)
        out = np.empty((len(index), self.shape[1]), self.dtype)
        for place, rows in zip(places, self.workers.results(tasks), strict=True):
            out[place] = rows
        return out

    def map(self, fn: BlockFn, *rowwise: Rowwise, size: int) -> Array:
        """See `RowSource.map`: the client gets the result."""
        value = self.workers.value(fn, len(self.parts))
        results = self.workers.results(self.tasks(map_part, value, rowwise, size))
        return np.concatenate(results)

    def fold(self, fn: BlockReduction[Result], *rowwise: Rowwise, size: int) -> Result:
        value = self.workers.value(fn, len(self.parts))
        level = self.tasks(fold_part, value, rowwise, size)
        # A tree of neighbours: its shape depends on the number of parts only, and so do the bits of
        # sums. One level after the other is sent without waiting for the results of the one before.
        while len(level) > 1:
            groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            # A single result is merged with nothing: it moves up without a task.
            last = groups.pop() if len(groups[-1]) == 1 else []
            level = (
                self.workers.map(merge_results, *repeat_arguments(value, len(groups)), groups)
                + last
            )
        result: Result = self.workers.results(level)[0]
        return result

    def map_rows(
        self,
        change: Callable[..., RowSource | None],
        index: Int[Array, " k"] | None = None,
    ) -> DaskRows:
        """See `RowSource.map_rows`: each part is mapped whenever it is read."""
        if index is not None:
            check_increasing(self, index)
        parts, like, count = [], None, len(self.parts)
        value = self.workers.value(change, count)
        for part, (start, stop) in zip(self.parts, pairwise(self.starts), strict=True):
            inside = None
            if index is not None:
                low, high = np.searchsorted(index, [start, stop]).tolist()
                inside = index[low:high] - start
            # The change is tried on a description without rows, which tells the shape and type of
            # its result.
            shape = RemoteDescription(self._like, part.rows)
            changed_shape = change(shape) if inside is None else change(shape, inside)
            # A part without remaining rows is left out.
            if changed_shape is not None:
                like = changed_shape
                sent = None if inside is None else self.workers.beside(inside, count)
                changes = (*part.changes, (*value, sent))
                parts.append(replace(part, rows=changed_shape.shape[0], changes=changes))
        return DaskRows(self.workers, parts, some_rows(like, NO_ROWS_MESSAGE))

    def call_at_rows(self, ask: Callable[[], Result]) -> Result:
        """See `RowSource.call_at_rows`: each worker calls the function."""
        return self.workers.call_all(ask)

    def _seconds_to_read(self) -> float:
        """Measure the seconds to read all rows, on as many parts as are read at once."""
        # As many at once as in a pass, because workers may share one disk or network.
        count = min(len(self.parts), max(1, self.workers.slots()), MOST_TIMED)
        part_seconds: list[float] = self.workers.results(
            self.workers.start(time_reading, self.parts[:count])
        )
        return sum(part_seconds) / count * len(self)

    def spread(self) -> Spread:
        """See `RowSource.spread`: computed for the present workers."""
        threads = self.workers.client.nthreads()
        if not threads:
            raise ConnectionError("the cluster has no worker: start some")
        tasks = level = len(self.parts)
        while level > 1:
            # The tasks of the tree in `fold`, level by level.
            full, remainder = divmod(level, FAN_IN)
            tasks += full + (remainder > 1)
            level = full + (remainder > 0)
        return Spread(
            len(threads), sum(threads.values()), tasks, self.workers.mean, self._seconds_to_read
        )

    def write(self, folder: Path, columns: Callable[[RowSource], Mapping[str, Any]]) -> None:
        """Let workers write a Parquet file for each part: ``part-00000.parquet`` and so on.

        Parameters
        ----------
        folder : Path
            Path that is the same on all workers and on the client; the folder is created if it does
            not exist.
        columns : callable
            Maps rows to the columns to write, by name. It can be pickled by plain pickle.

        Notes
        -----
        Each file is complete or missing: a task that is repeated writes the same file.
        """
        check_output(folder, folder=True)
        folder.mkdir(exist_ok=True)
        count = len(self.parts)
        value = repeat_arguments(self.workers.value(columns, count), count)
        paths = [str(folder / f"part-{number:05}.parquet") for number in range(count)]
        self.workers.results(self.workers.start(write_part, self.parts, *value, paths))

    def by_group(
        self,
        members: Callable[[int, Array], list[Array]],
        solve: Callable[..., Result],
        count: int,
        *rowwise: Rowwise,
        size: int,
    ) -> Iterator[Result]:
        """See `RemoteRows.by_group`: each group is a task on the worker that gathered its rows.

        1. Neighbouring groups form bundles of nearly equal numbers of groups.
        2. A task for each part divides its rows among the bundles.
        3. A task for each bundle puts its pieces together, in the order of the parts.
        4. The tasks of the groups of a bundle run where the bundle is.
        5. One result at a time comes to this process, in order. If the consumer stops early, the
           other groups are not solved.
        """
        workers, parts = self.workers, len(self.parts)
        row_bytes, memory = len(self) * self.width * self.dtype.itemsize, workers.memory()
        bundles = bundles_of(count, parts, workers.slots(), row_bytes, min(memory, default=0))
        # Integer products spread the remainder, so that no bundle has two groups more than another.
        bounds = [count * b // bundles for b in range(bundles + 1)]
        halves = self.tasks(split, workers.value(members, parts), rowwise, size, bounds)
        # A piece is a task, so that a bundle fetches only its pieces and not all of each part.
        pieces = workers.map(
            operator.getitem,
            [half for _ in range(bundles) for half in halves],
            [b for b in range(bundles) for _ in halves],
        )
        together = workers.map(
            bundle, [pieces[b * parts : (b + 1) * parts] for b in range(bundles)]
        )
        del halves, pieces  # workers drop results that no future refers to
        value = workers.value(solve, parts)
        homes = [b for b in range(bundles) for _ in range(bounds[b], bounds[b + 1])]
        groups = [*repeat_arguments(value, count), [together[b] for b in homes], [*range(count)]]
        tasks: list[Any] = workers.map(solve_group, *groups)
        del groups, together
        try:
            for group in range(count):
                (group_result,) = workers.results([tasks[group]])
                # The future of a result keeps it on its worker: dropped, the worker has room for
                # the next groups.
                tasks[group] = None
                yield group_result
        finally:
            workers.cancel(tasks)

    def tasks(
        self,
        verb: Callable[..., Any],
        value: Sent,
        rowwise: Sequence[Rowwise],
        size: int,
        *more: Any,
    ) -> list[Any]:
        """Start a task on each part: ``verb(source, changes, *value, rowwise, start, size, *m)``.

        `value` is a result of `Workers.value`.
        """
        self._check_alike(rowwise)
        count = len(self.parts)
        beside = [[self._beside(numbers, at, count) for numbers in rowwise] for at in range(count)]
        same = repeat_arguments((size, *more), count)
        return self.workers.start(
            verb, self.parts, *repeat_arguments(value, count), beside, self.starts[:-1], *same
        )

    def _beside(self, numbers: Rowwise, place: int, count: int) -> Any:
        """Return the numbers of a part to send; remote numbers are read on the worker."""
        if isinstance(numbers, RemoteColumns):
            # Aligned parts: `_check_alike` has compared their lengths.
            home_part = numbers.rows.parts[place]  # type: ignore[attr-defined]
            return numbers.flat, home_part.source, home_part.changes
        return self.workers.beside(numbers[self.starts[place] : self.starts[place + 1]], count)

    def _check_alike(self, rowwise: Sequence[Rowwise]) -> None:
        """Raise ValueError if remote numbers are in parts of other lengths."""
        for numbers in rowwise:
            if isinstance(numbers, RemoteColumns):
                columns = numbers.rows
                if not isinstance(columns, DaskRows) or columns.starts != self.starts:
                    lengths = [
                        (len(getattr(rows, "parts", (None,))), len(rows))
                        for rows in (self, columns)
                    ]
                    descriptions = [f"{k:,} partitions of {n:,} rows" for k, n in lengths]
                    raise ValueError(
                        f"X has {descriptions[0]}, but y or sample_weight has {descriptions[1]}; "
                        "partition both alike with y.repartition(divisions=X.divisions) or "
                        "y.rechunk((X.chunks[0],))"
                    )

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("rows on a cluster cannot be pickled, because they have a client")


def check_one_chunk(collection: Any) -> None:
    """Raise ValueError for a dask array that is no matrix, or whose features are divided."""
    numblocks = getattr(collection, "numblocks", (0, 1))
    if len(numblocks) != 2 or numblocks[1] != 1:
        raise ValueError(
            "a dask array must be a matrix with all features in one chunk, got shape "
            f"{collection.shape} with chunks {collection.chunks}; use X.rechunk({{1: -1}})"
        )
