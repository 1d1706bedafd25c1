"""`gramian fit`: train a model, streaming the rows, and save it."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__, fitting, solvers
from ..._files.atomic import write_atomically
from ...callbacks import Checkpoint, Progress, Validate
from ...callbacks.checkpoint_file import check_is_checkpoint
from ...fitting import Fitted, Generators, InterruptedFit
from ...fitting.uncertainty.refit import Refit
from ...model import Model, load_model
from ...scoring.comparison import named_metrics
from ...scoring.coverage import LEVELS_KEY, levels_of
from ...scoring.predictions import Predictions
from ...scoring.table import CONSTANT_OF_TASK, MAIN_METRIC, METRIC_TABLE, task_of
from ...scoring.truth import DIGEST_KEY
from ...solvers.loop.state import VALID_ERROR, VALID_RMSE
from ..inputs import task
from ..inputs.training import Prepared, Training, open_training
from ..options import parsing
from ..options.options import FitOptions
from ..options.settings import check, generators, settings_of
from ..outputs.files import check_outputs
from ..outputs.held_out import EARLY_STOPPING_OPTIMISM, held_out_errors
from ..outputs.messages import message, remark
from ..outputs.progress import command_progress
from ..outputs.report import Report, to_json
from ..outputs.signals import report_interruption
from ..outputs.uncertainty import NO_CALIBRATION, Calibration, check_std, save_with_std


def fit(
    data: Path,
    options: FitOptions,
    out: Path,
    history: Path | None,
    std: bool = False,
    calibration: Calibration = NO_CALIBRATION,
    checkpoint: Checkpoint | None = None,
) -> Report:
    """Train a model, save it, and report on the fit."""
    start = time.perf_counter()
    # 1. Options and files: errors before any data are read.
    check(options)
    path = None if checkpoint is None else checkpoint.path
    check_files(data, options, {"out": out, "checkpoint": path, "history": history})
    settings = settings_of(options)
    with (
        report_interruption(path, "fit", "iteration"),
        command_progress(settings.max_iter) as shown,
    ):
        # 2. The data, and checks that need them.
        training = open_training(data, options)
        check_metric(training, options)
        prepared = training.prepare(
            settings,
            generators(options),
            lambda whole: calibration.divide(whole, options.seed),
        )
        fitting.check_memory(prepared.settings, prepared.data.rows, prepared.training.targets)
        if std:
            check_std(prepared.settings, prepared.data.coded)
        remark(task.reason(training.y, options))  # after all checks
        # 3. The fit, which an interruption also ends with a saved model.
        fitted = _fit_or_save(prepared, options, checkpoint, shown, out, history, start)
    # 4. Saved first: an error in deviations or intervals does not lose the fit.
    report = _save_fit(fitted, prepared, options, out, history, start)
    if std:
        save_with_std(load_model(out), out, prepared.data, fitted.closed_form, settings.limit)
    rows = prepared.data, prepared.calibration

    def build_refit(model: Model, rng: Generators) -> Refit:
        return Refit.of_fit(model, fitted, prepared.settings, prepared.data, rng)

    calibration.save(out, *rows, build_refit, options.seed)
    return report


def _fit_or_save(
    prepared: Prepared,
    options: FitOptions,
    checkpoint: Checkpoint | None,
    shown: Progress,
    *files: Any,
) -> Fitted:
    """Fit a model; if an interruption or an error ends the fit, save its last state."""
    try:
        return _fit_model(prepared, options, checkpoint, shown)
    except InterruptedFit as error:
        # As a note: `report_interruption` writes it together with the way to resume.
        error.add_note(_saved_anyway(error.fitted, prepared, options, *files))
        raise
    except Exception as error:
        if (until := fitting.interrupted_model(error)) is not None:
            outcome = _saved_anyway(until, prepared, options, *files)
            message("warning", f"an error ended the fit; {outcome}")
        raise


def _save_fit(
    fitted: Fitted,
    prepared: Prepared,
    options: FitOptions,
    out: Path,
    history: Path | None,
    start: float,
) -> Report:
    """Write the model and the history, and return the report."""
    # Early stopping held out rows by itself: the report counts only rows that were fitted.
    prepared = prepared if fitted.held_out is None else prepared.without(fitted.held_out)
    about = _about(prepared, options, fitted, time.perf_counter() - start)
    table = prepared.training.source
    model = replace(fitted.model, info={**about, "columns": list(table.columns)})
    model.save(out)
    if history is not None:
        write_atomically(history, lambda part: write_history(part, history, fitted.history))
    report = {"model": out, **about, "kernel": model.kernel.to_dict()}
    return report if prepared.columns is None else {**report, "columns": prepared.columns}


def _saved_anyway(
    fitted: Fitted, prepared: Prepared, options: FitOptions, out: Path, *more: Any
) -> str:
    """Write the model of an interrupted fit, and return a note about it."""
    kept_iteration = fitted.iteration if fitted.best_iteration is None else fitted.best_iteration
    try:
        _save_fit(fitted, prepared, options, out, *more)
    except OSError as error:
        # A full disk must not hide why the fit ended.
        return f"{out} could not be written: {error.strerror or error}"
    return f"{out} holds the model of iteration {kept_iteration}"


def check_files(data: Path, options: FitOptions, outputs: Mapping[str, Path | None]) -> None:
    """Raise an error, before any work, for outputs that cannot be written or are inputs.

    - `outputs`: files by the names of their options: ``out``, ``checkpoint``, ``history``.
    """
    held_out = None if options.validation is None else parsing.validation(options.validation)
    check_outputs(outputs, [data, held_out] if isinstance(held_out, Path) else [data])
    checkpoint, history = outputs.get("checkpoint"), outputs.get("history")
    if checkpoint is not None:
        check_is_checkpoint(checkpoint)
    if history is not None and history.suffix.lower() not in (".json", ".csv"):
        raise ValueError(f"--history {history} must end in .json or .csv")


def check_metric(training: Training, options: FitOptions) -> None:
    """Raise ValueError for a metric of the other task, or without rows to measure it on."""
    if options.metric is None:
        return
    named_metrics(options.metric, task_of(training.classification))
    if options.validation is None and not settings_of(options).early_stopping:
        raise ValueError(
            "--metric requires held-out rows; give --validation with a fraction or a file"
        )


def _fit_model(
    prepared: Prepared,
    options: FitOptions,
    checkpoint: Checkpoint | None,
    shown: Progress,
) -> Fitted:
    held_out, y = prepared.held_out, prepared.training.held_out_y
    callbacks: list[Callable[..., Any]] = []
    if held_out is not None and y is not None and not prepared.settings.is_nonlinear:
        callbacks.append(Validate(held_out, prepared.encode(y), coded=prepared.data.coded))
    if checkpoint is not None:
        callbacks.append(checkpoint)
    settings = replace(prepared.settings, callbacks=[*callbacks, shown])
    fitted = fitting.fit(settings, prepared.data, rng=generators(options))
    for shortfall in (fitted.end_of_path(), fitted.stall_warning() or fitted.iteration_warning()):
        if shortfall is not None:
            message("warning", shortfall)
    return fitted


def _about(
    prepared: Prepared, options: FitOptions, fitted: Fitted, seconds: float
) -> dict[str, Any]:
    """Return facts about the fit, for the report and for `Model.info`."""
    n, d = len(prepared.training.y), prepared.data.rows.shape[1]
    validation = _validation(prepared, fitted, options.metric)
    if validation is not None and fitted.best_iteration is not None:
        validation["remark"] = EARLY_STOPPING_OPTIMISM
    return {
        "version": __version__,
        "task": "classification" if prepared.training.classification else "regression",
        "target": options.target,
        "rows": n,
        DIGEST_KEY: prepared.training.digest,
        "features": d,
        "method": "one fit",
        "asked_for_by": list(options.of_a_model),
        "landmarks": None if fitted.index is None else len(fitted.index),
        "penalty": fitted.penalty,
        "solver": solvers.name_of(fitted.solver),
        "iterations": max(fitted.iteration, 1),
        "stop_reason": fitted.reason,
        "seconds": seconds,
        "baseline": prepared.training.constant,
        LEVELS_KEY: levels_of(prepared.settings.loss),
        "best_iteration": fitted.best_iteration,
        "validation": validation,
    }


def _validation(prepared: Prepared, fitted: Fitted, metric: str | None) -> dict[str, Any] | None:
    """Return the errors of the model and of the best constant on the held-out rows."""
    training, y, metrics_row = prepared.training, prepared.training.held_out_y, fitted.metrics
    model, other_loss = fitted.model, prepared.settings.is_nonlinear
    if y is None or prepared.held_out is None or not (other_loss or VALID_RMSE in metrics_row):
        return None  # without VALID_RMSE: interrupted before the first validation
    constant, kind = training.constant, task_of(model.classes)
    if constant is None or (model.classes is None and model.outputs > 1):
        return None  # several targets, or several quantiles of one target
    if other_loss and metric is None:
        metric = "log_loss" if training.classification else "rmse"
    if metric is not None:
        values = model.predict(prepared.held_out, engine=fitted.engine)
        chances = None if model.classes is None else model.class_map
        return held_out_errors(y, values, model.classes, constant, metric, chances)
    name = MAIN_METRIC[kind]
    always = Predictions(y, np.full(y.shape, constant), classes=tuple(model.classes or ()))
    return {
        "rows": len(y),
        name: metrics_row[VALID_ERROR if training.classification else VALID_RMSE],
        f"{name}_of_{CONSTANT_OF_TASK[kind]}": always.measure(METRIC_TABLE[name]),
    }


def write_history(part: Path, named: Path, history: list[dict[str, Any]]) -> None:
    """Write one row per iteration, in the format of the suffix of `named`."""
    with part.open("w", newline="", encoding="utf-8") as file:
        if named.suffix.lower() == ".json":
            file.write(to_json(history) + "\n")
            return
        # Rows may have different keys: only some iterations measure the validation error.
        columns = list(dict.fromkeys(key for row in history for key in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(history)
