"""ProgressLines: a line of text now and then, where there is no terminal to draw a bar on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..problems import Problem
from ..solvers import State
from .progress import metrics_text
from .stages import ITERATING_STAGE, READING_STAGE
from .ticking import EVERY_SECONDS, Ticking


class ProgressLines(Ticking):
    """Say every half minute how far a fit is, inside a ``with`` statement; silent outside.

    Stage, iteration, metrics and seconds in one line, also while a stage or an iteration lasts for
    minutes: a thread says it, which ends with the context. Nothing is said of shorter fits.

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
        """Keep the stage in mind for the next line."""
        self._at, self._state_text = name, ""

    def part(self, done: int, total: int) -> None:
        """Keep in mind how many parts are ready."""
        self._state_text = f" {done:,} of {total:,}"

    def __call__(self, problem: Problem, state: State) -> None:
        """Keep the state in mind for the next line."""
        seconds = {name: value for name, value in state.metrics.items() if name != "seconds"}
        self._at = ITERATING_STAGE
        self._state_text = f" {state.iteration}: {metrics_text(seconds)}".rstrip(" :")
