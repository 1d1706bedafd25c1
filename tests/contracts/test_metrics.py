"""What holds for each entry of the table of metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from remote import Remote

from gramian import KernelModel
from gramian.data import RemoteColumns, as_rows
from gramian.kernels import Gaussian
from gramian.model import Shares
from gramian.scoring.cluster import predictions_of
from gramian.scoring.forms import FUNCTION_FORMS, form_of
from gramian.scoring.predictions import Predictions
from gramian.scoring.reductions import RowMeans
from gramian.scoring.table import CLASSIFICATION_TASK, METRIC_TABLE, REGRESSION_TASK, Metric

N = 60
NUMBERS = [metric for metric in METRIC_TABLE.values() if metric.task == REGRESSION_TASK]
CLASSES = [metric for metric in METRIC_TABLE.values() if metric.task == CLASSIFICATION_TASK]
DIVISIONS = [1, 7, 59, 60]


def names(metric: Metric) -> str:
    return metric.name


def whole_weights(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 4, N).astype(float)


def repeated(predictions: Predictions) -> Predictions:
    """Repeat each row as often as its weight says."""
    assert predictions.weights is not None
    times = predictions.weights.astype(int)
    rows = {
        name: None if values is None else values.repeat(times, axis=0)
        for name in ("y", "predicted", "decision", "chances")
        for values in [getattr(predictions, name)]
    }
    return Predictions(**rows, classes=predictions.classes)  # type: ignore[arg-type]


def of_numbers(targets: int = 1, **more: Any) -> Predictions:
    rng = np.random.default_rng(targets)
    y = rng.normal(3, 1, (N, targets))
    values = y + rng.normal(0, 0.5, (N, targets))
    return Predictions.of(y[:, 0] if targets == 1 else y, values, **more)


def of_classes(k: int, **more: Any) -> Predictions:
    rng = np.random.default_rng(k)
    y = rng.integers(0, k, N)
    values = rng.normal(0, 0.4, (N, 1 if k == 2 else k))
    values[np.arange(N), 0 if k == 2 else y] += (2 * y - 1) * 0.3 if k == 2 else 0.5
    labels = np.array(["bird", "cat", "dog", "eel"])[:k]
    return Predictions.of(labels[y], values, labels.tolist(), Shares(), **more)


@pytest.mark.parametrize("metric", METRIC_TABLE.values(), ids=names)
def test_entries_are_complete(metric: Metric) -> None:
    assert metric.name.isidentifier()
    assert metric.title
    assert metric.task in (REGRESSION_TASK, CLASSIFICATION_TASK)
    assert callable(metric.resolved_function)
    assert metric.merge in ("", *FUNCTION_FORMS)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("metric", NUMBERS, ids=names)
def test_weights_of_numbers_repeat_rows(metric: Metric, targets: int) -> None:
    given = of_numbers(targets, weights=whole_weights(np.random.default_rng(9)))
    assert given.measure(metric) == pytest.approx(repeated(given).measure(metric), rel=1e-12)
    assert given.measure(metric) != pytest.approx(of_numbers(targets).measure(metric))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("metric", CLASSES, ids=names)
def test_weights_of_classes_repeat_rows(metric: Metric, k: int) -> None:
    given = of_classes(k, weights=whole_weights(np.random.default_rng(9)))
    assert given.measure(metric) == pytest.approx(repeated(given).measure(metric), rel=1e-12)
    assert given.measure(metric) != pytest.approx(of_classes(k).measure(metric))


@pytest.mark.parametrize("metric", METRIC_TABLE.values(), ids=names)
def test_right_predictions_are_best(metric: Metric) -> None:
    if metric.task == REGRESSION_TASK:
        y = of_numbers().y
        right, other = Predictions.of(y, y[:, None]), of_numbers()
    else:
        other = of_classes(4)
        codes = np.where(np.eye(4)[other.numbers] == 1, 1.0, -1 / 3)
        right = Predictions.of(other.y, codes, other.classes, Shares())
    best = right.measure(metric)
    assert best == pytest.approx(float(metric.higher_is_better), abs=0.01)
    assert (best > other.measure(metric)) == metric.higher_is_better


@pytest.mark.parametrize("size", DIVISIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("metric", NUMBERS, ids=names)
def test_blocks_of_numbers(metric: Metric, targets: int, weighted: bool, size: int) -> None:
    weights = whole_weights(np.random.default_rng(9)) if weighted else None
    given, form = of_numbers(targets, weights=weights), form_of(metric)
    if form is None:
        return  # predictions are gathered
    reduction = RowMeans((form,))
    beside = [part for part in (given.y, weights) if part is not None]
    means = as_rows(given.predicted.reshape(N, -1)).fold(reduction, *beside, size=size)
    assert reduction.values(means) == pytest.approx([given.measure(metric)], rel=1e-12)


@pytest.mark.parametrize("size", DIVISIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("metric", CLASSES, ids=names)
def test_blocks_of_probabilities(metric: Metric, k: int, weighted: bool, size: int) -> None:
    weights = whole_weights(np.random.default_rng(9)) if weighted else None
    given, form = of_classes(k, weights=weights), form_of(metric)
    if form is None or given.chances is None:
        return
    reduction, means = RowMeans((form,)), None
    for start in range(0, N, size):
        rows = slice(start, start + size)
        w = None if weights is None else weights[rows]
        block = reduction.of(given.numbers[rows], given.chances[rows], w)
        means = block if means is None else reduction.merge(means, block)
    assert means is not None
    assert reduction.values(means) == pytest.approx([given.measure(metric)], rel=1e-12)


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_remote_rows(k: int, parts: int) -> None:
    """Compare metrics, those of a constant, and counts, on a cluster and in memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    coef = rng.normal(size=(N, k if k > 2 else 1))
    classes = ("bird", "cat", "dog", "eel")[:k] if k > 1 else None
    info: dict[str, Any] = {"baseline": 0.5 if classes is None else "cat"}
    model = KernelModel(Gaussian(1.0), X, coef, info=info)
    model = replace(model, classes=classes)
    rows, numbers = Remote.of(X, parts=parts), rng.integers(0, max(k, 2), N).astype(float)
    labels = None if classes is None else np.array(classes)
    remote_y = RemoteColumns(rows.beside(numbers).rows, flat=True, labels=labels)
    y = numbers if labels is None else labels[numbers.astype(int)]
    metrics, settings = NUMBERS if classes is None else CLASSES, {"memory_bytes": 10**8}
    found = predictions_of(model, rows, remote_y, metrics, settings)
    expected = predictions_of(model, as_rows(X), y, metrics, settings)
    for metric in metrics:
        assert found.measure(metric) == pytest.approx(expected.measure(metric), rel=1e-9)
        if metric.is_of_constants:
            constants = (part.constant(info["baseline"]) for part in (found, expected))
            a, b = (part.measure(metric) for part in constants)
            assert a == pytest.approx(b, rel=1e-9)
    if classes is not None:
        np.testing.assert_array_equal(found.distinct.weights, expected.distinct.weights)
        assert found.reliability()[0] == expected.reliability()[0]
        np.testing.assert_array_equal(found.reliability()[1].rows, expected.reliability()[1].rows)
