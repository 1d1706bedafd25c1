"""Threads of the BLAS: one while workers compute, and for matrices that are small."""

from __future__ import annotations

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
