"""Predictions on a regular grid, such as a map, with deviations and a mask of extrapolation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._messages.errors import ParameterError
from ..types import RowsLike

GRID_BLOCK_ROWS = 1 << 14
"""Points of a grid that are predicted at once."""

MOST_POINTS = 100_000_000
"""Most points of a grid; more are taken for a mistake in units."""


@runtime_checkable
class PointPredictor(Protocol):
    """Regressor with deviations, such as a `KernelRegressor`."""

    def predict(self, X: RowsLike, return_std: bool = False) -> Any:
        """Return predictions, with standard deviations on request."""

    def out_of_range(self, X: RowsLike) -> np.ndarray:
        """Return a mask of the rows that are far from all training rows."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Predictions on a regular grid.

    Attributes
    ----------
    axes : tuple of ndarray
        Coordinates along each feature of the grid.
    mean : ndarray of shape (k1, k2, ...), and (t,) for several targets
    std : ndarray of the shape of `mean`, or None
        Standard deviations of new observations.
    extrapolated : ndarray of bool of shape (k1, k2, ...), or None
        Where a point is out of the range of the training rows.
    """

    axes: tuple[np.ndarray, ...]
    mean: np.ndarray
    std: np.ndarray | None = None
    extrapolated: np.ndarray | None = None


def predict_grid(
    estimator: PointPredictor,
    bounds: Mapping[Any, tuple[float, float]] | Sequence[tuple[float, float]],
    step: float | Sequence[float],
    *,
    at: Mapping[Any, Any] | None = None,
    return_std: bool = True,
) -> Grid:
    """Predict on a regular grid of some features, block by block.

    Parameters
    ----------
    bounds : dict of feature to (low, high), or sequence of (low, high)
        Features of the grid, by name, or by number if the training rows had no names; a sequence is
        for all features that are not in `at`, in their order. Both ends are points of the grid, the
        upper one if it is a whole number of steps away.
    step : float or sequence of float
        Step of all features of the grid, or of each, in their units.
    at : dict of feature to value, optional
        Values of all other features, such as a day.
    return_std : bool, default=True
        Whether to return deviations and the mask of extrapolation, which take most of the time.

    Returns
    -------
    Grid
        ``grid.mean[i, j]`` is at ``(grid.axes[0][i], grid.axes[1][j])``.

    Raises
    ------
    ValueError
        If a feature has no value, or two; if bounds or steps are invalid; as in `predict` with
        ``return_std=True``.

    Notes
    -----
    Cost: a prediction of each point, with deviations three, in blocks of 16,384 points. Memory: 17
    bytes for each point and target.
    """
    # The protocol has no attributes of a fit, so that it includes estimators without one.
    fitted: Any = estimator
    check_is_fitted(fitted)
    fixed = dict(at or {})
    names: Any = getattr(fitted, "feature_names_in_", None)
    features = list(range(fitted.n_features_in_)) if names is None else list(map(str, names))
    if not isinstance(bounds, Mapping):
        free_features = [feature for feature in features if feature not in fixed]
        if len(bounds) != len(free_features):
            raise ParameterError(
                "bounds", bounds, f"a pair (low, high) for each of {free_features}"
            )
        bounds = dict(zip(free_features, bounds, strict=True))
    named = [*bounds, *fixed]
    if sorted(map(str, named)) != sorted(map(str, features)):
        form = f"for each of {features} once, in bounds or in at"
        raise ParameterError("bounds", named, form)
    axes = _axes(bounds, step)
    shape = tuple(len(axis) for axis in axes)
    parts = []
    for rows in _blocks(axes, list(bounds), fixed, features, is_named=names is not None):
        if return_std:
            parts.append((*estimator.predict(rows, return_std=True), estimator.out_of_range(rows)))
        else:
            parts.append((estimator.predict(rows),))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Grid(axes, *(column.reshape(shape + column.shape[1:]) for column in columns))


def _axes(
    bounds: Mapping[Any, tuple[float, float]], step: float | Sequence[float]
) -> tuple[np.ndarray, ...]:
    steps = np.broadcast_to(np.asarray(step, dtype=np.float64), (len(bounds),))
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        raise ParameterError("step", step, "positive, one number or one for each feature")
    counts = []
    for (feature, (low, high)), size in zip(bounds.items(), steps, strict=True):
        if not (np.isfinite([low, high]).all() and low <= high):
            raise ParameterError("bounds", (low, high), f"finite and increasing for {feature!r}")
        # A hundredth of a step: (1 - 0) / 0.1 is a little less than 10.
        counts.append(int((high - low) / size + 0.01) + 1)
    # Before the axes take memory.
    if math.prod(counts) > MOST_POINTS:
        form = f"larger: {math.prod(counts):.3g} points are more than {MOST_POINTS:,}"
        raise ParameterError("step", step, form)
    return tuple(
        low + size * np.arange(count)
        for (low, _), size, count in zip(bounds.values(), steps, counts, strict=True)
    )


def _blocks(
    axes: tuple[np.ndarray, ...],
    of_axes: list[Any],
    fixed: Mapping[Any, Any],
    features: list[Any],
    *,
    is_named: bool,
) -> Iterator[Any]:
    """Yield the points of a grid as rows of all features, or as a dict of columns by name."""
    shape = tuple(len(axis) for axis in axes)
    count = int(np.prod(shape))
    for start in range(0, count, GRID_BLOCK_ROWS):
        index = np.unravel_index(np.arange(start, min(start + GRID_BLOCK_ROWS, count)), shape)
        columns = {
            feature: axis[places]
            for feature, axis, places in zip(of_axes, axes, index, strict=True)
        }
        columns |= {feature: np.full(len(index[0]), value) for feature, value in fixed.items()}
        ordered = {feature: columns[feature] for feature in features}
        yield ordered if is_named else np.column_stack(list(ordered.values()))
