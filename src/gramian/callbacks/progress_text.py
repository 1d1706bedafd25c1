"""Texts of metrics, trials and gains, for people who watch a fit."""

from __future__ import annotations

import math

from ..search import Trial
from ..search.gains import Gain, step_of
from ..solvers.loop.state import PREDICTION_ERROR, RESIDUAL_KEY

STEP_TEXTS = {
    "screen": "screening kernels and inputs",
    "sample": "the best of them on more rows",
    "metric": "learning a metric",
    "kernel": "kernels with that metric",
    "landmarks": "fitting all rows with landmarks",
    "fit": "fitting all rows",
    "blend": "averaging with trees",
    "average": "averaging fits",
    "cells": "fitting all cells",
    "refit": "fitting held-out rows, too",
}
"""Activities of a search, by the steps of its trials."""


def metrics_text(metrics: dict[str, int | float]) -> str:
    """Return a line with the metrics that a person watches: counts and duplicates are left out."""
    hidden = {"kernel_evaluations", "condition"}
    if PREDICTION_ERROR in metrics:  # which says the same in units of the target
        hidden.add(RESIDUAL_KEY)
    return "  ".join(f"{key} {value:.3g}" for key, value in metrics.items() if key not in hidden)


def trial_text(trial: Trial, number: int) -> str:
    """Return a trial in a line: its step, number and recipe, and its error if it has one."""
    error = f", error {math.sqrt(trial.loss):.4g}" if trial.loss >= 0 else ""
    return f"{STEP_TEXTS[step_of(trial)]}, trial {number}: {trial.recipe}{error}"


def gain_text(gain: Gain) -> str:
    """Return the error after a step, and its relative reduction."""
    less = "" if gain.gain is None else f" ({100 * gain.gain:.1f} % less)"
    return f"{gain.step} {gain.error:.4g}{less}"
