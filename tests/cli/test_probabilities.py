"""Probabilities on the command line: columns, metrics as scikit-learn has them, a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain import PLAIN_OPTIONS
from pyarrow import csv
from sklearn import metrics as sk

from gramian.model import Shares, load_model
from gramian.scoring.forms import CalibrationError
from gramian.scoring.predictions import Predictions
from gramian.scoring.reliability import Reliability
from gramian.scoring.table import METRIC_TABLE

SIDES = np.array(["left", "right", "up"])


@pytest.fixture(params=["two", "three"])
def labelled(request, save) -> Path:
    numbers = np.random.default_rng(0).integers(0, 2 if request.param == "two" else 3, 61)
    return save("labelled.parquet", y=SIDES[numbers])


@pytest.fixture
def classifier(fit, labelled) -> Path:
    return fit(labelled, "--landmarks", 20, *PLAIN_OPTIONS)


@pytest.fixture
def chances(classifier, labelled) -> np.ndarray:
    X = np.asarray(pq.read_table(labelled).select(["a", "b", "c"]))
    return load_model(classifier).predict_proba(X)


def read(path: Path) -> dict[str, list[Any]]:
    table: pa.Table = csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    return table.to_pydict()


class TestPredict:
    @pytest.mark.parametrize("form", ["parquet", "csv"])
    @pytest.mark.parametrize("keep", [(), ("--keep", "a")], ids=["alone", "beside"])
    def test_a_column_for_each_class(
        self, report, classifier, labelled, chances, tmp_path, keep, form
    ):
        out = tmp_path / f"p.{form}"
        report("predict", classifier, labelled, "--proba", "--out", out, *keep)
        found = read(out)
        names = [f"probability_{k}" for k in load_model(classifier).classes]
        assert list(found) == [*keep[1:], "prediction", *names]
        p = np.array([found[name] for name in names]).T
        np.testing.assert_allclose(p, chances, rtol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        assert [SIDES[i] for i in p.argmax(axis=1)] == found["prediction"]

    def test_a_file_without_names_has_these_alone(
        self, report, classifier, labelled, chances, tmp_path
    ):
        report("predict", classifier, labelled, "--proba", "--out", tmp_path / "p.npy")
        np.testing.assert_allclose(np.load(tmp_path / "p.npy"), chances, rtol=1e-12)

    def test_a_regression_has_none(self, error, fit, train, fresh, tmp_path):
        said = error("predict", fit(train), fresh, "--proba", "--out", tmp_path / "p.csv")
        assert "--proba requires a classifier, but" in said
        assert not (tmp_path / "p.csv").exists()


def test_info_says_how_they_are_made(report, classifier, train, fit):
    assert report("info", classifier)["probabilities"] == {
        "kind": "shares",
        "power": 1.0,
        "least_share": 1e-3,
    }
    assert report("info", fit(train))["probabilities"] is None


class TestEvaluate:
    def test_figures_are_those_of_scikit_learn(self, report, classifier, labelled, chances):
        said = report("evaluate", classifier, labelled)
        truth = pq.read_table(labelled)["y"].to_numpy(zero_copy_only=False).astype(str)
        classes = np.unique(truth)
        assert said["log_loss"] == pytest.approx(sk.log_loss(truth, chances), rel=1e-9)
        if len(classes) == 2:
            brier = sk.brier_score_loss(truth == classes[1], chances[:, 1])
            area = sk.roc_auc_score(truth, chances[:, 1])
            assert said["auc"] == pytest.approx(area, rel=1e-9)
        else:  # areas of each class are those of its values
            brier = sk.brier_score_loss(truth, chances)
        assert said["brier"] == pytest.approx(brier, rel=1e-9)
        assert not any(f"{name}_of_majority" in said for name in ("log_loss", "brier"))
        for name in ("log_loss", "brier", "calibration_error"):
            alone = report("evaluate", classifier, labelled, "--metric", name)
            assert alone[name] == said[name]
            assert "error" not in alone

    def test_a_fit_measures_them_on_held_out_rows(self, report, labelled, tmp_path):
        said = report(
            "fit", labelled, "--target", "y", "--landmarks", 10, "--penalty", 1e-3,
            "--validation", 0.3, "--metric", "brier", "--out", tmp_path / "m",
        )["validation"]  # fmt: skip
        assert 0 < said["brier"] < 1

    @pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
    def test_a_picture(self, report, classifier, labelled, tmp_path, suffix):
        path = tmp_path / f"r.{suffix}"
        report("evaluate", classifier, labelled, "--reliability", path)
        begin = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
        assert path.read_bytes().startswith(begin)

    def test_no_picture(self, error, fit, train, classifier, labelled, tmp_path, monkeypatch):
        def refused(*arguments: Any) -> str:
            return error("evaluate", *arguments)

        path = tmp_path / "r.png"
        assert "must end in one of .png, .svg, .pdf" in refused(
            classifier, labelled, "--reliability", tmp_path / "r.txt"
        )
        assert "--reliability requires a classifier" in refused(
            fit(train), train, "--reliability", path
        )
        assert "would overwrite an input" in refused(
            classifier, labelled, "--reliability", labelled
        )
        monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
        assert "pip install 'gramian[plots]'" in refused(
            classifier, labelled, "--reliability", path
        )
        assert not path.exists()


class TestCalibration:
    def test_the_error_is_the_mean_difference_over_bins(self):
        p = np.array([0.91, 0.93, 0.92, 0.55, 0.45, 1.0])  # of the second class
        y = np.array([1, 1, 0, 0, 0, 1])
        found = CalibrationError()(y, np.stack([1 - p, p], axis=1))
        # bins of 1/15: three of about 0.92 with 2 of 3 right; two of 0.55 with one right; 1.0
        expected = (3 * abs(0.92 - 2 / 3) + 2 * abs(0.55 - 1 / 2) + 0) / 6
        assert found == pytest.approx(expected)

    def test_what_comes_true_as_often_as_said_has_none(self):
        p = np.repeat([[0.75, 0.25], [0.5, 0.5]], 4, axis=0)
        y = np.array([0, 0, 0, 1, 0, 1, 1, 0])
        assert CalibrationError()(y, p) == pytest.approx(0, abs=1e-12)

    def test_bins_of_reliability(self):
        p = np.array([0.0, 0.05, 0.07, 1.0])
        found = Reliability.of(p, np.array([0, 1, 1, 1]))
        np.testing.assert_array_equal(found.rows, [2, 1, 1])
        np.testing.assert_allclose(found.probability, [0.025, 0.07, 1.0])
        np.testing.assert_allclose(found.share, [0.5, 1, 1])

    def test_rows_of_unknown_classes_are_left_out(self):
        values = np.array([[0.5], [-0.2], [0.9]])
        names = ("log_loss", "brier", "calibration_error")
        given = Predictions.of(np.array(["b", "a", "new"]), values, ("a", "b"), Shares())
        found = {name: given.measure(METRIC_TABLE[name]) for name in names}
        assert found["log_loss"] == pytest.approx(-np.log([0.75, 0.6]).mean())
        assert found["brier"] == pytest.approx((0.25**2 + 0.4**2) / 2)
        assert found["calibration_error"] == pytest.approx((0.25 + 0.4) / 2)
        nobody = Predictions.of(np.array(["new"]), values[:1], ("a", "b"), Shares())
        assert np.isnan([nobody.measure(METRIC_TABLE[name]) for name in names]).all()
