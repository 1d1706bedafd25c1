"""Computation of the next item of an iterator while the present item is used."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float

Item = TypeVar("Item")


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, and compute the next item in another thread.

    - `items`: used by one thread at a time. Its exceptions are raised to the consumer, in order.

    Yields
    ------
    object
        The same items in the same order.

    Notes
    -----
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

    Parameters
    ----------
    rows, d : int
        Shape of the block; both at least one.
    dtype : dtype
    """
    # The array keeps the map alive, and the map returns its pages when the array is gone.
    memory = mmap.mmap(-1, rows * d * dtype.itemsize)
    return np.frombuffer(memory, dtype=dtype, count=rows * d).reshape(rows, d)
