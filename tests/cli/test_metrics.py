"""Metrics of `gramian evaluate`: scikit-learn's, beside those of a constant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

from gramian import KernelModel
from gramian.cli.outputs.classes import confusion
from gramian.scoring.comparison import measure, named_metrics, remarks
from gramian.scoring.predictions import Predictions
from gramian.scoring.table import metrics_of

RNG = np.random.default_rng(0)


def answers(y, values, classes=None):
    return Predictions.of(np.asarray(y), np.asarray(values, dtype=float), classes)


def measured(predictions, constant):
    return measure(predictions, constant, named_metrics(None, predictions.task))


def test_metrics_of_a_regression():
    y, p = RNG.standard_normal(50), RNG.standard_normal(50)
    found = measured(answers(y, p[:, None]), 0.25)
    expected = {
        "rmse": np.sqrt(np.mean((y - p) ** 2)),
        "rmse_of_mean": np.sqrt(np.mean((y - 0.25) ** 2)),
        "mae": np.mean(abs(y - p)),
        "mae_of_mean": np.mean(abs(y - 0.25)),
        "r2": 1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
        "r2_of_mean": 1 - ((y - 0.25) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
        "relative_error": np.linalg.norm(y - p) / np.linalg.norm(y),
        "relative_error_of_mean": np.linalg.norm(y - 0.25) / np.linalg.norm(y),
        "smape": np.mean(2 * abs(y - p) / (abs(y) + abs(p))),
        "smape_of_mean": np.mean(2 * abs(y - 0.25) / (abs(y) + 0.25)),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_metrics_of_two_classes():
    y = np.array(["no", "yes", "yes", "no", "no"])
    found = measured(answers(y, [[-1], [2], [-0.5], [0.1], [-3]], ("no", "yes")), "no")
    assert found["error"] == pytest.approx(2 / 5)
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["auc"] == pytest.approx(5 / 6)  # of six pairs one is in the wrong order
    assert found["error_of_majority"] == pytest.approx(2 / 5)
    assert found["balanced_accuracy_of_majority"] == pytest.approx(1 / 2)
    assert found["auc_of_majority"] == pytest.approx(1 / 2)


def test_auc_of_several_classes_is_that_of_each_against_the_rest():
    y, values = np.arange(60) % 3 + 5, RNG.standard_normal((60, 3))
    expected = np.mean([sk.roc_auc_score(y == c, values[:, c - 5]) for c in (5, 6, 7)])
    assert measured(answers(y, values, (5, 6, 7)), 5)["auc"] == pytest.approx(expected)


def test_classes_that_the_training_had_not_are_wrong_and_said():
    given = answers(["a", "b", "new", "b"], [[-1], [1], [1], [-1]], ("a", "b"))
    found = measured(given, "b")
    assert found["error"] == 0.5
    assert found["auc"] == pytest.approx(3 / 4)  # a tie counts half
    assert "1 rows have a class without training rows, such as 'new'" in str(remarks(given))
    assert confusion(given).entry == {
        "labels": ["a", "b", "new"],
        "matrix": [[1, 0, 0], [1, 1, 0], [0, 1, 0]],
    }


def test_one_class_only_has_no_auc_and_is_said():
    given = answers([True, True], [[1], [-1]], (False, True))
    found = measured(given, False)
    assert np.isnan(found["auc"])
    assert found["balanced_accuracy"] == 0.5  # of the class that is there
    assert remarks(given) == ["all rows have the class True: auc is undefined"]


def test_many_classes_show_their_largest_confusions():
    y = np.arange(300) % 30
    said = y.copy()
    said[y == 4] = 17  # ten rows
    said[:2] = 29
    given = answers(y, np.eye(30)[said], tuple(range(30)))
    assert confusion(given).entry["largest"] == [
        {"true": 4, "predicted": 17, "rows": 10},
        {"true": 0, "predicted": 29, "rows": 1},
        {"true": 1, "predicted": 29, "rows": 1},
    ]
    assert str(confusion(given)).splitlines()[1].split() == ["4", "17", "10"]


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def labelled(save):
    return save("labelled.parquet", y=np.array(["left", "right", "up"])[np.arange(61) % 3])


@pytest.fixture
def classifier(fit, labelled):
    return fit(labelled, "--landmarks", 20)


def test_evaluate_a_classifier(report, gramian, classifier, labelled):
    said = report("evaluate", classifier, labelled)
    table = pq.read_table(labelled)
    model = KernelModel.load(classifier)
    predicted = model.predict_labels(np.asarray(table.select(["a", "b", "c"])))
    truth = table["y"].to_numpy(zero_copy_only=False)
    assert said["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(truth, predicted))
    assert said["macro_f1"] == pytest.approx(sk.f1_score(truth, predicted, average="macro"))
    assert said["accuracy"] == pytest.approx(1 - said["error"])
    assert said["confusion"]["labels"] == ["left", "right", "up"]
    assert np.sum(said["confusion"]["matrix"]) == 61
    lines = gramian("evaluate", classifier, labelled).out.splitlines()
    at = lines.index("confusion")
    assert lines[at + 1].split() == ["true", "\\", "predicted", "left", "right", "up"]
    assert lines[at + 2].split()[0] == "left"


def test_unknown_classes_and_one_class_are_said_by_the_command(report, classifier, save):
    said = report("evaluate", classifier, save("new.parquet", n=9, y=["gone"] * 9))
    assert said["error"] == 1
    assert said["auc"] is None
    assert "9 rows have a class without training rows" in said["remark"]


def test_equal_targets_are_said(report, fit, train, save):
    same = save("same.parquet", n=5, y=np.ones(5))
    said = report("evaluate", fit(train, "--landmarks", 20), same)
    assert (said["r2"], said["r2_of_mean"]) == (None, None)
    assert said["remark"] == "all targets are 1: r2 is undefined"


def test_one_metric(report, fit, train, fresh):
    model = fit(train, "--landmarks", 20)
    every = report("evaluate", model, fresh)
    one = report("evaluate", model, fresh, "--metric", "mae")
    assert {"rmse", "r2", "rmse_of_mean"} <= every.keys() - one.keys()
    assert (one["mae"], one["mae_of_mean"]) == (every["mae"], every["mae_of_mean"])


KNOWN = ", ".join(metrics_of("regression")) + ", or a scorer of scikit-learn"


@pytest.mark.parametrize("name", ["neg_mean_absolute_percentage_error", "explained_variance"])
def test_scorers_of_scikit_learn(report, fit, train, fresh, name):
    model = fit(train, "--landmarks", 20)
    found = report("evaluate", model, fresh, "--metric", name)
    table = pq.read_table(fresh)
    predicted = KernelModel.load(model).predict(np.column_stack(table.select(list("abc"))))[:, 0]
    y, function = table["y"].to_numpy(), sk.get_scorer(name)
    assert found[name] == pytest.approx(function._sign * function._score_func(y, predicted))


def test_the_name_of_a_scorer_is_the_metric(report, fit, train, fresh):
    model = fit(train, "--landmarks", 20)
    found = report("evaluate", model, fresh, "--metric", "neg_mean_absolute_error")
    assert found["mae"] == report("evaluate", model, fresh)["mae"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rsme", f"--metric must be one of {KNOWN}, not 'rsme'; did you mean rmse?"),
        ("MSE", f"--metric must be one of {KNOWN}, not 'MSE'; did you mean rmse?"),
        ("neg_max_eror", "did you mean neg_max_error?"),
        ("auc", "not 'auc', which is a metric of a classification"),
        ("roc_auc", f"--metric must be one of {KNOWN}, not 'roc_auc'"),
        ("jaccard", "jaccard cannot score these predictions of a regression: "),
    ],
)
def test_unknown_metrics_are_answered(error, fit, train, name, words):
    assert words in error("evaluate", fit(train, "--landmarks", 20), train, "--metric", name)


def test_targets_of_whole_numbers_are_measured(report, fit, save):
    data = save(y=pa.array(np.arange(61), pa.int64()))
    assert report("evaluate", fit(data, "--landmarks", 20), data)["mae"] >= 0
