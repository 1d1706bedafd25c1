"""Predictions on regular grids, and the variogram next to the kernel's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gramian import GaussianProcess, KernelRidge
from gramian.estimators.ridge import grid as grids
from gramian.kernels import Haversine, Matern52
from gramian.plots import VariogramDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (200, 3))
Y = np.sin(X[:, 0]) + X[:, 2] / 5 + 0.1 * RNG.standard_normal(200)


@pytest.fixture(scope="module")
def process() -> GaussianProcess:
    return GaussianProcess(random_state=0).fit(X, Y)


def test_a_grid_is_a_prediction_of_its_points(process, monkeypatch):
    monkeypatch.setattr(grids, "GRID_BLOCK_ROWS", 7)
    grid = process.predict_grid({2: (0.0, 0.3), 0: (2.0, 30.0)}, [0.1, 4.0], at={1: 5.0})
    assert [len(axis) for axis in grid.axes] == [4, 8]
    np.testing.assert_allclose(grid.axes[1], np.arange(2.0, 31.0, 4.0))
    rows = np.array([[x, 5.0, z] for z in grid.axes[0] for x in grid.axes[1]])
    mean, std = process.predict(rows, return_std=True)
    np.testing.assert_allclose(grid.mean, mean.reshape(4, 8), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(grid.std, std.reshape(4, 8), rtol=1e-9)
    expected = process.out_of_range(rows).reshape(4, 8)
    assert np.array_equal(grid.extrapolated, expected)
    assert expected[:, -1].all()
    assert not expected[:, 0].all()


def test_columns_of_frames_are_named():
    frame = pd.DataFrame(X, columns=["lat", "lon", "day"]).assign(y=Y)
    est = KernelRidge("matern32", random_state=0).fit(frame, "y")
    grid = est.predict_grid({"lon": (0, 2), "lat": (0, 1)}, 1, at={"day": 3.0}, return_std=False)
    assert grid.std is grid.extrapolated is None
    rows = pd.DataFrame({"lat": [1.0], "lon": [2.0], "day": [3.0]})
    np.testing.assert_allclose(grid.mean[2, 1], est.predict(rows)[0], rtol=1e-6)


def test_bounds_without_names_are_of_the_other_features_in_order(process):
    given = process.predict_grid([(2.0, 4.0), (0.0, 0.3)], [2.0, 0.1], at={1: 5.0})
    named = process.predict_grid({0: (2.0, 4.0), 2: (0.0, 0.3)}, [2.0, 0.1], at={1: 5.0})
    assert given.mean.shape == (2, 4)
    assert np.array_equal(given.mean, named.mean)


def test_several_targets_are_the_last_axis():
    est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-3).fit(X, np.column_stack([Y, Y]))
    grid = est.predict_grid({0: (0, 1), 1: (0, 2), 2: (0, 3)}, 1.0)
    assert grid.mean.shape == grid.std.shape == (2, 3, 4, 2)
    assert grid.extrapolated.shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bounds": {0: (0, 1), 1: (0, 1)}}, "once, in bounds or in at"),
        ({"at": {1: 0.0, 2: 0.0}}, "once, in bounds or in at"),
        ({"bounds": [(0, 1)]}, r"\(low, high\) for each of \[0, 1, 2\]"),
        ({"step": None, "bounds": {0: [0, 1], 1: [np.nan], 2: [0]}}, "finite coordinates of 1"),
        ({"step": None, "bounds": {0: [0, 1], 1: [], 2: [0]}}, "finite coordinates of 1"),
        ({"step": None, "average": 2}, "step must be given where average is more than 1"),
        ({"average": 0}, "average must be"),
        ({"step": 0.0}, "step must be positive"),
        ({"step": [1.0, 1.0]}, "broadcast"),
        ({"step": 1e-9}, "more than 100,000,000"),
        ({"bounds": {0: (1, 0), 1: (0, 1), 2: (0, 1)}}, "finite and increasing for 0"),
    ],
    ids=str,
)
def test_what_is_no_grid_is_refused(process, wrong, message):
    settings = {"bounds": {0: (0, 1), 1: (0, 1), 2: (0, 1)}, "step": 1.0} | wrong
    with pytest.raises(ValueError, match=message):
        process.predict_grid(**settings)


class TestCells:
    """Means over cells, against the covariance of all of their points."""

    @pytest.mark.parametrize("targets", [1, 2])
    def test_a_cell_is_the_mean_of_its_points_with_its_deviation(self, targets, monkeypatch):
        monkeypatch.setattr(grids, "COVARIANCE_ROWS", 20)  # two cells, then the last one
        y = Y if targets == 1 else np.column_stack([Y, 3 * Y])
        est = GaussianProcess(Matern52(1.0), noise="auto", random_state=0).fit(X, y)
        bounds = {2: (1.0, 2.0), 0: (6.0, 10.0)}
        grid = est.predict_grid(bounds, [1.0, 2.0], at={1: 5.0}, average=3)
        assert grid.mean.shape[:2] == (2, 3)
        along = np.array([-1, 0, 1]) / 3
        points = np.array([[10 + 2 * x, 5.0, 1 + z] for z in along for x in along])
        mean, cov = est.predict(points, return_cov=True, include_noise=False)
        np.testing.assert_allclose(grid.mean[0, 2], mean.mean(axis=0), rtol=1e-8)
        np.testing.assert_allclose(grid.std[0, 2], np.sqrt(cov.mean(axis=(0, 1))), rtol=1e-6)
        assert grid.extrapolated[0, 2]
        assert not est.out_of_range(points).all()
        assert not grid.extrapolated[0, 0]
        # Errors of points cancel in part.
        latent = est.predict(points, return_std=True, include_noise=False)[1]
        assert (grid.std[0, 2] < latent.mean(axis=0)).all()

    def test_means_alone_need_no_covariance(self):
        est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-3).fit(X[:, :1], Y)
        grid = est.predict_grid([(0.0, 8.0)], 4.0, return_std=False, average=2)
        fine = est.predict(np.array([[-1.0], [1], [3], [5], [7], [9]]))
        np.testing.assert_allclose(grid.mean, fine.reshape(3, 2).mean(axis=1), rtol=1e-6)
        with pytest.raises(ValueError, match="which a GaussianProcess has"):
            est.predict_grid([(0.0, 8.0)], 4.0, average=2)


def test_coordinates_are_taken_as_given(process):
    axes = {0: np.array([1.0, 2.5, 7.0]), 2: [0.5, 0.25]}
    grid = process.predict_grid(axes, at={1: 5.0})
    assert [axis.tolist() for axis in grid.axes] == [[1.0, 2.5, 7.0], [0.5, 0.25]]
    np.testing.assert_allclose(grid.mean[2, 1], process.predict([[7.0, 5.0, 0.25]])[0], rtol=1e-8)


class TestVariogram:
    def test_bins_are_means_over_pairs(self, process):
        shown = VariogramDisplay.from_estimator(
            process, X, Y, features=(0, 1, 2), bins=4, longest=8.0
        )
        i, j = np.triu_indices(200, 1)
        lengths = np.linalg.norm(X[i] - X[j], axis=1)
        bin_1 = (lengths >= 2) & (lengths < 4)
        np.testing.assert_allclose(shown.distance[0, 1], lengths[bin_1].mean())
        expected = 0.5 * ((Y[i] - Y[j]) ** 2)[bin_1].mean()
        np.testing.assert_allclose(shown.empirical[0, 1], expected)
        k = process.kernel_
        scaled = (X - X.mean(axis=0)) / X.std(axis=0)
        own = (k.diag(scaled)[i] - k(scaled, scaled)[i, j])[bin_1].mean() * Y.var()
        np.testing.assert_allclose(shown.model[0, 1], own + process.noise_, rtol=1e-6)
        assert len(shown.points_) == len(shown.lines_) == 1

    def test_directions_show_anisotropy(self):
        y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(200)
        est = GaussianProcess(Matern52((1.0, 1.0)), random_state=0).fit(X[:, :2], y)
        shown = VariogramDisplay.from_estimator(est, X[:, :2], y, directions=2, longest=5.0)
        # At short distances the target varies along the first feature alone.
        for curves in (shown.empirical, shown.model):
            assert curves[0, 2] > 2 * curves[1, 2]

    def test_distances_on_the_globe_are_kilometres(self):
        places = np.column_stack([np.zeros(60), np.linspace(0, 90, 60)])
        y = np.cos(np.radians(places[:, 1]))
        est = GaussianProcess(Haversine(3000.0), random_state=0).fit(places, y)
        shown = VariogramDisplay.from_estimator(est, places, y, degrees=True, longest=11_000.0)
        assert 8_800 < np.nanmax(shown.distance) < 10_008

    def test_what_has_no_noise_is_refused(self):
        est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-3).fit(X, Y)
        with pytest.raises(ValueError, match="a fitted GaussianProcess"):
            VariogramDisplay.from_estimator(est, X, Y)
