"""Pool of worker threads, in which the BLAS uses one thread and denormals are flushed."""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .._arrays.elementwise import load_compiled
from .blas import one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")


_thread = threading.local()


def become_worker() -> None:
    """Mark this thread as a worker, which starts no workers of its own."""
    # The flag belongs to the thread, not the process. Without it, kernel entries that underflow
    # are 20 to 40 times slower. Without compiled code there is no way to set it.
    native = load_compiled()
    if native is not None:
        native.flush_denormals()
    _thread.works = True


def _is_worker() -> bool:
    # Threads that are no workers lack the attribute.
    return getattr(_thread, "works", False)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    # The pool is cached with its threads: starting some for each product
    # would cost more than a small product.
    return ThreadPoolExecutor(threads, "gramian", initializer=become_worker)


def _start_afresh() -> None:
    # A forked child has the executors of its parent but not their threads.
    _pool.cache_clear()


os.register_at_fork(after_in_child=_start_afresh)


class Stop:
    """Signal that makes workers stop at the next tile."""

    def __init__(self) -> None:
        self._set = threading.Event()

    def __call__(self) -> None:
        """Make `check` raise from now on."""
        self._set.set()

    def check(self) -> None:
        """Raise RuntimeError if the work must stop."""
        if self._set.is_set():
            raise RuntimeError("stopped: the result is incomplete")


def run(
    threads: int,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    stop: Callable[[], None] | None = None,
    *,
    light: bool = False,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, computed by `threads` workers.

    An outer pool over rows beats the inner threads of a BLAS, which meet at a barrier after every
    operation and so slow down on a busy machine.

    On Ctrl-C, or if the caller stops iterating or an item fails, `stop` is called. The call should
    end all current and future items of the workers, because the process cannot end before them.

    The calling thread itself computes the items if it is a worker, or if they are `light`, which
    means that they take less time than waking a worker. Denormals are flushed to zero in workers
    only. Context variables have the values of the caller for each item.
    """
    if light or _is_worker():
        with one_blas_thread:
            yield from map(function, items)
        return
    context = contextvars.copy_context()

    def call(item: Item) -> Result:
        # Only one thread can be inside a context: each item has a copy, at no cost.
        return context.copy().run(function, item)

    with one_blas_thread:
        try:
            yield from _pool(threads).map(call, items)
        # Not `Exception`: that includes neither Ctrl-C nor the
        # GeneratorExit of a caller that stops.
        except BaseException:
            if stop is not None:
                stop()
            raise


def default_threads() -> int:
    """Return the number of threads of the BLAS; in a worker, one."""
    # Workers that start workers would have the square of the number of threads.
    return 1 if _is_worker() else max(one_blas_thread.outside(), 1)
