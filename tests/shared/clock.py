"""A clock that tests set, and waiting for a condition where another thread decides when."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_SECONDS = 120.0
"""Seconds after which a condition is taken never to hold."""

_real_monotonic = time.monotonic


class ManualClock:
    """Time that passes only where a test advances it, so that no load of the machine changes it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once a condition holds; fail where it never does."""
    deadline = _real_monotonic() + HANG_SECONDS
    while not condition():
        assert _real_monotonic() < deadline, "the condition does not come to hold"
        time.sleep(0.001)
