"""`gramian fit`: train a model, streaming the rows, and save it."""

from __future__ import annotations

import contextlib
import csv
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__, solvers
from .._atomic import write_atomically
from ..callbacks import Checkpoint, ProgressBar, Validate
from ..callbacks.state_file import check_is_checkpoint
from ..data import check_finite, open_rows
from ..estimators import KernelRidge, KernelRidgeClassifier
from ..model import KernelModel
from ..problems import Problem
from ..solvers import State
from . import parsing
from .estimator import check, make_estimator
from .messages import message
from .options import FitOptions
from .outputs import check_outputs
from .report import Report, to_json
from .signals import reason
from .training import Training, open_training

Estimator = KernelRidge | KernelRidgeClassifier


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
        planned = make_estimator(options, training.classification)
        planned.check_memory(training.train.rows, targets=training.targets)
        training = _ready(training.holding(), data, options)
        estimator = _fitted(training, options, saved)
    about = _about(training, options, estimator, time.perf_counter() - start)
    model = _model(estimator, training, about)
    model.save(out)
    if history is not None:
        write_atomically(history, lambda part: _write_history(part, history, estimator.history_))
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
    if history is not None and history.suffix not in (".json", ".csv"):
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


@dataclass(frozen=True)
class _InUnits:
    """Multiplies the validation error by the scale of the targets: it is then in their units."""

    scale: float

    def __call__(self, problem: Problem, state: State) -> None:
        state.metrics["valid_rmse"] *= self.scale


def _fitted(training: Training, options: FitOptions, checkpoint: Checkpoint | None) -> Estimator:
    callbacks: list[Callable[..., Any]] = []
    if training.held_out is not None:
        callbacks.append(Validate(training.held_out.rows, training.held_out.y))
        if training.target is not None:
            callbacks.append(_InUnits(float(training.target.scale)))
    if checkpoint is not None:
        callbacks.append(checkpoint)
    with contextlib.ExitStack() as stack:
        if sys.stderr.isatty():
            callbacks.append(stack.enter_context(ProgressBar(options.max_iter)))
        estimator = make_estimator(options, training.classification, callbacks)
        return estimator.fit(training.train.rows, training.train.y)


def _about(
    training: Training, options: FitOptions, estimator: Estimator, seconds: float
) -> dict[str, Any]:
    """Return what is reported, and kept in the model."""
    n, d = training.train.rows.shape
    index = estimator.landmark_index_
    return {
        "version": __version__,
        "task": "classification" if training.classification else "regression",
        "target": options.target,
        "rows": n,
        "features": d,
        "landmarks": None if index is None else len(index),
        "penalty": estimator.penalty_,
        "solver": solvers.name_of(estimator.solver_),
        "iterations": estimator.n_iter_,
        "stop_reason": estimator.stop_reason_,
        "seconds": seconds,
        "baseline": _baseline(training),
        "validation": _validation(training, estimator.history_[-1]),
    }


def _baseline(training: Training) -> Any:
    """Return the best constant prediction: the mean of the target, or the largest class."""
    if training.classification:
        classes, counts = np.unique(training.train.y, return_counts=True)
        return classes[counts.argmax()].item()
    if training.target is not None:
        return float(training.target.mean)
    return float(training.train.y.mean(dtype=np.float64))


def _validation(training: Training, last: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error on the held-out rows, beside that of the best constant."""
    if training.held_out is None:
        return None
    y, n = training.held_out.y, len(training.held_out.y)
    if training.classification:
        wrong = float((y != _baseline(training)).mean())
        return {"rows": n, "error": last["valid_error"], "error_of_majority": wrong}
    scale, mean = 1.0, _baseline(training)
    if training.target is not None:
        scale, mean = float(training.target.scale), 0.0
    constant = scale * float(np.sqrt(np.mean(np.square(y - mean, dtype=np.float64))))
    return {"rows": n, "rmse": last["valid_rmse"], "rmse_of_mean": constant}


def _model(estimator: Estimator, training: Training, about: dict[str, Any]) -> KernelModel:
    model: KernelModel = estimator.model_
    target = training.target
    return replace(
        model,
        standardizer=training.features,
        target_shift=None if target is None else target.mean,
        target_scale=None if target is None else target.scale,
        info={**about, "columns": list(training.columns)},
    )


def _write_history(part: Path, named: Path, history: list[dict[str, Any]]) -> None:
    """Write one row per iteration; `named` says in which format."""
    with part.open("w", newline="", encoding="utf-8") as file:
        if named.suffix == ".json":
            file.write(to_json(history) + "\n")
            return
        columns = list(dict.fromkeys(key for row in history for key in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(history)
