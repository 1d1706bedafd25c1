"""Coverage and sizes of prediction intervals and sets, as means over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from ..data import BlockReduction
from .forms import Form
from .ranks import MOST_BINS, Ranks
from .reductions import Means, RowMeans


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

    Attributes
    ----------
    max_bins : int, default=2**18
        Bins of widths.
    """

    max_bins: int = MOST_BINS

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> tuple[Means, Ranks]:
        """Return the result of one block."""
        y, (low, high) = rowwise[0].double().reshape(-1), block.double().unbind(dim=1)
        ranks = Ranks.of(high - low, (low <= y) & (y <= high), self.max_bins)
        return INTERVAL_MEANS(start, block, y), ranks

    def merge(self, a: tuple[Means, Ranks], b: tuple[Means, Ranks]) -> tuple[Means, Ranks]:
        """Return the result of both."""
        return INTERVAL_MEANS.merge(a[0], b[0]), a[1].merge(b[1], self.max_bins)


INTERVAL_MEANS, SET_MEANS = RowMeans((IntervalCoverage(),)), RowMeans((SetCoverage(),))
