"""Metrics of the table are scikit-learn's, for weights, several targets and several classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from gramian.model import LogOdds
from gramian.scoring.predictions import Predictions
from gramian.scoring.table import METRIC_TABLE

RNG = np.random.default_rng(0)
N = 80
WEIGHTS = RNG.random(N)
LABELS = np.array(["ash", "beech", "cedar", "date"])


def of_formula(function: Callable[..., Any]) -> Callable[..., float]:
    """Return the mean over the columns of a formula of one target."""

    def measure(y: np.ndarray, f: np.ndarray, sample_weight: np.ndarray | None) -> float:
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        columns = zip(y.reshape(N, -1).T, f.reshape(N, -1).T, strict=True)
        return float(np.mean([function(a, b, w) for a, b in columns]))

    return measure


NUMBERS: dict[str, Callable[..., Any]] = {
    "rmse": sk.root_mean_squared_error,
    "mae": sk.mean_absolute_error,
    "r2": sk.r2_score,
    "relative_error": of_formula(
        lambda y, f, w: np.linalg.norm(np.sqrt(w) * (f - y)) / np.linalg.norm(np.sqrt(w) * y)
    ),
    "smape": of_formula(lambda y, f, w: w @ (2 * abs(f - y) / (abs(f) + abs(y))) / w.sum()),
}
OF_LABELS: dict[str, Callable[..., Any]] = {
    "error": sk.zero_one_loss,
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "macro_f1": lambda *a, **k: sk.f1_score(*a, average="macro", **k),
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str, targets: int, weights: np.ndarray | None) -> None:
    y = RNG.normal(1, 2, (N, targets)).squeeze()
    values = (y + RNG.normal(0, 1, y.shape)).reshape(N, -1)
    found = Predictions.of(y, values, weights=weights).measure(METRIC_TABLE[name])
    expected = NUMBERS[name](y, values.reshape(y.shape), sample_weight=weights)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("labels", [LABELS, np.array([3, 5, 8, 9])], ids=["texts", "numbers"])
def test_classes(k: int, labels: np.ndarray, weights: np.ndarray | None) -> None:
    labels = labels[:k]
    numbers = RNG.integers(0, k, N)
    y, values = labels[numbers], RNG.normal(0, 1, (N, 1 if k == 2 else k))
    given = Predictions.of(y, values, labels.tolist(), LogOdds(), weights)
    w, chances = {"sample_weight": weights}, given.chances
    assert chances is not None
    for name, function in OF_LABELS.items():
        expected = function(y, given.predicted, **w)
        assert given.measure(METRIC_TABLE[name]) == pytest.approx(expected, rel=1e-12)
    columns = {1: values[:, 0]} if k == 2 else dict(enumerate(values.T))
    areas = [sk.roc_auc_score(numbers == label, column, **w) for label, column in columns.items()]
    expected = {
        "auc": np.mean(areas),
        "log_loss": sk.log_loss(y, chances, **w),
        "brier": sk.brier_score_loss(
            y, chances if k > 2 else chances[:, 1], labels=labels if k > 2 else None,
            pos_label=labels[1] if k == 2 else None, **w,
        ),
        "calibration_error": calibration_error(numbers, chances, weights),
    }  # fmt: skip
    for name, value in expected.items():
        assert given.measure(METRIC_TABLE[name]) == pytest.approx(value, rel=1e-12)


def calibration_error(y: np.ndarray, chances: np.ndarray, weights: np.ndarray | None) -> float:
    w, p = np.ones(N) if weights is None else weights, chances.max(axis=1)
    is_right, total = chances.argmax(axis=1) == y, 0.0
    for place in range(15):
        inside = (p >= place / 15) & ((p < (place + 1) / 15) | (place == 14))
        total += abs(w[inside] @ p[inside] - w[inside] @ is_right[inside])
    return float(total / w.sum())


@pytest.mark.parametrize(
    ("y", "f", "expected"), [([0.0, 2], [0.0, 1], 1 / 3), ([1.0], [-1.0], 2.0), ([0.0], [0.0], 0)]
)
def test_smape_of_zeros(y: list[float], f: list[float], expected: float) -> None:
    given = Predictions.of(np.array(y), np.array(f)[:, None])
    assert given.measure(METRIC_TABLE["smape"]) == pytest.approx(expected)


def test_the_relative_error_of_zero_is_infinite() -> None:
    given = Predictions.of(np.zeros(3), np.ones((3, 1)))
    assert given.measure(METRIC_TABLE["relative_error"]) == np.inf
