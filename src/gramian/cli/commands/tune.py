"""`gramian tune`: search, and report the trials."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._messages.display import without_secrets
from ...callbacks import Checkpoint
from ...estimators.search.results import COMBINED_STEPS, SAMPLED_STEPS
from ...model.importances import largest_importances
from ...search import Member, Trial
from ...search.gains import LARGER_SAMPLE_STEP, gains
from ..options.options import FitOptions, Task, TuneOptions
from ..options.reading import READING_OPTIONS
from ..options.settings import check
from ..outputs.report import Report
from ..outputs.signals import report_interruption
from .fit import check_files
from .search import (
    Outcome,
    recipe_row,
    report,
    run_search,
    save_outcome,
    stop_if_interrupted,
)

SHOWN_RECIPES = 15
"""Number of recipes in the ranking."""

INPUT_OPTIONS = {
    "standard": ["--standardize", "true"],
    "quantile": ["--standardize", "quantile"],
    "common": ["--standardize", "false", "--standardize-target", "true"],
}
"""Options of a fit by the inputs of a recipe. Lengthscales in medians absorb a common scale."""


DIRECT_ROWS = 3000
"""Rows above which the printed command sets the solver of the search."""


def tune(
    data: Path, options: TuneOptions, out: Path | None, checkpoint: Path | None = None
) -> Report:
    """Search, save the model if `out` is given, and report trials, gains and the best fit."""
    fit_options = options.of_fit
    check(fit_options)
    check_files(data, fit_options, {"out": out, "checkpoint": checkpoint})
    with report_interruption(checkpoint, "search", "trial"):
        saved_steps = None if checkpoint is None else Checkpoint(checkpoint)
        outcome = run_search(data, fit_options, checkpoint=saved_steps)
        about = save_outcome(outcome, out)
        saved_note = "nothing is saved without --out" if out is None else (
            f"{out} holds the best of {about['trials']} trials"
        )  # fmt: skip
        stop_if_interrupted(outcome, saved_note)
    main = max(outcome.result.members, key=lambda member: member.weight)
    return {
        "ranking": ranking(outcome),
        "gains": gain_rows(outcome),
        **report(outcome, out, about),
        "importances": largest_importances(outcome.result.model, measured=True),
        "command": command(data, fit_options, main, len(outcome.prepared.training.y)),
    }


def ranking(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the best recipes, each as a row with its smallest error."""
    rows: dict[tuple[Any, ...], tuple[float, dict[str, Any]]] = {}
    trials = [trial for trial in outcome.result.trials if trial.loss >= 0]
    for trial in sorted(trials, key=lambda trial: _rank(outcome, trial)):
        row = recipe_row(trial.recipe)
        key = (trial.step,) if trial.step in COMBINED_STEPS else tuple(row.values())
        if key not in rows:
            # The errors of the constant, `_of_mean` and `_of_majority`, are the same in each row.
            error = {
                name: value for name, value in outcome.error(trial).items() if "_of_m" not in name
            }
            rows[key] = trial.loss, {
                "step": trial.step, **row, "penalty": trial.penalty, **error
            }  # fmt: skip
    return [row for _, row in list(rows.values())[:SHOWN_RECIPES]]


def _rank(outcome: Outcome, trial: Trial) -> tuple[bool, float]:
    # Squared errors of samples and scores of fits are not comparable: samples come last.
    sampled = outcome.scoring.loss is not None and trial.step in SAMPLED_STEPS
    return sampled, trial.loss


def gain_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Return a row for each step, with its trials, the error after it and the relative gain."""
    name = "rmse" if outcome.classes is None else "rmse_of_codes"
    scoring, unit = outcome.scoring, outcome.result.unit
    rows = []
    for gain in gains(outcome.result.trials):
        error = {name: unit * gain.error}
        if scoring.loss is not None and gain.step not in (*SAMPLED_STEPS, LARGER_SAMPLE_STEP):
            error = {scoring.name: scoring.value(gain.error**2, unit)}
        less = None if gain.gain is None else f"{100 * gain.gain:.1f} %"
        rows.append({
            "step": gain.step, "trials": gain.trials, **error, "less": less,
            "elapsed": gain.seconds,
        })  # fmt: skip
    return rows


def command(data: Path, options: FitOptions, member: Member, rows: int) -> str:
    """Return the command that repeats the fit of a member, without a search.

    The fit learns the metric again from other draws. The penalty is per row, for all rows.

    - `options`: options of the search, which also name the data of the fit.
    - `rows`: number of training rows.
    """
    recipe = member.recipe
    words = ["gramian", "fit", without_secrets(data), *_options_of_data(options)]
    words += ["--kernel", str(recipe.kernel), "--lengthscale", f"{recipe.multiple:g} median"]
    words += ["--penalty", f"{member.penalty:.6g}"]
    words += INPUT_OPTIONS[recipe.inputs]
    if recipe.rounds:
        words += ["--learn-metric", "--metric-rounds", str(recipe.rounds)]
        words += ["--metric-power", f"{recipe.power:g}"]
        if recipe.learner not in (None, recipe.kernel):
            words += ["--metric-kernel", str(recipe.learner)]
    if member.cells is None:
        words += ["--landmarks", "none" if member.all_rows else str(len(member.centers))]
    else:
        words += ["--cells", str(int(np.diff(member.cells.starts).max()))]
    # The search solved this fit by iterations: the default of a single fit would factorise the
    # matrix.
    if member.all_rows and rows > DIRECT_ROWS:
        words += ["--solver", "pcg", "--tol", "0.003"]
    return shlex.join([*words, "--out", "tuned.model"])


def _options_of_data(options: FitOptions) -> list[str]:
    """Return the user's options for data and engine."""
    target: str | Sequence[str] = options.target
    targets = [target] if isinstance(target, str) else target
    words = [word for name in targets for word in ("--target", name)]
    words += ["--drop-missing-target"] if options.drop_missing_target else []
    # A single fit has no option for folds: their columns must be left out, as the search did.
    roles = () if options.features else (options.groups, options.fold_column)
    words += [word for name in roles if name is not None for word in ("--drop", name)]
    names = ("features", "drop", "strict", "weight", "validation", "metric")
    for name in (*names, *sorted(READING_OPTIONS)):
        value, option = getattr(options, name), f"--{name.replace('_', '-')}"
        for text in value if isinstance(value, list) else [value]:
            if text is True:
                words.append(option)
            elif text is not None and text is not False:
                words += [option, str(text)]
    if options.task is not Task.AUTO:
        words += ["--task", options.task.value]
    for name, value in options.parameters.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words if options.seed == 0 else [*words, "--seed", str(options.seed)]
