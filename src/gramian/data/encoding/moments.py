"""Mean, scale and median of columns with gaps, in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import Float

# The same algorithm as in `Standardizer.fit`, for the same moments of numbers without gaps.
from ..maps.standardizer import _Moments


@dataclass(frozen=True, eq=False)
class Summary:
    """Moments of one column of measured values after the pass.

    - `value_count`, `gaps`: number of rows with a value, and without a value.
    - `mean`, `scale`: mean and scale of all rows, with gaps filled; the scale is 1 if the column
      does not vary.
    - `constant`: whether the values do not vary beyond rounding.
    - `fill`: the median of the sample, or of all rows if they are the sample; the mean if the
      sample has no value.
    - `sample`, ndarray of shape (s,): values of rows drawn at random, without gaps.
    """

    value_count: int
    gaps: int
    mean: float
    scale: float
    constant: bool
    fill: float
    sample: np.ndarray


class Moments(_Moments):
    """Number, mean and centered sum of squares of the entries of each column that are not NaN.

    Without NaN the result is the same as in `Standardizer.fit`, to the last bit.
    """

    @property
    def value_counts(self) -> np.ndarray:
        """Number of entries of each column that are not NaN."""
        return np.broadcast_to(np.asarray(self.n, dtype=np.float64), len(self.mean))

    def add_with_gaps(self, block: Float[np.ndarray, "b d"]) -> None:
        """Merge a block of finite numbers and NaN."""
        fresh = self.value_counts == 0
        if bool(fresh.any()):
            # A column whose first values are missing gets its origin with its first number.
            self.origin = np.where(fresh, _first(block), self.origin)
        for _, strip in self._strips(block):
            self._merge_with_gaps(strip)

    def _merge_with_gaps(self, x: np.ndarray) -> None:
        is_present = ~np.isnan(x)
        # As long as no gap came, n is one number for all columns, and the steps are the ones
        # without gaps.
        if not isinstance(self.n, np.ndarray) and bool(is_present.all()):
            self._merge(x, None)
            return
        # 1. `_merge` works in place: columns without a number in this strip are restored below.
        mean, squares = self.mean.copy(), self.squares.copy()
        weights = is_present.astype(np.float64)
        self.n = self.value_counts.copy()
        # 2. A gap is a row of weight 0, whose number does not matter.
        x[~is_present] = 0.0
        self._merge(x, weights)
        # 3. Columns without a number have met 0 / 0.
        has_numbers = is_present.any(axis=1)
        self.mean = np.where(has_numbers, self.mean, mean)
        self.squares = np.where(has_numbers, self.squares, squares)

    def moments_with_fill(self, fill: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and scale of n rows, with `fill` in rows without a value."""
        gaps = n - self.value_counts
        # All gaps get the same value: they are merged as one group of rows with variance 0.
        delta = np.where(gaps > 0, fill - self.origin - self.mean, 0.0)
        mean = self.origin + (self.mean + delta * (gaps / n))
        with np.errstate(over="ignore"):  # see `_merge`
            squares = self.squares + delta**2 * (self.value_counts * gaps / n)
        return mean, np.sqrt(squares / n)


def _first(block: np.ndarray) -> np.ndarray:
    """Return the first number of each column; 0 for a column without numbers."""
    is_present = ~np.isnan(block)
    first = block[is_present.argmax(axis=0), np.arange(block.shape[1])]
    return np.where(is_present.any(axis=0), first, 0.0)


def summaries(moments: Moments, sample: np.ndarray, n: int, eps: np.ndarray) -> list[Summary]:
    """Return the summary of each column.

    - `sample`, ndarray of shape (s, d): NaN for gaps.
    - `n`: rows, with and without values.
    - `eps`, ndarray of shape (d,): rounding error of the numbers: a column that varies less is
      constant.
    """
    seen_counts = moments.value_counts.astype(np.int64).tolist()
    middle = (moments.origin + moments.mean).tolist()
    # Only columns with gaps need a median, and a search for NaN.
    columns = [
        values[~np.isnan(values)] if count < n else values
        for values, count in zip(sample.T, seen_counts, strict=True)
    ]
    fill = [
        float(np.median(values)) if len(values) else middle[j] for j, values in enumerate(columns)
    ]
    mean, scale = moments.moments_with_fill(np.array(fill), n)
    # The same rule as in `Standardizer.fit`: a column that varies less than rounding is constant.
    constant = scale <= eps * np.abs(mean)
    scale = np.where(constant, 1.0, scale)
    moment_lists = (mean.tolist(), scale.tolist(), constant.tolist(), fill, columns)
    return [
        Summary(count, n - count, *moments_of_column)
        for count, *moments_of_column in zip(seen_counts, *moment_lists, strict=True)
    ]
