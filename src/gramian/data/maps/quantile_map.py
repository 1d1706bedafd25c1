"""Map of features to a normal distribution by their quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy  # which imports scipy.special where it is used

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..rows.base import RowSource, slices
from ..rows.transform import Blockwise
from .quantiles import FARTHEST_SCORE, normal_scores, quantiles_of

MOST_ROWS = 20_000
"""Rows that quantiles are taken of: a share between two of them is known to half a percent."""

LEAST_ROWS = 2_000
"""Rows that they are taken of where there are many features."""

MOST_NUMBERS = 64 * MOST_ROWS
"""Most numbers that are sorted, for more rows than `MOST_ROWS`: about a second."""

STRIP_NUMBERS = 1 << 15
"""Numbers that are mapped at a time."""

LEAST_VALUES = 3
"""Features of fewer distinct values keep their numbers: they have no shape to be made normal."""

TENSOR_NAMES = ("columns", "constant", "quantiles", "mean", "scale")


@dataclass(frozen=True, eq=False)
class QuantileMap:
    """Map of features to normal scores by their quantiles, with mean 0 and deviation 1.

    Features of two values are not changed; a feature of a single value becomes zero.

    Attributes
    ----------
    features : int
        Number of features d.
    columns : ndarray of shape (p,)
        Indices of the features that are mapped, increasing.
    constant : ndarray of shape (c,)
        Indices of the constant features, which become zero, whatever their later values.
    quantiles : ndarray of shape (p, q)
        Quantiles of each mapped feature in float64, in increasing order.
    mean, scale : ndarray of shape (p,)
        Mean and scale of the scores in training, in float64.
    """

    features: int
    columns: Int[Array, " p"]
    constant: Int[Array, " c"]
    quantiles: Float[Array, "p q"]
    mean: Float[Array, " p"]
    scale: Float[Array, " p"]

    @classmethod
    def fit(cls, rows: RowSource | Array, *, rng: RandomStream) -> QuantileMap:
        """Learn the quantiles of up to 20,000 rows, fewer for more than 64 features.

        Parameters
        ----------
        rows : RowSource or Array of shape (n, d)
            Dense and finite rows. Each row counts once, whatever its weight.
        rng : RandomStream
            Draws the rows if there are more.

        Raises
        ------
        ValueError
            If the rows are sparse.

        Notes
        -----
        Cost: some microseconds for each number of the sample, and for a sequential source one pass
        over the rows.
        """
        if not isinstance(rows, RowSource):
            sample = rows if len(rows) <= MOST_ROWS else rows[_draw_sample(len(rows), rng)]
        else:
            _check_dense(rows)
            sample = rows.take(_draw_sample(len(rows), rng))
        return cls._of(xp.to_float64(xp.to_host(sample)))

    @classmethod
    def _of(cls, sample: np.ndarray) -> QuantileMap:
        columns, constant, moments = [], [], []
        quantiles: list[np.ndarray] = []
        # Beyond 64 features every step-th row of the sample is sorted: the time is as for 64
        # features until `LEAST_ROWS` are left.
        step = -(-len(sample) // max(LEAST_ROWS, MOST_NUMBERS // max(sample.shape[1], 1)))
        # One pass finds features of up to two values, without sorting them.
        low, high = sample.min(axis=0), sample.max(axis=0)
        inner = ((sample > low) & (sample < high)).any(axis=0)
        for number, values in enumerate(sample[::step].T):
            # A feature may vary in the whole sample and not in the rows that are sorted: it then
            # has no quantiles to be mapped by, and passes.
            if not inner[number] or len(np.unique(values)) < LEAST_VALUES:
                constant += [number] if low[number] == high[number] else []
                continue
            feature_quantiles = quantiles_of(values)
            scores = normal_scores(values, feature_quantiles)
            columns.append(number)
            quantiles.append(feature_quantiles)
            # Ties and the limit at 3 move scores from mean 0 and deviation 1: they are
            # standardised.
            moments.append((scores.mean(), scores.std()))
        # The shape also fits a map without any mapped feature.
        mean, scale = np.ascontiguousarray(np.array(moments, np.float64).reshape(-1, 2).T)
        stacked = np.array(quantiles) if quantiles else np.empty((0, 0))
        return cls(
            sample.shape[1],
            np.array(columns, np.int64),
            np.array(constant, np.int64),
            stacked,
            mean,
            scale,
        )

    def apply(self, rows: RowSource) -> RowSource:
        """Map rows as they are read.

        Parameters
        ----------
        rows : RowSource of shape (n, d)
            Dense rows.

        Returns
        -------
        RowSource of shape (n, d)
            Mapped rows of the same type.
        """
        return rows.map_rows(partial(QuantileRows, map_=self))

    @cached_property
    def _mapped_index(self) -> slice | Int[Array, " p"]:
        """The mapped features as an index; a slice if they are all, which copies nothing."""
        return slice(None) if len(self.columns) == self.features else self.columns

    def scores(self, x: Float[Array, "b d"]) -> Float[Array, "b d"]:
        """Map an array of rows to normal scores, with the same dtype and device."""
        # A copy in any case: columns are replaced in place, and the block may be the user's array.
        out = np.array(xp.to_host(x), np.float64)
        # Strips stay in the cache over all steps.
        size = max(1, STRIP_NUMBERS // self.features)
        for part in slices(len(out), size) if len(self.columns) else ():
            scores = normal_scores(out[part, self._mapped_index], self.quantiles)
            out[part, self._mapped_index] = (scores - self.mean) / self.scale
        out[:, self.constant] = 0.0
        return xp.cast_like(out, x)

    def slopes(self, x: Float[Array, "b d"]) -> Float[Array, "b d"]:
        """Return the derivative of the map at numbers, in float64.

        The derivative is the slope of the interval between two quantiles; at a quantile, of the
        interval above. The derivative is zero beyond the outermost quantiles, where scores are
        constant, and for constant features; 1 for features that are not changed.
        """
        out = np.ones(x.shape)
        values = xp.to_float64(xp.to_host(x))
        for j, number in enumerate(self.columns.tolist()):
            feature_slopes = _slopes(values[:, number], self.quantiles[j])
            out[:, number] = feature_slopes / self.scale[j]
        out[:, self.constant] = 0.0
        return out

    def to_dict(self) -> dict[str, int]:
        """Return the fields that are not tensors, for JSON."""
        return {"features": self.features}

    def tensors(self) -> dict[str, Array]:
        """Return the fields that are too large for JSON."""
        return {name: getattr(self, name) for name in TENSOR_NAMES}

    @classmethod
    def from_parts(cls, fields: Any, tensors: Mapping[str, Array]) -> QuantileMap:
        """Rebuild from the results of `to_dict` and `tensors`.

        Raises
        ------
        ValueError
            If they are damaged or do not fit together.
        """
        d = fields.get("features") if isinstance(fields, dict) else None
        if type(d) is not int or d < 1 or len(fields) != 1 or set(tensors) != set(TENSOR_NAMES):
            raise ValueError("the quantile map lacks a part, or has an unknown one")
        quantile_map = cls(d, **{name: tensors[name] for name in TENSOR_NAMES})
        for name in ("columns", "constant"):
            _check_numbers(name, getattr(quantile_map, name), d)
        p = len(quantile_map.columns)
        # Each of the two lists increases, but a feature may be in both.
        numbers = np.concatenate([quantile_map.columns, quantile_map.constant])
        if len(numbers) != len(np.unique(numbers)):
            raise ValueError("the quantile map has a feature twice")
        for name, shape in (("quantiles", (p, -1)), ("mean", (p,)), ("scale", (p,))):
            _check_values(name, getattr(quantile_map, name), shape)
        if p and quantile_map.quantiles.shape[1] < LEAST_VALUES:
            raise ValueError("the quantile map has too few quantiles")
        if bool((np.diff(quantile_map.quantiles) < 0).any()) or not bool(
            (quantile_map.scale > 0).all()
        ):
            raise ValueError("quantiles must not decrease, and scales must be positive")
        return quantile_map


class QuantileRows(Blockwise):
    """Rows mapped by a `QuantileMap` as they are read.

    - `rows`, RowSource of shape (n, d).
    """

    def __init__(self, rows: RowSource, map_: QuantileMap) -> None:
        super().__init__(rows)
        _check_dense(rows)
        if rows.shape[1] != map_.features:
            raise ValueError(
                f"the rows have {rows.shape[1]} features, but the quantile map takes "
                f"{map_.features}"
            )
        self._map = map_

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b d"]:
        return self._map.scores(block)


def _draw_sample(n: int, rng: RandomStream) -> Array:
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(rng.sample(n, MOST_ROWS))


def _slopes(x: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return the derivative of `normal_scores`."""
    # 1. The interval of each number; `right`, so that a quantile belongs to the interval above.
    at = np.searchsorted(quantiles, x, side="right") - 1
    last = len(quantiles) - 1
    inside = (at >= 0) & (at < last)
    # 2. Its share of probability, by interpolation. Numbers outside get a harmless interval, and
    # the slope 0 in the end.
    at = np.clip(at, 0, last - 1)
    width = np.where(inside, quantiles[at + 1] - quantiles[at], 1.0)
    share = np.clip((at + (x - quantiles[at]) / width) / last, 0.0, 1.0)
    # 3. The slope of the normal quantile function at this share is 1 / density, by the chain rule.
    scores = scipy.special.ndtri(share)
    inside &= np.abs(scores) < FARTHEST_SCORE
    density = np.exp(-np.square(np.where(inside, scores, 0.0)) / 2) / math.sqrt(2 * math.pi)
    # 4. The slope between two quantiles closer than the range of numbers allows overflows, and is
    # taken as 0: no slope is known.
    with np.errstate(over="ignore"):
        slope = np.where(inside, 1.0 / (last * width * density), 0.0)
    return np.where(np.isfinite(slope), slope, 0.0)


def _check_dense(rows: RowSource) -> None:
    if rows.sparse:
        raise ValueError(
            "quantiles map zero to another number, which would fill the zeros of sparse rows; set "
            "standardize=True or False, or pass dense rows (x.toarray())"
        )


def _check_numbers(name: str, numbers: Array, d: int) -> None:
    if numbers.dtype != xp.int64 or numbers.ndim != 1:
        raise ValueError(f"{name} of the quantile map must be whole numbers")
    if bool(((numbers < 0) | (numbers >= d)).any() or (np.diff(numbers) <= 0).any()):
        raise ValueError(f"{name} of the quantile map must increase, from 0 to below {d}")


def _check_values(name: str, values: Array, shape: tuple[int, ...]) -> None:
    same = len(shape) == values.ndim and values.shape[0] == shape[0]
    if values.dtype != xp.float64 or not same:
        raise ValueError(f"{name} of the quantile map has shape {tuple(values.shape)}")
    if not bool(np.isfinite(values).all()):
        raise ValueError(f"{name} of the quantile map holds numbers that are not finite")
