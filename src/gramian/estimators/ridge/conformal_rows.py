"""Conformal prediction: held-out rows of a fit, and intervals or sets from their errors."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

from ... import fitting
from ...conformal import ConformalPredictor
from ...data import RowSource
from ...fitting import TrainingData
from .base import KernelRidgeModel


def divide_rows(estimator: KernelRidgeModel, dataset: fitting.Whole) -> fitting.DividedRows:
    """Split the rows of a fit into training and calibration rows.

    Raise ValueError if the method is unknown, or ``warm_start`` is set.
    """
    method, groups = estimator.conformal, estimator.conformal_groups
    if method is not None and getattr(estimator, "warm_start", False):
        fitting.resolve_method(method, classes=dataset.classes is not None)
        raise ValueError(
            f"conformal={method!r} cannot be combined with warm_start=True, because the last fit "
            "may have seen the calibration rows; leave one of them out"
        )
    return fitting.divide_calibration(dataset, method, groups, estimator._draws)


def calibrate_model(
    estimator: KernelRidgeModel, data: TrainingData, held_data: TrainingData | None
) -> ConformalPredictor:
    """Calibrate the intervals of the model, by held-out rows or by refits to fewer rows."""
    # A row of weight zero counts as no row, in the folds as in the fits.
    data = data.without_zero_weights()
    conformal = fitting.calibrate_model(
        estimator.conformal,
        estimator.conformal_groups,
        partial(estimator._refit, data),
        data,
        held_data,
        estimator._state,
    )
    estimator.model_ = replace(estimator.model_, conformal=conformal)
    return conformal


def calibrated_intervals(
    estimator: KernelRidgeModel, rows: RowSource, level: float
) -> ConformalPredictor:
    """Return the intervals of a fitted model; calibrate them if the fit did not.

    Warn if there are too few calibration rows for the level.
    """
    conformal = estimator.model_.conformal
    if conformal is None:
        if estimator._training is None:
            raise ValueError(
                "this model was fitted without intervals, and copies, loaded models and "
                "partial_fit do not keep the training rows that calibrate them; fit with "
                "conformal='split'"
            )
        conformal = calibrate_model(estimator, estimator._training, None)
    for shortfall in conformal.shortfalls(level, rows):
        warnings.warn(str(shortfall), UserWarning, stacklevel=3)
    return conformal
