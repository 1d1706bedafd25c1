"""Prediction intervals and sets: calibration, output columns and coverage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..._messages.checks import as_share, join_words
from ..._messages.errors import SETTING_FORM, ParameterError, Text
from ...conformal import ConformalPredictor
from ...conformal import names as conformal_names
from ...data import RemoteColumns, RowSource, default_block_size, subset
from ...fitting import DividedRows, Generators, TrainingData, Whole
from ...fitting.uncertainty.conformal_calibration import (
    calibrate_model,
    divide_calibration,
    draws_of,
)
from ...fitting.uncertainty.refit import Refit
from ...model import Model, load_model
from ...model.mapped_predictions import intervals_at, sets_at
from ...scoring.coverage import SET_MEANS, Covering
from ...scoring.predictions import class_numbers
from ...scoring.ranks import ALL_BINS, Ranks
from ...scoring.reductions import Means
from .messages import message

SET, BETWEEN = "set", "|"
"""Column of the prediction sets, and separator of their labels."""

REPORTED_LEVEL = 0.9
"""Level of the coverage that `gramian evaluate` reports."""

ROUNDING_STEPS = 1 << 22
"""Steps of float64 numbers, 1e-9 of the width, by which intervals of one width may differ."""


@dataclass(frozen=True)
class Calibration:
    """Options of the calibration of intervals.

    Attributes
    ----------
    method : str or None
        Name of a conformal method; None for no intervals.
    groups : str or None
        Column whose values are groups.
    """

    method: str | None = None
    groups: str | None = None

    def divide(self, dataset: Whole, seed: int) -> DividedRows:
        """Split training and calibration rows, as the estimators do."""
        if self.method is None and self.groups is not None:
            problem = Text("needs {conformal}, such as {conformal='split'}")
            raise ParameterError("conformal_groups", self.groups, problem, form=SETTING_FORM)
        return divide_calibration(
            dataset, self.method, self.groups, lambda: draws_of(np.random.RandomState(seed))
        )

    def save(
        self,
        out: Path,
        data: TrainingData,
        held_data: TrainingData | None,
        build_refit: Callable[[Model, Generators], Refit],
        seed: int,
    ) -> None:
        """Calibrate the intervals of a saved model, and save it again."""
        if self.method is None:
            return
        # The saved model, not the model of the fit: --std may have added deviations to it.
        model = load_model(out)
        conformal = calibrate_model(
            self.method,
            self.groups,
            partial(build_refit, model),
            data,
            held_data,
            lambda: np.random.RandomState(seed),
        )
        replace(model, conformal=conformal).save(out)


NO_CALIBRATION = Calibration()


def check_level(level: float, model: Model, path: Path) -> None:
    """Raise ValueError for an invalid level or no intervals."""
    as_share(level, "interval")
    if model.conformal is None:
        names = join_words(conformal_names())
        raise ValueError(
            f"{path} has no intervals: fit it with --conformal split, or another of {names}"
        )


def warn_of_shortfalls(conformal: ConformalPredictor, level: float, rows: RowSource) -> None:
    """Write a warning if scores, or these of groups, are too few for a level."""
    for shortfall in conformal.shortfalls(level, rows):
        message("warning", shortfall)


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
        sets = conformal.sets(model, rows, level, **settings)
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


def conformal_of(model: Model) -> ConformalPredictor:
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
    if model.outputs == 1 or model.classes is not None:
        warn_of_shortfalls(conformal, REPORTED_LEVEL, rows)
    if model.classes is not None:
        means = _of_sets(model, conformal, rows, y, settings)
        report = _entries(means, "coverage", "classes")
        groups = _of_groups(model, conformal, rows, y, settings)
        return {f"sets_of_{REPORTED_LEVEL:g}": {**report, **groups}}
    if model.outputs > 1:
        return {}
    means, ranks = _of_intervals(model, conformal, rows, y, settings)
    report = _entries(means, "coverage", "width")
    # Equal widths have no thirds, and fewer than three rows have fewer thirds than names.
    if int(ranks.bins[-1] - ranks.bins[0]) << ranks.dropped > ROUNDING_STEPS:
        shares = zip(("narrow", "middle", "wide"), ranks.shares(3), strict=False)
        report |= {f"coverage_of_{name}": share for name, share in shares}
    groups = _of_groups(model, conformal, rows, y, settings)
    return {f"intervals_of_{REPORTED_LEVEL:g}": {**report, **groups}}


def _of_groups(
    model: Model,
    conformal: ConformalPredictor,
    rows: RowSource,
    y: np.ndarray | RemoteColumns,
    settings: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """Return the coverage of each group of local rows, if intervals are calibrated by groups."""
    if conformal.groups is None or isinstance(y, RemoteColumns):
        return {}
    shares, codes = {}, conformal.groups.codes(rows)
    for code, label in enumerate(conformal.groups.labels):
        index = (codes == code).nonzero()[:, 0]
        if len(index):
            part = subset(rows, index), y[index.numpy()]
            if model.classes is not None:
                means = _of_sets(model, conformal, *part, settings)
            else:
                means, _ = _of_intervals(model, conformal, *part, settings)
            shares[label] = _entries(means, "coverage")["coverage"]
    return {"coverage_of_groups": shares}


def _entries(means: Means, *names: str) -> dict[str, float]:
    return dict(zip(names, means.states[0].tolist(), strict=False))


def _of_intervals(
    model: Model,
    conformal: ConformalPredictor,
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
    conformal: ConformalPredictor,
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
    sets = conformal.sets(model, rows, REPORTED_LEVEL, **settings).double()
    return SET_MEANS(0, sets, torch.from_numpy(class_numbers(y, classes)))
