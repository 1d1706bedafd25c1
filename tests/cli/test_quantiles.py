"""Quantiles on the command line: their columns, and their errors."""

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gramian import KernelModel


@pytest.fixture
def quantiles(fit, train):
    return fit(train, "--loss", "quantile:0.1,0.9", "--landmarks", "20", "--penalty", "1e-4")


def test_columns_are_named_by_their_levels(report, quantiles, fresh, tmp_path):
    report("predict", quantiles, fresh, "--out", tmp_path / "p.csv")
    table = pyarrow.csv.read_csv(tmp_path / "p.csv")
    assert table.column_names == ["prediction_y_q0.1", "prediction_y_q0.9"]
    values = np.column_stack([column.to_numpy() for column in table.columns])
    X = np.column_stack(pq.read_table(fresh).select(list("abc")))
    expected = KernelModel.load(quantiles).predict(X)
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_errors_are_those_of_each_level(report, quantiles, fresh):
    found = report("evaluate", quantiles, fresh)
    table = pq.read_table(fresh)
    y = table["y"].to_numpy()
    values = KernelModel.load(quantiles).predict(np.column_stack(table.select(list("abc"))))
    for level, predicted in zip((0.1, 0.9), values.T, strict=True):
        off = y - predicted
        errors = found[f"quantile_{level}"]
        assert errors["pinball"] == pytest.approx(np.maximum(level * off, (level - 1) * off).mean())
        assert errors["below"] == pytest.approx((off <= 0).mean())
    assert "rmse" not in found


def test_one_level_has_its_own_error_too(report, fit, train):
    model = fit(train, "--loss", "quantile:0.8", "--landmarks", "20", "--penalty", "1e-4")
    found = report("evaluate", model, train)
    assert 0.6 < found["quantile_0.8"]["below"] < 0.95
    assert report("evaluate", model, train, "--metric", "mae")["mae"] > 0


def test_one_metric_is_of_one_prediction(error, quantiles, fresh):
    said = error("evaluate", quantiles, fresh, "--metric", "mae")
    assert "--metric requires a model of one output, but" in said


def test_the_penalty_of_another_loss_is_chosen(report, train, tmp_path):
    out = ("--target", "y", "--landmarks", "20", "--out", tmp_path / "m")
    chosen = report("fit", train, "--loss", "huber", *out)["penalty"]
    assert chosen != 1e-6
    assert report("fit", train, "--loss", "huber", "--penalty", "1e-6", *out)["penalty"] == 1e-6
