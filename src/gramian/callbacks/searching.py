"""SearchBar, SearchLines: progress of a search, with the gain of each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..search import Trial
from ..search.gains import Gain, gains, step_of
from .stages import READING_STAGE
from .ticking import EVERY_SECONDS, Ticking

if TYPE_CHECKING:
    from rich.progress import Progress

STEP_TEXTS = {
    "screen": "screening kernels and inputs",
    "sample": "the best of them on more rows",
    "metric": "learning a metric",
    "kernel": "kernels with that metric",
    "landmarks": "fitting all rows with landmarks",
    "fit": "fitting all rows",
    "average": "averaging fits",
    "cells": "fitting all cells",
    "refit": "fitting held-out rows, too",
}
"""Activities of a search, by the steps of its trials."""


class SearchLines(Ticking):
    """Log the trials and gains of a search every half minute, inside a ``with`` statement.

    One of the ``callbacks`` of `KernelRidgeCV`; silent outside of the statement. A line has the
    step, the number of trials and the last trial, and for each step the error and its relative
    reduction. It is written by a thread, which ends with the context.

    Use it for the logs of searches of minutes.

    Parameters
    ----------
    say : callable
        Writes a line, such as ``logging.getLogger("gramian").info`` or `print`.
    every_seconds : float, default=30

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidgeCV
    >>> from gramian.callbacks import SearchLines
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with SearchLines(print, every_seconds=30) as lines:
    ...     est = KernelRidgeCV(budget=2_000_000, callbacks=[lines], random_state=0).fit(X, y)
    >>> "trial" in lines.line()  # the next line
    True
    """

    def __init__(
        self, say: Callable[[str], Any], every_seconds: float | int = EVERY_SECONDS
    ) -> None:
        super().__init__(say, every_seconds)
        self._at, self._trials = READING_STAGE, list[Trial]()

    def stage(self, name: str) -> None:
        """Store the stage before the search."""
        self._at = name

    def __call__(self, trial: Trial) -> None:
        """Store a trial for the next line."""
        # A new list, because the thread may be reading the last one.
        self._trials = [*self._trials, trial]

    def line(self) -> str:
        """Return the step, the last trial and the gain so far."""
        trials = self._trials
        if not trials:
            return self._at
        last, done = trials[-1], [gain_text(gain) for gain in gains(trials)]
        step = STEP_TEXTS[step_of(last)]
        return f"{step}, trial {len(trials)}: {trial_text(last)}; {', '.join(done)}"


class SearchBar:
    """Progress bar and a line for each step of a search, inside a ``with`` statement.

    One of the ``callbacks`` of `KernelRidgeCV`; silent outside of the statement.

    Use it for searches in a terminal or a notebook.

    Parameters
    ----------
    seconds : float, default=inf
        Time limit of the search; without it the bar only pulses.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidgeCV
    >>> from gramian.callbacks import SearchBar
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with SearchBar() as bar:  # drawn on the standard error
    ...     est = KernelRidgeCV(budget=2_000_000, callbacks=[bar], random_state=0).fit(X, y)
    >>> print(f"R2 {est.score(X, y):.1f}")
    R2 0.6
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self._progress: Progress | None = None
        self._trials: list[Trial] = []

    def __enter__(self) -> SearchBar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}"),
        )
        self._progress = Progress(*columns, console=Console(stderr=True))
        total = self.seconds if math.isfinite(self.seconds) else None
        self._task = self._progress.add_task(READING_STAGE, total=total, last="")
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._step_done()
            self._progress.stop()
            self._progress = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the terminal display out of copies and pickles."""
        return {"seconds": self.seconds, "_progress": None, "_trials": []}

    def stage(self, name: str) -> None:
        """Show the stage as the description of the bar."""
        if self._progress is not None:
            self._progress.update(self._task, description=name)

    def __call__(self, trial: Trial) -> None:
        """Show a trial; if it is the first of its step, also print a line of the previous step."""
        if self._progress is None:
            return
        if self._trials and step_of(self._trials[-1]) != step_of(trial):
            self._step_done()
        self._trials.append(trial)
        self._progress.update(
            self._task,
            description=STEP_TEXTS[step_of(trial)],
            completed=trial.elapsed,
            last=trial_text(trial),
        )

    def _step_done(self) -> None:
        gain_by_step = {gain.step: gain for gain in gains(self._trials)}
        if self._progress is None or not self._trials:
            return
        step = step_of(self._trials[-1])
        if step in gain_by_step:
            self._progress.console.print(f"{gain_text(gain_by_step[step])}", highlight=False)


def trial_text(trial: Trial) -> str:
    """Return a trial in a line: its recipe, and its error if it has one."""
    error = f", error {math.sqrt(trial.loss):.4g}" if trial.loss >= 0 else ""
    return f"{trial.recipe}{error}"


def gain_text(gain: Gain) -> str:
    """Return the error after a step, and its relative reduction."""
    less = "" if gain.gain is None else f" ({100 * gain.gain:.1f} % less)"
    return f"{gain.step} {gain.error:.4g}{less}"
