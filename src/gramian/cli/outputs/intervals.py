"""Prediction intervals and sets: calibration, output columns and coverage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..._messages.checks import as_share
from ...data import RemoteColumns, RowSource, default_block_size
from ...fitting import DividedRows, TrainingData, Whole
from ...fitting.uncertainty.conformal_calibration import (
    check_method,
    draws_of,
    held_back,
    make_conformal,
)
from ...fitting.uncertainty.refit import Again
from ...model import Model, load_model
from ...model.mapped_predictions import intervals_at, sets_at
from ...model.uncertainty.conformal import Conformal
from ...scoring.coverage import SET_MEANS, Covering
from ...scoring.predictions import class_numbers
from ...scoring.ranks import ALL_BINS, Ranks
from ...scoring.reductions import Means
from .messages import message

SET, BETWEEN = "set", "|"
"""Column of the prediction sets, and separator of their labels."""

REPORTED_LEVEL = 0.9
"""Level of the coverage that `gramian evaluate` reports."""


def divide_calibration(dataset: Whole, method: str | None, seed: int) -> DividedRows:
    """Split training and calibration rows, as the estimators do."""
    check_method(method)
    if method != "split":
        return dataset.without(None)
    draws = draws_of(np.random.RandomState(seed))
    return dataset.without(held_back(dataset.count, draws, dataset.classes)[1])


def save_with_intervals(
    out: Path,
    data: TrainingData,
    calibration: TrainingData | None,
    build_refit: Callable[[Model], Again],
    method: str,
    seed: int,
) -> None:
    """Calibrate the intervals of a saved model, and save it again."""
    # The saved model, not the model of the fit: --std may have added deviations to it.
    model = load_model(out)
    conformal = make_conformal(
        method, build_refit(model), data, calibration, lambda: np.random.RandomState(seed)
    )
    replace(model, conformal=conformal).save(out)


def check_level(level: float, model: Model, path: Path) -> None:
    """Raise ValueError for an invalid level or no intervals; warn of too high a level."""
    as_share(level, "interval")
    if model.conformal is None:
        raise ValueError(f"{path} has no intervals: fit it with --conformal split, or cv+")
    if level > model.conformal.least_level():
        message(
            "warning",
            f"{model.conformal.count} held-back rows are too few for a level of {level:g}: "
            "intervals are infinite, and sets have all classes",
        )


def names_of_columns(model: Model, names: Sequence[str]) -> list[str]:
    """Return the names of the interval columns for predictions with these names."""
    if model.classes is not None:
        return [SET]
    return [f"{name}_{end}" for name in names for end in ("lower", "upper")]


def interval_columns(
    model: Model, rows: RowSource, level: float, names: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return columns of lower and upper ends for each prediction, or a column of sets."""
    conformal = conformal_of(model)
    if model.classes is not None:
        sets = conformal.sets_at(model, rows, level, **settings)
        texts = [
            BETWEEN.join(
                str(k) for k, is_in_set in zip(model.classes, row, strict=True) if is_in_set
            )
            for row in sets.tolist()
        ]
        return {SET: np.array(texts)}
    ends = conformal.intervals(model, rows, level, **settings).numpy()
    columns = ends.reshape(len(ends), -1).T
    return dict(zip(names_of_columns(model, names), columns, strict=True))


def conformal_of(model: Model) -> Conformal:
    """Return the calibration of a model; `check_level` has refused models without one."""
    assert model.conformal is not None  # checked by `check_level`
    return model.conformal


def coverage(
    model: Model, rows: RowSource, y: np.ndarray | RemoteColumns, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the coverage and mean size of intervals or sets at level 0.9.

    Intervals of different widths also get the coverage by thirds of their widths, see
    `Ranks.shares`. A cluster sends sums and the binned widths of `Ranks`: with more distinct widths
    than bins, the thirds may be off by the rows of two bins.
    """
    conformal = model.conformal
    # Infinite intervals contain every target: their coverage is no measurement.
    if conformal is None or conformal.least_level() < REPORTED_LEVEL:
        return {}
    if model.classes is not None:
        means = _of_sets(model, conformal, rows, y, settings)
        return {f"sets_of_{REPORTED_LEVEL:g}": _entries(means, "coverage", "classes")}
    if model.outputs > 1:
        return {}
    means, ranks = _of_intervals(model, conformal, rows, y, settings)
    report = _entries(means, "coverage", "width")
    # Equal widths have no thirds, and fewer than three rows have fewer thirds than names.
    if len(ranks.bins) > 1:
        shares = zip(("narrow", "middle", "wide"), ranks.shares(3), strict=False)
        report |= {f"coverage_of_{name}": share for name, share in shares}
    return {f"intervals_of_{REPORTED_LEVEL:g}": report}


def _entries(means: Means, *names: str) -> dict[str, float]:
    return dict(zip(names, means.states[0].tolist(), strict=True))


def _of_intervals(
    model: Model,
    conformal: Conformal,
    rows: RowSource,
    y: np.ndarray | RemoteColumns,
    settings: Mapping[str, Any],
) -> tuple[Means, Ranks]:
    if isinstance(y, RemoteColumns):
        remote_ends = intervals_at(rows, model, conformal, REPORTED_LEVEL, **settings)
        return remote_ends.fold(Covering(), y, size=default_block_size(rows))
    ends = conformal.intervals(model, rows, REPORTED_LEVEL, **settings)[:, 0]
    return Covering(ALL_BINS)(0, ends, torch.from_numpy(y.astype(np.float64)))


def _of_sets(
    model: Model,
    conformal: Conformal,
    rows: RowSource,
    y: np.ndarray | RemoteColumns,
    settings: Mapping[str, Any],
) -> Means:
    classes = np.asarray(model.classes)
    if isinstance(y, RemoteColumns):
        table = torch.arange(len(classes), dtype=torch.float64)[:, None]
        truth = y.looked_up(classes, table, unknown=-1.0)
        remote_sets = sets_at(rows, model, conformal, REPORTED_LEVEL, **settings)
        return remote_sets.fold(SET_MEANS, truth, size=default_block_size(rows))
    sets = conformal.sets_at(model, rows, REPORTED_LEVEL, **settings).double()
    return SET_MEANS(0, sets, torch.from_numpy(class_numbers(y, classes)))


def intervals_in_words(conformal: Conformal | None) -> str | None:
    """Describe the calibration of intervals in one line; None without intervals."""
    if conformal is None:
        return None
    folds = len(conformal.parts)
    kind = "split" if folds == 1 else f"CV+ of {folds} folds"
    return f"{kind}: scores of {conformal.count:,} held-back rows"
