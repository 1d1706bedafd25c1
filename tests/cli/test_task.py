"""The task that `gramian fit` takes is said, and how to choose the other."""

from __future__ import annotations

import json

import numpy as np
import pytest
from plain import PLAIN_OPTIONS

from gramian.cli.inputs.task import AT_ONCE, possible_labels

NUMBERS = {
    "codes": (np.arange(61) % 3, [0, 1, 2]),
    "twenty codes": (np.arange(61) % 20, list(range(20))),
    "whole floats": (np.array([1.0, 5.0] * 30), [1, 5]),
    "two floats": (np.array([-0.5, 0.25] * 30), [-0.5, 0.25]),
    "three floats": (np.array([0.1, 0.2, 0.3] * 30), None),
    "many codes": (np.arange(61) % 21, None),
    "one value": (np.full(61, 7), None),
    "each once": (np.arange(9), None),
    "late values": (np.r_[np.zeros(AT_ONCE), np.arange(AT_ONCE) / 7], None),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_that_may_be_codes_of_classes(kind):
    y, expected = NUMBERS[kind]
    found = possible_labels(y)
    assert (None if found is None else found.tolist()) == expected


def said(gramian, data, tmp_path, *more) -> str:
    out = ("--out", tmp_path / "y.model", "--landmarks", 20, *PLAIN_OPTIONS)
    done = gramian("fit", data, "--target", "y", *out, *more)
    assert done.code == 0, done.err
    return done.err


def test_few_whole_numbers(gramian, save, tmp_path):
    data = save(y=np.arange(61) % 3)
    assert said(gramian, data, tmp_path).startswith(
        "gramian: the target 'y' is numeric, so this is a regression; it has only 3 distinct "
        "values (0, 1, 2): if they are classes, give --task classification\n"
    )
    for task in ("classification", "regression"):
        assert "this is a" not in said(gramian, data, tmp_path, "--task", task)


@pytest.mark.parametrize(("y", "kind"), [(["no", "yes"], "text"), ([False, True], "true or false")])
def test_text_and_booleans(gramian, save, tmp_path, y, kind):
    data = save(y=np.array(y)[np.arange(61) % 2])
    words = f"gramian: the target 'y' is {kind}: this is a classification\n"
    assert said(gramian, data, tmp_path) == words


def test_measurements_need_no_words(gramian, train, tmp_path):
    assert said(gramian, train, tmp_path) == ""
    assert said(gramian, train, tmp_path, "--json") == ""


def test_programs_get_the_task_in_the_report_only(report, save, tmp_path):
    data = save(y=np.array(["no", "yes"])[np.arange(61) % 2])
    options = ("--target", "y", "--landmarks", 20, "--out", tmp_path / "y.model")
    assert report("fit", data, *options)["task"] == "classification"


# --- fit --metric --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        (),
        (
            "--standardize",
            "false",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["rmse", "mae", "r2"])
def test_a_metric_on_held_out_rows(gramian, report, train, fresh, tmp_path, metric, more):
    out = tmp_path / "y.model"
    options = ("--target", "y", "--landmarks", 20, "--out", out, "--json", *more)
    done = gramian("fit", train, "--validation", fresh, "--metric", metric, *options)
    said = json.loads(done.out)["validation"]
    found = report("evaluate", out, fresh)
    assert said["rows"] == 17
    assert said[metric] == pytest.approx(found[metric], rel=1e-9)
    assert said[f"{metric}_of_mean"] == pytest.approx(found[f"{metric}_of_mean"], abs=1e-9)


def test_a_metric_of_held_out_labels(report, save, tmp_path):
    data = save(y=np.array(["a", "b", "c"])[np.arange(61) % 3])
    fresh, out = save("fresh.parquet", 20, 1, y=["a", "b"] * 10), tmp_path / "y.model"
    options = ("--target", "y", "--landmarks", 20, "--validation", fresh, "--out", out)
    said = report("fit", data, "--metric", "auc", *options)["validation"]
    assert said["auc"] == pytest.approx(report("evaluate", out, fresh)["auc"], rel=1e-9)


def test_metrics_that_cannot_be_measured(error, train, tmp_path):
    options = ("--target", "y", "--out", tmp_path / "y.model")
    said = error("fit", train, *options, "--metric", "rmse")
    assert "--metric requires held-out rows; give --validation" in said
    said = error("fit", train, *options, "--metric", "auc", "--validation", 0.2)
    assert "not 'auc', which is a metric of a classification" in said
