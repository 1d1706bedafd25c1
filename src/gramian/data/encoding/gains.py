"""Tests whether features help to predict targets of rows that were held out."""

from __future__ import annotations

import numpy as np

FEWEST_ROWS = 100
"""Rows below which held-out rows tell nothing: the features are kept."""

_RELATIVE_RIDGE = 1e-9


class HeldOutGain:
    """Least squares of targets on a few features, with each fold held out in turn.

    The sums of each fold suffice, so that rows are seen once.
    """

    def __init__(self) -> None:
        self._folds: dict[int, list[np.ndarray]] = {}
        self._offset: np.ndarray | None = None

    def add(self, features: np.ndarray, targets: np.ndarray, folds: np.ndarray) -> None:
        """Add rows.

        - `features`, ndarray of shape (b, k); `targets`, ndarray of shape (b, t).
        - `folds`, ndarray of int of shape (b,).
        """
        if len(targets) == 0 or targets.shape[1] == 0:
            return
        if self._offset is None:  # squares of centered numbers keep their digits
            self._offset = targets[0]
        design = np.column_stack([np.ones(len(features)), features])
        centered = targets - self._offset
        for fold in np.unique(folds).tolist():
            rows = folds == fold
            x, y = design[rows], centered[rows]
            sums = self._folds.setdefault(fold, [np.zeros(())] * 3)
            more = x.T @ x, x.T @ y, (y * y).sum(0)
            self._folds[fold] = [a + b for a, b in zip(sums, more, strict=True)]

    def is_clear(self, known: int = 0) -> bool:
        """Return whether features lower the squared error of held-out rows, beyond chance.

        Features that tell nothing raise it by about k / n, with k features and n rows, and a lower
        standard deviation; the features must lower it by as much.

        - `known`: number of the first features that are used anyway: the others must lower the
          error.
        """
        parts = list(self._folds.values())
        rows = sum(float(gram[0, 0]) for gram, _, _ in parts)
        if len(parts) < 2 or rows < FEWEST_ROWS:
            return known == 0
        total = [sum(sums[1:], start=sums[0]) for sums in zip(*parts, strict=True)]
        sizes = (1 + known, len(total[0]))
        errors = np.zeros((2, len(total[2])))
        for gram, cross, squares in parts:
            rest_gram, rest_cross = total[0] - gram, total[1] - cross
            ridge = _RELATIVE_RIDGE * np.trace(rest_gram) * np.eye(len(gram))
            for j, k in enumerate(sizes):
                coef = np.zeros_like(cross)
                coef[:k] = (
                    rest_cross[:1] / rest_gram[0, 0]
                    if k == 1
                    else np.linalg.solve((rest_gram + ridge)[:k, :k], rest_cross[:k])
                )
                errors[j] += squares - 2 * (coef * cross).sum(0) + (coef * (gram @ coef)).sum(0)
        varied = errors[0] > 0
        if not varied.any():
            return known == 0
        gains = 1 - errors[1, varied] / errors[0, varied]
        return bool(gains.mean() > (sizes[1] - sizes[0]) / rows)


JOINT_ROWS = 500
"""Rows, at most, that are compared, for an eigenvalue problem of a tenth of a second."""

LEAST_GAIN = 0.01
"""Share of the leave-one-out error that additional features must save."""

LEAST_DEVIATIONS = 2.5
"""Gain in standard errors that additional features must have."""

_RIDGE_GRID = 10.0 ** np.arange(-2.0, 2.1, 0.5)


class JointGain:
    """Leave-one-out errors of kernel ridge regression on the features of all columns.

    The kernel is the exponential of the l1 distance, with the median distance as lengthscale. A
    linear test of one column cannot see features that matter only with another column.

    - `features`, ndarray of shape (n, d): features of all columns before the comparison.
    - `targets`, ndarray of shape (n, t).

    Cost: a matrix of n rows for the distances, and an eigenvalue problem for each comparison.
    """

    def __init__(self, features: np.ndarray, targets: np.ndarray) -> None:
        scale = targets.std(axis=0)
        is_varied = scale > 0
        self._targets = (targets - targets.mean(axis=0))[:, is_varied] / scale[is_varied]
        self._distances = _l1_distances(features)
        self._errors = self._left_out_errors(self._distances)

    def accept(self, features: np.ndarray, replaced: np.ndarray, *, is_clear: bool = False) -> bool:
        """Return whether features are clearly better than the replaced ones; if so, keep them.

        - `features`, ndarray of shape (n, k).
        - `replaced`, ndarray of shape (n, l): features among those compared so far.
        - `is_clear`: whether another test has found a gain, so that any gain counts.
        """
        distances = self._distances + _l1_distances(features) - _l1_distances(replaced)
        errors = self._left_out_errors(np.maximum(distances, 0.0))
        gains = self._errors - errors
        standard_error = gains.std() / np.sqrt(len(gains))
        least_gain = max(LEAST_GAIN * self._errors.mean(), LEAST_DEVIATIONS * standard_error)
        if not gains.mean() > (0.0 if is_clear else least_gain):
            return False
        self._distances, self._errors = distances, errors
        return True

    def _left_out_errors(self, distances: np.ndarray) -> np.ndarray:
        """Return the squared error of each row when left out, at the best ridge."""
        median = np.median(distances)
        values, vectors = np.linalg.eigh(np.exp(-distances / (median if median > 0 else 1.0)))
        projected, squares = vectors.T @ self._targets, vectors**2
        best = np.full(len(distances), np.inf)
        for ridge in _RIDGE_GRID:
            inverse = 1 / (np.maximum(values, 0.0) + ridge)
            # The error of a row that is left out, from the fit to all rows.
            left_out = vectors @ (inverse[:, None] * projected) / (squares @ inverse)[:, None]
            errors = (left_out**2).sum(axis=1)
            if errors.mean() < best.mean():
                best = errors
        return best


def _l1_distances(features: np.ndarray) -> np.ndarray:
    distances = np.zeros((len(features), len(features)))
    for column in features.T:
        distances += np.abs(column[:, None] - column)
    return distances
