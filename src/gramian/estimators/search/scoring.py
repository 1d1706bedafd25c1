"""Scores of a search, from metrics of the table and scorers of scikit-learn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array
from ..._messages.errors import TextError
from ...fitting import TrainingData
from ...fitting.search.fit import Searched
from ...model import Label, Probabilities, Shares
from ...model.uncertainty.probabilities import likeliest
from ...operators import Engine
from ...scoring.predictions import Predictions
from ...scoring.scorers import find_metric
from ...scoring.table import Metric, task_of


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutLoss:
    """Loss of held-out rows: the distance of a metric from its best value.

    - `best`: value of the metric for right predictions.
    - `classes`: empty for a regression.
    """

    metric: Metric
    best: float
    classes: tuple[Label, ...]

    def __repr__(self) -> str:
        """Return the name of the metric, which a checkpoint of the search compares."""
        return self.metric.name

    def __call__(
        self,
        values: Array,
        truth: Array,
        weights: Array | None,
        probabilities: Probabilities | None = None,
    ) -> float:
        """Return the loss; infinity for predictions that are not finite.

        - `values`, `truth`: of shape (v, t); numbers, or decision values and codes of classes.
        - `weights`: of shape (v,).
        - `probabilities`: map to the probabilities of classes, by default fitted to these values.

        Raise ValueError if the metric is undefined on these rows.
        """
        if not bool(xp.isfinite(values).all()):
            return math.inf
        if self.classes and probabilities is None:
            probabilities = Shares.fit(values, truth, weights)
        y = xp.to_float64(truth)
        w = None if weights is None else xp.to_float64(weights)
        if self.classes:
            # Codes become labels again: metrics of classes compare labels.
            y = np.asarray(self.classes)[likeliest(y)]
        y = y[:, 0] if y.shape[1:] == (1,) else y
        rows = Predictions.of(y, xp.to_float64(values), self.classes or None, probabilities, w)
        value = rows.measure(self.metric)
        # NaN would rank before everything: a search by an undefined score is an error, which names
        # the folds.
        if math.isnan(value):
            raise TextError(
                "{scoring=} requires held-out rows of at least two classes, but the rows that cv "
                "holds out have only one; leave cv out, or give another score",
                self.metric.scorer or self.metric.name,
            )
        return self.best - value if self.metric.higher_is_better else value - self.best


@dataclass(frozen=True)
class Scoring:
    """A score for users, and the loss by which a search compares fits; less loss is a higher score.

    - `name`: name of the metric; empty for the negative mean squared error.
    - `loss`: None if the mean squared error decides.
    """

    name: str = ""
    loss: HeldOutLoss | None = None

    def score(self, loss: float, unit: float) -> float:
        """Return the score of a loss.

        `unit` converts the root of a squared loss to the unit of the target.
        """
        if self.loss is not None:
            return self.loss.best - loss if self.loss.metric.higher_is_better else -loss
        if self.name == "r2":
            return 1 - loss  # the variance of all targets is 1
        return -math.sqrt(loss) * unit if self.name == "rmse" else -loss * unit**2

    def value(self, loss: float, unit: float) -> float:
        """Return the metric that belongs to a loss: the score, or minus it if less is better."""
        is_error = self.loss is not None and not self.loss.metric.higher_is_better
        return -self.score(loss, unit) if is_error else self.score(loss, unit)


def metric_of(scoring: object, *, is_classification: bool) -> Metric | None:
    """Return the metric of a parameter, see `find_metric`; None for the mean squared error."""
    if scoring is None or (scoring == "neg_mean_squared_error" and not is_classification):
        return None
    return find_metric(scoring, task_of(is_classification), "scoring")


def scoring_of(scoring: object, data: TrainingData) -> Scoring:
    """Return the score of a parameter; the negative mean squared error for None.

    - `data`: a scorer of scikit-learn is tried on the true targets, to find its best value.

    Raise ValueError if the score is unknown, or cannot score such targets.
    """
    metric = metric_of(scoring, is_classification=data.coded)
    if metric is None:
        return Scoring()
    is_scorer = metric.output == "estimator"
    if metric.name in ("rmse", "r2") and not is_scorer:
        return Scoring(metric.name)
    loss = HeldOutLoss(metric, float(metric.higher_is_better), data.classes or ())
    if is_scorer:
        right = loss(data.targets, data.targets, data.weights, Shares())
        loss = HeldOutLoss(metric, loss.best - right, loss.classes)
    return Scoring(metric.name, loss)


def score_rows(
    scoring: Scoring, search: Searched, data: TrainingData, *, engine: str | Engine
) -> float:
    """Score the model of a search on test rows.

    - `data`: rows that neither the search nor its fits used.
    """
    data = data.with_local_numbers()
    values, truth = search.model.predict(data.rows, engine=engine), xp.to_float64(data.targets)
    if scoring.loss is not None:
        # During the search a map is fitted to the values of each trial; the model has one map, and
        # test rows must not fit another.
        probabilities = search.model.class_map if data.coded else None
        loss = scoring.loss(values, truth, data.weights, probabilities)
        return scoring.score(loss, search.unit)
    # In standardised units, as in the search: no target outweighs others by its unit.
    squares = xp.square((xp.to_float64(values) - truth) / search.targets.scale).mean(axis=1)
    weights = None if data.weights is None else data.weights
    return scoring.score(float(np.average(squares, weights=weights)), search.unit)
