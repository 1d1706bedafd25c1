"""`predict` and `evaluate`: columns by name, predictions in the target's units, honest errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from plain import PLAIN
from sklearn import metrics

from gramian import KernelModel, KernelRidge


@pytest.fixture
def model(fit, train):
    return fit(train, "--landmarks", 20)


@pytest.fixture
def expected(model, fresh):
    X = np.asarray(pq.read_table(fresh).select(["a", "b", "c"]))
    return KernelModel.load(model).predict(X)[:, 0]


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    read_table = pa.csv.read_csv if path.suffix == ".csv" else pq.read_table
    return read_table(path)["prediction"].to_numpy()


@pytest.mark.parametrize("form", ["parquet", "csv", "npy"])
def test_predictions_in_every_format(report, model, fresh, expected, tmp_path, form):
    out = tmp_path / f"predictions.{form}"
    said = report("predict", model, fresh, "--out", out)
    assert said["rows"] == 17
    np.testing.assert_array_equal(read(out), expected)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_columns_are_found_by_name(report, model, fresh, expected, tmp_path, form):
    table = pq.read_table(fresh).select(["c", "a", "b"])
    table = table.append_column("city", pa.array(["Rome"] * 17))
    data, out = tmp_path / f"other.{form}", tmp_path / "predictions.npy"
    (pa.csv.write_csv if form == "csv" else pq.write_table)(table, data)
    report("predict", model, data, "--out", out)
    np.testing.assert_allclose(np.load(out), expected, rtol=1e-12)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_gaps_of_new_rows_are_filled_and_reported_once(
    gramian, model, train, fresh, form, tmp_path
):
    table = pq.read_table(fresh)
    median = float(np.median(pq.read_table(train)["b"].to_numpy()))
    b = table["b"].to_numpy().tolist()
    answers = []
    for gap in (None, median):
        data = tmp_path / f"gap.{form}"
        changed = table.set_column(1, "b", pa.array([gap, gap, *b[2:]]))
        assert changed.column_names == table.column_names
        (pa.csv.write_csv if form == "csv" else pq.write_table)(changed, data)
        done = gramian("predict", model, data, "--out", tmp_path / "p.npy")
        assert done.code == 0
        said = [line for line in done.err.splitlines() if "warning" in line]
        assert [("training: 'b' 2; " in line) for line in said] == [True] * (gap is None)
        answers.append(np.load(tmp_path / "p.npy"))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-12)


def test_a_matrix_without_names(report, model, fresh, expected, tmp_path):
    np.save(tmp_path / "x.npy", np.asarray(pq.read_table(fresh).select(["a", "b", "c"])))
    report("predict", model, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), expected)


def test_a_model_of_a_matrix_knows_its_column_numbers(fit, report, train, fresh, tmp_path):
    """The target is column 1 of 4: the features are columns 0, 2 and 3."""
    for path in (train, fresh):
        np.save(path.with_suffix(".npy"), np.asarray(pq.read_table(path).select(list("aybc"))))
    model = fit(train.with_suffix(".npy"), "--target", "1", "--landmarks", 20)
    x = np.asarray(pq.read_table(fresh).select(["a", "b", "c"]))
    np.save(tmp_path / "x.npy", x)
    expected = KernelModel.load(model).predict(x)[:, 0]
    for data in (fresh.with_suffix(".npy"), tmp_path / "x.npy"):
        report("predict", model, data, "--out", tmp_path / "p.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), expected)
    y = pq.read_table(fresh)["y"].to_numpy()
    said = report("evaluate", model, fresh.with_suffix(".npy"))
    assert said["rmse"] == pytest.approx(np.sqrt(np.mean((expected - y) ** 2)))


def test_errors_of_a_regression(report, model, train, fresh, expected):
    y = pq.read_table(fresh)["y"].to_numpy()
    mean = pq.read_table(train)["y"].to_numpy().mean()
    said = report("evaluate", model, fresh)
    assert said["rows"] == 17
    assert said["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, expected))
    assert said["mae"] == pytest.approx(metrics.mean_absolute_error(y, expected))
    assert said["r2"] == pytest.approx(metrics.r2_score(y, expected))
    constant = np.full(17, mean)
    assert said["rmse_of_mean"] == pytest.approx(metrics.root_mean_squared_error(y, constant))


def test_another_column_may_hold_the_truth(report, model, fit, save):
    data = save("renamed.parquet", n=17, seed=1, truth=np.zeros(17))
    assert report("evaluate", model, data, "--target", "truth")["rmse_of_mean"] > 500


def test_r2_of_equal_targets_is_null(report, model, save):
    assert report("evaluate", model, save("same.parquet", n=5, y=np.ones(5)))["r2"] is None


def test_several_targets(report, error, fresh, tmp_path):
    x = np.asarray(pq.read_table(fresh).select(["a", "b", "c"]))
    np.save(tmp_path / "x.npy", x)
    model = KernelRidge(landmarks=5, **PLAIN).fit(x, x[:, :2]).model_
    model.save(tmp_path / "two.model")
    report("predict", tmp_path / "two.model", tmp_path / "x.npy", "--out", tmp_path / "p.csv")
    table = pa.csv.read_csv(tmp_path / "p.csv")
    assert table.column_names == ["prediction_0", "prediction_1"]
    said = error("evaluate", tmp_path / "two.model", fresh, "--target", "y")
    assert "evaluate requires a model of one output, but" in said


# --- classification ------------------------------------------------------------------------------

LABELS = {
    "two texts": np.array(["no", "yes"]),
    "three texts": np.array(["Bern", "Oslo", "Zürich"]),
    "booleans": np.array([False, True]),
    "numbers": np.array([7, 3, 5]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_classes(report, save, tmp_path, kind):
    labels = LABELS[kind]
    paths = []
    for name, n, seed in (("train.parquet", 90, 0), ("fresh.parquet", 40, 1)):
        a = pq.read_table(save(name, n, seed))["a"].to_numpy()
        place = np.floor((a - a.min()) / np.ptp(a) * len(labels) * 0.999).astype(int)
        paths.append(save(name, n, seed, y=labels[place]))
    options = ["--target", "y", "--landmarks", 40, "--validation", 0.2]
    options += ["--task", "classification"] if kind == "numbers" else []
    out = tmp_path / "y.model"
    said = report("fit", paths[0], *options, "--out", out)
    assert said["task"] == "classification"
    assert 0 <= said["validation"]["error"] < said["validation"]["error_of_majority"]

    report("predict", out, paths[1], "--out", tmp_path / "p.parquet")
    predicted = pq.read_table(tmp_path / "p.parquet")["prediction"].to_numpy(zero_copy_only=False)
    truth = pq.read_table(paths[1])["y"].to_numpy(zero_copy_only=False)
    assert set(predicted) <= set(labels.tolist())
    found = report("evaluate", out, paths[1])
    assert found["error"] == pytest.approx(np.mean(predicted != truth))
    assert found["error"] < found["error_of_majority"] < 1
    assert report("info", out)["classes"] == sorted(labels.tolist())


def test_labels_as_npy(report, save, tmp_path):
    data, out = save(y=np.array(["left", "right", "up"])[np.arange(61) % 3]), tmp_path / "y.model"
    report("fit", data, "--target", "y", "--landmarks", 20, "--out", out)
    report("predict", out, data, "--out", tmp_path / "p.npy")
    assert set(np.load(tmp_path / "p.npy")) <= {"left", "right", "up"}


@pytest.mark.parametrize("spelling", [("Yes", "No"), ("y", "n"), ("true", "false"), ("01", "02")])
def test_labels_are_written_as_they_were_in_the_file(gramian, report, spelling, tmp_path):
    x = np.random.default_rng(0).normal(size=80)
    labels = [spelling[int(v < 0)] for v in x]
    lines = [f"{v},{t}" for v, t in zip(x, labels, strict=True)]
    data, model, out = (tmp_path / name for name in ("t.csv", "t.model", "p.csv"))
    data.write_text("\n".join(["x,t", *lines]) + "\n")
    assert gramian("fit", data, "--target", "t", "--out", model, "--landmarks", 20).code == 0
    report("predict", model, data, "--out", out)
    answers = out.read_text().replace('"', "").split()[1:]
    assert set(answers) == set(spelling)
    expected = report("evaluate", model, data)["accuracy"]
    assert expected == np.mean([a == t for a, t in zip(answers, labels, strict=True)]) > 0.8
    pd.read_csv(data).to_parquet(tmp_path / "t.parquet")
    assert report("evaluate", model, tmp_path / "t.parquet")["accuracy"] == expected
