"""Clock of deadlines, which is the wall clock or the CPU time of this process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

_IS_CPU_TIME: ContextVar[bool] = ContextVar("is_cpu_time", default=False)


def read_seconds() -> float:
    """Return the seconds of `time.monotonic`; inside `cpu_time`, of `time.process_time`.

    CPU time is the sum of all threads of this process, and excludes waiting. A busy machine hardly
    changes it.
    """
    return time.process_time() if _IS_CPU_TIME.get() else time.monotonic()


@contextlib.contextmanager
def cpu_time(is_used: bool = True) -> Iterator[None]:
    """Let `read_seconds` count CPU time while the context lasts, if `is_used`."""
    token = _IS_CPU_TIME.set(is_used)
    try:
        yield
    finally:
        _IS_CPU_TIME.reset(token)
