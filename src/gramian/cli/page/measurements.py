"""Measurements: errors, curves and certificates of a model on a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...model import KernelPart, Model
from ...scoring.predictions import Predictions, best_constant
from ...scoring.table import MAIN_METRIC, METRIC_TABLE, metrics_of
from ..commands.evaluate import measure_model
from ..commands.info import info
from ..inputs.truth import Truth
from ..outputs.importances import importances
from ..outputs.intervals import coverage
from ..outputs.report import Report
from . import studies
from .certificate import Certificate, certificate
from .sample import Sample, draw_sample, largest_part
from .studies import LearningCurve, Spectrum


@dataclass(frozen=True, eq=False)
class Measurements:
    """Lazily computed measurements of a model on a table.

    Attributes
    ----------
    path, data, train : Path
        Files of the model, the table, and the training table, which may be None.
    model : Model
    truth : Truth
    learned_from : Truth or None
        The training table.
    answers : Predictions
    ends : ndarray of shape (n, 2), or None
        Ends of the intervals, if the model has intervals.
    settings : mapping
        Engine and memory of predictions.
    """

    path: Path
    data: Path
    train: Path | None
    model: Model
    truth: Truth
    learned_from: Truth | None
    answers: Predictions
    ends: np.ndarray | None
    settings: Mapping[str, Any]

    @property
    def classes(self) -> bool:
        """Whether the model is a classifier."""
        return self.model.classes is not None

    @property
    def metric(self) -> str:
        """The error that compares the models."""
        return MAIN_METRIC[self.answers.task]

    @property
    def title(self) -> str:
        """The name of that error in sentences and on axes."""
        return METRIC_TABLE[self.metric].title

    @property
    def part(self) -> KernelPart:
        """The kernel model of the largest weight."""
        return largest_part(self.model.parts, self.model.shares)

    @cached_property
    def errors(self) -> Report:
        """Metrics of the model and of a constant prediction."""
        metrics = list(metrics_of(self.answers.task).values())
        return measure_model(self.model, self.answers, self.truth.y, metrics)

    @cached_property
    def penalty(self) -> float | None:
        """The penalty of the fit, if the model records it."""
        return studies.penalty_of(self.model.info)

    @cached_property
    def samples(self) -> tuple[Sample, Sample]:
        """Training and test rows: of two tables, or four fifths and one fifth of one table."""
        rng = torch.Generator().manual_seed(0)
        mine = draw_sample(len(self.truth.y), rng)
        if self.learned_from is not None:
            other_sample = draw_sample(len(self.learned_from.y), rng)
            pair = (self.learned_from, other_sample), (self.truth, mine)
        else:
            # Without training rows the references learn from four fifths, and all are compared on
            # the last fifth; the sample is in random order.
            cut = 4 * len(mine) // 5
            pair = (self.truth, mine[:cut]), (self.truth, mine[cut:])
        learn, test = (Sample.of(truth, self.part, index) for truth, index in pair)
        return learn, test

    @cached_property
    def linear(self) -> float:
        """The error of linear ridge on the test rows."""
        learn, test = self.samples
        predicted = studies.linear_predictions(learn, test, self.classes)
        return studies.error_of(test.y, predicted, self.classes)

    @cached_property
    def own_on_sample(self) -> float:
        """The error of the model on the test rows."""
        test = self.samples[1]
        values = self.model.predict(test.feature_rows, **self.settings).numpy()
        answers = Predictions.of(test.y, values, self.model.classes)
        return studies.error_of(answers.y, answers.predicted, self.classes)

    @cached_property
    def error_of_constant(self) -> float:
        """The error of the constant prediction on the test rows."""
        y = self.samples[1].y
        constant = self.model.info.get("baseline")
        if constant is None:
            constant = best_constant(self.truth.y, self.classes)
        return studies.error_of(y, np.full(len(y), constant), self.classes)

    @cached_property
    def curve(self) -> LearningCurve:
        """Errors of fits by their number of landmarks."""
        return studies.learning_curve(self.part, self.penalty, *self.samples, self.classes)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues of the kernel matrix on training rows."""
        return Spectrum.of(self.part, self.samples[0].mapped, studies.SPECTRUM_ROWS)

    @cached_property
    def importances(self) -> dict[str, float] | None:
        """Shares of the features."""
        return importances(self.model, measured=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The residual on the rows of the training."""
        memory = int(self.settings["memory_bytes"])
        return certificate(self.model, self.learned_from, self.penalty, memory)

    @cached_property
    def coverage(self) -> Mapping[str, Any]:
        """Coverage of the intervals or sets."""
        return coverage(self.model, self.truth.rows, self.truth.y, self.settings)

    @cached_property
    def about(self) -> Report:
        """Settings of the model."""
        return info(self.path)
