"""Models in ONNX: predictions by onnxruntime, and what is refused."""

import time

import numpy as np
import pandas as pd
import pytest

from gramian import AverageModel, KernelRidge, KernelRidgeClassifier
from gramian.export import to_onnx
from gramian.kernels import (
    Cosine,
    Gaussian,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    RationalQuadratic,
)
from gramian.losses import Quantile

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2]
TRAIN, TEST = slice(0, 200), slice(200, 300)


def session(model):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    data = to_onnx(model).SerializeToString()
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def made_table():
    table = pd.DataFrame(X, columns=list("abcde"))
    table.loc[::7, "a"] = np.nan
    table["flag"] = RNG.random(300) > 0.5
    table["city"] = RNG.choice(["Rome", "Oslo", "Lima", None], 300)
    table["street"] = RNG.choice([f"street {k}" for k in range(30)], 300)
    table["y"] = Y + (table["city"] == "Rome")
    table.loc[250, "street"] = "unknown"
    return table


def inputs_of(table, names):
    return {
        name: (
            table[name].astype(float).to_numpy()
            if table[name].dtype.kind in "fbi"
            else table[name].fillna("").to_numpy().astype(object)
        )[:, None]
        for name in names
    }


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(2.0),
        Laplacian(2.0),
        Matern32(2.0),
        Matern52((1.0, 2.0, 3.0, 1.0, 1.0)),
        RationalQuadratic(2.0, alpha=0.7),
        L1Laplacian(3.0),
        Linear(2.0),
        Polynomial(2.0, degree=3),
        Gaussian(1.0).on([0, 1]) * Matern32(2.0).on([2]) + 0.5 * Linear(),
    ],
    ids=str,
)
@pytest.mark.parametrize("standardize", [True, "quantile"])
def test_predictions_of_arrays(kernel, standardize):
    est = KernelRidge(kernel, penalty=1e-3, standardize=standardize).fit(X[TRAIN], Y[TRAIN])
    (predicted,) = session(est).run(None, {"X": X[TEST]})
    np.testing.assert_allclose(predicted[:, 0], est.predict(X[TEST]), atol=1e-7)


@pytest.mark.parametrize("standardize", [True, "quantile"])
@pytest.mark.filterwarnings("ignore:.*street")
def test_predictions_of_tables(standardize):
    table = made_table()
    est = KernelRidge(Gaussian(2.0), penalty=1e-3, standardize=standardize)
    est.fit(table[TRAIN], "y")
    names = est.model_.encoding.names
    assert {"a", "flag", "city", "street"} <= set(names)
    (predicted,) = session(est).run(None, inputs_of(table[TEST], names))
    np.testing.assert_allclose(predicted[:, 0], est.predict(table[TEST]), atol=1e-6)


def test_columns_without_encoding_have_their_medians():
    table = pd.DataFrame(X, columns=list("abcde"))
    est = KernelRidge(Gaussian(2.0), penalty=1e-3).fit(table[TRAIN], Y[TRAIN])
    rows = X[TEST].copy()
    rows[0, 1] = np.nan
    (predicted,) = session(est).run(None, {"X": rows})
    with pytest.warns(UserWarning, match="median"):
        expected = est.predict(pd.DataFrame(rows, columns=list("abcde")))
    np.testing.assert_allclose(predicted[:, 0], expected, atol=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", ["U1", "int64"])
def test_classes_and_probabilities(loss, classes, dtype):
    codes = np.digitize(Y, [0.0, 0.7][: classes - 1])
    labels = codes.astype(dtype)
    est = KernelRidgeClassifier(Gaussian(2.0), penalty=1e-3, loss=loss).fit(X[TRAIN], labels[TRAIN])
    label, chance = session(est).run(None, {"X": X[TEST]})
    np.testing.assert_array_equal(label, est.predict(X[TEST]))
    np.testing.assert_allclose(chance, est.predict_proba(X[TEST]), atol=1e-7)


def test_means_metrics_and_links():
    matrix = RNG.normal(size=(5, 3))
    parts = [
        KernelRidge(Gaussian(3.0), penalty=1e-3, metric=metric).fit(X[TRAIN], Y[TRAIN]).model_
        for metric in (matrix, np.array([1.0, 2.0, 0.5, 0.0, 1.0]))
    ]
    mean = AverageModel((0.3, 0.7), tuple(parts))
    (predicted,) = session(mean).run(None, {"X": X[TEST]})
    np.testing.assert_allclose(predicted, mean.predict(X[TEST]), atol=1e-7)
    counts = np.round(np.exp(Y))
    est = KernelRidge(Gaussian(2.0), penalty=1e-2, loss="poisson").fit(X[TRAIN], counts[TRAIN])
    (predicted,) = session(est).run(None, {"X": X[TEST]})
    np.testing.assert_allclose(predicted[:, 0], est.predict(X[TEST]), rtol=1e-6)


def test_a_row_takes_less_than_a_millisecond(tmp_path):
    x = RNG.normal(size=(3000, 20))
    est = KernelRidge(Gaussian(4.0), penalty=1e-4, landmarks=2000, random_state=0)
    est.fit(x, x[:, 0])
    to_onnx(est, tmp_path / "m.onnx")
    run = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]).run
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        run(None, {"X": x[:1]})
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": Cosine()}, "Cosine.* cannot be exported"),
        ({"loss": Quantile((0.1, 0.9))}, "sorted quantiles"),
        ({"cells": 100}, "it has cells"),
    ],
)
def test_other_models_are_refused(settings, message):
    est = KernelRidge(**{"kernel": Gaussian(2.0), "penalty": 1e-2, **settings})
    est.fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match=message):
        to_onnx(est)


def test_columns_of_dates_are_refused():
    table = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020-01-01", periods=300)})
    est = KernelRidge(Gaussian(2.0), penalty=1e-2).fit(table, Y)
    with pytest.raises(ValueError, match="column 'day' cannot be exported"):
        to_onnx(est)
