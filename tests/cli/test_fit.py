"""`gramian fit` learns what the formulas say, whatever the format of the table."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import PLAIN_OPTIONS

from gramian import KernelModel, KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.cli.inputs.training import spread_rows

EXACT = (
    "--kernel",
    "gaussian",
    "--landmarks",
    "none",
    "--solver",
    "direct",
    "--lengthscale",
    "1.5",
)


def arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(path)
    return np.asarray(table.select(["a", "b", "c"])), table["y"].to_numpy()


def predictions(model: Path, path: Path) -> np.ndarray:
    return KernelModel.load(model).predict(arrays(path)[0])[:, 0]


def closed_form(train: Path, fresh: Path, penalty: float) -> np.ndarray:
    """Kernel ridge regression on standardised features and targets, in six lines of NumPy."""
    (X, y), (Z, _) = arrays(train), arrays(fresh)
    X, Z = (X - X.mean(0)) / X.std(0), (Z - X.mean(0)) / X.std(0)
    kernel = [np.exp(-((A[:, None] - X) ** 2).sum(-1) / (2 * 1.5**2)) for A in (X, Z)]
    coef = np.linalg.solve(kernel[0] + len(y) * penalty * np.eye(len(y)), (y - y.mean()) / y.std())
    return y.mean() + y.std() * kernel[1] @ coef


def test_standardises_features_and_target(fit, train, fresh):
    model = fit(train, *EXACT, penalty=1e-3)
    np.testing.assert_allclose(
        predictions(model, fresh), closed_form(train, fresh, 1e-3), rtol=1e-10
    )


def test_without_standardisation_it_is_the_estimator(fit, train, fresh):
    X, y = arrays(train)
    model = fit(train, "--standardize", "false", "--landmarks", 20, "--lengthscale", "2,40,0.02")
    kernel = KernelModel.load(model).kernel
    truth = KernelRidge(
        kernel, landmarks=20, penalty=1e-4, standardize=False, random_state=0, lengthscale="median"
    ).fit(X, y)
    np.testing.assert_allclose(predictions(model, fresh), truth.predict(arrays(fresh)[0]))


@pytest.mark.parametrize("form", ["directory", "csv", "npy"])
def test_every_format_gives_the_same_model(fit, train, fresh, form, tmp_path):
    table, extra = pq.read_table(train), ()
    other = tmp_path / f"other.{form}"
    if form == "directory":
        other.mkdir()
        pq.write_table(table.slice(40), other / "2.parquet")
        pq.write_table(table.slice(0, 40), other / "1.parquet")
    elif form == "csv":
        pa.csv.write_csv(table, other)
    else:
        np.save(other, np.asarray(table))
        extra = ("--target", "3")
    one, two = (fit(path, "--landmarks", 20) for path in (train, train))
    two = fit(other, "--landmarks", 20, *extra, name="other.model")
    np.testing.assert_allclose(predictions(two, fresh), predictions(one, fresh), rtol=1e-10)


def test_float32_stays_float32(fit, save):
    columns = {n: pa.array(np.linspace(0, k, 61), pa.float32()) for k, n in enumerate("abcy", 1)}
    model = KernelModel.load(fit(save(**columns), "--landmarks", 20))
    assert model.centers.dtype == np.float32


def test_features_and_ignored_columns(fit, save, fresh):
    noise = np.random.default_rng(2).standard_normal(61)
    data = save("noisy.parquet", noise=noise, city=["Rome"] * 61)
    every = [
        fit(save(), name="plain.model"),
        fit(data, "--features", "a, b,c", name="chosen.model"),
        fit(data, "--ignore", "noise,city", name="rest.model"),
    ]
    first, *others = [predictions(model, fresh) for model in every]
    for other in others:
        np.testing.assert_array_equal(other, first)
    assert KernelModel.load(every[1]).feature_names == ("a", "b", "c")


def test_a_constant_feature_changes_nothing(fit, save, fresh):
    same = dict.fromkeys(("constant",), np.full(61, 7.0))
    one = fit(save(), "--lengthscale", 2, name="one.model")
    two = fit(save("more.parquet", **same), "--lengthscale", 2, name="two.model")
    X = np.column_stack([arrays(fresh)[0], np.full(17, 7.0)])
    actual = KernelModel.load(two).predict(X)[:, 0]
    np.testing.assert_allclose(actual, predictions(one, fresh), rtol=1e-10)


def test_a_constant_target_is_predicted(fit, save, fresh):
    np.testing.assert_allclose(predictions(fit(save(y=np.full(61, 7.0))), fresh), 7.0)


@pytest.mark.parametrize("stored", ["parquet", "npy"])  # read in order, and in any order
def test_rows_held_out_are_not_learnt_from(fit, report, save, tmp_path, stored):
    data, target = save("all.parquet", n=60), "y"
    table = pq.read_table(data)
    index = spread_rows(60, 15, rng=RandomStream(4))
    stays = np.setdiff1d(np.arange(60), index)
    for name, rows in (("train", stays), ("valid", index)):
        pq.write_table(table.take(rows), tmp_path / f"{name}.parquet")
    if stored == "npy":
        data, target = tmp_path / "data.npy", "3"
        np.save(data, np.asarray(table))
    options = ("--landmarks", 20, "--seed", 4)
    one = fit(data, *options, "--validation", 0.25, "--target", target, name="one.model")
    two = fit(tmp_path / "train.parquet", *options, name="two.model")
    valid = tmp_path / "valid.parquet"
    np.testing.assert_allclose(predictions(one, valid), predictions(two, valid), rtol=1e-10)
    said = report("info", one)["trained"]
    assert said["rows"] == 45
    assert said["validation"]["rows"] == 15
    found = report("evaluate", two, valid)
    for name in ("rmse", "rmse_of_mean"):
        assert said["validation"][name] == pytest.approx(found[name], rel=1e-10)


def test_validation_on_another_file(report, train, fresh, tmp_path):
    options = ("--target", "y", "--landmarks", 20, "--out", tmp_path / "y.model")
    said = report("fit", train, "--validation", fresh, *options)
    assert said["rows"] == 61
    found = report("evaluate", tmp_path / "y.model", fresh)
    assert said["validation"]["rmse"] == pytest.approx(found["rmse"], rel=1e-10)


@settings(deadline=None)
@given(n=st.integers(1, 300), data=st.data())
def test_held_out_rows_are_distinct_and_in_order(n, data):
    count = data.draw(st.integers(1, n))
    index = spread_rows(n, count, rng=RandomStream(0))
    assert len(index) == count
    assert bool((xp.diff(index) > 0).all())
    assert 0 <= int(index[0]) <= int(index[-1]) < n


def test_every_row_is_as_likely_to_be_held_out():
    rng, times = RandomStream(0), 4000
    drawn = np.concatenate([spread_rows(10, 3, rng=rng) for _ in range(times)])
    counts = xp.to_float64(xp.bincount(drawn, minlength=10))
    spread = (0.3 * 0.7 * times) ** 0.5  # the deviation of one count
    assert float(np.abs(counts - 0.3 * times).max()) < 5 * spread


@pytest.mark.parametrize("kernel", [k for k in kernels.names() if k != "haversine"])
def test_every_kernel(fit, save, kernel):
    counts = np.arange(61) % 7  # what is negative is no count
    train = save(b=counts / 8, c=np.arange(61) % 5 / 2, y=1000.0 + 30 * counts)
    saved = KernelModel.load(
        fit(train, "--kernel", kernel, "--landmarks", 20, "--solver", "direct")
    )
    assert saved.kernel.to_dict()["name"] == kernel
    assert saved.kernel.to_dict()["lengthscale"] != "median"


def test_places(fit, save):
    south = np.linspace(-60, 60, 61)
    train = save(b=south, c=3 * south, y=1000.0 + 30 * south)
    more = ("--features", "b,c", "--kernel", "haversine", "--solver", "direct")
    saved = KernelModel.load(fit(train, *more))
    assert saved.kernel.lengthscale > 1000  # kilometres
    assert saved.standardizer is None


@pytest.mark.parametrize("kind", ["json", "csv", "JSON"])
def test_history_has_a_row_per_iteration(report, train, tmp_path, kind):
    history = tmp_path / f"history.{kind}"
    out = ("--out", tmp_path / "y.model", "--history", history)
    said = report(
        "fit", train, "--target", "y", "--landmarks", 20, "--validation", 0.2, *PLAIN_OPTIONS, *out
    )
    text = history.read_text("utf-8")
    rows = json.loads(text) if kind.lower() == "json" else list(csv.DictReader(text.splitlines()))
    assert [int(row["iteration"]) for row in rows] == list(range(said["iterations"] + 1))
    assert float(rows[-1]["rel_residual"]) <= 1e-6
    assert float(rows[-1]["valid_rmse"]) == said["validation"]["rmse"]
    # Without coefficients the model is the training mean, in units of the target.
    assert float(rows[0]["valid_rmse"]) == pytest.approx(said["validation"]["rmse_of_mean"])


def test_the_report_for_people(gramian, train, tmp_path):
    options = ("--target", "y", "--landmarks", 20, *PLAIN_OPTIONS)
    done = gramian("fit", train, *options, "--out", tmp_path / "y.model")
    assert done.code == 0
    assert done.err == ""
    lines = dict(line.split("  ", 1) for line in done.out.splitlines())
    assert lines["rows"].strip() == "61"
    assert lines["kernel name"].strip() == "gaussian"


def test_an_existing_model_is_replaced(fit, train):
    first = fit(train, "--landmarks", 20).read_bytes()
    assert fit(train, "--landmarks", 10).read_bytes() != first


def test_more_landmarks_than_rows(gramian, train, tmp_path):
    out = tmp_path / "y.model"
    done = gramian("fit", train, "--target", "y", "--landmarks", 100, *PLAIN_OPTIONS, "--out", out)
    assert done.code == 0
    assert done.err.startswith("gramian: warning: 100 landmarks were asked for but there are 61")
    assert done.err.count("\n") == 1
    assert KernelModel.load(out).coef.shape == (61, 1)


def test_too_few_iterations(gramian, train, tmp_path, monkeypatch):
    # With a factor of all rows one iteration would be enough.
    monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
    out = ("--out", tmp_path / "y.model", "--json")
    done = gramian("fit", train, "--target", "y", "--landmarks", 20, "--max-iter", 1, *out)
    assert done.code == 0
    assert json.loads(done.out)["stop_reason"] == "max_iterations"
    assert done.err.startswith("gramian: warning: stopped after --max-iter 1")
    assert done.err.count("\n") == 1


def test_a_fit_that_explains_little_is_said(gramian, train, tmp_path):
    options = (
        "--target",
        "y",
        "--landmarks",
        20,
        "--validation",
        0.3,
        *PLAIN_OPTIONS,
        "--penalty",
        100,
    )
    done = gramian("fit", train, *options, "--out", tmp_path / "y.model")
    assert done.code == 0
    assert done.err.startswith("gramian: warning: R2 is ")
    assert "on 18 held-out rows, although the solver converged: the lengthscale or" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("selector", ["uniform", "kmeans", "rpcholesky", "bless"])
def test_landmarks_by_a_selector(report, train, tmp_path, selector):
    out = tmp_path / "y.model"
    report("fit", train, "--target", "y", "--landmarks", f"{selector}:15", "--out", out)
    assert len(KernelModel.load(out).centers) == 15


def test_a_selector_chooses_as_many_as_auto(report, train, tmp_path):
    out = tmp_path / "y.model"
    report("fit", train, "--target", "y", "--landmarks", "rpcholesky", "--out", out)
    assert len(KernelModel.load(out).centers) == 61


@pytest.mark.slow
def test_automatic_penalty(report, train, tmp_path):
    options = ("--target", "y", "--penalty", "auto", "--landmarks", "bless:30")
    said = report("fit", train, *options, "--out", tmp_path / "y.model")
    assert 0 < said["penalty"] < 1
    assert said["landmarks"] <= 30
    assert KernelModel.load(tmp_path / "y.model").info["penalty"] == said["penalty"]
    assert report("plan", train, *options)["landmarks"] == 30
