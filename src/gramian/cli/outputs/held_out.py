"""The error on held-out rows, in the report of a fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...model import Label, Probabilities
from ...scoring.comparison import measure, named_metrics
from ...scoring.predictions import Predictions

EARLY_STOPPING_OPTIMISM = (
    "optimistic, because these rows chose the iteration; for an unbiased error, use "
    "`gramian evaluate` with other rows"
)
"""Remark on the validation error of early stopping."""


def optimism_of_search(has_validation: bool) -> str:
    """Return the remark on the error of a search, with the option for an unbiased error."""
    honest = "validation has" if has_validation else "--validation FRACTION or FILE reports"
    return (
        f"optimistic, because these rows chose among the trials; {honest} the error on rows that "
        "affect no choice"
    )


def held_out_errors(
    y: np.ndarray,
    values: np.ndarray,
    classes: Iterable[Any] | None,
    constant: Label,
    metric: str,
    probabilities: Probabilities | None = None,
) -> dict[str, Any]:
    """Return one metric on held-out rows, for the model and for the best constant.

    - `y`, ndarray of shape (n,): numbers in the units of the target, or labels.
    - `values`, ndarray of shape (n, t): predictions in the same units, or decision values.
    - `classes`: labels; None for a regression.
    - `constant`: the mean of the training targets, or their largest class.
    - `probabilities`: map from the decision values of a classifier to probabilities.
    """
    predictions = Predictions.of(y, values, classes, probabilities)
    metrics = named_metrics(metric, predictions.task)
    return {"rows": len(y), **measure(predictions, constant, metrics)}
