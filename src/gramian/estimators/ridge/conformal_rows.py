"""Conformal prediction: calibration rows, and intervals or sets from their errors."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

from ...fitting import DividedRows, TrainingData, Whole
from ...fitting.uncertainty.conformal_calibration import check_method, held_back, make_conformal
from ...model.uncertainty.conformal import Conformal
from .base import KernelRidgeModel


def divide_rows(estimator: KernelRidgeModel, dataset: Whole) -> DividedRows:
    """Split the rows of a fit into training and calibration rows.

    Raises
    ------
    ValueError
        If the method is unknown, or ``warm_start`` is set.
    """
    method = estimator.conformal
    check_method(method)
    if method is not None and getattr(estimator, "warm_start", False):
        raise ValueError(
            f"conformal={method!r} cannot be combined with warm_start=True, because the last fit "
            "may have seen the calibration rows; leave one of them out"
        )
    # CV+ and later calibrations hold rows out in refits: this fit uses all of them.
    if method != "split":
        return dataset.without(None)
    _, calibration = held_back(dataset.count, estimator._draws(), dataset.classes)
    return dataset.without(calibration)


def calibrate_model(
    estimator: KernelRidgeModel, data: TrainingData, calibration: TrainingData | None
) -> None:
    """Calibrate the intervals of the model if ``conformal`` is set."""
    if estimator.conformal is not None:
        _calibrate(estimator, data, calibration)


def calibrated_intervals(estimator: KernelRidgeModel) -> Conformal:
    """Return the intervals of a fitted model; calibrate them if the fit did not."""
    conformal = estimator.model_.conformal
    if conformal is None:
        if estimator._training is None:
            raise ValueError(
                "this model was fitted without intervals, and copies, loaded models and "
                "partial_fit do not keep the training rows that calibrate them; fit with "
                "conformal='split'"
            )
        conformal = _calibrate(estimator, estimator._training, None)
    return conformal


def _calibrate(
    estimator: KernelRidgeModel, data: TrainingData, calibration: TrainingData | None
) -> Conformal:
    """Calibrate by held-out rows of the fit, by folds, or by a refit to fewer rows."""
    # A row of weight zero counts as no row, in the folds as in the fits.
    data = data.without_zero_weights()
    conformal = make_conformal(
        estimator.conformal, estimator._refit(data), data, calibration, estimator._state
    )
    estimator.model_ = replace(estimator.model_, conformal=conformal)
    return conformal


def warn_if_too_few(conformal: Conformal, level: float) -> None:
    """Warn if there are too few calibration rows for finite intervals."""
    if level > conformal.least_level():
        # c rows reach the level c / (c + 1). The small number absorbs rounding: 0.9 / (1 - 0.9) is
        # 9.000000000000002, which would ask for ten rows.
        needed = math.ceil(level / (1 - level) - 1e-9)
        warnings.warn(
            f"{conformal.count} held-back rows are too few for a level of {level:g}, which "
            f"requires {needed}: intervals are infinite, and sets have all classes",
            UserWarning,
            stacklevel=3,
        )
