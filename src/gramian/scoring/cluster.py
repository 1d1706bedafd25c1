"""Metrics of predictions on a cluster, by one pass from which workers send only sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _arrays as xp
from ..data import RemoteColumns, RowNumbers, RowSource, as_columns, default_block_size
from ..model import Label, Model
from ..model.mapped_predictions import map_predictions
from .forms import ShownClass, form_of
from .predictions import Predictions, best_constant, mean_of_classes
from .ranks import Ranks
from .reductions import ClassMeans, RowMeans
from .reliability import Reliability
from .table import CLASSIFICATION_TASK, Metric


def predictions_of(
    model: Model,
    rows: RowSource,
    y: RowNumbers,
    metrics: Sequence[Metric],
    settings: Mapping[str, Any],
) -> Predictions:
    """Predict rows, and return predictions and true values, or what metrics need of them.

    Of local rows, predictions and true values are kept: 16 bytes a row, for a classifier another
    16 bytes for each row and class. Remote rows take two passes. The first reads the true values,
    for the classes, or for the range and the mean. The second predicts, and keeps means, counts and
    at most 25 MB of binned decision values. If a metric cannot be computed from these, all
    predictions are gathered instead.

    - `model`: a classifier, or a regression with one output.
    - `settings`: engine and memory of the predictions.

    Raise ValueError if predictions have to be gathered, and exceed the memory.
    """
    if as_columns(y).fits():
        return _in_memory(model, y, model.predict(rows, **settings))
    values = map_predictions(rows, model, **settings)
    # Most metrics are means of terms, or of counts, that workers add up; a scorer of the user needs
    # all predictions in one place.
    gathered = [metric.name for metric in metrics if not _is_mergeable(metric)]
    if gathered:
        needed, limit = 8 * len(y) * (values.shape[1] + 1), settings["memory_bytes"]
        if needed > limit:
            raise ValueError(
                f"{', '.join(gathered)} needs all predictions in the memory for predictions, and "
                f"{needed:,} bytes exceed its {limit:,}: raise it, or take a metric that is "
                "computed on the workers"
            )
        local = values.map(xp.copy, size=default_block_size(values))
        return _in_memory(model, np.asarray(y), local)
    constant = model.info.get("baseline")
    if model.classes is None:
        constant = best_constant(y, is_classification=False) if constant is None else constant
        return _remote_numbers(values, y, metrics, constant)
    return _remote_classes(model, values, y, metrics)


def _in_memory(model: Model, y: np.ndarray, values: np.ndarray) -> Predictions:
    return Predictions.of(
        y, values, model.classes, None if model.classes is None else model.class_map
    )


def _is_mergeable(metric: Metric) -> bool:
    if metric.task == CLASSIFICATION_TASK and metric.output in ("predictions", "decision"):
        return True
    return metric.output != "estimator" and form_of(metric) is not None


def _remote_numbers(
    values: RowSource, y: RemoteColumns, metrics: Sequence[Metric], constant: Label
) -> Predictions:
    """Measure remote predictions of numbers, and a constant prediction."""
    names = [metric.name for metric in metrics]
    forms, size = tuple(filter(None, map(form_of, metrics))), default_block_size(values)
    means, of_constant = RowMeans(forms), RowMeans(forms, float(constant))
    measured, always = (
        dict(zip(names, means.values(source.fold(reduction, y, size=size)), strict=True))
        for source, reduction in ((values, means), (y.rows, of_constant))
    )
    # The range stands for all true values: it tells whether they vary.
    ends = np.array(y.range)
    return Predictions(
        ends, ends, measured=measured, always=Predictions(ends, ends, measured=always)
    )


def _remote_classes(
    model: Model, values: RowSource, y: RemoteColumns, metrics: Sequence[Metric]
) -> Predictions:
    """Measure remote predictions of classes; counts of distinct pairs stand for the rows."""
    classes = np.asarray(model.classes)
    # Rows may lack classes of the model, and may have labels that are no class of it: -1 below.
    labels = np.union1d(classes, y.counts()[0])
    # Workers get numbers in place of labels: texts would be compared for each row, and sent.
    places, numbers = np.searchsorted(labels, classes), xp.full((len(labels),), -1)
    numbers[places] = xp.arange(len(classes))
    truth = y.look_up(labels, xp.to_float64(xp.arange(len(labels)))[:, None])
    # Ranks sort values in each merge of blocks: collect them only if they are reported.
    ranked = [metric for metric in metrics if metric.output == "decision"]
    of_chances = [metric for metric in metrics if metric.output == "probabilities"]
    # The form of the reliability diagram goes along in the same pass; it is the last one, hence
    # `[-1]` below.
    means = RowMeans((*filter(None, map(form_of, of_chances)), ShownClass()))
    reduction = ClassMeans(means, numbers, model.class_map, len(classes), bool(ranked))
    summary = values.fold(reduction, truth, size=default_block_size(values))
    both = [ranks for ranks in summary.ranks if ranks.has_both]
    measured = {metric.name: _measure_ranks(metric, both) for metric in ranked}
    pairs = zip(of_chances, means.values(summary.means), strict=False)
    measured |= {metric.name: value for metric, value in pairs}
    counts, total = summary.counts, summary.means.weight
    true, predicted = counts.nonzero()
    return Predictions(
        labels[true],
        labels[places[predicted]],
        np.zeros((len(true), values.shape[1])),  # of a constant prediction
        tuple(classes.tolist()),
        weights=counts[true, predicted],
        measured=measured,
        area_error=mean_of_classes(ranks.area_error for ranks in both) if both else 0.0,
        bins=Reliability.of_sums(total * summary.means.states[-1]) if total else None,
    )


def _measure_ranks(metric: Metric, classes: Sequence[Ranks]) -> float:
    """Return the mean over classes of a metric of one class against the rest, from bins."""
    return mean_of_classes(
        metric(
            # A weighted row for each bin and mark: the function of scikit-learn then sees bins in
            # place of values.
            np.repeat([False, True], len(ranks.bins)),
            np.tile(np.arange(len(ranks.bins)), 2),
            ranks.counts.T.reshape(-1),
        )
        for ranks in classes
    )
