"""ProgressLines: a line of text now and then, where there is no terminal to draw a bar on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._checks import as_positive
from ..problems import Problem
from ..solvers import State
from .progress import metrics_text
from .stages import ITERATING, READING

EVERY_SECONDS = 30.0


class ProgressLines:
    """Say every half minute how far a fit is, inside a ``with`` statement; silent outside.

    Stage, iteration, metrics and seconds in one line, also while a stage or an iteration lasts for
    minutes: a thread says it, which ends with the context. Nothing is said of shorter fits.

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
        self._at, self._state_text = READING, ""
        self._start = time.monotonic()
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> ProgressLines:
        self._start = time.monotonic()
        self._ended = threading.Event()
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
            self._thread.join()  # so that nothing is said after what follows
            self._ended = self._thread = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the thread out of copies and pickles."""
        return self.__dict__ | {"_ended": None, "_thread": None}

    def stage(self, name: str) -> None:
        """Keep the stage in mind for the next line."""
        self._at, self._state_text = name, ""

    def __call__(self, problem: Problem, state: State) -> None:
        """Keep the state in mind for the next line."""
        seconds = {name: value for name, value in state.metrics.items() if name != "seconds"}
        self._at = ITERATING
        self._state_text = f" {state.iteration}: {metrics_text(seconds)}".rstrip(" :")

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(self.every_seconds):
            self.say(f"{self._at}{self._state_text}, {time.monotonic() - self._start:.0f} s")
