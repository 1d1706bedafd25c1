"""Reliability: observed frequencies of predicted probabilities, in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROBABILITY_BINS = 15
"""Number of bins of equal width, for probabilities from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """Mean predicted probability and observed share of each bin.

    - `probability`, `share`: of shape (b,); means over the rows of each bin that has rows.
    - `rows`: of shape (b,); number of the rows, or sum of their weights.
    """

    probability: np.ndarray
    share: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(
        cls,
        probability: np.ndarray,
        is_true: np.ndarray,
        bins: int = PROBABILITY_BINS,
        weights: np.ndarray | None = None,
    ) -> Reliability:
        """Bin rows by their probability; `is_true` is whether the class is right."""
        sums = bin_sums(probability, is_true, bins, weights)
        return cls.of_sums(sums, np.int64 if weights is None else np.float64)

    @classmethod
    def of_sums(cls, sums: np.ndarray, dtype: Any = np.int64) -> Reliability:
        """Return the curve of the bins that have rows.

        - `sums`: of shape (3, b); result of `bin_sums`.
        - `dtype`: type of `rows`.
        """
        rows, probability, true = sums[:, sums[0] > 0]
        counts = np.rint(rows) if dtype == np.int64 else rows
        return cls(probability / rows, true / rows, counts.astype(dtype))


def bin_sums(
    probability: np.ndarray, is_true: np.ndarray, bins: int, weights: np.ndarray | None = None
) -> NDArray[np.float64]:
    """Return three sums for each bin, of rows, probabilities and true rows, of shape (3, b)."""
    # A probability of 1 belongs to the last bin.
    place = np.minimum((probability * bins).astype(int), bins - 1)
    w = np.ones(len(place)) if weights is None else weights
    return np.stack(
        [np.bincount(place, w * values, bins) for values in (1.0, probability, is_true)]
    )


def shown_class(classes: Sequence[Any]) -> str:
    """Return the class of a reliability diagram: the second of two, or the predicted class."""
    return repr(classes[1]) if len(classes) == 2 else "the class predicted"


def shown_probabilities(y: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of the class of a diagram, and a mask of rows of this class.

    - `y`: of shape (n,); indices of the classes.
    - `chances`: of shape (n, k).
    """
    if chances.shape[1] == 2:
        return chances[:, 1], y == 1
    return chances.max(axis=1), chances.argmax(axis=1) == y
