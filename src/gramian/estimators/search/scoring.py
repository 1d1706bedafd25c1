"""Losses on held-out rows, by the names of scikit-learn's scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from ..._messages.checks import did_you_mean
from ...fitting import TrainingData
from ...fitting.search.fit import Searched
from ...model import Probabilities, Shares
from ...operators import Engine

Loss = Callable[[Tensor, Tensor, Tensor | None], float]


@dataclass(frozen=True)
class Scoring:
    """A score, and the loss that it decreases with.

    Attributes
    ----------
    loss : callable or None
        Function of predictions, true targets and weights; None: the mean squared error.
    score : callable
        Function of a loss, and of the unit of the root of a squared loss.
    """

    loss: Loss | None
    score: Callable[[float, float], float]


def scoring_of(scoring: object, *, classes: bool) -> Scoring:
    """Return the score with a name; the negative mean squared error for None.

    Parameters
    ----------
    scoring : str or None
    classes : bool
        Whether targets are codes of classes.

    Raises
    ------
    ValueError
        If the score is unknown.
    """
    metrics_of_task = CLASSIFICATION_SCORINGS if classes else REGRESSION_SCORINGS
    if scoring is None:
        return SQUARED_ERROR
    if not isinstance(scoring, str) or scoring not in metrics_of_task:
        raise ValueError(
            f"scoring must be one of {', '.join(metrics_of_task)}, or None for the squared error, "
            f"not {scoring!r}{did_you_mean(scoring, metrics_of_task)}"
        )
    return metrics_of_task[scoring]


def score_rows(
    scoring: Scoring, search: Searched, data: TrainingData, *, engine: str | Engine
) -> float:
    """Score the model of a search on test rows.

    Parameters
    ----------
    scoring : Scoring
    search : Searched
    data : TrainingData
        Rows that neither the search nor its fits used.
    engine : str or Engine
    """
    data = data.with_local_numbers()
    values = search.model.predict(data.rows, engine=engine).double()
    truth, loss = data.targets.double(), scoring.loss
    if loss is None:
        # In standardised units, as in the search: no target outweighs others by its unit.
        squares = ((values - truth) / search.targets.scale).square().mean(dim=1)
        mean = float(np.average(squares.numpy(), weights=_numpy(data.weights)))
        return scoring.score(mean, search.unit)
    if loss is _log_loss:
        # During the search a map is fitted to the values of each trial; the model has one map, and
        # test rows must not fit another.
        loss = partial(_log_loss, probabilities=search.model.class_map)
    return scoring.score(loss(values, truth, data.weights), search.unit)


def _absolute(values: Tensor, truth: Tensor, weights: Tensor | None) -> float:
    errors = (truth - values).abs().mean(dim=1).numpy()
    return float(np.average(errors, weights=_numpy(weights)))


def _error(values: Tensor, truth: Tensor, weights: Tensor | None) -> float:
    wrong = _labels(values) != _labels(truth)
    return float(np.average(wrong, weights=_numpy(weights)))


def _balanced_accuracy(values: Tensor, truth: Tensor, weights: Tensor | None) -> float:
    """Return 1 - the mean recall over the classes that occur."""
    labels, right = _labels(truth), _labels(values) == _labels(truth)
    w = np.ones(len(labels)) if weights is None else weights.numpy()
    # Classes without held-out rows have no recall, and are left out as in scikit-learn.
    shares = [np.average(right[labels == k], weights=w[labels == k]) for k in np.unique(labels)]
    return 1 - float(np.mean(shares))


def _log_loss(
    values: Tensor,
    truth: Tensor,
    weights: Tensor | None,
    probabilities: Probabilities | None = None,
) -> float:
    """Return the log loss of probabilities, by default from a map fitted to these values."""
    if probabilities is None:
        probabilities = Shares.fit(values, truth, weights)
    logs, labels = probabilities.log(values).numpy(), _labels(truth)
    return float(np.average(-logs[np.arange(len(labels)), labels], weights=_numpy(weights)))


def _one_minus_auc(values: Tensor, truth: Tensor, weights: Tensor | None) -> float:
    """Return 1 - AUC, averaged one-vs-rest over more than two classes."""
    from sklearn import metrics  # the import takes a tenth of a second

    labels, w = _labels(truth), _numpy(weights)
    if len(np.unique(labels)) < 2:
        raise ValueError(
            "scoring='roc_auc' requires held-out rows of at least two classes, but the rows that "
            "cv holds out have only one; leave cv out, or give another score"
        )
    if values.shape[1] == 1:
        return 1 - float(metrics.roc_auc_score(labels, values[:, 0], sample_weight=w))
    areas = [
        metrics.roc_auc_score(labels == k, values[:, k], sample_weight=w) for k in np.unique(labels)
    ]
    return 1 - float(np.mean(areas))


def _labels(values: Tensor) -> np.ndarray:
    array = values.numpy()
    predicted: np.ndarray = (
        (array[:, 0] > 0).astype(int) if array.shape[1] == 1 else array.argmax(1)
    )
    return predicted


def _numpy(weights: Tensor | None) -> np.ndarray | None:
    return None if weights is None else weights.numpy()


def _negative(loss: float, unit: float) -> float:
    return -loss


def _complement(loss: float, unit: float) -> float:
    """Return 1 - loss: an accuracy, or R2, because the variance of all targets is 1."""
    return 1 - loss


SQUARED_ERROR = Scoring(None, lambda loss, unit: -loss * unit**2)

REGRESSION_SCORINGS: dict[str, Scoring] = {
    "neg_root_mean_squared_error": Scoring(None, lambda loss, unit: -(loss**0.5) * unit),
    "neg_mean_squared_error": SQUARED_ERROR,
    "r2": Scoring(None, _complement),
    "neg_mean_absolute_error": Scoring(_absolute, _negative),
}
CLASSIFICATION_SCORINGS: dict[str, Scoring] = {
    "accuracy": Scoring(_error, _complement),
    "balanced_accuracy": Scoring(_balanced_accuracy, _complement),
    "neg_log_loss": Scoring(_log_loss, _negative),
    "roc_auc": Scoring(_one_minus_auc, _complement),
}
