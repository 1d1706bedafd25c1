"""Ticking: regular lines of text from a thread."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from .._messages.checks import as_positive

EVERY_SECONDS = 30.0

T = TypeVar("T", bound="Ticking")


class Ticking(ABC):
    """Write a line every half minute inside a ``with`` statement; silent outside.

    A thread writes the lines, and ends with the context. Shorter runs write nothing.

    Parameters
    ----------
    say : callable
        Writes a line, such as ``logging.getLogger("gramian").info`` or `print`.
    every_seconds : float, default=30
    """

    def __init__(
        self, say: Callable[[str], Any], every_seconds: float | int = EVERY_SECONDS
    ) -> None:
        self.say, self.every_seconds = say, as_positive(every_seconds, "every_seconds")
        self._start = time.monotonic()
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None

    @abstractmethod
    def line(self) -> str:
        """Return the current line."""

    def __enter__(self: T) -> T:
        self._start = time.monotonic()
        self._ended = threading.Event()
        # The thread gets the event as an argument: the attribute may already be of a later
        # context. A daemon does not keep the process alive.
        self._thread = threading.Thread(target=self._run, args=(self._ended,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended is not None and self._thread is not None:
            self._ended.set()
            # Without the wait, a line could follow later output.
            self._thread.join()
            self._ended = self._thread = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the thread out of copies and pickles."""
        return self.__dict__ | {"_ended": None, "_thread": None}

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(self.every_seconds):
            self.say(f"{self.line()}, {time.monotonic() - self._start:.0f} s")
