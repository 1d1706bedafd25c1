"""`gramian fit`: train a model, streaming the rows, and save it."""

from __future__ import annotations

import contextlib
import csv
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__, fitting, solvers
from .._atomic import write_atomically
from ..callbacks import Checkpoint, ProgressBar, Validate
from ..callbacks.state_file import check_is_checkpoint
from ..data import check_finite, open_rows
from ..fitting import Fitted, Generators, InterruptedFit
from ..model import KernelModel
from ..solvers.metrics import VALID_ERROR, VALID_RMSE
from . import parsing
from .messages import message
from .options import FitOptions
from .outputs import check_outputs
from .report import Report, to_json
from .settings import check, settings_of
from .signals import reason
from .training import Training, open_training


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
    with _resumable(checkpoint):
        training = open_training(data, options)
        fitting.check_memory(settings_of(options), training.train.rows, training.targets)
        training = _ready(training.holding(), data, options)
        try:
            fitted = _fitted(training, options, saved)
        except InterruptedFit as error:
            error.add_note(_saved_anyway(error.fitted, training, options, out, history, start))
            raise
    return _saved(fitted, training, options, out, history, start)


def _saved(
    fitted: Fitted,
    training: Training,
    options: FitOptions,
    out: Path,
    history: Path | None,
    start: float,
) -> Report:
    """Write the model and the history, and report how the fit went."""
    training = training if fitted.held_out is None else training.without(fitted.held_out)
    about = _about(training, options, fitted, time.perf_counter() - start)
    model = _model(fitted, training, about)
    model.save(out)
    if history is not None:
        write_atomically(history, lambda part: _write_history(part, history, fitted.history))
    return {"model": str(out), **about, "kernel": model.kernel.to_dict()}


def _saved_anyway(
    fitted: Fitted, training: Training, options: FitOptions, out: Path, *more: Any
) -> str:
    """Write what an interrupted fit has come to, and return what there is to say about it."""
    kept = fitted.iteration if fitted.best_iteration is None else fitted.best_iteration
    try:
        _saved(fitted, training, options, out, *more)
    except OSError as error:
        return f"{out} could not be written: {error.strerror or error}"
    return f"{out} holds the model of iteration {kept}"


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
            kept = "; ".join(getattr(error, "__notes__", []))
            why = f"{why}; {kept}" if kept else why
            if checkpoint is None:
                saved = "" if kept else "; nothing is saved"
                message("", f"{why}{saved}. With --checkpoint FILE, a fit can be resumed")
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


def _fitted(training: Training, options: FitOptions, checkpoint: Checkpoint | None) -> Fitted:
    data, held_out = training.data(), training.held_out
    callbacks: list[Callable[..., Any]] = []
    if held_out is not None:
        scale = 1.0 if training.target is None else float(training.target.scale)
        y = training.encoded(held_out.y)
        callbacks.append(Validate(held_out.rows, y, coded=data.coded, scale=scale))
    if checkpoint is not None:
        callbacks.append(checkpoint)
    rng = Generators.seeded(np.random.RandomState(options.seed), held_out=options.early_stopping)
    with contextlib.ExitStack() as stack:
        if sys.stderr.isatty():
            callbacks.append(stack.enter_context(ProgressBar(options.max_iter)))
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
        "best_iteration": fitted.best_iteration,
        "validation": _validation(training, fitted),
    }


def _baseline(training: Training) -> Any:
    """Return the best constant prediction: the mean of the target, or the largest class."""
    if training.classification:
        classes, counts = np.unique(training.train.y, return_counts=True)
        return classes[counts.argmax()].item()
    if training.target is not None:
        return float(training.target.mean)
    return float(training.train.y.mean(dtype=np.float64))


def _validation(training: Training, fitted: Fitted) -> dict[str, Any] | None:
    """Return the error on the held-out rows, beside that of the best constant."""
    found = fitted.metrics
    if training.held_out is None or VALID_RMSE not in found:  # interrupted before it was known
        return None
    y, n = training.held_out.y, len(training.held_out.y)
    if training.classification:
        wrong = float((y != _baseline(training)).mean())
        return {"rows": n, "error": found[VALID_ERROR], "error_of_majority": wrong}
    scale, mean = 1.0, _baseline(training)
    if training.target is not None:
        scale, mean = float(training.target.scale), 0.0
    constant = scale * float(np.sqrt(np.mean(np.square(y - mean, dtype=np.float64))))
    unit = 1.0 if fitted.held_out is None else scale  # the fit itself knows standardised targets
    return {"rows": n, "rmse": unit * found[VALID_RMSE], "rmse_of_mean": constant}


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
