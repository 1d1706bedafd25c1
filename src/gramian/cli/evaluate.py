"""`gramian evaluate`: the errors of a model on a table, beside those of a constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._checks import as_bytes
from ..data import target_column
from ..data.columns import check_columns
from ..model import Model, load_model
from . import metrics
from .confusion import confusion
from .open_for_model import open_for_model
from .report import Report


def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    memory_limit: str,
    engine: str,
    metric: str | None = None,
) -> Report:
    """Report metrics of the predictions for the rows of a table: all of them, or one."""
    loaded = load_model(model)
    classification = loaded.classes is not None
    task = metrics.CLASSIFICATION_TASK if classification else metrics.REGRESSION_TASK
    if metric is not None:
        metrics.check(metric, task)
    known = None if loaded.target is None else loaded.target[0]
    name = target or known or loaded.info.get("target")
    if name is None:
        raise ValueError(f"{model} does not say what it predicts: give --target")
    table = loaded.table(data)
    check_columns(table.where, table.names, [name])
    y = target_column(table, [name])
    _check_kind(y, name, loaded)
    rows = open_for_model(loaded, table, name)
    memory = as_bytes(memory_limit, "--memory-limit")
    values = loaded.predict(rows, engine=engine, memory_bytes=memory).numpy()
    if not classification and values.shape[1] > 1:
        raise ValueError(f"{model} predicts {values.shape[1]} targets; evaluate takes one")
    answers = metrics.answers_of(y, values, loaded.classes)
    constant = loaded.info.get("baseline")
    if constant is None:
        constant = metrics.best_constant(y, classification)
    about = {"model": str(model), "data": str(data), "target": name, "rows": len(y), "task": task}
    remark = {"remark": "; ".join(metrics.remarks(answers)) or None}
    if metric is not None:
        return {**about, **metrics.measured(answers, constant, [metric]), **remark}
    mistakes = {"confusion": confusion(answers)} if classification else {}
    return {**about, **metrics.measured(answers, constant), **remark, **mistakes}


def _check_kind(y: np.ndarray, name: str, model: Model) -> None:
    text = y.dtype.kind == "U"
    trained_on_text = model.classes is not None and isinstance(model.classes[0], str)
    if text != trained_on_text:
        held, expected = ("text", "numbers") if text else ("numbers", "text")
        raise ValueError(f"the target {name!r} holds {held}, but the model predicts {expected}")
