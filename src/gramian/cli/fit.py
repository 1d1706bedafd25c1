"""`gramian fit`: train a model, streaming the rows, and save it."""

from __future__ import annotations

import contextlib
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__, fitting, solvers
from .._atomic import write_atomically
from ..callbacks import Checkpoint, Validate
from ..callbacks.state_file import check_is_checkpoint
from ..data import check_finite, open_rows
from ..fitting import Fitted, Generators, TrainingData
from ..model import KernelModel
from . import metrics, parsing, task
from .held_out import held_out_errors
from .messages import message, remark
from .options import FitOptions
from .outputs import check_outputs
from .progress import progress
from .report import Report, to_json
from .settings import check, settings_of
from .signals import reason
from .training import Examples, Training, open_training


def fit(
    data: Path,
    options: FitOptions,
    out: Path,
    checkpoint: Path | None,
    history: Path | None,
    every_seconds: float = 60.0,
) -> Report:
    """Train a model, save it, and report how it went."""
    start = time.perf_counter()
    check(options)
    _check_files(data, options, out, checkpoint, history)
    saved = None if checkpoint is None else Checkpoint(checkpoint, every_seconds=every_seconds)
    with _resumable(checkpoint), progress(options.max_iter) as shown:
        training = open_training(data, options)
        why = task.reason(training.train.y, options)
        _check_metric(training, options)
        fitting.check_memory(settings_of(options), training.train.rows, training.targets)
        training = _ready(training.holding(), data, options)
        rows = training.data()
        remark(why)  # of the task, once nothing is to be refused
        fitted = _fitted(training, rows, options, saved, shown)
    about = _about(training, options, fitted, time.perf_counter() - start)
    model = _model(fitted, training, about)
    model.save(out)
    if history is not None:
        write_atomically(history, lambda part: _write_history(part, history, fitted.history))
    return {"model": str(out), **about, "kernel": model.kernel.to_dict()}


def _check_files(
    data: Path, options: FitOptions, out: Path, checkpoint: Path | None, history: Path | None
) -> None:
    held_out = None if options.validation is None else parsing.validation(options.validation)
    check_outputs(
        {"out": out, "checkpoint": checkpoint, "history": history},
        [data, held_out] if isinstance(held_out, Path) else [data],
    )
    if checkpoint is not None:
        check_is_checkpoint(checkpoint)
    if history is not None and history.suffix.lower() not in (".json", ".csv"):
        raise ValueError(f"--history {history} must end in .json or .csv")


@contextlib.contextmanager
def _resumable(checkpoint: Path | None) -> Iterator[None]:
    """Say how to go on if the user interrupts."""
    try:
        yield
    except KeyboardInterrupt as error:
        why = reason(error)
        with contextlib.suppress(OSError):  # the terminal may be gone
            if checkpoint is None:
                message(
                    "", f"{why}; nothing is saved. With --checkpoint FILE, a fit can be resumed"
                )
            elif checkpoint.exists():
                message("", f"{why}; to go on from {checkpoint}, run the same command again")
            else:
                message("", f"{why} before the first iteration; {checkpoint} is not yet written")
        raise


def _ready(training: Training, data: Path, options: FitOptions) -> Training:
    """Return rows and targets without missing values, standardised unless told otherwise."""
    try:
        if options.standardize:
            return training.standardized()
        training.check()
    except ValueError:
        check_finite(open_rows(data, training.columns), str(data))  # says which row of the file
        raise
    return training


def _fitted(
    training: Training,
    data: TrainingData,
    options: FitOptions,
    checkpoint: Checkpoint | None,
    shown: Sequence[Callable[..., Any]],
) -> Fitted:
    held_out = training.held_out
    callbacks: list[Callable[..., Any]] = []
    if held_out is not None:
        scale = 1.0 if training.target is None else float(training.target.scale)
        y = training.encoded(held_out.y)
        callbacks.append(Validate(held_out.rows, y, coded=data.coded, scale=scale))
    if checkpoint is not None:
        callbacks.append(checkpoint)
    rng = Generators.seeded(np.random.RandomState(options.seed))
    callbacks.extend(shown)
    fitted = fitting.fit(settings_of(options, callbacks), data, rng=rng)
    for shortfall in (fitted.end_of_path(), fitted.stalled() or fitted.unfinished()):
        if shortfall is not None:
            message("warning", shortfall)
    return fitted


def _about(
    training: Training, options: FitOptions, fitted: Fitted, seconds: float
) -> dict[str, Any]:
    """Return the facts that are reported, and kept in the model."""
    n, d = training.train.rows.shape
    return {
        "version": __version__,
        "task": "classification" if training.classification else "regression",
        "target": options.target,
        "rows": n,
        "features": d,
        "landmarks": None if fitted.index is None else len(fitted.index),
        "penalty": fitted.penalty,
        "solver": solvers.name_of(fitted.solver),
        "iterations": max(fitted.iteration, 1),
        "stop_reason": fitted.reason,
        "seconds": seconds,
        "baseline": _baseline(training),
        "validation": _validation(training, fitted, options.metric),
    }


def _baseline(training: Training) -> Any:
    """Return the best constant prediction: the mean of the target, or the largest class."""
    if training.classification:
        classes, counts = np.unique(training.train.y, return_counts=True)
        return classes[counts.argmax()].item()
    if training.target is not None:
        return float(training.target.mean)
    return float(training.train.y.mean(dtype=np.float64))


def _check_metric(training: Training, options: FitOptions) -> None:
    """Refuse a metric of another task, or one without rows to measure it on."""
    if options.metric is None:
        return
    metrics.check(options.metric, "classification" if training.classification else "regression")
    if training.held_out is None:
        raise ValueError(
            "--metric is measured on held-out rows: give --validation, a fraction or a file"
        )


def _validation(training: Training, fitted: Fitted, metric: str | None) -> dict[str, Any] | None:
    """Return the error on the held-out rows, beside that of the best constant."""
    if training.held_out is None:
        return None
    if metric is not None:
        return _measured(training, training.held_out, fitted, metric)
    y, n, last = training.held_out.y, len(training.held_out.y), fitted.history[-1]
    if training.classification:
        wrong = float((y != _baseline(training)).mean())
        return {"rows": n, "error": last["valid_error"], "error_of_majority": wrong}
    scale, mean = 1.0, _baseline(training)
    if training.target is not None:
        scale, mean = float(training.target.scale), 0.0
    constant = scale * float(np.sqrt(np.mean(np.square(y - mean, dtype=np.float64))))
    return {"rows": n, "rmse": last["valid_rmse"], "rmse_of_mean": constant}


def _measured(training: Training, held: Examples, fitted: Fitted, metric: str) -> dict[str, Any]:
    """Predict the held-out rows, which are standardised as the model expects them."""
    y, values = held.y, fitted.model.predict(held.rows, engine=fitted.engine).numpy()
    if training.target is not None:
        scale, mean = float(training.target.scale), float(training.target.mean)
        y, values = scale * y.astype(np.float64) + mean, scale * values + mean
    classes = fitted.model.classes
    return held_out_errors(y, values, classes, _baseline(training), metric)


def _model(fitted: Fitted, training: Training, about: dict[str, Any]) -> KernelModel:
    target = training.target
    return replace(
        fitted.model,
        standardizer=training.features,
        target_shift=None if target is None else target.mean,
        target_scale=None if target is None else target.scale,
        info={**about, "columns": list(training.columns)},
    )


def _write_history(part: Path, named: Path, history: list[dict[str, Any]]) -> None:
    """Write one row per iteration; `named` says in which format."""
    with part.open("w", newline="", encoding="utf-8") as file:
        if named.suffix.lower() == ".json":
            file.write(to_json(history) + "\n")
            return
        columns = list(dict.fromkeys(key for row in history for key in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(history)
