"""Base of the displays, which imports matplotlib only to draw."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import matplotlib.axes
    import matplotlib.figure
    from numpy.typing import ArrayLike

    Axes: TypeAlias = matplotlib.axes.Axes
    Figure: TypeAlias = matplotlib.figure.Figure | matplotlib.figure.SubFigure
    Array: TypeAlias = ArrayLike
    TwoColumns: TypeAlias = Sequence[int | str]
    Estimator: TypeAlias = Any  # scikit-learn has no types, and its estimators are Any here
else:
    Axes = Figure = Array = TwoColumns = Estimator = Any


def check_installed(who: str, *modules: str) -> None:
    """Raise ImportError with the name of the user if a module of the extra is not installed."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            package = module.split(".")[0]
            raise ImportError(
                f"{who} needs {package}, which is not installed: `pip install 'gramian[plots]'`"
            ) from error


def check_matplotlib(who: str) -> None:
    """Raise ImportError with the name of the display if matplotlib is not installed."""
    check_installed(who, "matplotlib.figure")


class Display:
    """Plot that keeps its numbers, and draws them on any axes.

    - `figure_`: set by drawing.
    """

    ax_: Axes
    figure_: Figure

    def _axes(self, ax: Axes | None) -> Axes:
        """Set and return the axes, by default new axes of pyplot."""
        check_matplotlib(type(self).__name__)
        # Axes of the caller need no pyplot, whose import chooses a backend.
        if ax is None:
            pyplot = importlib.import_module("matplotlib.pyplot")
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def check_shows(estimator: Estimator, display: str, attribute: str, wanted: str) -> Any:
    """Return an attribute of a fitted estimator.

    Raise sklearn.exceptions.NotFittedError if the estimator is not fitted. Raise ValueError if it
    lacks the attribute; the message names the estimators that have it.
    """
    check_is_fitted(estimator)
    value = getattr(estimator, attribute, None)
    if value is None:
        raise ValueError(
            f"{display} draws {attribute}, which this {type(estimator).__name__} does not have; "
            f"pass {wanted}"
        )
    return value
