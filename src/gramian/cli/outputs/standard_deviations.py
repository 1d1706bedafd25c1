"""`--std`: compute standard deviations after a fit, and write them with predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ... import fitting
from ..._messages.errors import Text
from ...model import Model


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

    Raises
    ------
    ValueError
        If the model cannot have them; the saved model stays.
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
