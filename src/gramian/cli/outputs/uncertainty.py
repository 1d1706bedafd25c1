"""Uncertainty of predictions: calibration, intervals and sets, and standard deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ... import fitting
from ..._messages.checks import as_share, join_words
from ..._messages.errors import SETTING_FORM, ParameterError, Text
from ...conformal import names as conformal_names
from ...data import RowSource
from ...model import Model, load_model
from ...scoring.coverage import conformal_of

SET, BETWEEN = "set", "|"
"""Column of the prediction sets, and separator of their labels."""


@dataclass(frozen=True)
class Calibration:
    """Options of the calibration of intervals.

    - `method`: name of a conformal method; None for no intervals.
    - `groups`: column whose values are groups.
    """

    method: str | None = None
    groups: str | None = None

    def divide(self, dataset: fitting.Whole, seed: int) -> fitting.DividedRows:
        """Split training and calibration rows, as the estimators do."""
        if self.method is None and self.groups is not None:
            problem = Text("needs {conformal}, such as {conformal='split'}")
            raise ParameterError("conformal_groups", self.groups, problem, form=SETTING_FORM)
        return fitting.divide_calibration(
            dataset,
            self.method,
            self.groups,
            lambda: fitting.conformal_stream(np.random.RandomState(seed)),
        )

    def save(
        self,
        out: Path,
        data: fitting.TrainingData,
        held_data: fitting.TrainingData | None,
        build_refit: Callable[[Model, fitting.Generators], fitting.Refit],
        seed: int,
    ) -> None:
        """Calibrate the intervals of a saved model, and save it again."""
        if self.method is None:
            return
        # The saved model, not the model of the fit: --std may have added deviations to it.
        model = load_model(out)
        conformal = fitting.calibrate_model(
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
    ends = conformal.intervals(model, rows, level, **settings)
    columns = ends.reshape(len(ends), -1).T
    return dict(zip(names_of_columns(model, names), columns, strict=True))


def check_std(settings: fitting.FitSettings, classes: bool, *, is_blend: bool = False) -> None:
    """Raise ValueError, before any work, if a model cannot have standard deviations."""
    if classes:
        raise ValueError("--std requires a regression, but this is a classification; leave it out")
    reasons = {
        "--loss": settings.is_nonlinear,
        "--early-stopping": settings.early_stopping,
        "--cells": settings.cells is not None,
        "--blend": is_blend,
    }
    for option, is_there in reasons.items():
        if is_there:
            raise ValueError(
                f"--std requires a fit in closed form, without {option}; leave one out"
            )


def save_with_std(
    model: Model,
    out: Path,
    data: fitting.TrainingData,
    penalties: Callable[[], Sequence[float]],
    limit: int | None,
) -> None:
    """Compute the standard deviations of a saved model, and save it again.

    Raise ValueError if the model cannot have them; the saved model stays.
    """
    try:
        # The model is saved already: an error must not lose a long fit.
        with_deviations, _ = fitting.with_variance(model, data, penalties(), limit)
    except ValueError as error:
        text = Text("{} holds the model without standard deviations: {}", out, error)
        raise ValueError(text) from error
    with_deviations.save(out)


def std_columns(names: Sequence[str], deviations: np.ndarray) -> dict[str, np.ndarray]:
    """Return a column of standard deviations for each named prediction."""
    return {f"{name}_std": column for name, column in zip(names, deviations.T, strict=True)}
