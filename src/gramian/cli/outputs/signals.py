"""Signals that end a command, as exceptions: files stay whole and the state is saved."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from .messages import message

REASON_OF_SIGNAL = {"SIGTERM": "terminated (SIGTERM)", "SIGHUP": "the terminal was closed (SIGHUP)"}


class Stopped(KeyboardInterrupt):
    """Interruption by a signal other than SIGINT (Ctrl-C)."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def stoppable() -> Iterator[list[int]]:
    """Raise `Stopped` at SIGTERM and SIGHUP while the context lasts.

    Signals with another handler, or ignored as by ``nohup``, stay as they are. Only the main
    thread installs handlers: Python delivers signals to no other.

    Yields
    ------
    list of int
        The received signals. Libraries may turn `Stopped` into another exception.
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
        # `main` may run within another program, which gets its handlers back.
        for number, handler in before.items():
            signal.signal(number, handler)


def reason(error: BaseException) -> str:
    """Describe in words why a command ended."""
    first: BaseException | None = error
    while first is not None:  # an interrupted fit chains its own error
        if isinstance(first, Stopped):
            return REASON_OF_SIGNAL[signal.Signals(first.number).name]
        first = first.__cause__
    return "interrupted"


class ReportedInterrupt(KeyboardInterrupt):
    """Interruption that the command has already reported."""


@contextlib.contextmanager
def report_interruption(checkpoint: Path | None, work: str, step: str) -> Iterator[None]:
    """Context that reports an interruption, its saved files, and the way to resume.

    - `work`, `step`: a fit and its iterations, or a search and its trials.
    """
    try:
        yield
    except ReportedInterrupt:
        raise
    except KeyboardInterrupt as error:
        # Of a model that was saved after all.
        notes = "; ".join(getattr(error, "__notes__", []))
        why = "; ".join(filter(None, (reason(error), notes)))
        if checkpoint is None:
            saved = "" if notes else "; nothing is saved"
            text = f"{why}{saved}. With --checkpoint FILE, a {work} can be resumed"
        elif checkpoint.exists():
            text = f"{why}; to resume from {checkpoint}, run the same command again"
        else:
            text = f"{why} before the first {step}; {checkpoint} is not written yet"
        with contextlib.suppress(OSError):  # the terminal may be gone
            message("", text)
        raise
