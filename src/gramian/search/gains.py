"""gains: what each step of a search brought down the error by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .recipe import Trial

LARGER = "sample"
"""The step of a recipe that is fitted again, without a metric, to the larger sample of metrics."""

LAST = "refit"


@dataclass(frozen=True)
class Gain:
    """One step of a search, and the least error once it was done.

    Attributes
    ----------
    step : str
        That of its trials; ``"sample"`` for the recipe of the screen on the larger sample that a
        metric is learned on: a gain of rows and landmarks, and of no choice.
    trials : int
        Recipes that were tried.
    error : float
        The root of the least loss of all trials until then: in deviations of the target.
    gain : float or None
        The share by which the step lowered it. None for the first step, and where losses of fits
        are of another kind than those of samples, as with a score that was asked for.
    seconds : float
        Since the search began.
    """

    step: str
    trials: int
    error: float
    gain: float | None
    seconds: float


def step_of(trial: Trial) -> str:
    """Return the step that the gain of a trial belongs to."""
    unmapped = trial.step == "metric" and not trial.recipe.rounds
    return LARGER if unmapped else trial.step


def gains(trials: Iterable[Trial]) -> list[Gain]:
    """Return the gain of each step, in the order in which steps were begun.

    Parameters
    ----------
    trials : iterable of Trial
        Last fits have no error, and are left out.
    """
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.step != LAST and math.isfinite(trial.loss):
            found.setdefault(step_of(trial), []).append(trial)
    rows: list[Gain] = []
    least, squared = math.inf, True
    for step, tried in found.items():
        same = all(map(_squared, tried)) == squared
        best = min(trial.loss for trial in tried)
        before, least = least, min(least, best) if same else best
        gain = 1 - math.sqrt(least / before) if same and 0 < before < math.inf else None
        squared = all(map(_squared, tried))
        rows.append(Gain(step, len(tried), math.sqrt(max(least, 0.0)), gain, tried[-1].elapsed))
    return rows


def _squared(trial: Trial) -> bool:
    """Return whether the loss of a trial is the squared error of its path of penalties."""
    path = [loss for _, loss in trial.losses]
    return not path or math.isclose(trial.loss, min(path), rel_tol=1e-9)
