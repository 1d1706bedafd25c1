"""A pool of worker threads in which torch runs one-threaded and flushes denormals."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

A = TypeVar("A")
B = TypeVar("B")


def _prepare_worker() -> None:
    # The flag is one of the thread, not of the process. Kernel entries that underflow would
    # otherwise run 20 to 40 times slower.
    torch.set_flush_denormal(True)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "gramian", initializer=_prepare_worker)


# A forked child has the executors of its parent but not their threads.
os.register_at_fork(after_in_child=_pool.cache_clear)


class _OneThreadEach:
    """Sets torch's own threads to one while any caller is inside; restores them after the last.

    The setting is one of the process (that of its BLAS, at least), so that callers must share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._before = torch.get_num_threads()
                torch.set_num_threads(1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    torch.set_num_threads(self._before)


_one_thread_each = _OneThreadEach()


def run(threads: int, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Yield ``function(item)`` for each item, in order, computed by `threads` workers.

    An outer pool over rows beats torch's inner threads, which meet at a barrier after every
    operation and so collapse on a busy machine.
    """
    with _one_thread_each():
        yield from _pool(threads).map(function, items)


def default_threads() -> int:
    """Return the number of workers that torch would use itself."""
    return max(torch.get_num_threads(), 1)
