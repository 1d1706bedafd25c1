"""Kernels of columns by name: looked up at the fit, kept as numbers, checked against X."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import gramian
from gramian import GaussianProcess, KernelPCA, KernelRidge, KernelRidgeCV
from gramian.estimators.leverage import leverage_scores
from gramian.kernels import (
    Columns,
    Gaussian,
    Haversine,
    Kernel,
    Matern32,
    from_dict,
    with_hyperparameters,
)
from gramian.kernels import hyperparameters as numbers_of

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "day": RNG.uniform(0, 60, 60),
        "lon": RNG.uniform(0, 50, 60),
        "lat": RNG.uniform(30, 60, 60),
    }
)
Y = FRAME["lat"] / 10 + np.sin(FRAME["day"] / 8)
TABLE = FRAME.assign(kind=RNG.choice(["a", "b", "c"], 60), y=Y)
NAMED = Haversine(300.0).on(["lat", "lon"]) + 2.0 * Matern32(60.0).on(["day"])
NUMBERED = Haversine(300.0).on([2, 1]) + 2.0 * Matern32(60.0).on([0])


def test_names_survive_copies_and_descriptions():
    assert eval(repr(NAMED), vars(gramian.kernels)) == NAMED
    assert pickle.loads(pickle.dumps(NAMED)) == from_dict(NAMED.to_dict()) == NAMED
    assert hash(NAMED) != hash(NUMBERED)
    values = list(numbers_of(NAMED).values())
    assert numbers_of(NAMED) == numbers_of(NUMBERED)
    assert with_hyperparameters(NAMED, values) == NAMED
    changed = NAMED.set_params(first__columns=["latitude", "longitude"])
    assert changed.first.columns == ("latitude", "longitude")


@pytest.mark.parametrize(
    "make",
    [
        lambda k: KernelRidge(k, penalty=1e-3),
        lambda k: KernelRidge(k, penalty=1e-3, cells=25, random_state=0),
        lambda k: GaussianProcess(k, noise=0.01, tune=False),
        pytest.param(
            lambda k: KernelRidgeCV(k, budget=20_000, random_state=0), marks=pytest.mark.slow
        ),
    ],
    ids=["ridge", "cells", "process", "search"],
)
def test_a_fit_by_names_is_the_fit_by_numbers(make, tmp_path):
    by_name, by_number = make(NAMED).fit(FRAME, Y), make(NUMBERED).fit(FRAME.to_numpy(), Y)
    np.testing.assert_array_equal(by_name.predict(FRAME), by_number.predict(FRAME.to_numpy()))
    assert by_name.kernel == NAMED
    assert by_name.kernel_ == by_number.kernel_
    by_name.save(tmp_path / "named.model")
    loaded = gramian.load(tmp_path / "named.model")
    assert loaded.kernel_ == by_number.kernel_
    np.testing.assert_allclose(loaded.predict(FRAME), by_name.predict(FRAME))


def test_other_uses_of_frames_look_names_up():
    pca = KernelPCA(3, kernel=NAMED, random_state=0).fit(FRAME)
    assert pca.kernel_ == NUMBERED
    k = Matern32(60.0).on(["day"])
    by_number = leverage_scores(Matern32(60.0).on([0]), FRAME.to_numpy(), 0.1)
    np.testing.assert_array_equal(leverage_scores(k, FRAME, 0.1), by_number)
    settings = dict(penalty=0.1, solver="eigenpro3", landmarks=30, random_state=0)
    streamed = KernelRidge(k, **settings).partial_fit(FRAME, Y).partial_fit(FRAME, Y)
    assert streamed.kernel_.columns == (0,)
    for X, y in ((FRAME, Y), (TABLE, "y")):
        named, numbered = (KernelRidge(k, penalty=0.1).plan(X, y) for k in (NAMED, NUMBERED))
        assert named.kernel_evaluations == numbered.kernel_evaluations


def test_a_category_is_all_of_its_features():
    est = KernelRidge(NAMED + Gaussian(1.0).on(["kind", "day"]), penalty=1e-3).fit(TABLE, "y")
    assert est.kernel_ == NUMBERED + Gaussian(1.0).on([3, 4, 5, 0])
    with pytest.raises(ValueError, match="takes 2 features, but the columns kind, day have 4 aft"):
        KernelRidge(Gaussian((1.0, 2.0)).on(["kind", "day"]), penalty=1e-3).fit(TABLE, "y")


def fit(kernel: Kernel, X: object = FRAME) -> None:
    KernelRidge(kernel, penalty=1e-3).fit(X, Y)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: fit(NAMED, FRAME.to_numpy()), "the rows have no names; fit a frame with"),
        (lambda: NAMED(FRAME.to_numpy(), FRAME.to_numpy()), "or give their numbers, as in"),
        (lambda: NAMED.used_features(3), "selects columns by name"),
        (lambda: KernelRidge(NAMED).plan(FRAME.to_numpy(), Y), "selects columns by name"),
        (lambda: fit(Gaussian().on(["days"])), "it has day, lon, lat; did you mean day?"),
        (lambda: Gaussian().on("day"), r"different names, not 'day'; give \['day'\]"),
        (lambda: Gaussian().on(["day", 1]), "or of different names, not"),
        (lambda: Gaussian().on(["day", "day"]), "or of different names, not"),
        (lambda: Columns(Gaussian(), []), "or of different names, not"),
        (lambda: Haversine().on(["lat", "lon", "day"]), "columns must be 2 names for"),
        (lambda: Haversine().on([0]), "columns must be 2 numbers for"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_a_column_of_one_value_has_no_feature():
    with pytest.raises(ValueError, match="needs the column 'day', which X lacks or which has a s"):
        KernelRidge(Matern32(1.0).on(["day"])).fit(TABLE.assign(day=1.0), "y")


class TestOrderOfPlaces:
    SWAPPED = r"takes \(latitude, longitude\), in this order, .*swap them, as in \.on\(\['lat', 'lo"

    @pytest.mark.parametrize("names", [["lon", "lat"], ["Longitude (deg)", "start_lat"]], ids=str)
    def test_names_in_the_other_order_are_refused_at_once(self, names):
        with pytest.raises(ValueError, match=r"\(latitude, longitude\), in this order"):
            Haversine(300.0).on(names)

    def test_numbers_of_columns_in_the_other_order_are_refused_at_the_fit(self):
        with pytest.raises(ValueError, match=self.SWAPPED):
            fit(Matern32(1.0).on([0]) + Haversine(300.0).on([1, 2]))
        with pytest.raises(ValueError, match=self.SWAPPED):
            fit(2.0 * Haversine(300.0), FRAME[["lon", "lat"]])
        with pytest.raises(ValueError, match=self.SWAPPED):
            KernelRidgeCV(Haversine(300.0).on([1, 2]), budget=10_000).fit(FRAME, Y)

    def test_other_names_say_nothing_of_the_order(self):
        fit(Haversine(300.0), FRAME[["lon", "lat"]].set_axis(["flat", "longest"], axis=1))

    def test_a_latitude_beyond_a_pole_is_refused_with_the_remedy(self):
        rows = np.array([[-120.0, 40.0], [5.0, 40.0]])
        message = r"latitude -120 is outside .* 90 degrees; .*swap the columns .* \.on\(\[1, 0\]\)"
        with pytest.raises(ValueError, match=message):
            Haversine(300.0)(rows, rows)
        with pytest.raises(ValueError, match=r"pi / 2 radians; .* degrees=True for degrees"):
            Haversine(300.0, degrees=False)(rows, rows)
