"""`gramian evaluate`: the errors of a model and of a constant on a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._messages.checks import as_bytes
from ...data import RemoteColumns
from ...model import Model, load_model
from ...scoring.cluster import predictions_of
from ...scoring.predictions import Predictions, best_constant
from ...scoring.quantiles import LEVELS_KEY, quantile_errors
from ...scoring.table import Metric, task_of
from ..inputs.truth import truth_of
from ..outputs.confusion import confusion
from ..outputs.files import check_outputs
from ..outputs.intervals import coverage
from ..outputs.metrics import measure, named_metrics, remarks
from ..outputs.reliability import check_picture, draw_reliability
from ..outputs.report import Report


def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    memory_limit: str,
    engine: str,
    metric: str | None = None,
    reliability: Path | None = None,
) -> Report:
    """Report all metrics, or a single one, of the predictions for a table."""
    check_outputs({"reliability": reliability}, [model, data])
    check_picture(reliability)
    loaded = load_model(model)
    task = task_of(loaded.classes)
    if reliability is not None and loaded.classes is None:
        raise ValueError(f"--reliability requires a classifier, but {model} is a regression")
    metrics = named_metrics(metric, task)
    truth = truth_of(loaded, model, data, target)
    name, y, rows = truth.name, truth.y, truth.rows
    settings = {"engine": engine, "memory_bytes": as_bytes(memory_limit)}
    about = {"model": model, "data": data, "target": name, "rows": len(y), "task": task}
    levels = loaded.info.get(LEVELS_KEY)
    if levels and metric is None:
        return {**about, **quantile_errors(loaded, rows, y, levels, settings)}
    if loaded.classes is None and loaded.outputs > 1:
        command_name = "--metric" if levels else "evaluate"
        raise ValueError(
            f"{command_name} requires a model of one output, but {model} predicts {loaded.outputs}"
        )
    predictions = predictions_of(loaded, rows, y, metrics, settings)
    if reliability is not None:
        draw_reliability(reliability, *predictions.reliability())
    report = {**about, **measure_model(loaded, predictions, y, metrics)}
    if metric is not None:
        return report
    mistakes = {"confusion": confusion(predictions)} if predictions.classes else {}
    return {**report, **mistakes, **coverage(loaded, rows, y, settings)}


def measure_model(
    loaded: Model, predictions: Predictions, y: np.ndarray | RemoteColumns, metrics: list[Metric]
) -> Report:
    """Return the metrics of the model and of a constant prediction, with remarks."""
    constant = loaded.info.get("baseline")
    if constant is None:
        constant = best_constant(y, loaded.classes is not None)
    remark = "; ".join(remarks(predictions)) or None
    return {**measure(predictions, constant, metrics), "remark": remark}
