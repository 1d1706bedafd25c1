"""Coverage and sizes of intervals and sets, and errors of quantiles, as means over rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import TextWarning
from ..conformal import ConformalPredictor
from ..data import (
    BlockReduction,
    RowNumbers,
    RowSource,
    as_columns,
    default_block_size,
    subset,
)
from ..losses import Quantile
from ..model import Model
from ..model.mapped_predictions import map_outputs, map_predictions
from .forms import Form, QuantileErrors
from .ranks import ALL_BINS, MOST_BINS, Ranks
from .reductions import Means, RowMeans

REPORTED_LEVEL = 0.9
"""Level of the coverage that `gramian evaluate` reports."""

ROUNDING_STEPS = 1 << 22
"""Steps of float64 numbers, 1e-9 of the width, by which intervals of one width may differ."""


class IntervalCoverage(Form):
    """Coverage and mean width of intervals, from their ends (b, 2)."""

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        low, high = output.T
        return (low <= y[:, 0]) & (y[:, 0] <= high), high - low


class SetCoverage(Form):
    """Coverage and mean size of sets of classes, from a matrix (b, k): 1 for classes in the set.

    A true class of -1, a label that the model does not know, is never covered.
    """

    def terms(self, y: np.ndarray, output: np.ndarray) -> Sequence[np.ndarray]:
        # An unknown label, -1, cannot index: it reads class 0, and the factor makes it uncovered.
        is_class, sizes = y >= 0, output.sum(axis=1)
        inside = np.take_along_axis(output, y.clip(min=0).astype(int), axis=1)
        return (inside * is_class)[:, 0], sizes


@dataclass(frozen=True)
class Covering(BlockReduction[tuple[Means, Ranks]]):
    """Reduction of intervals and true values to `IntervalCoverage`, and to ranks of the widths.

    Rows inside their interval are marked in the ranks.

    - `max_bins`: bins of widths.
    """

    max_bins: int = MOST_BINS

    def __call__(self, start: int, block: Array, *rowwise: Any) -> tuple[Means, Ranks]:
        """Return the result of one block."""
        y, (low, high) = xp.to_float64(rowwise[0]).reshape(-1), xp.to_float64(block).T
        ranks = Ranks.of(high - low, (low <= y) & (y <= high), self.max_bins)
        return INTERVAL_MEANS(start, block, y), ranks

    def merge(self, a: tuple[Means, Ranks], b: tuple[Means, Ranks]) -> tuple[Means, Ranks]:
        """Return the joint result of two blocks."""
        return INTERVAL_MEANS.merge(a[0], b[0]), a[1].merge(b[1], self.max_bins)


INTERVAL_MEANS, SET_MEANS = RowMeans((IntervalCoverage(),)), RowMeans((SetCoverage(),))


def conformal_of(model: Model) -> ConformalPredictor:
    """Return the calibration of a model; `check_level` has refused models without one."""
    assert model.conformal is not None  # checked by `check_level`
    return model.conformal


def warn_of_shortfalls(conformal: ConformalPredictor, level: float, rows: RowSource) -> None:
    """Warn if there are too few scores, of all rows or of a group, for a level."""
    for shortfall in conformal.shortfalls(level, rows):
        warnings.warn(TextWarning("{}", shortfall), stacklevel=2)


def coverage(
    model: Model, rows: RowSource, y: RowNumbers, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the coverage and mean size of intervals or sets at level 0.9.

    Intervals of different widths also get the coverage by thirds of their widths, see
    `Ranks.shares`. A cluster sends sums and the binned widths of `Ranks`: with more distinct widths
    than bins, the thirds may be off by the rows of two bins.
    """
    conformal = model.conformal
    # Infinite intervals contain every target: their coverage is no measurement.
    if conformal is None or conformal.least_level() < REPORTED_LEVEL:
        return {}
    if model.outputs == 1 or model.classes is not None:
        warn_of_shortfalls(conformal, REPORTED_LEVEL, rows)
    measured = _Measured(model, conformal, settings)
    if model.classes is not None:
        report = _entries(measured.sets(rows, y), "coverage", "classes")
        return {f"sets_of_{REPORTED_LEVEL:g}": {**report, **measured.groups(rows, y)}}
    if model.outputs > 1:
        return {}
    means, ranks = measured.intervals(rows, y)
    report = _entries(means, "coverage", "width")
    # Equal widths have no thirds, and fewer than three rows have fewer thirds than names.
    if int(ranks.bins[-1] - ranks.bins[0]) << ranks.dropped > ROUNDING_STEPS:
        shares = zip(("narrow", "middle", "wide"), ranks.shares(3), strict=False)
        report |= {f"coverage_of_{name}": share for name, share in shares}
    return {f"intervals_of_{REPORTED_LEVEL:g}": {**report, **measured.groups(rows, y)}}


def _entries(means: Means, *names: str) -> dict[str, float]:
    return dict(zip(names, means.states[0].tolist(), strict=False))


@dataclass(frozen=True, eq=False)
class _Measured:
    """Measurements of the intervals or sets of a model on rows and their targets."""

    model: Model
    conformal: ConformalPredictor
    settings: Mapping[str, Any]

    def groups(self, rows: RowSource, y: RowNumbers) -> dict[str, dict[str, float]]:
        """Return the coverage of each group of local rows, if intervals are by groups."""
        groups = self.conformal.groups
        if groups is None or not as_columns(y).fits():
            return {}
        shares, codes = {}, groups.codes(rows)
        for code, label in enumerate(groups.labels):
            index = xp.flatnonzero(codes == code)
            if len(index):
                part = subset(rows, index), y[index]
                is_regression = self.model.classes is None
                means = self.intervals(*part)[0] if is_regression else self.sets(*part)
                shares[label] = _entries(means, "coverage")["coverage"]
        return {"coverage_of_groups": shares}

    def intervals(self, rows: RowSource, y: RowNumbers) -> tuple[Means, Ranks]:
        """Return the means of intervals, and the ranks of their widths."""
        # In memory, all widths have bins of their own.
        covering = Covering(ALL_BINS if as_columns(y).fits() else MOST_BINS)
        return self._outputs(rows, _ends, 2).fold(covering, y, size=default_block_size(rows))

    def sets(self, rows: RowSource, y: RowNumbers) -> Means:
        """Return the means of prediction sets."""
        classes = np.asarray(self.model.classes)
        table = xp.arange(len(classes), dtype=xp.float64)[:, None]
        truth = as_columns(y).look_up(classes, table, unknown=-1.0)
        sets = self._outputs(rows, _in_sets, len(classes))
        return sets.fold(SET_MEANS, truth, size=default_block_size(rows))

    def _outputs(self, rows: RowSource, function: Any, count: int) -> RowSource:
        more = {"conformal": self.conformal, "settings": self.settings}
        return map_outputs(rows, self.model, function, count, **more)


def _ends(
    rows: RowSource, model: Model, conformal: ConformalPredictor, settings: Mapping[str, Any]
) -> Float[Array, "b 2"]:
    return conformal.intervals(model, rows, REPORTED_LEVEL, **settings)[:, 0]


def _in_sets(
    rows: RowSource, model: Model, conformal: ConformalPredictor, settings: Mapping[str, Any]
) -> Float[Array, "b k"]:
    """Return the membership of k classes in the sets, 1 or 0."""
    return xp.to_float64(conformal.sets(model, rows, REPORTED_LEVEL, **settings))


LEVELS_KEY = "levels"
"""Key of the quantile levels in `Model.info`."""


def levels_of(loss: object) -> list[float] | None:
    """Return the quantile levels of a loss; None if it is not a quantile loss."""
    if not isinstance(loss, Quantile):
        return [0.5] if loss == "quantile" else None
    levels = loss.levels
    return [float(levels)] if isinstance(levels, int | float) else list(levels)


def quantile_errors(
    model: Model,
    rows: RowSource,
    y: RowNumbers,
    levels: Sequence[float],
    settings: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """Return an entry for each level: its mean pinball loss, and the share of targets below it.

    Cost: one pass, of which means are kept.
    """
    reduction = RowMeans((QuantileErrors(tuple(levels)),))
    values = map_predictions(rows, model, **settings)
    means = values.fold(reduction, y, size=default_block_size(rows))
    return {
        f"quantile_{level:g}": {"pinball": loss, "below": share}
        for level, loss, share in zip(levels, *means.states[0].tolist(), strict=True)
    }
