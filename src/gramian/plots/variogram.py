"""VariogramDisplay: the empirical variogram of a target, and the variogram of a fitted kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._messages.checks import as_count
from .._sparse import dense
from ..estimators import validation
from ..estimators.types import RowsLike
from ..kernels import Haversine
from ..kernels.radial.great_circle import EARTH_RADIUS_KM
from ._drawing import Array, Axes, Display, Estimator, check_shows

MOST_ROWS = 2000
"""Rows whose pairs are counted; of more, a random sample."""


@dataclass(eq=False)
class VariogramDisplay(Display):
    r"""Half the mean squared difference of targets by distance, next to the variogram of a kernel.

    The variogram of a Gaussian process with noise variance :math:`\sigma^2` is :math:`\sigma^2 +
    k(x, x) - k(x, z)`. It is a mean over the same pairs, so that it suits any kernel. A kernel
    whose curve is far from the points does not describe the data.

    Parameters
    ----------
    distance : ndarray of shape (s, b)
        Mean distance of the pairs in each of b bins, for each of s directions.
    empirical : ndarray of shape (s, b)
        Half the mean squared difference; NaN in bins of fewer than 10 pairs.
    model : ndarray of shape (s, b)
    unit : str
        Unit of the distance.

    Attributes
    ----------
    points_, lines_ : list of matplotlib Line2D
        A pair for each direction.
    ax_, figure_ : matplotlib Axes and Figure
        Set by drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianProcess
    >>> from gramian.plots import VariogramDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (300, 2))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    >>> process = GaussianProcess(random_state=0).fit(X, y)
    >>> shown = VariogramDisplay.from_estimator(process, X, y, directions=2)
    >>> bool(shown.empirical[0, 2] > 2 * shown.empirical[1, 2])  # along the first feature
    True
    """

    distance: np.ndarray
    empirical: np.ndarray
    model: np.ndarray
    unit: str = "distance"

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: RowsLike,
        y: Array,
        *,
        features: Sequence[int] = (0, 1),
        degrees: bool = False,
        directions: int = 1,
        bins: int = 15,
        longest: float | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> VariogramDisplay:
        """Draw the variograms of a target and of a fitted process.

        Parameters
        ----------
        estimator : GaussianProcess
        X : as in `fit`
        y : array-like of shape (n,)
        features : sequence of int, default=(0, 1)
            Numbers of the features that are coordinates.
        degrees : bool, default=False
            Whether the coordinates are latitude and longitude in degrees, with distances in
            kilometres.
        directions : int, default=1
            Number s of sectors of equal angles of the pairs' directions, in the plane of the two
            coordinates: with 2, along the first and along the second feature. Different curves show
            anisotropy.
        bins : int, default=15
            Number of bins of equal width.
        longest : float, optional
            Largest distance; by default half of the largest distance of two rows.
        ax : matplotlib Axes, optional
            New axes by default.
        **line_kw
            For `matplotlib.axes.Axes.plot`, of the model's curves.

        Returns
        -------
        VariogramDisplay

        Raises
        ------
        ValueError
            If the estimator has no fitted noise, or not two coordinates have directions.

        Notes
        -----
        Cost: all pairs of up to 2,000 rows, of more rows of a random sample of 2,000.
        """
        noise = check_shows(estimator, cls.__name__, "noise_", "a fitted GaussianProcess")
        sectors, bins = as_count(directions, "directions"), as_count(bins, "bins")
        if sectors > 1 and (degrees or len(features) != 2):
            raise ValueError("directions need two coordinates in one unit, without degrees=True")
        part, rows = estimator.model_, validation.new_rows(estimator, X)
        order = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
        index = np.sort(order)
        places = xp.to_host(dense(rows.take(index)))[:, list(features)].astype(np.float64)
        target = np.asarray(y, dtype=np.float64)[index]
        mapped = part.prepare_rows(rows)
        points = xp.to_float64(dense(mapped.take(index)))
        i, j = np.triu_indices(len(index), 1)
        lengths, angles = _pairs(places, i, j, degrees=degrees)
        reach = 0.5 * float(lengths.max()) if longest is None else float(longest)
        diagonal = part.kernel.diag(points)
        scale = 1.0 if part.target_scale is None else float(part.target_scale[0]) ** 2
        own = scale * (0.5 * (diagonal[i] + diagonal[j]) - part.kernel(points, points)[i, j])
        values = (lengths, 0.5 * (target[i] - target[j]) ** 2, own + float(np.ravel(noise)[0]))
        # The first sector is centered on the first feature.
        sector = np.round(angles / (math.pi / sectors)).astype(int) % sectors
        bin_of_pair = np.minimum((lengths / reach * bins).astype(int), bins) + (bins + 1) * sector
        means = _bin_means(bin_of_pair, values, sectors * (bins + 1))
        distance, empirical, model = (m.reshape(sectors, bins + 1)[:, :bins] for m in means)
        return cls(distance, empirical, model, "kilometres" if degrees else "distance").plot(
            ax, **line_kw
        )

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> VariogramDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_kw
            For `matplotlib.axes.Axes.plot`, of the model's curves.

        Returns
        -------
        VariogramDisplay
            Itself.
        """
        axes, self.points_, self.lines_ = self._axes(ax), [], []
        count = len(self.distance)
        for k, (x, half, own) in enumerate(
            zip(self.distance, self.empirical, self.model, strict=True)
        ):
            where = "" if count == 1 else f", {180 * k / count:g}°"
            style = {"color": f"C{k}", "label": f"kernel{where}"} | line_kw
            self.points_ += axes.plot(x, half, "o", color=f"C{k}", label=f"data{where}")
            self.lines_ += axes.plot(x, own, "-", **style)
        axes.set(xlabel=self.unit, ylabel="half the mean squared difference", ylim=(0, None))
        axes.legend()
        return self


def _bin_means(
    bin_of_pair: np.ndarray, values: Sequence[np.ndarray], bins: int
) -> list[np.ndarray]:
    """Return the means of values over the pairs of each bin, NaN for fewer than 10 pairs."""
    counts = np.bincount(bin_of_pair, minlength=bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        return [
            np.where(counts >= 10, np.bincount(bin_of_pair, v, len(counts)) / counts, np.nan)
            for v in values
        ]


def _pairs(
    places: np.ndarray, i: np.ndarray, j: np.ndarray, *, degrees: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance and the direction, between 0 and pi, of pairs of places."""
    if degrees:
        space = Haversine(1.0).map_points(places)
        chord = np.sqrt(((space[i] - space[j]) ** 2).sum(axis=1))
        across = 2 * EARTH_RADIUS_KM
        return across * np.arcsin(np.minimum(1.0, chord / across)), np.zeros(len(i))
    difference = places[i] - places[j]
    lengths = np.sqrt((difference**2).sum(axis=1))
    if places.shape[1] != 2:
        return lengths, np.zeros(len(i))
    return lengths, np.arctan2(difference[:, 1], difference[:, 0]) % math.pi
