"""Rows that pretend to be on other machines: no block comes here, and what is sent is weighed."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian.data import ArrayRows, RemoteColumns, RemoteDescription, RemoteRows, RowSource, Shifted
from gramian.data.rows.views import check_increasing

ENVELOPE = 4096
"""Bytes that a value may weigh beside its arrays, of which it may add a tenth."""


@dataclass
class Traffic:
    """What went over the network that is not there."""

    taken: int = 0
    streamed: int = 0
    passes: int = 0
    sent: int = 0
    questions: int = 0
    groups: int = 0


class _Weigher(pickle.Pickler):
    """Plain pickle, which adds up the bytes of the arrays on their way."""

    arrays = 0

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self.arrays += value.nbytes
        return NotImplemented


def delivered(value: Any, traffic: Traffic) -> Any:
    """Return a value as it arrives: refused if it weighs more than what it says."""
    file = io.BytesIO()
    weigher = _Weigher(file)
    weigher.dump(value)
    size = file.tell()
    assert size < 1.1 * weigher.arrays + ENVELOPE, (
        f"{value!r:.100} weighs {size} bytes, its arrays {weigher.arrays}"
    )
    traffic.sent += size
    return pickle.loads(file.getvalue())


class Remote(RemoteRows):
    """Parts that are rows of their own, somewhere else."""

    streams = False
    """Whether blocks are meant to come here, as to a solver that reads a stream."""

    def __init__(self, parts: list[RowSource], traffic: Traffic | None = None) -> None:
        self.parts = parts
        self.traffic = Traffic() if traffic is None else traffic
        first = parts[0]
        self.shape = (sum(part.shape[0] for part in parts), first.shape[1])
        self.dtype, self.feature_names = first.dtype, first.feature_names
        self.sparse, self.entries = first.sparse, first.entries

    @classmethod
    def of(cls, X: Any, parts: int = 3, names: tuple[str, ...] | None = None) -> Remote:
        """Divide an array into parts of different lengths."""
        X = np.asarray(X)
        cuts = [0, *(len(X) * (2 * i + 1) // (2 * parts) for i in range(1, parts)), len(X)]
        return cls([ArrayRows(xp.copy(X[a:b]), feature_names=names) for a, b in pairwise(cuts)])

    def beside(self, y: Any) -> RemoteColumns:
        """Return numbers that go with these rows: what is taken of them counts."""
        y = np.asarray(y)
        table = y[:, None] if y.ndim == 1 else y
        if not xp.is_floating(table):
            table = xp.to_float64(table)
        parts: list[RowSource] = [
            ArrayRows(xp.copy(table[start : start + len(part)])) for start, part in self._starts()
        ]
        kind = y.dtype
        return RemoteColumns(Remote(parts, self.traffic), flat=y.ndim == 1, kind=kind)

    def blocks(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        assert self.streams, "a pass over remote rows read them here"
        for start, part in self._starts():
            for rows, block in part.blocks(size):
                self.traffic.streamed += len(block)
                yield slice(start + rows.start, start + rows.stop), block

    def take(self, index: np.ndarray) -> np.ndarray:
        self.traffic.taken += len(index)
        out = np.empty((len(index), self.shape[1]), self.dtype)
        for start, part in self._starts():
            inside = np.flatnonzero((index >= start) & (index < start + len(part)))
            if len(inside):
                out[inside] = part.take(index[inside] - start)
        return out

    def fold(self, fn: Any, *rowwise: Any, size: int) -> Any:
        found = None
        for number, (start, part) in enumerate(self._starts()):
            here = delivered(fn, self.traffic)
            cut = self._cut(rowwise, number, start, part)
            result = RowSource.fold(part, Shifted(here, start), *cut, size=size)
            result = pickle.loads(pickle.dumps(result))
            found = result if found is None else fn.merge(found, result)
        self.traffic.passes += 1
        return found

    def map(self, fn: Any, *rowwise: Any, size: int) -> np.ndarray:
        self.traffic.passes += 1
        return np.concatenate(
            [
                RowSource.map(
                    part,
                    delivered(fn, self.traffic),
                    *self._cut(rowwise, number, start, part),
                    size=size,
                )
                for number, (start, part) in enumerate(self._starts())
            ]
        )

    def by_group(
        self, members: Any, solve: Any, count: int, *rowwise: Any, size: int
    ) -> Iterator[Any]:
        self.traffic.passes += 1
        found: list[list[Any]] = [[] for _ in range(count)]
        for number, (start, part) in enumerate(self._starts()):
            here, along = delivered(members, self.traffic), self._cut(rowwise, number, start, part)
            for rows, block in part.blocks(size):
                for group, index in enumerate(here(start + rows.start, block)):
                    found[group].append([one[index] for one in (block, *(a[rows] for a in along))])
        for group, parts in enumerate(found):
            whole = [np.concatenate(some) for some in zip(*parts, strict=True)]
            result = delivered(solve, self.traffic)(group, *whole)
            self.traffic.groups += 1
            yield pickle.loads(pickle.dumps(result))

    def spread(self) -> Any:
        raise NotImplementedError("nothing plans these passes")

    def call_at_rows(self, ask: Callable[[], Any]) -> Any:
        self.traffic.questions += 1
        return pickle.loads(pickle.dumps(delivered(ask, self.traffic)()))

    def map_rows(self, change: Callable[..., Any], index: np.ndarray | None = None) -> Remote:
        change = delivered(change, self.traffic)
        if index is not None:
            check_increasing(self, index)
        parts = []
        for start, part in self._starts():
            if index is None:
                args: tuple[Any, ...] = ()
            else:
                low, high = xp.find_insertions(index, np.array([start, start + len(part)]))
                args = (index[low:high] - start,)
            told, changed = change(RemoteDescription(part), *args), change(part, *args)
            assert (told is None) == (changed is None)
            if told is not None:
                assert (told.shape, told.dtype) == (changed.shape, changed.dtype)
                parts.append(changed)
        found = Remote(parts, self.traffic)
        found.streams = self.streams
        return found

    def _starts(self) -> Iterator[tuple[int, RowSource]]:
        start = 0
        for part in self.parts:
            yield start, part
            start += len(part)

    def _cut(self, rowwise: tuple[Any, ...], number: int, start: int, part: RowSource) -> list[Any]:
        return [
            there(numbers, number, len(part))
            if isinstance(numbers, RemoteColumns)
            else numbers[start : start + len(part)]
            for numbers in rowwise
        ]


def there(numbers: RemoteColumns, number: int, length: int) -> np.ndarray:
    """Return the numbers of a part, where they are: nothing of them is sent."""
    part = numbers.rows.parts[number]
    assert len(part) == length
    found = part.take(np.arange(length))
    return found[:, 0] if numbers.flat else found
