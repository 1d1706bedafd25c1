"""The error on held-out rows, in the report of a fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..model import Probabilities
from . import metrics
from .answers import answers_of


def held_out_errors(
    y: np.ndarray,
    values: np.ndarray,
    classes: Iterable[Any] | None,
    constant: Any,
    metric: str,
    probabilities: Probabilities | None = None,
) -> dict[str, Any]:
    """Return one metric on held-out rows, beside that of the best constant.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Numbers in the units of the file, or labels.
    values : ndarray of shape (n, t)
        What the model says, in the same units; decision values for labels.
    classes : iterable of labels, optional
        None for a regression.
    constant : number or label
        The mean of the training targets, or their largest class.
    metric : str
    probabilities : Probabilities, optional
        Of a classifier: what makes them of its values.
    """
    answers = answers_of(y, values, classes, probabilities)
    return {"rows": len(y), **metrics.measured(answers, constant, [metric])}
