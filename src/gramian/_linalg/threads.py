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

Its threads meet at barriers, for a 20 x 3 solve already. On a busy machine each meeting takes as
long as the scheduler likes, and burns the time in waiting: with two threads on two cores with a
load of six, factorising 300 x 300 took 0.9 s, with one 15 ms; FALKON's factors of 2,000 landmarks
took between 0.7 and 11 seconds of CPU time, with one 0.3.
"""


@functools.cache
def _lapack() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """Keeps LAPACK at one thread while a caller is inside; callers may be in several threads.

    OpenBLAS holds a lock of its own while its number of threads is set. A child that is forked
    then inherits that lock as it is, and waits for it for ever: so nobody forks meanwhile.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with no caller inside, as in a forked child."""
        self._lock = threading.RLock()  # a signal handler may fork
        self._inside = 0
        self._limit = contextlib.ExitStack()

    def hold(self) -> None:
        """Let nobody set the number of threads until `release`."""
        self._lock.acquire()

    def release(self) -> None:
        """Undo `hold`."""
        self._lock.release()

    @contextlib.contextmanager
    def __call__(self, operations: int | float) -> Iterator[None]:
        if operations > SINGLE_THREAD_OPERATIONS:
            yield
            return
        with self._lock:
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
