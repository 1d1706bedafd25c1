"""Metrics of `gramian evaluate`: scikit-learn's, beside those of a constant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

from gramian import KernelModel
from gramian.cli.metrics import metrics
from gramian.cli.metrics.answers import answers_of
from gramian.cli.outputs.confusion import confusion

RNG = np.random.default_rng(0)


def answers(y, values, classes=None):
    return answers_of(np.asarray(y), np.asarray(values, dtype=float), classes)


def test_metrics_of_a_regression():
    y, p = RNG.standard_normal(50), RNG.standard_normal(50)
    found = metrics.measure_answers(answers(y, p[:, None]), 0.25)
    assert found == pytest.approx(
        {
            "rmse": np.sqrt(np.mean((y - p) ** 2)),
            "rmse_of_mean": np.sqrt(np.mean((y - 0.25) ** 2)),
            "mae": np.mean(abs(y - p)),
            "mae_of_mean": np.mean(abs(y - 0.25)),
            "r2": 1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
            "r2_of_mean": 1 - ((y - 0.25) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
        }
    )


def test_metrics_of_two_classes():
    y = np.array(["no", "yes", "yes", "no", "no"])
    found = metrics.measure_answers(
        answers(y, [[-1], [2], [-0.5], [0.1], [-3]], ("no", "yes")), "no"
    )
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
    assert metrics.measure_answers(answers(y, values, (5, 6, 7)), 5)["auc"] == pytest.approx(
        expected
    )


def test_classes_that_the_training_had_not_are_wrong_and_said():
    given = answers(["a", "b", "new", "b"], [[-1], [1], [1], [-1]], ("a", "b"))
    found = metrics.measure_answers(given, "b")
    assert found["error"] == 0.5
    assert found["auc"] == pytest.approx(3 / 4)  # a tie counts half
    assert "1 rows have a class without training rows, such as 'new'" in str(metrics.remarks(given))
    assert confusion(given.tally).to_dict() == {
        "labels": ["a", "b", "new"],
        "matrix": [[1, 0, 0], [1, 1, 0], [0, 1, 0]],
    }


def test_one_class_only_has_no_auc_and_is_said():
    given = answers([True, True], [[1], [-1]], (False, True))
    found = metrics.measure_answers(given, False)
    assert np.isnan(found["auc"])
    assert found["balanced_accuracy"] == 0.5  # of the class that is there
    assert metrics.remarks(given) == ["all rows have the class True: auc is undefined"]


def test_many_classes_show_their_largest_confusions():
    y = np.arange(300) % 30
    said = y.copy()
    said[y == 4] = 17  # ten rows
    said[:2] = 29
    given = answers(y, np.eye(30)[said], tuple(range(30)))
    assert confusion(given.tally).to_dict()["largest"] == [
        {"true": 4, "predicted": 17, "rows": 10},
        {"true": 0, "predicted": 29, "rows": 1},
        {"true": 1, "predicted": 29, "rows": 1},
    ]
    assert str(confusion(given.tally)).splitlines()[1].split() == ["4", "17", "10"]


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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rsme", "unknown --metric 'rsme'; known: rmse, mae, r2; did you mean rmse?"),
        ("MSE", "unknown --metric 'MSE'; known: rmse, mae, r2; did you mean rmse?"),
        ("auc", "--metric for a regression must be one of rmse, mae, r2, not auc"),
    ],
)
def test_unknown_metrics_are_answered(error, fit, train, name, words):
    assert words in error("evaluate", fit(train, "--landmarks", 20), train, "--metric", name)


def test_targets_of_whole_numbers_are_measured(report, fit, save):
    data = save(y=pa.array(np.arange(61), pa.int64()))
    assert report("evaluate", fit(data, "--landmarks", 20), data)["mae"] >= 0
