"""`gramian evaluate`: the errors of a model and of a constant on a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..._messages.checks import as_bytes
from ...model import Model, load_model
from ...scoring.cluster import predictions_of
from ...scoring.comparison import measure, measure_model, named_metrics
from ...scoring.coverage import LEVELS_KEY, coverage, quantile_errors
from ...scoring.predictions import Predictions, best_constant
from ...scoring.table import Metric, task_of
from ...scoring.truth import Truth, training_remark, truth_of
from ..outputs.classes import check_picture, confusion, draw_reliability
from ..outputs.files import check_outputs
from ..outputs.report import Report


def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    memory_limit: str,
    engine: str,
    metric: str | None = None,
    reliability: Path | None = None,
    read: Mapping[str, Any] | None = None,
    drop_missing_target: bool = False,
) -> Report:
    """Report all metrics, or a single one, of the predictions for a table."""
    # 1. Everything that can fail without the table is checked before it is read.
    check_outputs({"reliability": reliability}, [model, data])
    check_picture(reliability)
    loaded = load_model(model)
    task = task_of(loaded.classes)
    _check_reliability(reliability, loaded, model)
    metrics = named_metrics(metric, task)
    complete = _targets(loaded, target) if drop_missing_target else None
    read_truth = partial(truth_of, loaded, model, data, read=read, complete_targets=complete)
    truth = read_truth(target)
    name, y, rows = truth.name, truth.y, truth.rows
    settings = {"engine": engine, "memory_bytes": as_bytes(memory_limit)}
    about = {"model": model, "data": data, "target": name, "rows": len(y), "task": task}
    # 2. Models of several outputs: quantiles have the pinball loss of their level and no other
    # metric; several targets have the metrics of each.
    if (levels := loaded.info.get(LEVELS_KEY)) and metric is None:
        return {**about, **quantile_errors(loaded, rows, y, levels, settings)}
    if targets := _targets(loaded, target):
        errors = _measure_targets(loaded, map(read_truth, targets), metrics, settings)
        return {**about, "target": list(targets), **errors}
    _check_one_output(loaded, model, "--metric" if levels else "evaluate")
    # 3. One pass of predictions serves all metrics.
    predictions = predictions_of(loaded, rows, y, metrics, settings)
    if reliability is not None:
        draw_reliability(reliability, *predictions.reliability())
    report = {**about, **measure_model(loaded, predictions, y, metrics)}
    notes = [report["remark"], training_remark(loaded, truth.table, y)]
    report["remark"] = "; ".join(filter(None, notes)) or None
    if metric is not None:
        return report
    mistakes = {"confusion": confusion(predictions)} if predictions.classes else {}
    return {**report, **mistakes, **coverage(loaded, rows, y, settings)}


def _targets(loaded: Model, target: str | None) -> tuple[str, ...]:
    """Return the names of the targets of a model of several targets; none for other models."""
    names = loaded.target or ()
    if loaded.info.get(LEVELS_KEY) or not len(names) == loaded.outputs > 1:
        return ()
    return names if target is None else (target,)


def _check_reliability(reliability: Path | None, loaded: Model, model: Path) -> None:
    if reliability is not None and loaded.classes is None:
        raise ValueError(f"--reliability requires a classifier, but {model} is a regression")


def _check_one_output(loaded: Model, model: Path, command_name: str) -> None:
    if loaded.classes is None and loaded.outputs > 1:
        raise ValueError(
            f"{command_name} requires a model of one output, but {model} predicts {loaded.outputs}"
        )


def _measure_targets(
    loaded: Model, truths: Iterable[Truth], metrics: list[Metric], settings: Mapping[str, Any]
) -> Report:
    """Return the metrics of each of several targets."""
    report: dict[str, Any] = {}
    values = None
    for truth in truths:
        if values is None:
            # All targets are predicted together: the rows are the same for each.
            values = loaded.predict(truth.rows, **settings)
        place = (loaded.target or ()).index(truth.name)
        predictions = Predictions.of(truth.y, values[:, place : place + 1], None)
        report[truth.name] = measure(predictions, best_constant(truth.y, False), metrics)
    return {"targets": report}
