"""Conformal prediction: rows that a fit holds back, and the intervals or sets from their errors."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

from ...fitting import Divided, TrainingData, Whole
from ...fitting.uncertainty.conformal import check_method, held_back, make_conformal
from ...model.uncertainty.conformal import Conformal
from .base import KernelRidgeModel


def divide_rows(estimator: KernelRidgeModel, whole: Whole) -> Divided:
    """Return the rows to learn from, and the rows that are held back, if any are.

    Raises
    ------
    ValueError
        If there is no such method, or ``warm_start`` is set.
    """
    method = estimator.conformal
    check_method(method)
    if method is not None and getattr(estimator, "warm_start", False):
        raise ValueError(
            f"conformal={method!r} needs rows that no fit has seen, and "
            "warm_start=True goes on from one that may have; leave one of them out"
        )
    if method != "split":
        return whole.without(None)
    _, calibration = held_back(whole.count, estimator._draws(), whole.classes)
    return whole.without(calibration)


def calibrate_model(
    estimator: KernelRidgeModel, data: TrainingData, held: TrainingData | None
) -> None:
    """Give the model its intervals, if they come with the fit."""
    if estimator.conformal is not None:
        _calibrate(estimator, data, held)


def calibrated_intervals(estimator: KernelRidgeModel) -> Conformal:
    """Return the intervals of a fitted model, calibrated now if they did not come with the fit."""
    conformal = estimator.model_.conformal
    if conformal is None:
        if estimator._training is None:
            raise ValueError(
                "this model was fitted without intervals, and copies, loaded models and "
                "partial_fit have no rows of the training to make them with; fit with "
                "conformal='split'"
            )
        conformal = _calibrate(estimator, estimator._training, None)
    return conformal


def _calibrate(
    estimator: KernelRidgeModel, data: TrainingData, held: TrainingData | None
) -> Conformal:
    """Calibrate by the fit itself, by folds, or by a new fit to fewer rows."""
    data = data.without_zero_weights()
    conformal = make_conformal(
        estimator.conformal, estimator._refit(data), data, held, estimator._state
    )
    estimator.model_ = replace(estimator.model_, conformal=conformal)
    return conformal


def warn_if_too_few(conformal: Conformal, level: float) -> None:
    """Warn where so few rows have scores that intervals are infinite."""
    if level > conformal.least_level():
        needed = math.ceil(level / (1 - level) - 1e-9)
        warnings.warn(
            f"{conformal.count} held-back rows say nothing about a level of {level:g}, which needs "
            f"{needed}: intervals are infinite, and sets have all classes",
            UserWarning,
            stacklevel=3,
        )
