"""Intervals and sets: made with a fit, written beside predictions, and compared with the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._checks import as_share
from ..data import RowSource
from ..fitting import Divided, TrainingData, Whole
from ..fitting.again import Again
from ..fitting.conformal import check_method, draws_of, held_back, made
from ..model import Model, load_model
from ..model.conformal import Conformal
from .messages import message

SET, BETWEEN = "set", "|"
"""The column of sets of classes, and what is between their labels there."""

LEVEL = 0.9
"""The level that `gramian evaluate` looks at."""


def divided(whole: Whole, method: str | None, seed: int) -> Divided:
    """Return the rows to learn from, and those that are held back, as the estimators do."""
    try:
        check_method(method)
    except ValueError as error:
        raise ValueError(f"--{error}") from None
    if method != "split":
        return whole.without(None)
    draws = draws_of(np.random.RandomState(seed))
    return whole.without(held_back(whole.count, draws, whole.classes)[1])


def save_with_intervals(
    out: Path,
    data: TrainingData,
    held: TrainingData | None,
    again: Callable[[Model], Again],
    method: str,
    seed: int,
) -> None:
    """Find what makes intervals of a model that was saved, and save it once more."""
    model = load_model(out)
    found = made(method, again(model), data, held, lambda: np.random.RandomState(seed))
    replace(model, conformal=found).save(out)  # type: ignore[type-var]


def check_level(given: float, model: Model, path: Path) -> None:
    """Raise ValueError for no level, or a model without intervals; warn of too high a one."""
    as_share(given, "--interval")
    if model.conformal is None:
        raise ValueError(f"{path} has no intervals: fit it with --conformal split, or cv+")
    if given > model.conformal.least_level():
        message(
            "warning",
            f"{model.conformal.count} held-back rows say nothing about a level of {given:g}: "
            "intervals are infinite, and sets have all classes",
        )


def names_of_columns(model: Model, names: Sequence[str]) -> list[str]:
    """Return the names of the columns of predictions with these names."""
    if model.classes is not None:
        return [SET]
    return [f"{name}_{end}" for name in names for end in ("lower", "upper")]


def interval_columns(
    model: Model, rows: RowSource, level: float, names: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return a column of lower and one of upper ends, or one of sets, for each prediction."""
    conformal = conformal_of(model)
    if model.classes is not None:
        sets = sets_of(model, conformal, rows, level, settings)
        texts = [
            BETWEEN.join(str(k) for k, there in zip(model.classes, row, strict=True) if there)
            for row in sets.tolist()
        ]
        return {SET: np.array(texts)}
    ends = conformal.intervals(model, rows, level, **settings).numpy()
    columns = ends.reshape(len(ends), -1).T
    return dict(zip(names_of_columns(model, names), columns, strict=True))


def conformal_of(model: Model) -> Conformal:
    """Return what makes intervals of a model that has it."""
    assert model.conformal is not None  # `check_level` has looked
    return model.conformal


def sets_of(
    model: Model, conformal: Conformal, rows: RowSource, level: float, settings: Mapping[str, Any]
) -> torch.Tensor:
    """Return the classes in the set of each row."""
    functions = [part.values or model for part in conformal.parts]
    chances = [f.predict_proba(rows, **settings) for f in functions]
    return conformal.sets(chances, level)


def coverage(
    model: Model, rows: RowSource, y: np.ndarray, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how often intervals, or sets, of a level of 0.9 hold the truth, and their size.

    Of intervals with one part, also by thirds of the spread that is predicted.
    """
    conformal = model.conformal
    if conformal is None or conformal.least_level() < LEVEL:
        return {}
    if model.classes is not None:
        sets = sets_of(model, conformal, rows, LEVEL, settings).numpy()
        inside = np.zeros(len(y), dtype=bool)
        for number, label in enumerate(model.classes):
            inside |= (y == label) & sets[:, number]
        found = {"coverage": float(inside.mean()), "classes": float(sets.sum(axis=1).mean())}
        return {f"sets_of_{LEVEL:g}": found}
    if model.outputs > 1:
        return {}
    low, high = conformal.intervals(model, rows, LEVEL, **settings).numpy()[:, 0].T
    inside, width = (low <= y) & (y <= high), high - low
    found = {"coverage": float(inside.mean()), "width": float(width.mean())}
    if width.min() < width.max():
        names = ("narrow", "middle", "wide")
        thirds = np.array_split(np.argsort(width, kind="stable"), 3)
        found |= {
            f"coverage_of_{name}": float(inside[some].mean())
            for name, some in zip(names, thirds, strict=True)
            if len(some)
        }
    return {f"intervals_of_{LEVEL:g}": found}


def intervals_in_words(conformal: Conformal | None) -> str | None:
    """Return what makes intervals on a line; None if nothing does."""
    if conformal is None:
        return None
    folds = len(conformal.parts)
    kind = "split" if folds == 1 else f"CV+ of {folds} folds"
    return f"{kind}: scores of {conformal.count:,} held-back rows"
