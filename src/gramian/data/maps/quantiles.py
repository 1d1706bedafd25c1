"""Numbers made normal by their quantiles."""

from __future__ import annotations

import functools

import numpy as np
import scipy  # which imports scipy.special where it is used

from ..._arrays.elementwise import load_compiled

MOST_QUANTILES = 1000
FARTHEST_SCORE = 3.0
"""Normal scores end here: beyond the outermost quantiles nothing is known."""


def quantiles_of(values: np.ndarray) -> np.ndarray:
    """Return up to 1,000 quantiles of numbers, from the least to the largest.

    They equal the quantiles of `numpy.quantile` to the last bit. NumPy selects instead of sorting,
    which takes twenty times as long for numbers that are mostly equal, such as pixels.
    """
    levels = np.linspace(0, 1, min(MOST_QUANTILES, len(values)))
    # Sorting once, and interpolating as `numpy.quantile` does.
    ordered, at = np.sort(values), levels * (len(values) - 1)
    below = at.astype(np.intp)
    above, share = np.minimum(below + 1, len(values) - 1), at - below
    low, high = ordered[below], ordered[above]
    gap = high - low
    # From the nearer end, as NumPy computes it: this keeps its last bit.
    quantile_values = np.where(share < 0.5, low + gap * share, high - gap * (1 - share))
    # Interpolation may step back by a rounding error.
    return np.maximum.accumulate(quantile_values)


def normal_scores(x: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return the normal scores of numbers, between -3 and 3.

    - `x`, ndarray of shape (b,) or (b, p): numbers of one feature, or of p features.
    - `quantiles`, ndarray of shape (q,) or (p, q): quantiles in increasing order; the score of a
      repeated quantile is the middle of its scores.
    """
    table = np.ascontiguousarray(np.atleast_2d(quantiles), np.float64)
    numbers = np.ascontiguousarray(x, np.float64).reshape(-1, len(table))
    levels, native = _levels(table.shape[1]), load_compiled()
    if native is None:
        shares = _interpolate_shares(numbers, table, levels)
    else:
        shares = np.empty_like(numbers)
        native.quantile_shares(numbers, table, levels, shares)
    scores: np.ndarray = scipy.special.ndtri(shares.reshape(np.shape(x)))
    return np.minimum(np.maximum(scores, -FARTHEST_SCORE, out=scores), FARTHEST_SCORE, out=scores)


@functools.cache
def _levels(count: int) -> np.ndarray:
    """Return the levels of quantiles, of shape (count,)."""
    return np.linspace(0, 1, count) if count > 1 else np.array([0.5])


def _interpolate_shares(x: np.ndarray, quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the share of each feature below each number, of shape (b, p).

    The compiled function computes the same to the last bit.
    """
    shares = np.empty_like(x)
    for j, feature_quantiles in enumerate(quantiles):
        # At equal quantiles `interp` takes the last level from below, and the first one from above,
        # by the mirrored numbers: their mean is the middle of the step.
        above = np.interp(x[:, j], feature_quantiles, levels)
        below = np.interp(-x[:, j], -feature_quantiles[::-1], 1 - levels[::-1])
        shares[:, j] = (above + (1 - below)) / 2
    return shares
