"""Threads of LAPACK: one for small matrices, all for large ones."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

SINGLE_THREAD_OPERATIONS = 2e10
"""Operations up to which LAPACK runs on one thread: about a third of a second.

LAPACK's threads meet at barriers, even for a 20 x 3 solve. On a busy machine each barrier waits for
the scheduler, and waiting uses CPU time: with two threads on two cores and a load of six,
factorising 300 x 300 took 0.9 s, with one thread 15 ms; FALKON's factors of 2,000 landmarks took
between 0.7 and 11 seconds of CPU time, with one thread 0.3.
"""


@functools.cache
def _lapack() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """Limit LAPACK to one thread while a caller is inside; callers may be in several threads.

    OpenBLAS locks a mutex while its number of threads is set. A child that is forked at this moment
    inherits the locked mutex, and waits for ever. The hooks below prevent such forks.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Set the number of callers to zero, for a forked child."""
        # Reentrant, because a signal handler of the locking thread may fork.
        self._lock = threading.RLock()
        self._inside = 0
        self._limit = contextlib.ExitStack()

    def hold(self) -> None:
        """Prevent changes of the number of threads until `release`."""
        self._lock.acquire()

    def release(self) -> None:
        """Undo `hold`."""
        self._lock.release()

    @contextlib.contextmanager
    def __call__(self, operations: int | float) -> Iterator[None]:
        # Large matrices repay the barriers.
        if operations > SINGLE_THREAD_OPERATIONS:
            yield
            return
        with self._lock:
            # The limit is one setting of the process: the first caller sets it, and the last one
            # restores it.
            if self._inside == 0:
                self._limit.enter_context(_lapack().limit(limits=1))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.close()


one_thread_if_small = _OneThread()
os.register_at_fork(
    before=one_thread_if_small.hold,
    after_in_parent=one_thread_if_small.release,
    after_in_child=one_thread_if_small.forget,
)
