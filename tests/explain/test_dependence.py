"""Partial dependence and individual outputs, against predictions and scikit-learn."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay
from sklearn.inspection import partial_dependence as by_scikit_learn
from sklearn.utils import Bunch

from gramian import KernelRidge, KernelRidgeClassifier
from gramian.explain import partial_dependence
from gramian.kernels import Cosine, Gaussian, L1Laplacian, Matern32

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
Y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2]


@pytest.mark.parametrize("columns", [[0], [0, 3]], ids=str)
@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), L1Laplacian(2.0), Matern32(2.0), Cosine()], ids=str
)
def test_it_equals_scikit_learns(kernel, columns):
    est = KernelRidge(kernel, penalty=1e-3, landmarks=50, random_state=0).fit(X, Y)
    theirs = by_scikit_learn(est, X[:40], columns, kind="both", grid_resolution=7)
    values = theirs.grid_values
    ours = partial_dependence(
        est, X[:40], columns, grid=values if len(columns) > 1 else values[0], kind="individual"
    )
    np.testing.assert_allclose(ours.average, theirs.average, atol=1e-8)
    np.testing.assert_allclose(ours.individual, theirs.individual, atol=1e-8)
    alone = partial_dependence(est, X[:40], columns, grid=values if len(columns) > 1 else values[0])
    assert alone.individual is None
    np.testing.assert_allclose(alone.average, theirs.average, atol=1e-8)


def test_probabilities_of_categories():
    table = pd.DataFrame(
        {"a": X[:, 0], "city": np.array(["Rome", "Oslo"])[RNG.integers(2, size=200)]}
    )
    table["y"] = np.where(X[:, 0] + (table["city"] == "Rome") > 0.5, "yes", "no")
    est = KernelRidgeClassifier(Gaussian(2.0), penalty=1e-2).fit(table, "y")
    curve = partial_dependence(est, table, ["city", "a"], grid=4)
    assert curve.grid_values[0].tolist() == ["Oslo", "Rome"]
    assert curve.average.shape == (2, 2, 4)
    changed = table.assign(city="Rome", a=curve.grid_values[1][2])
    np.testing.assert_allclose(
        curve.average[:, 1, 2], est.predict_proba(changed).mean(axis=0), atol=1e-6
    )
    raw = partial_dependence(est, table, "city", output="raw", kind="individual")
    np.testing.assert_allclose(
        raw.individual[0, :, 1], est.decision_function(table.assign(city="Rome")), atol=1e-5
    )


def test_scikit_learns_display_draws_it():
    pytest.importorskip("matplotlib").use("agg")
    est = KernelRidge(Gaussian(2.0), penalty=1e-3).fit(X, Y)
    result = Bunch(**vars(partial_dependence(est, X, 1, grid=20)))
    display = PartialDependenceDisplay(
        [result], features=[(1,)], feature_names=list("abcde"), target_idx=0,
        deciles={1: np.quantile(X[:, 1], np.arange(0.1, 1, 0.1))},
    ).plot()  # fmt: skip
    np.testing.assert_array_equal(display.lines_[0, 0].get_ydata(), result.average[0])


def test_a_grid_of_ten_thousand_points_takes_less_than_a_second():
    est = KernelRidge(Gaussian(3.0), penalty=1e-4, landmarks=150, random_state=0).fit(X, Y)
    start = time.process_time()
    surface = partial_dependence(est, X, [0, 1], grid=100)
    assert time.process_time() - start < 1
    assert surface.average.shape == (1, 100, 100)


def test_a_column_of_few_values_has_these():
    table = np.column_stack([X, np.repeat([1.0, 2.0], 100)])
    est = KernelRidge(Gaussian(2.0), penalty=1e-3).fit(table, Y)
    assert partial_dependence(est, table, 5).grid_values[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": "feature 9"}, "columns must be columns of the model"),
        ({"columns": [0, 1, 2]}, "one or two different columns"),
        ({"columns": [0, 1], "grid": [[1.0]]}, "a sequence of values for each column"),
        ({"columns": 0, "kind": "both"}, "'average' or 'individual'"),
        ({"columns": 0, "grid": 0}, "grid must be"),
    ],
)
def test_invalid_parameters(arguments, message):
    est = KernelRidge(Gaussian(2.0), penalty=1e-3).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        partial_dependence(est, X, **arguments)
