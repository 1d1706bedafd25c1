"""`gramian fit` without options of the model: a search."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ... import _arrays as xp
from ..._arrays import RandomStream
from ..._files.atomic import write_atomically
from ...callbacks import Checkpoint
from ...estimators.search.results import SAMPLED_STEPS
from ...estimators.search.scoring import Scoring, scoring_of
from ...fitting import Generators
from ...fitting.search.fit import Searched, search_fit
from ...fitting.search.settings import SearchSettings
from ...fitting.uncertainty.refit import Refit
from ...model import BlendModel, Model, load_model
from ...model.uncertainty.probabilities import likeliest
from ...report.description import describe_blend
from ...scoring.comparison import measure
from ...scoring.predictions import Predictions
from ...scoring.scorers import find_metric
from ...scoring.table import CONSTANT_OF_TASK, MAIN_METRIC, METRIC_TABLE, Metric, task_of
from ...scoring.truth import DIGEST_KEY
from ...search import Member, Recipe, Trial
from ..inputs import task
from ..inputs.training import Prepared, open_training, read_folds
from ..options.options import FitOptions
from ..options.settings import budget, check, settings_of
from ..outputs.held_out import held_out_errors, optimism_of_search
from ..outputs.messages import message, remark
from ..outputs.progress import command_progress
from ..outputs.report import Report
from ..outputs.signals import ReportedInterrupt, report_interruption
from ..outputs.uncertainty import NO_CALIBRATION, Calibration, check_std, save_with_std
from .fit import check_files, check_metric, write_history


@dataclass(frozen=True)
class Outcome:
    """A search on a table, with its data and its result.

    - `scoring`: the score that compares the fits.
    - `seconds`: time since the table was opened.
    """

    prepared: Prepared
    result: Searched
    options: FitOptions
    scoring: Scoring
    seconds: float

    @property
    def classes(self) -> Sequence[Any] | None:
        """Labels; None for a regression."""
        return self.result.model.classes

    @property
    def chosen_trial(self) -> Trial:
        """The trial that became the model."""
        trials = [trial for trial in self.result.trials if trial.step != "refit"]
        if isinstance(self.result.model, BlendModel):
            return trials[-1]
        if len(self.result.members) > 1:
            return next(trial for trial in trials if trial.step == "average")
        recipe = self.result.members[0].recipe
        candidates = [
            trial for trial in trials if trial.recipe == recipe and trial.step != "average"
        ]
        # A screen may have tried the same recipe; its trials have no held-out predictions.
        return min(candidates or trials, key=lambda trial: (trial.values is None, trial.loss))

    def error(self, trial: Trial) -> dict[str, float]:
        """Return the error of a trial on the held-out rows of the search, and of a constant.

        The error is the metric of `--scoring`, except of samples, or the RMSE in units of the
        target. For classes it is the share of wrong labels
        if the trial has predictions, else the RMSE of the class codes.
        """
        if self.scoring.loss is not None and trial.step not in SAMPLED_STEPS:
            return self._scores(trial, self.scoring.loss.metric)
        if self.classes is None:
            unit, truth = self.result.unit, xp.to_float64(self.result.truth)
            mean = unit * float(xp.sqrt(xp.square(truth).mean()))
            return {"rmse": unit * math.sqrt(trial.loss), "rmse_of_mean": mean}
        constant = self.prepared.training.constant
        if trial.values is None or constant is None:
            return {"rmse_of_codes": math.sqrt(trial.loss)}
        return measure(self._predictions(trial), constant, [METRIC_TABLE["error"]])

    def _scores(self, trial: Trial, metric: Metric) -> dict[str, float]:
        """Return the score of a trial, from its loss, and of a constant prediction if defined."""
        values = {metric.name: self.scoring.value(trial.loss, self.result.unit)}
        constant = self.prepared.training.constant
        if metric.is_of_constants and constant is not None and trial.values is not None:
            always = self._predictions(trial).constant(constant)
            name = f"{metric.name}_of_{CONSTANT_OF_TASK[always.task]}"
            values[name] = always.measure(metric)
        return values

    def _predictions(self, trial: Trial) -> Predictions:
        scale = self.result.targets
        values, truth = (
            (xp.to_float64(part) * scale.scale + scale.mean)
            for part in (trial.values, self.result.truth)
            if part is not None
        )
        if self.classes is None:
            return Predictions.of(truth[:, 0], values)
        # The truth of a search is in class codes: decode it to labels as the predictions.
        labels = np.asarray(self.classes)[likeliest(truth)]
        return Predictions.of(labels, values, self.classes)


def fit(
    data: Path,
    options: FitOptions,
    out: Path,
    history: Path | None,
    std: bool = False,
    calibration: Calibration = NO_CALIBRATION,
    checkpoint: Checkpoint | None = None,
) -> Report:
    """Search for a model, save it, and report on it."""
    check(options)
    path = None if checkpoint is None else checkpoint.path
    check_files(data, options, {"out": out, "checkpoint": path, "history": history})
    with report_interruption(path, "search", "trial"):
        outcome = run_search(data, options, std, calibration, checkpoint)
        about = save_outcome(outcome, out)
        penalties = [member.penalty for member in outcome.result.members]
        if std:
            limit = settings_of(options).limit
            save_with_std(load_model(out), out, outcome.prepared.data, lambda: penalties, limit)
        training_data, held_data = outcome.prepared.data, outcome.prepared.calibration

        def build_refit(model: Model, rng: Generators) -> Refit:
            shifts = tuple(penalty * training_data.total for penalty in penalties)
            return Refit(model, shifts, settings_of(options), len(training_data.targets), rng)

        calibration.save(out, training_data, held_data, build_refit, options.seed)
        if history is not None:
            rows = [history_row(outcome, trial) for trial in outcome.result.trials]
            write_atomically(history, lambda part: write_history(part, history, rows))
        # An interrupted search has a model, too: it is saved before the command ends.
        stop_if_interrupted(outcome, f"{out} holds the best of {about['trials']} trials")
    return report(outcome, out, about)


def run_search(
    data: Path,
    options: FitOptions,
    std: bool = False,
    calibration: Calibration = NO_CALIBRATION,
    checkpoint: Checkpoint | None = None,
) -> Outcome:
    """Search for a model of a table; the estimators find the same model with the same seed."""
    start = time.perf_counter()
    spent = budget(options)
    with command_progress(spent.seconds) as shown:
        training = open_training(data, options)
        check_metric(training, options)
        if options.scoring is not None:
            find_metric(options.scoring, task_of(training.classification), "--scoring")
        # The draws of `KernelRidgeCV` in the same order, so that both find the same model.
        seed = int(np.random.RandomState(options.seed).randint(2**31 - 1))
        generators = Generators.from_random_state(np.random.RandomState(seed))
        fit_settings = settings_of(options)
        prepared = training.prepare(
            fit_settings,
            generators,
            lambda whole: calibration.divide(whole, options.seed),
        )
        if std:
            check_std(fit_settings, prepared.data.coded, is_blend=options.blend is not None)
        # After all checks, as in `gramian fit`: an error must not come with advice about a task.
        remark(task.reason(training.y, options))
        scoring = scoring_of(options.scoring, prepared.data)
        settings = SearchSettings(
            budget=spent,
            score=scoring.loss,
            cv=read_folds(training.source, options),
            engine=fit_settings.engine,
            memory_limit=fit_settings.limit,
            watchers=[shown],
            checkpoint=checkpoint,
            blend=options.blend,
        )
        searched_result = search_fit(prepared.data, settings, RandomStream(seed))
    return Outcome(prepared, searched_result, options, scoring, time.perf_counter() - start)


def stop_if_interrupted(outcome: Outcome, kept: str) -> None:
    """If the search was interrupted, write a note and end the command as interrupted."""
    if outcome.result.interrupted:
        with contextlib.suppress(OSError):
            message("", f"interrupted; {kept}")
        raise ReportedInterrupt


def save_outcome(outcome: Outcome, out: Path | None) -> dict[str, Any]:
    """Write the model if `out` is given, and return the facts of `Model.info`."""
    about = _about(outcome)
    if out is not None:
        columns = list(outcome.prepared.training.source.columns)
        replace(outcome.result.model, info={**about, "columns": columns}).save(out)
    return about


def _about(outcome: Outcome) -> dict[str, Any]:
    prepared, searched_result = outcome.prepared, outcome.result
    validation = _validation(outcome)
    return {
        "version": __version__,
        "task": "regression" if outcome.classes is None else "classification",
        "target": outcome.options.target,
        "rows": len(prepared.training.y),
        DIGEST_KEY: prepared.training.digest,
        "features": prepared.data.rows.shape[1],
        "method": "search",
        "budget": outcome.options.budget,
        "scoring": outcome.options.scoring,
        "trials": len([trial for trial in searched_result.trials if trial.step != "refit"]),
        "stop_reason": "interrupted" if searched_result.interrupted else "searched",
        "left_out": list(searched_result.left_out) or None,
        "members": [member_row(member) for member in searched_result.members],
        "blend": describe_blend(searched_result.model),
        "kernel_evaluations": searched_result.evaluations,
        "seconds": outcome.seconds,
        "baseline": prepared.training.constant,
        "chosen_by": {
            "rows": len(searched_result.truth),
            **outcome.error(outcome.chosen_trial),
            "remark": optimism_of_search(validation is not None),
        },
        "validation": validation,
    }


def _validation(outcome: Outcome) -> dict[str, Any] | None:
    """Return the error on rows that neither the fits nor the choice among them used."""
    prepared, y = outcome.prepared, outcome.prepared.training.held_out_y
    constant = prepared.training.constant
    if y is None or prepared.held_out is None or constant is None:
        return None
    model = outcome.result.model
    values = model.predict(prepared.held_out, engine=settings_of(outcome.options).engine)
    chances = None if model.classes is None else model.class_map
    names = outcome.options.metric, outcome.options.scoring
    metric = next(filter(None, names), None) or MAIN_METRIC[task_of(model.classes)]
    return held_out_errors(y, values, outcome.classes, constant, metric, chances)


def report(outcome: Outcome, out: Path | None, about: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a search."""
    where = {} if out is None else {"model": out}
    columns = outcome.prepared.columns
    return {**where, **about, **({} if columns is None else {"columns": columns})}


def member_row(member: Member) -> dict[str, Any]:
    """Return the weight, recipe and size of a member of the model as a row."""
    landmarks = None if member.all_rows else len(member.centers)
    return {
        "weight": member.weight, **recipe_row(member.recipe), "penalty": member.penalty,
        "landmarks": landmarks,
    }  # fmt: skip


def recipe_row(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as a row, with lengthscales as multiples of the median."""
    metric = f"round {recipe.rounds}, M^{recipe.power:g}" if recipe.rounds else None
    return {
        "kernel": recipe.kernel, "inputs": recipe.inputs, "medians": recipe.multiple,
        "metric": metric,
    }  # fmt: skip


def history_row(outcome: Outcome, trial: Trial) -> dict[str, Any]:
    """Return a trial as a row of the history file."""
    error = outcome.error(trial) if trial.loss >= 0 else {}
    return {
        "step": trial.step, **recipe_row(trial.recipe), "penalty": trial.penalty,
        **error, "seconds": trial.seconds,
        "elapsed": trial.elapsed, "kernel_evaluations": trial.evaluations,
    }  # fmt: skip
