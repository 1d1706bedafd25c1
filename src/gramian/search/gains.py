"""Reduction of the error by each step of a search, and in the second half of its time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .recipe import Trial

LARGER_SAMPLE_STEP = "sample"
"""Step of a recipe without a metric on the larger sample that metrics use."""

LAST_FIT_STEP = "refit"


@dataclass(frozen=True)
class Gain:
    """One step of a search, with the smallest error after the step.

    Attributes
    ----------
    step : str
        Step of the trials; ``"sample"`` for the recipe of the screen on the larger sample that
        learns a metric: a gain of rows and landmarks, not of a choice.
    trials : int
        Number of recipes tried.
    error : float
        Root of the least loss so far, in standard deviations of the target.
    gain : float or None
        Relative reduction of the error. None for the first step, and if the losses of fits and
        samples differ in kind, as with a user-defined score.
    seconds : float
        Seconds since the search began.
    """

    step: str
    trials: int
    error: float
    gain: float | None
    seconds: float


def step_of(trial: Trial) -> str:
    """Return the name of the step of a trial in the list of gains."""
    unmapped = trial.step == "metric" and not trial.recipe.rounds
    return LARGER_SAMPLE_STEP if unmapped else trial.step


def gains(trials: Iterable[Trial]) -> list[Gain]:
    """Return the gain of each step, in the order of their first trials.

    Parameters
    ----------
    trials : iterable of Trial
        Trials; last fits have no error and are skipped.
    """
    trials_of_step: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.step != LAST_FIT_STEP and math.isfinite(trial.loss):
            trials_of_step.setdefault(step_of(trial), []).append(trial)
    rows: list[Gain] = []
    least_loss, squared = math.inf, True
    for step, tried in trials_of_step.items():
        # Losses of samples are squared errors, losses of fits may be user-defined scores. After a
        # change from one to the other, the least loss starts again, and no gain is computed.
        same = all(map(_squared_errors, tried)) == squared
        best = min(trial.loss for trial in tried)
        before, least_loss = least_loss, min(least_loss, best) if same else best
        gain = 1 - math.sqrt(least_loss / before) if same and 0 < before < math.inf else None
        squared = all(map(_squared_errors, tried))
        # A user-defined score may be negative, with no real root.
        rows.append(
            Gain(step, len(tried), math.sqrt(max(least_loss, 0.0)), gain, tried[-1].elapsed)
        )
    return rows


def late_gain(trials: Iterable[Trial]) -> float | None:
    """Return by what share the least error fell in the second half of the seconds of a search.

    None without trials in both halves, and if losses are scores of the user.
    """
    rated = [trial for trial in trials if math.isfinite(trial.loss)]
    if not rated or not all(map(_squared_errors, rated)):
        return None
    half = rated[-1].elapsed / 2
    early = min((trial.loss for trial in rated if trial.elapsed <= half), default=0.0)
    return 1 - math.sqrt(min(trial.loss for trial in rated) / early) if early > 0 else None


def _squared_errors(trial: Trial) -> bool:
    """Return whether the loss of a trial is a squared error, like the losses of its path."""
    path = [loss for _, loss in trial.losses]
    # The losses of a path are always squared errors, `trial.loss` is the score if there is one.
    # Trials without a path, such as averages, count as squared errors.
    return not path or math.isclose(trial.loss, min(path), rel_tol=1e-9)
