"""Means of two contenders, from predictions that their fits have kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..lib.results import Row


def mean_of(first: Path, second: Path) -> Row:
    """Return the errors of the mean of two: half and half, and with a weight that is chosen."""
    with np.load(first) as a, np.load(second) as b:
        truth = a["truth"]
        one, other = (_columns(file["prediction"]) for file in (a, b))
    labels = np.issubdtype(truth.dtype, np.integer)
    target = np.eye(one.shape[1])[truth] if labels else _columns(truth)
    part = np.random.default_rng(0).permutation(len(truth)) % 2 == 0
    chosen, weights = np.empty_like(one), []
    for choose, measure in ((part, ~part), (~part, part)):
        weights.append(weight(one[choose], other[choose], target[choose]))
        chosen[measure] = weights[-1] * one[measure] + (1 - weights[-1]) * other[measure]
    return {
        "half and half": _error(0.5 * one + 0.5 * other, truth),
        "chosen weight": _error(chosen, truth),
        "of ours": float(np.mean(weights)),
    }


def weight(one: np.ndarray, other: np.ndarray, target: np.ndarray) -> float:
    """Return the weight of one, from 0 to 1, of least squared error."""
    apart = one - other
    square = float((apart**2).sum())
    return float(np.clip((apart * (target - other)).sum() / square, 0, 1)) if square else 0.5


def _columns(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1).astype(np.float64)


def _error(mean: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of wrong labels, or the RMSE."""
    if np.issubdtype(truth.dtype, np.integer):
        return float((mean.argmax(axis=1) != truth).mean())
    return float(np.sqrt(((mean[:, 0] - truth) ** 2).mean()))
