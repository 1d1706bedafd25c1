"""`gramian evaluate`: the errors of a model on a table, beside those of a constant."""

from __future__ import annotations

from pathlib import Path

from .._checks import as_bytes
from ..data import RemoteColumns
from ..model import Model, load_model
from . import metrics
from .confusion import confusion
from .evaluate_there import measured_there
from .intervals import coverage
from .outputs import check_outputs
from .quantiles import LEVELS, errors_of_quantiles
from .reliability import check_picture, draw
from .report import Report
from .truth import truth_of


def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    memory_limit: str,
    engine: str,
    metric: str | None = None,
    reliability: Path | None = None,
) -> Report:
    """Report metrics of the predictions for the rows of a table: all of them, or one."""
    check_outputs({"reliability": reliability}, [model, data])
    check_picture(reliability)
    loaded = load_model(model)
    task = _task(loaded, model, metric, reliability)
    truth = truth_of(loaded, model, data, target)
    name, y, rows = truth.name, truth.y, truth.rows
    memory = as_bytes(memory_limit, "--memory-limit")
    about = {"model": str(model), "data": str(data), "target": name, "rows": len(y), "task": task}
    if isinstance(y, RemoteColumns):
        found = measured_there(loaded, rows, y, metric, engine=engine, memory_bytes=memory)
        return {**about, **found}
    values = loaded.predict(rows, engine=engine, memory_bytes=memory).numpy()
    levels = loaded.info.get(LEVELS)
    if levels and metric is None:
        return {**about, **errors_of_quantiles(y, values, levels)}
    if loaded.classes is None and values.shape[1] > 1:
        one = "--metric" if levels else "evaluate"
        raise ValueError(f"{model} predicts {values.shape[1]} targets; {one} takes one")
    chances = None if loaded.classes is None else loaded.class_map
    answers = metrics.answers_of(y, values, loaded.classes, chances)
    if reliability is not None and answers.chances is not None:
        draw(reliability, y, answers.chances, answers.classes)
    found = {**about, **measured(loaded, answers, metric)}
    if metric is not None:
        return found
    return {**found, **coverage(loaded, rows, y, {"engine": engine, "memory_bytes": memory})}


def _task(loaded: Model, model: Path, metric: str | None, reliability: Path | None) -> str:
    """Return the task of a model; ValueError for what is asked of another one."""
    classification = loaded.classes is not None
    if reliability is not None and not classification:
        raise ValueError(f"--reliability is of probabilities, and {model} is a regression")
    task = metrics.CLASSIFICATION_TASK if classification else metrics.REGRESSION_TASK
    if metric is not None:
        metrics.check(metric, task)
    return task


def measured(loaded: Model, answers: metrics.Answers, metric: str | None) -> Report:
    """Return the metrics, beside those of a constant, and what there is to say about them."""
    constant = loaded.info.get("baseline")
    if constant is None:
        constant = metrics.best_constant(answers.y, bool(answers.classes))
    remark = {"remark": "; ".join(metrics.remarks(answers)) or None}
    if metric is not None:
        return {**metrics.measured(answers, constant, [metric]), **remark}
    mistakes = {"confusion": confusion(answers)} if answers.classes else {}
    return {**metrics.measured(answers, constant), **remark, **mistakes}
