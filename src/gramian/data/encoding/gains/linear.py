"""`HeldOutGain`: a test whether features help to predict targets of rows that were held out."""

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

        Parameters
        ----------
        features : ndarray of shape (b, k)
        targets : ndarray of shape (b, t)
        folds : ndarray of int of shape (b,)
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

        Parameters
        ----------
        known : int, default=0
            Number of the first features that are used anyway: the others must lower the error.
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
