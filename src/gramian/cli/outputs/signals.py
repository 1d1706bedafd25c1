"""Signals that end a command: it leaves whole files, saves its state, and says who ended it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

REASON_OF_SIGNAL = {"SIGTERM": "terminated (SIGTERM)", "SIGHUP": "the terminal was closed (SIGHUP)"}


class Stopped(KeyboardInterrupt):
    """An interruption by a signal other than the signal of Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def stoppable() -> Iterator[list[int]]:
    """Raise `Stopped` at SIGTERM and SIGHUP while the context lasts.

    Not where somebody else handles them, or has asked to ignore them, as ``nohup`` does; and not
    in other threads than the first, where Python does not see signals.

    Yields
    ------
    list of int
        The signals that came: libraries on the way make another exception of `Stopped`.
    """
    before: dict[int, Any] = {}
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise Stopped(number)

    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in REASON_OF_SIGNAL if hasattr(signal, name)):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, stop)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def reason(error: BaseException) -> str:
    """Return who ended a command, in words."""
    first: BaseException | None = error
    while first is not None:  # an interrupted fit raises its own error from the first one
        if isinstance(first, Stopped):
            return REASON_OF_SIGNAL[signal.Signals(first.number).name]
        first = first.__cause__
    return "interrupted"
