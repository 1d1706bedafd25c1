"""Progress: a bar in a terminal or a notebook, lines of text elsewhere."""

from __future__ import annotations

import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from .._messages.checks import as_count, as_positive, is_integer
from .._messages.errors import ParameterError
from ..search import Trial
from ..search.gains import Gain, gains, step_of
from ..solvers.loop.state import PASSES_KEY, PREDICTION_ERROR, RESIDUAL_KEY
from .stages import ITERATING_STAGE, READING_STAGE

LINE_INTERVAL_SECONDS = 30.0
BAR_INTERVAL_SECONDS = 0.2

BAR_FORMAT = "|{bar}| {n_fmt}/{total_fmt} [{elapsed}] {desc}"
COUNTER_FORMAT = "{n_fmt} [{elapsed}] {desc}"
"""Form of a bar without a total."""


class Progress:
    """Show how far a fit or a search is: a bar in a terminal or a notebook, lines elsewhere.

    Inside a ``with`` statement it shows the stage, the iteration with its metrics or the trial with
    its error, and the seconds, also while an iteration lasts for minutes: a thread shows them,
    which ends with the statement. ``verbose=1`` of an estimator is this callback. Use it for lines
    in a log, or at intervals of your choice.

    Parameters
    ----------
    write : callable, optional
        Writes a line, such as ``logging.getLogger("gramian").info``, or `print`. By default there
        is a bar where the standard error is a terminal, or in a notebook; else lines go to the
        standard error.
    total : float, optional
        Iterations of a fit, or seconds of a search, at which the bar is full.
    every_seconds : float, default=30
        Seconds between two lines; a shorter run has none.
    every : int, optional
        A line for each stage, and for each `every`-th iteration, part or trial, too, also outside
        of a ``with`` statement.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import Progress
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with Progress(total=100) as bar:  # drawn on the standard error
    ...     est = KernelRidge(landmarks=100, callbacks=[bar], random_state=0).fit(X, y)
    >>> lines = []
    >>> est = est.set_params(callbacks=[Progress(lines.append, every=1)]).fit(X, y)
    >>> lines[-1].split(":")[0] == f"iterating {est.n_iter_}"
    True
    """

    def __init__(
        self,
        write: Callable[[str], Any] | None = None,
        *,
        total: float | None = None,
        every_seconds: float = LINE_INTERVAL_SECONDS,
        every: int | None = None,
    ) -> None:
        self.write = write
        self.total = total if total is not None and math.isfinite(total) else None
        self.every_seconds = as_positive(every_seconds, "every_seconds")
        self.every = None if every is None else as_count(every, "every")
        self._stage, self._text = READING_STAGE, READING_STAGE
        self._trials: list[Trial] = []
        self._bar: Any = None
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        self._trials = []
        if self.write is None and can_draw_bars():
            self._bar = _open_bar(self.total)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, args=(self._ended,), daemon=True)
        self._thread.start()
        self.stage(READING_STAGE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended is None or self._thread is None:
            return
        self._ended.set()
        self._thread.join()  # so that no line follows later output
        self._ended = self._thread = None
        if self._bar is not None:
            self._write_gain()
            if error is None:  # a notebook marks a bar that is not full as failed
                self._bar.total = self._bar.n
            self._bar.close()
            self._bar = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave bar, thread and trials out of copies and pickles."""
        return vars(self) | {"_bar": None, "_ended": None, "_thread": None, "_trials": []}

    def stage(self, name: str) -> None:
        """Show the stage that begins."""
        self._stage = name
        self._show(name)

    def part(self, done: int, total: int) -> None:
        """Show how many parts of the stage are ready."""
        if self._bar is not None and self._bar.total != total:
            self._bar.bar_format = BAR_FORMAT
            self._bar.reset(total)
        self._show(f"{self._stage} {done:,} of {total:,}", done)

    def __call__(self, *step: Any) -> None:
        """Show a state of a fit, given as ``(problem, state)``, or a trial of a search."""
        if isinstance(step[-1], Trial):
            self._show_trial(step[-1])
        else:
            state = step[-1]
            text = f"{ITERATING_STAGE} {state.iteration}: {metrics_text(state.metrics)}"
            self._show(text, state.iteration, state.metrics.get(PASSES_KEY))

    def line(self) -> str:
        """Return stage, iteration and metrics, or step, trial and gains."""
        steps = ", ".join(map(gain_text, gains(self._trials)))
        return f"{self._text}; {steps}" if steps else self._text

    def _show_trial(self, trial: Trial) -> None:
        if self._trials and step_of(self._trials[-1]) != step_of(trial):
            self._write_gain()
        self._trials.append(trial)
        number = len(self._trials)
        seconds = round(trial.elapsed, 1) if self.total is not None else None
        self._show(trial_text(trial, number), number, seconds)

    def _show(self, text: str, number: int = 0, position: float | None = None) -> None:
        """Show a text, and the position of the bar, by default the number of the event."""
        self._text = text
        if self._bar is not None:
            position = number if position is None else position
            self._bar.n = min(position, self._bar.total or math.inf)
            self._bar.set_description_str(text, refresh=False)
        if self.every is not None and number % self.every == 0:
            self._write(self.line())

    def _write_gain(self) -> None:
        """Write the gain of the last step above the bar."""
        gain_by_step = {gain.step: gain for gain in gains(self._trials)}
        last = gain_by_step.get(step_of(self._trials[-1])) if self._trials else None
        if self._bar is not None and last is not None:
            self._write(gain_text(last))

    def _write(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(line, file=self._bar.fp)
        elif self.write is not None:
            self.write(line)
        else:
            sys.stderr.write(f"{line}\n")

    def _tick(self, ended: threading.Event) -> None:
        """Write a line every `every_seconds`, or refresh the clock of the bar."""
        start, bar = time.monotonic(), self._bar
        while not ended.wait(self.every_seconds if bar is None else BAR_INTERVAL_SECONDS):
            if bar is None:
                self._write(f"{self.line()}, {time.monotonic() - start:.0f} s")
            else:
                bar.refresh()


@contextmanager
def show_progress(verbose: int | str, total: int | float | None = None) -> Iterator[list[Progress]]:
    """Show the progress that ``verbose`` of an estimator requests, while the context lasts.

    - `verbose`: 0: none; 1: a bar, or a line every half minute; 2: also a line for each iteration
      or trial; "auto": 1 in a notebook, else 0.
    - `total`: as in `Progress`.

    Yields
    ------
    list of Progress
        Callbacks of the fit or search: one, or none.
    """
    level = check_verbose(verbose)
    if level == 0:
        yield []
    else:
        with Progress(total=total, every=1 if level > 1 else None) as shown:
            yield [shown]


def check_verbose(verbose: object) -> int:
    """Return the level of ``verbose``; raise ValueError for other values."""
    if verbose == "auto":
        return int(is_notebook())
    if isinstance(verbose, bool):
        return int(verbose)
    if not is_integer(verbose) or verbose < 0:
        raise ParameterError("verbose", verbose, "0, 1, 2 or 'auto'")
    return int(verbose)


def is_notebook() -> bool:
    """Return whether the interpreter is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def can_draw_bars() -> bool:
    """Return whether there is a terminal or a notebook."""
    return is_notebook() or sys.stderr.isatty()


def _open_bar(total: float | None) -> Any:
    with warnings.catch_warnings():
        # Without ipywidgets a notebook has a bar of text, and tqdm would warn of it.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    form = COUNTER_FORMAT if total is None else BAR_FORMAT
    return tqdm(desc=READING_STAGE, total=total, bar_format=form, dynamic_ncols=True)


STEP_TEXTS = {
    "screen": "screening kernels and inputs",
    "sample": "the best of them on more rows",
    "metric": "learning a metric",
    "kernel": "kernels with that metric",
    "landmarks": "fitting all rows with landmarks",
    "fit": "fitting all rows",
    "blend": "averaging with trees",
    "average": "averaging fits",
    "cells": "fitting all cells",
    "refit": "fitting held-out rows, too",
}
"""Activities of a search, by the steps of its trials."""


def metrics_text(metrics: dict[str, int | float]) -> str:
    """Return a line with the metrics that a person watches: counts and duplicates are left out."""
    hidden = {"kernel_evaluations", "condition"}
    if PREDICTION_ERROR in metrics:  # which says the same in units of the target
        hidden.add(RESIDUAL_KEY)
    return "  ".join(f"{key} {value:.3g}" for key, value in metrics.items() if key not in hidden)


def trial_text(trial: Trial, number: int) -> str:
    """Return a trial in a line: its step, number and recipe, and its error if it has one."""
    error = f", error {math.sqrt(trial.loss):.4g}" if trial.loss >= 0 else ""
    return f"{STEP_TEXTS[step_of(trial)]}, trial {number}: {trial.recipe}{error}"


def gain_text(gain: Gain) -> str:
    """Return the error after a step, and its relative reduction."""
    less = "" if gain.gain is None else f" ({100 * gain.gain:.1f} % less)"
    return f"{gain.step} {gain.error:.4g}{less}"
