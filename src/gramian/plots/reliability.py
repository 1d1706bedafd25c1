"""ReliabilityDisplay: observed frequencies of predicted probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._messages.checks import as_count
from ..estimators.tables import with_truth
from ..estimators.types import RowsLike, TargetsLike
from ..scoring.predictions import class_numbers
from ..scoring.reliability import PROBABILITY_BINS, Reliability, shown_class, shown_probabilities
from ._drawing import Array, Axes, Display, Estimator

NORMAL_95 = 1.6448536269514722
"""95 % quantile of the standard normal distribution."""


@dataclass(eq=False)
class ReliabilityDisplay(Display):
    """Reliability diagram: observed share by predicted probability.

    Correct probabilities are on the diagonal; bins of few rows scatter, but nine in ten of their
    vertical lines cross it. For two classes, the probabilities of the second one are shown; for
    several, the probabilities of the predicted class.

    Parameters
    ----------
    probability, share : ndarray of shape (b,)
        Means over the rows of each bin.
    rows : ndarray of shape (b,)
        Number of rows of each bin.
    what : str
        Class of the probabilities.
    name : str or None, default=None
        Name in the legend.

    Attributes
    ----------
    line_, diagonal_ : matplotlib Line2D
    chance_ : matplotlib LineCollection
        Wilson's interval of 90 % for the share of each bin.
    bars_ : matplotlib BarContainer or None
        Bars of the numbers of rows.
    ax_, figure_ : matplotlib Axes and Figure
        Set by drawing.

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : The same curve, of two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.plots import ReliabilityDisplay
    >>> chances = np.repeat([0.25, 0.75], 4)
    >>> true = [0, 0, 0, 1, 1, 1, 1, 0]
    >>> ReliabilityDisplay.from_predictions(true, chances).share
    array([0.25, 0.75])
    """

    probability: np.ndarray
    share: np.ndarray
    rows: np.ndarray
    what: str
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: RowsLike,
        y: TargetsLike | None = None,
        *,
        bins: int = PROBABILITY_BINS,
        name: str | None = None,
        ax: Axes | None = None,
        rows_ax: Axes | None = None,
        **line_kw: Any,
    ) -> ReliabilityDisplay:
        """Draw the probabilities of a fitted classifier against the observed frequencies.

        Parameters
        ----------
        estimator : KernelRidgeClassifier, KernelRidgeClassifierCV
            A fitted classifier; any classifier with ``predict_proba`` and ``classes_`` is
            supported.
        X : as in `fit`
            Rows that the fit did not learn from.
        y : as in `fit`, optional
            By default the column of X that was the target, as in ``score``.
        bins : int, default=15
            Number of bins of equal width; bins without rows are left out.
        name : str, optional
        ax : matplotlib Axes, optional
            New axes by default.
        rows_ax : matplotlib Axes, optional
            Axes for the number of rows in each bin, which is not drawn otherwise.
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            If the estimator has no probabilities.
        ImportError
            If matplotlib is not installed.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"{type(estimator).__name__} has no probabilities; pass a classifier with "
                "predict_proba, such as KernelRidgeClassifier"
            )
        if hasattr(estimator, "model_"):
            X, y = with_truth(estimator.model_, X, y)
        chances, truth = estimator.predict_proba(X), cast("Any", y)
        axes = {"ax": ax, "rows_ax": rows_ax}
        return cls.from_predictions(
            truth, chances, classes=estimator.classes_, bins=bins, name=name, **axes, **line_kw
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Array,
        y_prob: Array,
        *,
        classes: Array | None = None,
        bins: int = PROBABILITY_BINS,
        name: str | None = None,
        ax: Axes | None = None,
        rows_ax: Axes | None = None,
        **line_kw: Any,
    ) -> ReliabilityDisplay:
        """Draw probabilities against the observed frequencies.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels. Rows of other classes than `classes` are left out.
        y_prob : array-like of shape (n,) or (n, k)
            Probabilities of the second of two classes, or of all.
        classes : array-like of shape (k,), optional
            Order of the classes; sorted by default.
        bins : int, default=15
        name : str, optional
        ax, rows_ax : matplotlib Axes, optional
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            If the shapes do not match, or a number is not a probability.
        ImportError
            If matplotlib is not installed.
        """
        y, chances = np.asarray(y_true), np.asarray(y_prob, dtype=float)
        labels = np.unique(y) if classes is None else np.asarray(classes)
        if chances.ndim == 1:
            chances = np.stack([1 - chances, chances], axis=1)
        _check(y, chances, labels)
        numbers = class_numbers(y, labels)
        has_label = numbers >= 0
        rows = numbers[has_label], chances[has_label]
        curve = Reliability.of(*shown_probabilities(*rows), as_count(bins, "bins"))
        display = cls(
            curve.probability, curve.share, curve.rows, shown_class(labels.tolist()), name
        )
        return display.plot(ax, rows_ax=rows_ax, **line_kw)

    def plot(
        self, ax: Axes | None = None, *, rows_ax: Axes | None = None, **line_kw: Any
    ) -> ReliabilityDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        rows_ax : matplotlib Axes, optional
            Axes for the number of rows in each bin, which is not drawn otherwise.
        **line_kw
            For `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ReliabilityDisplay
            Itself.
        """
        axes = self._axes(ax)
        (self.diagonal_,) = axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        style = {"marker": "o", "label": self.name, **line_kw}
        (self.line_,) = axes.plot(self.probability, self.share, **style)
        color = self.line_.get_color()
        low, high = wilson(self.share, self.rows)
        self.chance_ = axes.vlines(self.probability, low, high, color=color, linewidth=1, alpha=0.5)
        below = axes if rows_ax is None else rows_ax
        axes.set(ylabel=f"share of {self.what}", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        below.set_xlabel(f"probability of {self.what}")
        self.bars_ = None
        if rows_ax is not None:
            self.bars_ = rows_ax.bar(self.probability, self.rows, width=0.04, color=color)
            rows_ax.set(ylabel="rows", yscale="log")
        if self.name is not None:
            axes.legend()
        return self


def wilson(share: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the 90 % Wilson interval, from 0 to 1, for a share observed in some rows.

    - `share`, `rows`: of shape (b,).

    References
    ----------
    .. [1] Wilson, *Probable inference, the law of succession, and statistical inference*, Journal
       of the American Statistical Association 22, 1927.
    """
    square = NORMAL_95**2 / rows
    middle = (share + square / 2) / (1 + square)
    half = np.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return (middle - half).clip(0, 1), (middle + half).clip(0, 1)


def _check(y: np.ndarray, chances: np.ndarray, classes: np.ndarray) -> None:
    """Raise ValueError if labels and probabilities do not match."""
    if chances.shape != (len(y), len(classes)):
        raise ValueError(
            f"y_prob must have shape {(len(y), len(classes))}, rows by classes, or {(len(y),)} for "
            f"two classes, not {chances.shape}; the classes are {classes.tolist()}"
        )
    # This form is true for NaN, too.
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError("y_prob must be between 0 and 1, and has other numbers")
    if not np.isin(y, classes).any():
        raise ValueError(f"y_true must have rows of the classes {classes.tolist()}, and has none")
