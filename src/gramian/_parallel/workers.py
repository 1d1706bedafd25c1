"""Pool of worker threads, in which the BLAS uses one thread and denormals are flushed."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from .._arrays.elementwise import load_compiled

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


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of the process: NumPy and SciPy each bring one."""
    # SciPy loads its library at its first import.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas").lib_controllers


class _OneThread:
    """Context manager that sets the BLAS to one thread; callers may be in several threads.

    The number of threads is one setting of the process: the first caller sets it, and the last one
    restores it.

    OpenBLAS locks a mutex while its number of threads is set. A child that is forked at this moment
    inherits the locked mutex, and waits for ever. The hooks below prevent such forks.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all callers, because in a forked child none of them continues."""
        # Reentrant, because a signal handler of the locking thread may fork.
        self._lock = threading.RLock()
        self._inside = 0
        self._before: list[int] = []

    def hold(self) -> None:
        """Prevent changes of the number of threads until `release`."""
        self._lock.acquire()

    def release(self) -> None:
        """Undo `hold`."""
        self._lock.release()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [library.get_num_threads() for library in _libraries()]
                self._set([1] * len(self._before))
            self._inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._set(self._before)

    def outside(self) -> int:
        """Return the number of threads of the BLAS when no caller is inside."""
        with self._lock:
            if self._inside:
                return max(self._before, default=1)
            counts = [library.get_num_threads() for library in _libraries()]
            # A BLAS that does not tell its threads counts as one of the machine's cores each.
            return max(filter(None, counts), default=0) or os.cpu_count() or 1

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(_libraries(), counts, strict=True):
            if count != 1 or library.get_num_threads() != 1:
                library.set_num_threads(count)


one_blas_thread = _OneThread()
os.register_at_fork(
    before=one_blas_thread.hold,
    after_in_parent=one_blas_thread.release,
    after_in_child=one_blas_thread.forget,
)


SINGLE_THREAD_OPERATIONS = 2e10
"""Operations up to which LAPACK runs on one thread: about a third of a second.

LAPACK's threads meet at barriers, even for a 20 x 3 solve. On a busy machine each barrier waits for
the scheduler, and waiting uses CPU time: with two threads on two cores and a load of six,
factorising 300 x 300 took 0.9 s, with one thread 15 ms; FALKON's factors of 2,000 landmarks took
between 0.7 and 11 seconds of CPU time, with one thread 0.3.
"""


def one_thread_if_small(operations: int | float) -> contextlib.AbstractContextManager[None]:
    """Return a context in which LAPACK uses one thread if there are few operations."""
    if operations > SINGLE_THREAD_OPERATIONS:
        return contextlib.nullcontext()
    return one_blas_thread
