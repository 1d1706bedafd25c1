"""LandmarkDisplay: positions of landmarks among the rows, and unexplained shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as xp
from .._messages.checks import as_count
from .._sparse import dense
from ..approximations import FeatureMap, NystromMap
from ..data import RowSource, Select, Subset, as_rows, as_table, is_table
from ..data.rows.arrow import check_columns
from ..estimators import validation
from ..estimators.types import RowsLike
from ..model import Model
from ._drawing import Axes, Display, Estimator, TwoColumns

SHOWN_ROWS = 5000


@dataclass(eq=False)
class LandmarkDisplay(Display):
    """Rows and landmarks in two features, with rows shaded by their unexplained shares.

    The unexplained share of a row x is the share of k(x, x) that remains after projection on the
    landmarks, in the space of the kernel. Near 0 the model can take any value at x, near 1 it can
    only predict its mean.

    Parameters
    ----------
    points : ndarray of shape (k, 2)
        Rows, in the units of X.
    landmarks : ndarray of shape (m, 2)
    unexplained : ndarray of shape (k,) or None, default=None
        Between 0 and 1.
    names : tuple of two str
        Names of the features.

    Attributes
    ----------
    points_, landmarks_ : matplotlib PathCollection
    colorbar_ : matplotlib Colorbar or None
    ax_, figure_ : matplotlib Axes and Figure
        Set by drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import NystromTransformer
    >>> from gramian.plots import LandmarkDisplay
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 2))
    >>> map_ = NystromTransformer(lengthscale=1.0, landmarks=50, random_state=0).fit(X)
    >>> LandmarkDisplay.from_estimator(map_, X).landmarks.shape
    (50, 2)
    """

    points: np.ndarray
    landmarks: np.ndarray
    unexplained: np.ndarray | None = None
    names: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: RowsLike,
        *,
        features: TwoColumns = (0, 1),
        unexplained: bool = True,
        rows: int = SHOWN_ROWS,
        ax: Axes | None = None,
        **scatter_kw: Any,
    ) -> LandmarkDisplay:
        """Draw the landmarks of a fitted estimator.

        Parameters
        ----------
        estimator : KernelRidge, KernelRidgeClassifier, NystromTransformer, KernelPCA, KernelKMeans
        X : as in `fit`
            All rows of the fit.
        features : pair of int or str, default=(0, 1)
            Two columns of X to show, by their numbers or names. Table columns must be numeric.
        unexplained : bool, default=True
            Whether to shade rows by their unexplained shares. Without effect if the estimator has
            no map of its landmarks.
        rows : int, default=5000
            Largest number of rows to show, evenly spaced. All landmarks are shown.
        ax : matplotlib Axes, optional
            New axes by default.
        **scatter_kw
            For `matplotlib.axes.Axes.scatter`, of the landmarks.

        Returns
        -------
        LandmarkDisplay

        Raises
        ------
        ValueError
            If there are no landmarks, they are not rows of X, X is not the training data, or X
            lacks the columns.
        ImportError
            If matplotlib is not installed.

        Notes
        -----
        Shading k rows costs k m kernel evaluations and 9 m³ operations.
        """
        check_is_fitted(estimator)
        index = _index(estimator)
        source, names = _two_columns(estimator, X, features)
        if index.max() >= len(source):
            raise ValueError(
                f"X must be the rows of the fit: it has {len(source)} rows, but a landmark is row "
                f"{int(index.max())}, counted from 0"
            )
        # Evenly spaced instead of random: the same plot each time.
        count = min(len(source), as_count(rows, "rows"))
        shown = np.linspace(0, len(source) - 1, count).astype(np.int64)
        points, landmarks = (xp.to_host(dense(source.take(rows))) for rows in (shown, index))
        shares = _unexplained_share(estimator, X, shown) if unexplained else None
        return cls(points, landmarks, shares, names).plot(ax, **scatter_kw)

    def plot(self, ax: Axes | None = None, **scatter_kw: Any) -> LandmarkDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **scatter_kw
            For `matplotlib.axes.Axes.scatter`, of the landmarks.

        Returns
        -------
        LandmarkDisplay
            Itself.
        """
        axes, self.colorbar_ = self._axes(ax), None
        x, y = self.points.T
        if self.unexplained is None:
            self.points_ = axes.scatter(x, y, s=4, color="0.75", linewidths=0)
        else:
            self.points_ = axes.scatter(
                x, y, s=4, linewidths=0, c=self.unexplained, cmap="magma_r", vmin=0, vmax=1
            )
            self.colorbar_ = self.figure_.colorbar(
                self.points_, ax=axes, label="unexplained share of k(x, x)"
            )
        style: dict[str, Any] = {"s": 16, "color": "C0", "edgecolors": "white", "linewidths": 0.5}
        x, y = self.landmarks.T
        self.landmarks_ = axes.scatter(x, y, **{**style, **scatter_kw})
        axes.set(xlabel=self.names[0], ylabel=self.names[1])
        return self


def _index(estimator: Estimator) -> np.ndarray:
    """Return the indices of the landmarks among the rows."""
    index = getattr(estimator, "landmark_index_", None)
    if index is None:
        raise ValueError(
            f"this {type(estimator).__name__} has no landmarks among its rows: all rows are "
            "centers, or landmarks are points of your own; fit it with a number of landmarks or a "
            "selector"
        )
    return np.asarray(index)


def _two_columns(
    estimator: Estimator, X: RowsLike, features: TwoColumns
) -> tuple[RowSource, tuple[str, str]]:
    """Return the rows of two columns, in the units of X, and their names."""
    if len(features) != 2:
        raise ValueError(f"features must be 2 columns of X, not {len(features)}")
    columns: Any = getattr(estimator, "feature_names_in_", None)
    count = estimator.n_features_in_
    if is_table(X):
        table = as_table(X)
        columns = table.names if columns is None else columns
    columns = None if columns is None else [str(name) for name in columns]
    numbers = [_number(feature, columns, count) for feature in features]
    if is_table(X):
        chosen = [columns[number] for number in numbers]
        check_columns(table.where, table.names, chosen)
        return table.rows(chosen), (chosen[0], chosen[1])
    names = [f"feature {n}" if columns is None else columns[n] for n in numbers]
    return Select(as_rows(X), numbers), (names[0], names[1])


def _number(feature: int | str, columns: Sequence[str] | None, count: int) -> int:
    """Return the number of a column from its number or name."""
    if isinstance(feature, str):
        names = [] if columns is None else list(columns)
        if feature not in names:
            raise ValueError(f"feature {feature!r} does not exist; there are {names or count}")
        return names.index(feature)
    if not 0 <= feature < count:
        raise ValueError(
            f"feature {feature} does not exist; there are {count} features, numbered from 0"
        )
    return int(feature)


def _unexplained_share(estimator: Estimator, X: RowsLike, shown: np.ndarray) -> np.ndarray | None:
    """Return the unexplained share of k(x, x) of some rows; None without a map."""
    model: Model | None = getattr(estimator, "model_", None)
    feature_map: FeatureMap | None = getattr(estimator, "map_", None)
    if model is not None:
        # Averages and cells have several sets of centers, so no share belongs to a row.
        if len(model.parts) > 1 or model.parts[0].cells is not None:
            return None
        part = model.parts[0]
        rows = part.prepare_rows(validation.new_rows(estimator, X))
        feature_map = NystromMap.build(part.kernel, part.centers)
    elif feature_map is not None:
        rows = validation.new_rows(estimator, X)
    else:
        return None
    shown_rows = Subset(rows, shown)
    apply, diag = feature_map.apply, feature_map.kernel.diag
    explained, diagonal_values = (
        xp.to_host(shown_rows.map(values, size=1000))
        for values in (
            lambda block: xp.square(xp.to_float64(apply(block))).sum(axis=1),
            lambda block: xp.to_float64(diag(block)),
        )
    )
    # Linear kernels are zero at a row of zeros, which has no share: NaN.
    with np.errstate(invalid="ignore"):
        unexplained_share = 1 - explained / diagonal_values
    # Rounding may leave the range, as for the landmarks themselves.
    return unexplained_share.clip(0, 1)
