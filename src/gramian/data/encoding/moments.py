"""Mean, scale and median of columns with gaps, in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

# The same algorithm as in `Standardizer.fit`, for the same moments of numbers without gaps.
from ..maps.standardizer import _STRIP_NUMBERS, _Moments


@dataclass(frozen=True, eq=False)
class Summary:
    """Moments of one column of measured values after the pass.

    Attributes
    ----------
    value_count, gaps : int
        Numbers of rows with and without a value.
    mean, scale : float
        Mean and scale of all rows, with gaps filled; the scale is 1 if the column does not vary.
    constant : bool
        Whether the values do not vary beyond rounding.
    fill : float
        The median of the sample, or of all rows if they are the sample; the mean if the sample has
        no value.
    sample : ndarray of shape (s,)
        Values of rows drawn at random, without gaps.
    """

    value_count: int
    gaps: int
    mean: float
    scale: float
    constant: bool
    fill: float
    sample: np.ndarray


class Moments(_Moments):
    """Number, mean and centered sum of squares of each column, NaN left out.

    Without NaN the result is the same as in `Standardizer.fit`, to the last bit.
    """

    @property
    def value_counts(self) -> Tensor:
        """Numbers of each column that are not NaN."""
        return torch.as_tensor(self.n, dtype=torch.float64).expand(len(self.mean))

    def add_with_gaps(self, block: Float[Tensor, "b d"]) -> None:
        """Merge a block of finite numbers and NaN."""
        fresh = self.value_counts == 0
        if bool(fresh.any()):
            # A column whose first values are missing gets its origin with its first number.
            self.origin = torch.where(fresh, _first(block), self.origin)
        for strip in block.split(max(1, _STRIP_NUMBERS // block.shape[1])):
            self._merge_with_gaps(strip - self.origin)

    def _merge_with_gaps(self, x: Tensor) -> None:
        is_present = ~x.isnan()
        # As long as no gap came, n is one number for all columns, and the steps are the ones
        # without gaps.
        if not isinstance(self.n, Tensor) and bool(is_present.all()):
            self._merge(x, None)
            return
        # 1. `_merge` works in place: columns without a number in this strip are restored below.
        mean, squares = self.mean.clone(), self.squares.clone()
        weights = is_present.double()
        self.n = self.value_counts.clone()
        # 2. A gap is a row of weight 0, whose number does not matter.
        self._merge(x.nan_to_num(nan=0.0), weights)
        # 3. Columns without a number have met 0 / 0.
        has_numbers = is_present.any(dim=0)
        self.mean = torch.where(has_numbers, self.mean, mean)
        self.squares = torch.where(has_numbers, self.squares, squares)

    def moments_with_fill(self, fill: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return mean and scale of n rows, with `fill` in rows without a value."""
        gaps = n - self.value_counts
        # All gaps get the same value: they are merged as one group of rows with variance 0.
        delta = torch.where(gaps > 0, fill - self.origin - self.mean, 0.0)
        mean = self.origin + (self.mean + delta * (gaps / n))
        squares = self.squares + delta**2 * (self.value_counts * gaps / n)
        return mean, torch.sqrt(squares / n)


def _first(block: Tensor) -> Tensor:
    """Return the first number of each column; 0 for a column without numbers."""
    is_present = ~block.isnan()
    first = block.gather(0, is_present.int().argmax(dim=0, keepdim=True))[0].double()
    return torch.where(is_present.any(dim=0), first, 0.0)


def summaries(moments: Moments, sample: np.ndarray, n: int, eps: Tensor) -> list[Summary]:
    """Return the summary of each column.

    Parameters
    ----------
    moments : Moments of d columns
    sample : ndarray of shape (s, d)
        NaN for gaps.
    n : int
        Rows, with and without values.
    eps : Tensor of shape (d,)
        Rounding error of the numbers: a column that varies less is constant.
    """
    seen_counts = moments.value_counts.long().tolist()
    middle = (moments.origin + moments.mean).tolist()
    # Only columns with gaps need a median, and a search for NaN.
    columns = [_values(sample[:, j], gaps=count < n) for j, count in enumerate(seen_counts)]
    fill = [
        float(np.median(values)) if len(values) else middle[j] for j, values in enumerate(columns)
    ]
    mean, scale = moments.moments_with_fill(torch.tensor(fill, dtype=torch.float64), n)
    # The same rule as in `Standardizer.fit`: a column that varies less than rounding is constant.
    constant = scale <= eps * mean.abs()
    scale = torch.where(constant, 1.0, scale)
    moment_lists = (mean.tolist(), scale.tolist(), constant.tolist(), fill, columns)
    return [
        Summary(count, n - count, *moments_of_column)
        for count, *moments_of_column in zip(seen_counts, *moment_lists, strict=True)
    ]


def _values(column: np.ndarray, gaps: bool) -> np.ndarray:
    return column[~np.isnan(column)] if gaps else column
