"""ConvergenceDisplay: residual or error during a fit or a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._messages.checks import did_you_mean, join_words
from ._drawing import Axes, Display, Estimator, check_shows

QUANTITY_LABELS = {
    "prediction_error": "estimated error of predictions",
    "rel_residual": "relative residual",
    "valid_error": "share of wrong labels on held-out rows",
    "valid_rmse": "error on held-out rows",
    "batch_mse": "mean squared error of the batches",
    "best_error": "least error on held-out rows so far",
}
"""Quantities of the history with their labels; the first present one is the default."""

LIMITED_QUANTITIES = {name: QUANTITY_LABELS[name] for name in ("prediction_error", "rel_residual")}
"""Quantities that a tolerance limits; the first present one has a goal."""

AXIS_LABELS = {
    "iteration": "iteration",
    "seconds": "seconds",
    "kernel_evaluations": "kernel evaluations",
    "passes": "passes over all pairs",
    "epoch": "epochs",
}


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """The residual of a fit, or its error on held-out rows, after each iteration.

    For a search: the least error on held-out rows so far, after each trial.

    Parameters
    ----------
    x, y : ndarray of shape (k,)
        One number for each state that is shown.
    x_name, y_name : str
        Names of x and y in the history of an estimator.
    goal : float or None, default=None
        Residual at which the fit stops, drawn as a line.
    name : str or None, default=None
        Name in the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
    goal_line_ : matplotlib Line2D or None
    ax_, figure_ : matplotlib Axes and Figure
        Set by drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.plots import ConvergenceDisplay
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-6, landmarks=20, random_state=0)
    >>> shown = ConvergenceDisplay.from_estimator(est.fit(X, np.sin(X[:, 0])))
    >>> bool(shown.y[-1] <= shown.goal)
    True
    """

    x: np.ndarray
    y: np.ndarray
    x_name: str = "iteration"
    y_name: str = "rel_residual"
    goal: float | None = None
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        x: str = "auto",
        y: str = "auto",
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> ConvergenceDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : KernelRidge, KernelRidgeClassifier, or one of their searches
        x : str, default="auto"
            ``"iteration"``, ``"seconds"``, ``"kernel_evaluations"``, or another quantity of
            ``history_``. ``"auto"``: iterations; seconds of a search.
        y : str, default="auto"
            ``"prediction_error"``, ``"rel_residual"``, ``"valid_rmse"``, ``"valid_error"``,
            ``"batch_mse"``, or another quantity. ``"auto"``: the first present one.
        name : str, optional
        ax : matplotlib Axes, optional
            New axes by default.
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If the history has no such quantity, or a single state: ``solver="direct"`` has no
            iterations. If the estimator has no history.
        ImportError
            If matplotlib is not installed.
        """
        history = check_shows(
            estimator, cls.__name__, "history_", "a KernelRidge or a search that was fitted"
        )
        rows = _of_search(history) if _is_search(history) else history
        _check_iterates(rows)
        y = _first_of(rows, QUANTITY_LABELS) if y == "auto" else y
        x = ("seconds" if _is_search(history) else "iteration") if x == "auto" else x
        shown_rows = [row for row in rows if x in row and y in row and np.isfinite(row[y])]
        if not shown_rows:
            known_columns = sorted({key for row in rows for key in row})
            missing_column = x if not any(x in row for row in rows) else y
            meant = did_you_mean(missing_column, known_columns)
            raise ValueError(
                f"the history has no {missing_column!r}; it has {join_words(known_columns)}{meant}"
            )
        # The tolerance limits one quantity; a line in the plot of another would mislead.
        goal = _goal(estimator) if y == _first_of(rows, LIMITED_QUANTITIES) else None
        across, up = (np.array([row[key] for row in shown_rows], dtype=float) for key in (x, y))
        return cls(across, up, x, y, goal, name).plot(ax, **line_kw)

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> ConvergenceDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ConvergenceDisplay
            Itself.
        """
        axes = self._axes(ax)
        # The least error stays until a trial lowers it.
        steps = {"drawstyle": "steps-post"} if self.y_name == "best_error" else {}
        (self.line_,) = axes.plot(self.x, self.y, **{"label": self.name, **steps, **line_kw})
        self.goal_line_ = None
        if self.goal is not None:
            self.goal_line_ = axes.axhline(
                self.goal, color=self.line_.get_color(), linestyle=":", linewidth=1
            )
        # A residual that rounds to zero has no logarithm.
        if (self.y > 0).all():
            axes.set_yscale("log")
        axes.set_xlabel(AXIS_LABELS.get(self.x_name, self.x_name))
        axes.set_ylabel(QUANTITY_LABELS.get(self.y_name, self.y_name))
        if self.name is not None:
            axes.legend()
        return self


def _is_search(history: Sequence[Mapping[str, Any]]) -> bool:
    return len(history) > 0 and "elapsed" in history[0]


def _of_search(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the least error of a search after each of its trials.

    Fits of samples and of all rows have different held-out rows, so only fits of all rows count;
    without such fits, all steps count.
    """
    last = [row for row in history if row["step"] in ("fit", "cells", "average", "blend")]
    rows, least_error = [], np.inf
    for number, row in enumerate(last or history):
        if np.isfinite(row["error"]):
            least_error = min(least_error, row["error"])
            shown_row = {"iteration": number, "seconds": row["elapsed"], "best_error": least_error}
            rows.append({**shown_row, "kernel_evaluations": row["kernel_evaluations"]})
    return rows


def _check_iterates(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if the history is a single state, or a state for each cell."""
    # Rows of a fit by cells have the ridge of each cell; they are no iterations of one solver.
    if len(rows) < 2 or "ridge" in rows[0]:
        raise ValueError(
            "there are no iterations to draw, because the fit was in closed form or by cells; use "
            "solver='pcg' or 'falkon'"
        )


def _first_of(rows: Sequence[Mapping[str, Any]], quantities: Mapping[str, str]) -> str:
    present_columns = {key for row in rows for key in row}
    return next((name for name in quantities if name in present_columns), "rel_residual")


def _goal(estimator: Estimator) -> float | None:
    """Return the residual at which a fit stops, if it is known."""
    fitted = getattr(estimator, "_fitted", None)
    tol = None if fitted is None else fitted.settings.tol
    return tol if isinstance(tol, float) else None
