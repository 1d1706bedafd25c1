"""Predictions on a regular grid, such as a map, with deviations and a mask of extrapolation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._messages.checks import as_count
from ..._messages.errors import ParameterError
from .. import validation
from ..types import Deviations, RowsLike

GRID_BLOCK_ROWS = 1 << 14
"""Points of a grid that are predicted at once."""

COVARIANCE_ROWS = 1 << 10
"""Points of cells whose covariance is computed at once."""

MOST_POINTS = 100_000_000
"""Most points of a grid; more are taken for a mistake in units."""


@runtime_checkable
class PointPredictor(Protocol):
    """Regressor with deviations, such as a `KernelRegressor`."""

    def predict(self, X: RowsLike, return_std: Deviations = False) -> Any:
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
        Standard deviations of new observations; of means over cells, without noise.
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
    step: float | Sequence[float] | None = None,
    *,
    at: Mapping[Any, Any] | None = None,
    return_std: Deviations = True,
    average: int = 1,
) -> Grid:
    """Predict on a regular grid of some features, block by block.

    Parameters
    ----------
    bounds : dict of feature to (low, high), or sequence of (low, high)
        Features of the grid, by name, or by number if the training rows had no names; a sequence is
        for all features that are not in `at`, in their order. Both ends are points of the grid, the
        upper one if it is a whole number of steps away.
    step : float, sequence of float, or None, default=None
        Step of all features of the grid, or of each, in their units. None: `bounds` has all
        coordinates of each feature, such as arrays of xarray, in place of pairs.
    at : dict of feature to value, optional
        Values of all other features, such as a day.
    return_std : bool or "errors", default=True
        Whether to return deviations, as `predict` does, and the mask of extrapolation, which take
        most of the time.
    average : int, default=1
        More than 1: each point is the center of a cell, one step wide, and gets the mean over so
        many points along each feature of its cell, with the deviation of that mean, without noise
        (block kriging). Deviations need a `GaussianProcess`.

    Returns
    -------
    Grid
        ``grid.mean[i, j]`` is at ``(grid.axes[0][i], grid.axes[1][j])``.

    Raises
    ------
    ValueError
        If a feature has no value, or two; if bounds or steps are invalid; if deviations of means
        are requested and the estimator has no covariances; as in `predict` with
        ``return_std=True``.

    Notes
    -----
    Cost: a prediction of each point, with deviations three, in blocks of 16,384 points; of means,
    of all points in all cells. Memory: 17 bytes for each point and target.
    """
    # The protocol has no attributes of a fit, so that it includes estimators without one.
    fitted: Any = estimator
    check_is_fitted(fitted)
    fixed, names = dict(at or {}), getattr(fitted, "feature_names_in_", None)
    features = list(range(fitted.n_features_in_)) if names is None else list(map(str, names))
    bounds = _named_bounds(bounds, fixed, features)
    axes = _axes(bounds, step) if step is not None else _given_axes(bounds)
    shape = tuple(len(axis) for axis in axes)
    offsets = _offsets(step, len(axes), as_count(average, "average"))
    has_covariance = bool(return_std) and average > 1
    if has_covariance and (
        validation.is_by_errors(return_std) or getattr(estimator, "_calibrates_deviations", True)
    ):
        raise ValueError(
            "the deviation of a mean needs covariances, which a GaussianProcess has; fit one with "
            "return_std=True, or give return_std=False"
        )
    block_rows = COVARIANCE_ROWS if has_covariance else GRID_BLOCK_ROWS
    parts = [
        _of_cells(fitted, rows, len(offsets), return_std=return_std)
        for rows in _blocks(
            axes, offsets, list(bounds), fixed, features, block_rows, is_named=names is not None
        )
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Grid(axes, *(column.reshape(shape + column.shape[1:]) for column in columns))


def _named_bounds(
    bounds: Mapping[Any, Any] | Sequence[Any], fixed: Mapping[Any, Any], features: list[Any]
) -> Mapping[Any, Any]:
    """Return bounds by feature; raise ValueError unless each feature has bounds or a value."""
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
    return bounds


def _of_cells(
    estimator: Any, rows: Any, points: int, *, return_std: Deviations
) -> tuple[np.ndarray, ...]:
    """Return the mean of each cell, its deviation, and whether one of its points is out of range.

    - `points`: number of successive rows in each cell.
    """
    if not return_std:
        values = estimator.predict(rows)
        return (values.reshape(-1, points, *values.shape[1:]).mean(axis=1),)
    out = estimator.out_of_range(rows).reshape(-1, points).any(axis=1)
    if points == 1:
        return (*estimator.predict(rows, return_std=return_std), out)
    values, covariance = estimator.predict(rows, return_cov=True, include_noise=False)
    cells = covariance.reshape(len(out), points, len(out), points, *covariance.shape[2:])
    # Only pairs of points in the same cell.
    variance = np.einsum("cpcq...->c...", cells) / points**2
    means = values.reshape(-1, points, *values.shape[1:]).mean(axis=1)
    return means, np.sqrt(variance.clip(min=0.0)), out


def _offsets(step: float | Sequence[float] | None, d: int, average: int) -> np.ndarray:
    """Return the points of a cell as differences from its center, of shape (average^d, d)."""
    if average > 1 and step is None:
        raise ParameterError("step", step, "given where average is more than 1")
    along = (np.arange(average) + 0.5) / average - 0.5
    points = np.stack(np.meshgrid(*[along] * d, indexing="ij"), axis=-1).reshape(-1, d)
    # One point is the center itself, without a step.
    return points * (0.0 if step is None else np.asarray(step, dtype=np.float64))


def _given_axes(bounds: Mapping[Any, Any]) -> tuple[np.ndarray, ...]:
    """Return the coordinates of each feature as they are given."""
    axes = tuple(np.asarray(axis, dtype=np.float64) for axis in bounds.values())
    for feature, axis in zip(bounds, axes, strict=True):
        if axis.ndim != 1 or not (len(axis) and np.isfinite(axis).all()):
            form = f"finite coordinates of {feature!r} in one dimension where step is None"
            raise ParameterError("bounds", axis, form)
    _check_count([len(axis) for axis in axes])
    return axes


def _check_count(counts: Sequence[int]) -> None:
    # Before the points take memory.
    if math.prod(counts) > MOST_POINTS:
        form = f"larger: {math.prod(counts):.3g} points are more than {MOST_POINTS:,}"
        raise ParameterError("step", counts, form)


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
    _check_count(counts)
    return tuple(
        low + size * np.arange(count)
        for (low, _), size, count in zip(bounds.values(), steps, counts, strict=True)
    )


def _blocks(
    axes: tuple[np.ndarray, ...],
    offsets: np.ndarray,
    of_axes: list[Any],
    fixed: Mapping[Any, Any],
    features: list[Any],
    block_rows: int,
    *,
    is_named: bool,
) -> Iterator[Any]:
    """Yield the points of whole cells as rows of all features, or as a dict of columns by name."""
    shape = tuple(len(axis) for axis in axes)
    count, cells = int(np.prod(shape)), max(1, block_rows // len(offsets))
    for start in range(0, count, cells):
        index = np.unravel_index(np.arange(start, min(start + cells, count)), shape)
        columns = {
            feature: (axis[places][:, None] + shift).reshape(-1)
            for feature, axis, places, shift in zip(of_axes, axes, index, offsets.T, strict=True)
        }
        size = len(index[0]) * len(offsets)
        columns |= {feature: np.full(size, value) for feature, value in fixed.items()}
        ordered = {feature: columns[feature] for feature in features}
        yield ordered if is_named else np.column_stack(list(ordered.values()))
