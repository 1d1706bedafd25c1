"""Progress: a bar on the terminal, or lines in the log."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._messages.checks import as_count
from ..problems import Problem
from ..solvers import State
from ..solvers.loop.metrics import PASSES_KEY, PREDICTION_ERROR, RESIDUAL_KEY

if TYPE_CHECKING:
    from rich.progress import Progress

logger = logging.getLogger("gramian")

TENTHS_PER_UNIT = 10


class LogProgress:
    """Write stages and the metrics of every few iterations to the logger "gramian", level INFO.

    Use it in programs that already have a log.

    Parameters
    ----------
    every : int, default=1

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import LogProgress
    >>> X, y = load_diabetes(return_X_y=True)
    >>> import logging
    >>> log, said = logging.getLogger("gramian"), []
    >>> log.setLevel("INFO")
    >>> log.addFilter(lambda record: said.append(record.getMessage()))  # yours has a handler
    >>> est = KernelRidge("gaussian", lengthscale=3.0, penalty=0.01, landmarks=100, random_state=0)
    >>> est = est.set_params(callbacks=[LogProgress(every=5)]).fit(X, y)
    >>> said[-1].split(":")[0]
    'iteration 10'
    >>> log.setLevel("NOTSET"), log.filters.clear()
    (None, None)
    """

    def __init__(self, every: int = 1) -> None:
        self.every = as_count(every, "every")

    def stage(self, name: str) -> None:
        """Log the start of a stage."""
        logger.info("%s", name)

    def part(self, done: int, total: int) -> None:
        """Log each tenth of the parts."""
        if TENTHS_PER_UNIT * done // total > TENTHS_PER_UNIT * (done - 1) // total:
            logger.info("%d of %d", done, total)

    def __call__(self, problem: Problem, state: State) -> None:
        """Log the state in every `every`-th iteration."""
        if state.iteration % self.every == 0:
            logger.info("iteration %d: %s", state.iteration, metrics_text(state.metrics))


class ProgressBar:
    """Progress bar on the terminal, drawn with rich inside a ``with`` statement; silent outside.

    Use it in a terminal or a notebook.

    Parameters
    ----------
    total : int, optional
        Expected number of iterations; without it the bar only pulses.
    description : str, default="solving"

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import ProgressBar
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with ProgressBar(total=100) as bar:  # drawn on the standard error
    ...     est = KernelRidge(landmarks=100, callbacks=[bar], random_state=0).fit(X, y)
    >>> est.stop_reason_
    'converged'
    """

    def __init__(self, total: int | None = None, description: str = "solving") -> None:
        self.total, self.description = total, description
        self._progress: Progress | None = None

    def __enter__(self) -> ProgressBar:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
        )
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task(self.description, total=self.total, metrics="")
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the terminal display out of copies and pickles."""
        return {"total": self.total, "description": self.description, "_progress": None}

    def stage(self, name: str) -> None:
        """Show the stage as the description of the bar."""
        if self._progress is not None:
            self._progress.update(self._task, description=name)

    def part(self, done: int, total: int) -> None:
        """Move the bar to the number of finished parts."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=total)

    def __call__(self, problem: Problem, state: State) -> None:
        """Move the bar to the iteration of the state, or to its passes if it counts them."""
        if self._progress is not None:
            done = state.metrics.get(PASSES_KEY, state.iteration)
            self._progress.update(
                self._task,
                description=self.description,
                completed=done,
                metrics=metrics_text(state.metrics),
            )


def metrics_text(metrics: dict[str, int | float]) -> str:
    """Return the metrics in a line, without evaluations, conditions and a redundant residual."""
    hidden = {"kernel_evaluations", "condition"}
    # The prediction error is the residual in units of the target.
    if PREDICTION_ERROR in metrics:
        hidden.add(RESIDUAL_KEY)
    return "  ".join(f"{key} {value:.3g}" for key, value in metrics.items() if key not in hidden)
