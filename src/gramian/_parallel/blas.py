"""Threads of BLAS and LAPACK: one while workers compute, and for small matrices."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from typing import Any

from threadpoolctl import ThreadpoolController


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of the process: NumPy and SciPy each bring one."""
    # SciPy loads its library at its first import.
    import scipy.linalg  # noqa: F401

    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


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
