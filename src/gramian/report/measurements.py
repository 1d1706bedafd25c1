"""Measurements of a model on a table: errors, curves and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import RandomStream
from ..data import as_rows
from ..model import KernelPart, Model
from ..model.importances import largest_importances
from ..model.mapped_predictions import model_columns
from ..scoring.comparison import measure_model
from ..scoring.coverage import coverage
from ..scoring.predictions import Predictions, best_constant
from ..scoring.table import CONSTANT_OF_TASK, MAIN_METRIC, METRIC_TABLE, metrics_of
from ..scoring.truth import Truth
from . import studies
from .class_curves import ClassCurve, GroupErrors, curves_of, group_columns, shown_classes
from .dependence import DEPENDENCE_ROWS, MOST_CURVES, Dependence
from .description import describe_model
from .drawing import readable
from .explained_rows import ExplainedRow, explain_rows
from .studies import LearningCurve, Sample, Spectrum, draw_sample
from .training_rows import Certificate, certificate, training_warning

MOST_CLASSES_NAMED = 6
"""Most classes whose shares are named."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Lazily computed measurements of a model on a table.

    - `names`: names of the model, the data and the training table.
    - `learned_from`: the training table.
    - `groups`: column whose values are groups, if the user names one.
    - `ends`: of shape (n, 2); ends of the intervals, if the model has intervals.
    - `settings`: engine and memory of predictions.
    """

    names: Mapping[str, str]
    model: Model
    truth: Truth
    learned_from: Truth | None
    groups: str | None
    answers: Predictions
    ends: np.ndarray | None
    settings: Mapping[str, Any]

    @property
    def classes(self) -> bool:
        """Whether the model is a classifier."""
        return self.model.classes is not None

    @property
    def metric(self) -> str:
        """Key of the error that compares the models."""
        return MAIN_METRIC[self.answers.task]

    @property
    def title(self) -> str:
        """Name of the error that compares the models, in sentences and on axes."""
        return METRIC_TABLE[self.metric].title

    @property
    def constant(self) -> str:
        """The name of the constant prediction: mean or majority."""
        return CONSTANT_OF_TASK[self.answers.task]

    @property
    def part(self) -> KernelPart:
        """The kernel model with the largest weight."""
        return self.model.parts[int(np.argmax(self.model.shares))]

    @property
    def residuals(self) -> np.ndarray:
        """Truth minus prediction, (n,)."""
        return self.answers.y - self.answers.predicted

    @cached_property
    def errors(self) -> Mapping[str, Any]:
        """Metrics of the model and of a constant prediction."""
        metrics = list(metrics_of(self.answers.task).values())
        return measure_model(self.model, self.answers, self.truth.y, metrics)

    @cached_property
    def error_rows(self) -> list[tuple[str, float, float | None]]:
        """Title of each metric, its value, and the value of the constant if it has one."""
        end = f"_of_{self.constant}"
        return [
            (metric.title, self.errors[name], self.errors.get(f"{name}{end}"))
            for name, metric in metrics_of(self.answers.task).items()
        ]

    @cached_property
    def penalty(self) -> float | None:
        """The penalty of the fit, if the model records it."""
        penalty, rows = self.model.info.get("penalty"), self.model.info.get("members")
        if penalty is None and isinstance(rows, list) and rows:
            # A search records its members: the page shows the one of largest weight.
            penalty = max(rows, key=lambda row: row["weight"]).get("penalty")
        return float(penalty) if isinstance(penalty, int | float) else None

    @cached_property
    def samples(self) -> tuple[Sample, Sample]:
        """Training and test rows: of two tables, or four fifths and one fifth of one table."""
        rng = RandomStream(0)
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
    def training_warning(self) -> str | None:
        """Warning if rows of the table were rows of the training."""
        return training_warning(
            self.model, self.part, self.truth, self.learned_from, self.samples[1]
        )

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
        values = self.model.predict(as_rows(test.features), **self.settings)
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

    @property
    def contenders(self) -> dict[str, float]:
        """Errors of the model, linear ridge and a constant on the test rows."""
        return {
            "the model": self.own_on_sample,
            "linear ridge": self.linear,
            f"the {self.constant}": self.error_of_constant,
        }

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
        return largest_importances(self.model, measured=True)

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the model, the most important first if importances are drawn."""
        names = list(model_columns(self.model, self.truth.table, self.truth.name))
        first = list(self.importances or {})
        if self.model.encoding is None and self.model.feature_names is None:
            # Features without names are numbered in the order of the columns.
            first = [names[int(name.split()[-1])] for name in first]
        return [*first, *(name for name in names if name not in first)]

    @cached_property
    def dependences(self) -> list[Dependence]:
        """Partial dependence on the most important columns."""
        index = draw_sample(len(self.truth.y), RandomStream(0))
        rows, table = index[:DEPENDENCE_ROWS], self.truth.table
        drawn_columns = [name for name in self.columns if name in table.names][:MOST_CURVES]
        outputs = shown_classes(self.answers) or [0]
        curves = (
            Dependence.of(self.model, self.truth, name, rows, outputs, self.settings)
            for name in drawn_columns
        )
        return [curve for curve in curves if curve is not None]

    @cached_property
    def explained_rows(self) -> list[ExplainedRow]:
        """Explanations of a typical row, and of two extreme ones."""
        predicted, answers = self.answers.predicted, self.answers
        if answers.chances is None:
            middle = np.argsort(predicted, kind="stable")[len(predicted) // 2]
            rows = {
                "Median prediction": middle,
                "Largest prediction": np.argmax(predicted),
                "Largest error": np.argmax(abs(self.residuals)),
            }
        else:
            chance = answers.chances.max(axis=1)
            of_truth = answers.chances[np.arange(len(chance)), answers.numbers]
            rows = {
                "Most certain": np.argmax(chance),
                "Least certain": np.argmin(chance),
                "Least probable label": np.argmin(of_truth),
            }
        numbers = {title: int(row) for title, row in rows.items()}
        return explain_rows(self.model, self.truth, self.learned_from, numbers)

    @property
    def dependence_names(self) -> list[str]:
        """The classes of a partial dependence; a single name of a regression."""
        classes = self.answers.classes
        return [str(classes[k]) for k in shown_classes(self.answers)] or ["prediction"]

    @property
    def dependence_range(self) -> tuple[float, float]:
        """The common scale of all partial dependences."""
        means = np.concatenate([curve.means.ravel() for curve in self.dependences])
        margin = 0.05 * float(np.ptp(means)) or 1.0
        return float(means.min()) - margin, float(means.max()) + margin

    @cached_property
    def group_errors(self) -> list[GroupErrors]:
        """Errors by the values of categorical columns."""
        table = self.truth.table
        columns = group_columns(table, self.columns, self.groups)
        metric = METRIC_TABLE[self.metric]
        return [GroupErrors.of(column, table, self.answers, metric) for column in columns]

    @cached_property
    def class_curves(self) -> list[ClassCurve]:
        """Curves of the classes against the rest."""
        return curves_of(self.answers)

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
    def about(self) -> dict[str, Any]:
        """Settings of the model."""
        return describe_model(self.model)

    @property
    def target_summary(self) -> dict[str, str]:
        """Mean, spread and range of the target, or the shares of the largest classes."""
        y = self.answers.y
        if not self.classes:
            mean, spread, low, high = map(readable, (y.mean(), y.std(), y.min(), y.max()))
            return {
                "mean of the target": f"{mean}, standard deviation {spread}",
                "range of the target": f"{low} to {high}",
            }
        labels, counts = np.unique(y, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_CLASSES_NAMED]
        shares = [f"{labels[k]} {counts[k] / len(y):.1%}" for k in order]
        more = len(labels) - len(order)
        return {"classes": ", ".join(shares) + (f", {more} more" if more else "")}
