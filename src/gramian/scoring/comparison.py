"""Metrics in reports, of predictions and of a constant prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import RowNumbers
from ..model import Label, Model
from .predictions import Predictions, best_constant
from .scorers import find_metric
from .table import CONSTANT_OF_TASK, Metric, metrics_of

VISIBLE_ERROR = 5e-5
"""Least error of an area that is reported; a smaller one is below the digits shown."""


def named_metrics(name: str | None, task: str) -> list[Metric]:
    """Return the metric of ``--metric``, or all metrics of the task; see `find_metric`."""
    return (
        list(metrics_of(task).values()) if name is None else [find_metric(name, task, "--metric")]
    )


def measure(
    predictions: Predictions, constant: Label, metrics: Sequence[Metric]
) -> dict[str, float]:
    """Return metrics of the predictions, and most of them also for a constant prediction.

    - `constant`: the mean of the training targets, or their largest class.

    Names are such as ``rmse``, ``rmse_of_mean``, ``error`` and ``error_of_majority``. A metric is
    NaN where it is undefined.
    """
    always, kind = predictions.constant(constant), CONSTANT_OF_TASK[predictions.task]
    values: dict[str, float] = {}
    for metric in metrics:
        values[metric.name] = predictions.measure(metric)
        if metric.is_of_constants:
            values[f"{metric.name}_of_{kind}"] = always.measure(metric)
    return values


def remarks(predictions: Predictions) -> list[str]:
    """Return remarks on undefined, inexact and partial metrics."""
    if not predictions.classes:
        constant = f"all targets are {predictions.y[0]:g}: r2 is undefined"
        return [] if predictions.varies else [constant]
    notes, pairs = [], predictions.distinct
    present_labels = np.unique(pairs.y)
    strange = np.setdiff1d(present_labels, predictions.classes)
    if len(strange):
        names = ", ".join(repr(label) for label in strange[:3].tolist())
        count = np.asarray(pairs.weights)[np.isin(pairs.y, strange)].sum()
        notes.append(
            f"{count:,} rows have a class without training rows, such as {names}: they count as "
            "wrong, and auc and metrics of probabilities leave them out"
        )
    if len(present_labels) == 1:
        notes.append(f"all rows have the class {present_labels[0].item()!r}: auc is undefined")
    off = predictions.area_error
    if off >= VISIBLE_ERROR:
        notes.append(f"auc may be off by up to {off:.1g}, because values are counted in bins")
    return notes


def measure_model(
    loaded: Model, predictions: Predictions, y: RowNumbers, metrics: list[Metric]
) -> dict[str, Any]:
    """Return the metrics of the model and of a constant prediction, with remarks."""
    constant = loaded.info.get("baseline")
    if constant is None:
        constant = best_constant(y, loaded.classes is not None)
    remark = "; ".join(remarks(predictions)) or None
    return {**measure(predictions, constant, metrics), "remark": remark}
