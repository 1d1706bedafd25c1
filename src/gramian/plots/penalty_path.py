"""PenaltyPathDisplay: the error on held-out rows by the penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ._drawing import Axes, Display, Estimator


@dataclass(eq=False)
class PenaltyPathDisplay(Display):
    """Held-out error at each penalty of a path, and the chosen penalty.

    Parameters
    ----------
    penalties : ndarray of shape (k,)
        Penalties per sample.
    errors : ndarray of shape (k,)
        Root mean squared errors on held-out rows, in the units of the target; for a classifier with
        a path of landmarks, shares of wrong labels; for several standardised targets, shares of
        their standard deviations.
    chosen : float
        Best penalty, which is the penalty of the model, except after a search, whose last fit has
        more rows and keeps the product of rows and penalty.
    fold_errors : ndarray of shape (k, f) or None, default=None
        Errors in each fold, if there are several.
    landmarks : ndarray of shape (k,) or None, default=None
        Number of landmarks at each penalty, if it varies.
    error_name : str
    name : str or None, default=None
        Name in the legend.

    Attributes
    ----------
    line_, chosen_line_ : matplotlib Line2D
    fold_lines_ : list of matplotlib Line2D
    ax_, figure_ : matplotlib Axes and Figure
        Set by drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.landmarks import BlessR
    >>> from gramian.plots import PenaltyPathDisplay
    >>> X = np.linspace(0, 6, 300)[:, None]
    >>> est = KernelRidge("gaussian", lengthscale=1.0, landmarks=BlessR(50), random_state=0)
    >>> shown = PenaltyPathDisplay.from_estimator(est.fit(X, np.sin(X[:, 0])))
    >>> bool(shown.penalties[shown.errors.argmin()] == shown.chosen)
    True
    """

    penalties: np.ndarray
    errors: np.ndarray
    chosen: float
    fold_errors: np.ndarray | None = None
    landmarks: np.ndarray | None = None
    error_name: str = "error on held-out rows"
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> PenaltyPathDisplay:
        """Draw the penalties that a fitted estimator compared.

        Parameters
        ----------
        estimator : KernelRidge or KernelRidgeClassifier with a path, or one of their searches
            ``penalty="auto"`` with landmarks of ``BlessR`` or ``Bless`` gives a path. Of a search,
            all penalties of its best fit are shown.
        name : str, optional
        ax : matplotlib Axes, optional
            New axes by default.
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        PenaltyPathDisplay

        Raises
        ------
        ValueError
            If no path is known.
        ImportError
            If matplotlib is not installed.
        """
        check_is_fitted(estimator)
        if getattr(estimator, "cv_results_", None) is not None:
            display = cls(*_of_search(estimator.cv_results_), name=name)
        elif getattr(estimator, "path_", None) is not None:
            display = cls._of_path(estimator, name)
        else:
            raise ValueError(
                f"this {type(estimator).__name__} has no path of penalties: fit it with "
                "penalty='auto' and landmarks=BlessR(...), or pass a KernelRidgeCV"
            )
        return display.plot(ax, **line_kw)

    @classmethod
    def _of_path(cls, estimator: Estimator, name: str | None) -> PenaltyPathDisplay:
        path, wrong = estimator.path_, is_classifier(estimator)
        # Squared errors are shown by their roots, shares of wrong labels as they are.
        as_shown = np.asarray if wrong else np.sqrt
        folds = np.array([row["fold_errors"] for row in path], dtype=float)
        return cls(
            np.array([row["penalty"] for row in path]),
            as_shown(np.array([row["error"] for row in path], dtype=float)),
            float(estimator.penalty_),
            as_shown(folds) if folds.shape[1] > 1 else None,
            np.array([row["landmarks"] for row in path]),
            "share of wrong labels on held-out rows" if wrong else "error on held-out rows",
            name,
        )

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> PenaltyPathDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        PenaltyPathDisplay
            Itself.
        """
        axes = self._axes(ax)
        style = {"marker": "o", "markersize": 4, "label": self.name, **line_kw}
        (self.line_,) = axes.plot(self.penalties, self.errors, **style)
        color = self.line_.get_color()
        self.fold_lines_ = []
        if self.fold_errors is not None:
            self.fold_lines_ = axes.plot(
                self.penalties, self.fold_errors, color=color, alpha=0.3, linewidth=0.8
            )
        self.chosen_line_ = axes.axvline(self.chosen, color=color, linestyle="--", linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel="penalty", ylabel=self.error_name)
        if self.name is not None:
            axes.legend()
        return self


def _of_search(table: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return penalties and errors of the best fit of a search, and the penalty of the best one."""
    # The penalties of one fit are consecutive rows of the table.
    runs = groupby(
        range(len(table["params"])), lambda row: (table["step"][row], _recipe(table, row))
    )
    paths = [list(run) for _, run in runs]
    several = [path for path in paths if len(path) > 1]
    # Losses of samples are not comparable with losses of all rows, so samples count only without
    # fits.
    fits = [path for path in several if table["step"][path[0]] in ("fit", "cells")] or several
    if not fits:
        raise ValueError("the search has compared no penalties; set a larger budget")
    best = min(fits, key=lambda path: float(np.nanmin(table["squared_error"][path])))
    penalties = np.array([table["params"][row]["penalty"] for row in best])
    errors = np.sqrt(table["squared_error"][best])
    order = np.argsort(-penalties, kind="stable")
    return penalties[order], errors[order], float(penalties[np.nanargmin(errors)])


def _recipe(table: Mapping[str, Any], row: int) -> tuple[str, float]:
    """Return the parameters, except the penalty, of a fit of a search, and its end time."""
    parameters = {name: value for name, value in table["params"][row].items() if name != "penalty"}
    return repr(parameters), float(table["elapsed"][row])
