"""ImportanceDisplay: importances of the features of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._messages.checks import as_count
from ._drawing import Axes, Display, Estimator


@dataclass(eq=False)
class ImportanceDisplay(Display):
    """Bar chart of feature importances, the largest on top.

    They are shares in the variation of predictions, or in the diagonal of a learned metric: they
    describe the model, not causes.

    Parameters
    ----------
    importances : ndarray of shape (k,)
        Importances, the largest first.
    names : sequence of k str
    other_importance : float, default=0
        Sum of the importances that are not shown.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    ax_, figure_ : matplotlib Axes and Figure
        Set by drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.plots import ImportanceDisplay
    >>> X = np.random.default_rng(0).uniform(-3, 3, (200, 3))
    >>> est = KernelRidge("gaussian", lengthscale=2.0, penalty=1e-6).fit(X, np.sin(X[:, 1]))
    >>> ImportanceDisplay.from_estimator(est).names[0]
    'feature 1'
    """

    importances: np.ndarray
    names: tuple[str, ...]
    other_importance: float = 0.0

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, *, most: int = 10, ax: Axes | None = None, **bar_kw: Any
    ) -> ImportanceDisplay:
        """Draw the importances of a fitted estimator.

        Parameters
        ----------
        estimator : KernelRidge, KernelRidgeClassifier, one of their searches
            A fitted estimator; any estimator with ``feature_importances_`` is supported.
        most : int, default=10
            Largest number of features to show; a last bar sums the others.
        ax : matplotlib Axes, optional
            New axes by default.
        **bar_kw
            For `matplotlib.axes.Axes.barh`.

        Returns
        -------
        ImportanceDisplay

        Raises
        ------
        ValueError
            If there are no importances, as for a kernel without gradients.
        ImportError
            If matplotlib is not installed.
        """
        check_is_fitted(estimator)
        try:
            shares = np.asarray(estimator.feature_importances_, dtype=float)
        # Estimators without importances raise AttributeError, so that `hasattr` is false; its
        # text has the reason.
        except AttributeError as error:
            raise ValueError(f"{cls.__name__} has no importances to draw: {error}") from error
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"feature {number}" for number in range(len(shares))]
        # Stable, so that equal shares keep the order of the features.
        order = np.argsort(-shares, kind="stable")
        first, other_features = np.split(order, [as_count(most, "most")])
        labels = tuple(str(names[number]) for number in first)
        return cls(shares[first], labels, float(shares[other_features].sum())).plot(ax, **bar_kw)

    def plot(self, ax: Axes | None = None, **bar_kw: Any) -> ImportanceDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **bar_kw
            For `matplotlib.axes.Axes.barh`.

        Returns
        -------
        ImportanceDisplay
            Itself.
        """
        axes = self._axes(ax)
        names, shares = list(self.names), list(self.importances)
        if self.other_importance > 0:
            names, shares = [*names, "all others"], [*shares, self.other_importance]
        self.bars_ = axes.barh(range(len(names)), shares, **bar_kw)
        axes.set_yticks(range(len(names)), names)
        # The first bar would be at the bottom.
        axes.invert_yaxis()
        axes.set_xlabel("importance: share in how predictions vary")
        return self
