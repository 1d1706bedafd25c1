"""Ridge regression in extended precision, as a yardstick for rounding."""

from __future__ import annotations

import numpy as np


def ridge_on_squares(X: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Return fitted values of all monomials of degree two and less, in extended precision."""
    X = X.astype(np.longdouble)
    i, j = np.triu_indices(X.shape[1])
    root = np.sqrt(np.longdouble(2))
    squares = X[:, i] * X[:, j] * np.where(i == j, np.longdouble(1), root)
    F = np.concatenate([np.ones((len(X), 1), np.longdouble), root * X, squares], axis=1)
    L = F.T @ F + penalty * np.eye(F.shape[1])
    for k in range(len(L)):
        L[k, k] = np.sqrt(L[k, k])
        L[k + 1 :, k] /= L[k, k]
        L[k + 1 :, k + 1 :] -= np.outer(L[k + 1 :, k], L[k + 1 :, k])
    x = F.T @ y
    for k in range(len(L)):
        x[k] = (x[k] - L[k, :k] @ x[:k]) / L[k, k]
    for k in reversed(range(len(L))):
        x[k] = (x[k] - L[k + 1 :, k] @ x[k + 1 :]) / L[k, k]
    return (F @ x).astype(float)
