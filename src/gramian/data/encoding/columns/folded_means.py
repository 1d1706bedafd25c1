"""Means of the targets in each level, smoothed, with and without each fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class FoldedMeans:
    """Smoothed means of L levels of a category, and one row for unknown levels.

    Attributes
    ----------
    means : ndarray of shape (L + 1, t)
        Means of all training rows.
    without : ndarray of shape (L + 1, 5, t)
        Means of the training rows outside a fold, for the rows in the fold.
    """

    means: np.ndarray
    without: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, sums: np.ndarray, smoothing: float) -> FoldedMeans:
        """Smooth the means: each level gets `smoothing` more rows with the mean of all rows.

        Parameters
        ----------
        counts : ndarray of int64 of shape (L, f)
        sums : ndarray of float64 of shape (L, f, t)
        smoothing : float
        """
        # Of each fold, and in the last row of all.
        totals = np.concatenate([sums.sum(axis=0), sums.sum(axis=(0, 1))[None]])  # (f + 1, t)
        rows = [*counts.sum(axis=0).tolist(), int(counts.sum())]
        level_rows = counts.sum(axis=1)
        level_sums = sums.sum(axis=1)
        overall = totals[-1] / rows[-1]
        means = _smooth_means(level_rows, level_sums, overall, smoothing)
        without = [
            _smooth_means(
                # A row of this fold gets means of the other folds only, so that it does not see its
                # own target.
                level_rows - counts[:, fold],
                level_sums - sums[:, fold],
                # A single row has no others to take a mean of.
                _mean(totals[-1] - totals[fold], rows[-1] - rows[fold], overall),
                smoothing,
            )
            for fold in range(counts.shape[1])
        ]
        return cls(means, np.stack(without, axis=1))


def _mean(total: np.ndarray, rows: int, otherwise: np.ndarray) -> np.ndarray:
    return total / rows if rows else otherwise


def _smooth_means(
    rows: np.ndarray, sums: np.ndarray, overall: np.ndarray, smoothing: float
) -> np.ndarray:
    weight = rows[:, None] + smoothing
    means = (sums + smoothing * overall) / np.where(weight > 0, weight, 1)
    # A level without rows has the overall mean; without smoothing its own would be 0 / 0.
    return np.concatenate([np.where(weight > 0, means, overall), overall[None]])
