"""Scorers of scikit-learn on stored predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer, mean_pinball_loss

from gramian.scoring.predictions import Predictions
from gramian.scoring.scorers import find_metric
from gramian.scoring.table import METRIC_TABLE

RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 3))
BINARY = np.where(X[:, 0] + RNG.normal(size=90) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
WEIGHTS = RNG.random(90)


def classified(y: np.ndarray) -> tuple[LogisticRegression, Predictions]:
    est = LogisticRegression().fit(X[:, 1:], y)
    decision = est.decision_function(X[:, 1:]).reshape(90, -1)
    chances = est.predict_proba(X[:, 1:])
    predicted = est.predict(X[:, 1:])
    classes = tuple(est.classes_.tolist())
    return est, Predictions(y, predicted, decision, classes, chances, WEIGHTS)


@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("average_precision", BINARY == "yes"),
        ("matthews_corrcoef", THREE),
        ("f1_weighted", THREE),
        ("roc_auc_ovr", THREE),
        ("d2_log_loss_score", THREE),
        ("top_k_accuracy", THREE),
    ],
)
def test_scorers_of_classes(name: str, y: np.ndarray) -> None:
    if name not in get_scorer_names():
        pytest.skip("of a later version of scikit-learn")
    est, given = classified(y)
    expected = get_scorer(name)(est, X[:, 1:], y, sample_weight=WEIGHTS)
    metric = find_metric(name, "classification", "scoring")
    assert metric.higher_is_better
    assert given.measure(metric) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["neg_mean_absolute_percentage_error", "neg_max_error"])
def test_scorers_of_numbers(name: str) -> None:
    y = X[:, 0]
    est = DummyRegressor(strategy="constant", constant=0.3).fit(X, y)
    given = Predictions(y, est.predict(X))
    metric = find_metric(name, "regression", "scoring")
    assert given.measure(metric) == pytest.approx(get_scorer(name)(est, X, y))


def test_functions_are_scorers() -> None:
    scorer = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=0.9)
    given = Predictions(X[:, 0], X[:, 1], weights=WEIGHTS)
    found = given.measure(find_metric(scorer, "regression", "scoring"))
    assert found == pytest.approx(
        -mean_pinball_loss(X[:, 0], X[:, 1], alpha=0.9, sample_weight=WEIGHTS)
    )

    def own(estimator: object, rows: np.ndarray, y: np.ndarray) -> float:
        return float(np.ptp(estimator.predict(rows) - y))  # type: ignore[attr-defined]

    metric = find_metric(own, "regression", "scoring")
    assert metric.name == "own"
    assert Predictions(X[:, 0], X[:, 1]).measure(metric) == np.ptp(X[:, 1] - X[:, 0])
    with pytest.raises(ValueError, match="own cannot score these predictions of a regression"):
        given.measure(metric)  # it takes no weights


def test_names_of_the_table_and_of_its_scorers() -> None:
    for name, metric in METRIC_TABLE.items():
        assert find_metric(name, metric.task, "scoring") is metric
        if metric.scorer:
            assert find_metric(metric.scorer, metric.task, "scoring") is metric
            assert metric.scorer in get_scorer_names()


def test_a_constant_prediction_has_no_probabilities() -> None:
    _, given = classified(THREE)
    metric = find_metric("roc_auc_ovr", "classification", "scoring")
    assert np.isnan(given.constant("a").measure(metric))


@pytest.mark.parametrize(
    ("value", "task", "hint"),
    [
        ("r2", "classification", "which is a metric of a regression"),
        ("neg_mean_absolute_eror", "regression", r"did you mean neg_mean_absolute_error\?"),
        ("cross_entropy", "classification", r"did you mean log_loss\?"),
        ("symmetric_mean_absolute_percentage_error", "regression", r"did you mean smape\?"),
        (3, "regression", "not 3"),
        ("", "regression", "not ''"),
        (["r2"], "regression", "not "),
    ],
)
def test_what_is_no_metric(value: object, task: str, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"^scoring must be one of .* or a scorer.*{hint}"):
        find_metric(value, task, "scoring")
