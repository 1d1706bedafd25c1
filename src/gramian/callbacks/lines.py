"""ProgressLines: regular lines of text, for programs without a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..problems import Problem
from ..solvers import State
from .progress import metrics_text
from .stages import ITERATING_STAGE, READING_STAGE
from .ticking import EVERY_SECONDS, Ticking


class ProgressLines(Ticking):
    """Log the progress of a fit every half minute inside a ``with`` statement; silent outside.

    A line has stage, iteration, metrics and seconds. It is written by a thread, also during stages
    and iterations of minutes; the thread ends with the context. Fits of less than half a minute log
    nothing.

    Use it for logs, such as the logs of batch jobs.

    Parameters
    ----------
    say : callable
        Writes a line, such as ``logging.getLogger("gramian").info`` or `print`.
    every_seconds : float, default=30

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import ProgressLines
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with ProgressLines(print, every_seconds=30) as lines:
    ...     est = KernelRidge(landmarks=100, callbacks=[lines], random_state=0).fit(X, y)
    >>> lines.line().split(":")[0] == f"iterating {est.n_iter_}"  # the next line
    True
    """

    def __init__(
        self, say: Callable[[str], Any], every_seconds: float | int = EVERY_SECONDS
    ) -> None:
        super().__init__(say, every_seconds)
        self._at, self._state_text = READING_STAGE, ""

    def line(self) -> str:
        """Return stage, iteration and metrics."""
        return f"{self._at}{self._state_text}"

    def stage(self, name: str) -> None:
        """Store the stage for the next line."""
        self._at, self._state_text = name, ""

    def part(self, done: int, total: int) -> None:
        """Store the number of finished parts for the next line."""
        self._state_text = f" {done:,} of {total:,}"

    def __call__(self, problem: Problem, state: State) -> None:
        """Store the state for the next line."""
        seconds = {name: value for name, value in state.metrics.items() if name != "seconds"}
        self._at = ITERATING_STAGE
        self._state_text = f" {state.iteration}: {metrics_text(seconds)}".rstrip(" :")
