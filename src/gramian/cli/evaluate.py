"""`gramian evaluate`: the error of a model on a table, beside that of a constant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._checks import as_bytes
from ..data import as_table, target_column
from ..data.columns import check_columns
from ..model import KernelModel
from .open_for_model import open_for_model
from .report import Report


def evaluate(model: Path, data: Path, target: str | None, memory_limit: str, engine: str) -> Report:
    """Report the errors of predictions for the rows of a table."""
    loaded = KernelModel.load(model)
    name = target or loaded.info.get("target")
    if name is None:
        raise ValueError(f"{model} does not say what it predicts: give --target")
    table = as_table(data)
    check_columns(table.where, table.names, [name])
    y = target_column(table, [name])
    _check_kind(y, name, loaded)
    rows = open_for_model(loaded, table, name)
    settings: dict[str, Any] = {
        "engine": engine,
        "memory_bytes": as_bytes(memory_limit, "--memory-limit"),
    }
    about = {"model": str(model), "data": str(data), "target": name, "rows": len(y)}
    baseline = loaded.info.get("baseline")
    if loaded.classes is not None:
        labels = np.asarray(loaded.predict_labels(rows, **settings))
        return {**about, "task": "classification", **label_errors(y, labels, baseline)}
    predicted = loaded.predict(rows, **settings).numpy()
    if predicted.shape[1] > 1:
        raise ValueError(f"{model} predicts {predicted.shape[1]} targets; evaluate takes one")
    return {**about, "task": "regression", **number_errors(y, predicted[:, 0], baseline)}


def _check_kind(y: np.ndarray, name: str, model: KernelModel) -> None:
    text = y.dtype.kind == "U"
    trained_on_text = model.classes is not None and isinstance(model.classes[0], str)
    if text != trained_on_text:
        held, expected = ("text", "numbers") if text else ("numbers", "text")
        raise ValueError(f"the target {name!r} holds {held}, but the model predicts {expected}")


def number_errors(
    y: np.ndarray, predicted: np.ndarray, mean: int | float | None = None
) -> dict[str, float]:
    """Return the errors of a regression.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
    mean : float, optional
        What the mean predictor says: the mean of the training targets; that of `y` if None.

    Returns
    -------
    dict
        ``rmse``, ``mae``, ``r2`` (NaN if all targets are equal), ``rmse_of_mean``.
    """
    error = predicted - y
    squares = float(np.square(error).sum())
    spread = float(np.square(y - y.mean(dtype=np.float64)).sum(dtype=np.float64))
    constant = y.mean(dtype=np.float64) if mean is None else mean
    return {
        "rmse": (squares / len(y)) ** 0.5,
        "mae": float(np.abs(error).mean()),
        "r2": 1 - squares / spread if spread > 0 else float("nan"),
        "rmse_of_mean": float(np.square(y - constant).mean(dtype=np.float64)) ** 0.5,
    }


def label_errors(y: np.ndarray, predicted: np.ndarray, majority: Any = None) -> dict[str, float]:
    """Return the fraction of wrong labels, and that of always saying the majority class.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
    majority : label, optional
        The largest class of the training; that of `y` if None.
    """
    if majority is None:
        classes, counts = np.unique(y, return_counts=True)
        majority = classes[counts.argmax()]
    return {
        "error": float((predicted != y).mean()),
        "error_of_majority": float((y != majority).mean()),
    }
