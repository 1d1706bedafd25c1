"""Blocks of rows from batches of any length, and computation of the next item in a thread."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ... import _arrays as xp
from ..._arrays import Array, Float

Item = TypeVar("Item")


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, and compute the next item in another thread.

    - `items`: used by one thread at a time. Its exceptions are raised to the consumer, in order.

    At most two items exist at once: the one in use, and the next. If the consumer stops early, the
    item in progress is finished and dropped, and the thread ends before control returns.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="gramian-read") as thread:
        # None ends the loop: StopIteration from `result()` would be a RuntimeError in this
        # generator.
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            # The next item is under way before this one is handed out.
            yield item
            # Before waiting for the next one: the consumer may have dropped it already, and three
            # items would exist at once.
            del item


def new_block(rows: int, d: int, dtype: xp.DType) -> Float[Array, "rows d"]:
    """Allocate a block whose memory returns to the system, not to the C heap.

    The heap of the reading thread would keep several unused blocks: ten of 4 MB, while two are in
    use.

    - `rows`, `d`: shape of the block; both at least one.
    """
    # The array keeps the map alive, and the map returns its pages when the array is gone.
    memory = mmap.mmap(-1, rows * d * dtype.itemsize)
    return np.frombuffer(memory, dtype=dtype, count=rows * d).reshape(rows, d)


def fill_blocks(
    batches: Iterable[pa.RecordBatch],
    write: Callable[[Array, pa.RecordBatch, int], None],
    shape: tuple[int, int],
    dtype: xp.DType,
    size: int,
) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
    """Yield blocks of exactly `size` rows, except the last, of batches of any length.

    - `write`: writes a batch into an array of as many rows; its last argument is the number of the
      first row.
    - `shape`: rows and features of all batches together.
    """
    n, d = shape
    start = stop = 0  # range of the current block, which has rows up to `stop`
    # Each block is new memory, because the consumer may still hold the one before.
    out = new_block(min(size, n), d, dtype)
    for batch in batches:
        while batch.num_rows:
            # A batch may end within a block, and a block within a batch.
            part = batch.slice(0, start + len(out) - stop)
            write(out[stop - start :][: part.num_rows], part, stop)
            batch, stop = batch.slice(part.num_rows), stop + part.num_rows
            if stop == start + len(out):
                yield slice(start, stop), out
                start = stop
                # No memory for a block that will not come.
                if stop < n:
                    out = new_block(min(size, n - stop), d, dtype)
