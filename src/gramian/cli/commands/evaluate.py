"""`gramian evaluate`: the errors of a model and of a constant on a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..._messages.checks import as_bytes
from ...data import RemoteColumns, RowSource
from ...model import Model, load_model
from ...model.evaluation.agreement import Pinball
from ..inputs.truth import truth_of
from ..metrics import metrics
from ..metrics.answers import CLASSIFICATION_TASK, REGRESSION_TASK, Summed, answers_of, constant_of
from ..metrics.quantiles import LEVELS_KEY, errors_of_quantiles
from ..metrics.reliability import check_picture, draw
from ..metrics.remote import remote_answers, remote_pinball
from ..outputs.confusion import confusion
from ..outputs.files import check_outputs
from ..outputs.intervals import coverage
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
    task = _task(loaded, model, metric, reliability)
    truth = truth_of(loaded, model, data, target)
    name, y, rows = truth.name, truth.y, truth.rows
    settings = {"engine": engine, "memory_bytes": as_bytes(memory_limit)}
    about = {"model": model, "data": data, "target": name, "rows": len(y), "task": task}
    levels = loaded.info.get(LEVELS_KEY)
    if levels and metric is None:
        sums = _pinball(loaded, rows, y, tuple(levels), settings)
        return {**about, **errors_of_quantiles(sums, len(y), levels)}
    if loaded.classes is None and loaded.outputs > 1:
        command_name = "--metric" if levels else "evaluate"
        raise ValueError(
            f"{command_name} requires a model of one output, but {model} predicts {loaded.outputs}"
        )
    answers = _answers(loaded, rows, y, settings, metric)
    if reliability is not None and answers.chance_sums is not None:
        draw(reliability, answers.chance_sums, answers.classes)
    report = {**about, **measure_model(loaded, answers, metric)}
    if metric is not None:
        return report
    return {**report, **coverage(loaded, rows, y, settings)}


def _pinball(
    loaded: Model,
    rows: RowSource,
    y: np.ndarray | RemoteColumns,
    levels: tuple[float, ...],
    settings: Mapping[str, Any],
) -> np.ndarray:
    """Return the pinball sums of quantiles; remote rows are summed on the workers."""
    if isinstance(y, RemoteColumns):
        return remote_pinball(loaded, rows, y, levels, settings)
    truth = torch.from_numpy(y.astype(np.float64))
    return Pinball(levels)(0, loaded.predict(rows, **settings), truth).numpy()


def _answers(
    loaded: Model,
    rows: RowSource,
    y: np.ndarray | RemoteColumns,
    settings: Mapping[str, Any],
    metric: str | None,
) -> Summed:
    """Return predictions and true values; for remote rows, sums over them."""
    if isinstance(y, RemoteColumns):
        # Areas sort values in each merge of blocks: compute them only if they are reported.
        return remote_answers(loaded, rows, y, settings, area=metric in (None, "auc"))
    values = loaded.predict(rows, **settings).numpy()
    chances = None if loaded.classes is None else loaded.class_map
    return answers_of(y, values, loaded.classes, chances)


def _task(loaded: Model, model: Path, metric: str | None, reliability: Path | None) -> str:
    """Return the task of a model; raise ValueError for options of the other task."""
    classification = loaded.classes is not None
    if reliability is not None and not classification:
        raise ValueError(f"--reliability requires a classifier, but {model} is a regression")
    task = CLASSIFICATION_TASK if classification else REGRESSION_TASK
    if metric is not None:
        metrics.check(metric, task)
    return task


def measure_model(loaded: Model, answers: Summed, metric: str | None) -> Report:
    """Return the metrics of the model and of a constant prediction, with remarks."""
    constant = loaded.info.get("baseline")
    if constant is None:
        constant = constant_of(answers)
    remark = {"remark": "; ".join(metrics.remarks(answers)) or None}
    if metric is not None:
        return {**metrics.measure_answers(answers, constant, [metric]), **remark}
    mistakes = {"confusion": confusion(answers.tally)} if answers.classes else {}
    return {**metrics.measure_answers(answers, constant), **remark, **mistakes}
