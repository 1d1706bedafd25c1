"""Kernels of histograms, hours and places, and of blocks of features, against scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from formulas import exact
from sklearn.gaussian_process.kernels import ExpSineSquared
from sklearn.metrics.pairwise import chi2_kernel, haversine_distances

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import SparseRows
from gramian.kernels import (
    ChiSquared,
    Columns,
    Gaussian,
    Haversine,
    Kernel,
    Linear,
    Matern32,
    Periodic,
    Tanimoto,
)
from gramian.operators import TiledEngine

EARTH = 6371.0088
PROFILES = ["matern12", "matern32", "matern52", "gaussian"]


def draw(rng: RandomStream, n: int, d: int, dtype=np.float64) -> np.ndarray:
    return xp.cast(rng.random((n, d), np.float64), dtype)


def places(rng: RandomStream, n: int, dtype=np.float64) -> np.ndarray:
    """Return latitudes and longitudes in degrees; a pole, both sides of a date line, a repeat."""
    x = draw(rng, n, 2) * np.array([180.0, 360.0], dtype=np.float32) - np.array(
        [90.0, 180.0], dtype=np.float32
    )
    x[0] = np.array([90.0, 17.0], dtype=np.float32)
    x[1], x[2] = (
        np.array([10.0, 179.999], dtype=np.float32),
        np.array([10.0, -179.999], dtype=np.float32),
    )
    x[-1] = x[-2]
    return xp.cast(x, dtype)


def least_eigenvalue(kernel: Kernel, x: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(xp.to_float64(kernel(x, x))).min())


# --- histograms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 6])
def test_chi_squared_is_that_of_scikit_learn(d, dtype, rng, tol):
    x, z = draw(rng, 41, d, dtype), draw(rng, 23, d, dtype)
    x[0], z[0], x[:, -1], x[-1] = 0.0, 0.0, 0.0, x[-2]
    expected = chi2_kernel(xp.to_float64(x), xp.to_float64(z), gamma=2.0)
    kernel = kernels.make("chi_squared", lengthscale=0.5)
    for K in (kernel(x, z), TiledEngine(tile_bytes=1 << 9).block(kernel, x, z)):
        np.testing.assert_allclose(xp.to_float64(K), expected, rtol=0, atol=tol(dtype, 20))
    assert least_eigenvalue(kernel, x) >= -tol(dtype, 100)


def test_the_median_of_chi_squared_distances(rng):
    x = draw(rng, 31, 4)
    distances = -np.log(chi2_kernel(x))[np.triu_indices(31, k=1)]
    found = ChiSquared("2 median").resolve(x).lengthscale
    assert found == pytest.approx(2 * np.median(distances), rel=1e-10)


# --- hours ---------------------------------------------------------------------------------------


def test_periodic_is_that_of_scikit_learn(dtype, rng, tol):
    x = xp.cast(1000 * draw(rng, 50, 1), dtype)
    expected = ExpSineSquared(length_scale=1.3, periodicity=24.0)(xp.to_float64(x))
    kernel = kernels.make("periodic", lengthscale=1.3, period=24.0)
    np.testing.assert_allclose(xp.to_float64(kernel(x, x)), expected, atol=tol(dtype, 20))
    assert least_eigenvalue(kernel, x) >= -tol(dtype, 500)


@pytest.mark.parametrize(
    "kernel", [Periodic(0.8, (24.0, 7.0, 0.3)), Periodic((0.8, 2.0, 5.0), 3.0)], ids=str
)
def test_periods_and_lengthscales_per_feature(kernel, dtype, rng, tol):
    x, z = xp.cast(100 * draw(rng, 31, 3), dtype), draw(rng, 17, 3, dtype)
    assert kernel.dim == 3
    expected = exact(kernel, xp.to_float64(x), xp.to_float64(z))
    block = TiledEngine().block(kernel, x, z)
    atol = max(tol(dtype, 50), 1e-11)
    np.testing.assert_allclose(xp.to_float64(block), expected, rtol=0, atol=atol)


def test_hours_of_decades_keep_their_phase_in_float32():
    x = np.arange(400_000, 400_048, dtype=np.float32)[:, None]  # since 1970: 17,000 periods
    expected = exact(Periodic(0.5, 24.0), xp.to_float64(x), xp.to_float64(x))
    block = TiledEngine().block(Periodic(0.5, 24.0), x, x)
    np.testing.assert_allclose(block, expected, rtol=0, atol=1e-5)


def test_the_median_on_circles(rng):
    x = 50 * draw(rng, 31, 2)
    angles = 2 * np.pi * x / 24
    points = np.hstack([np.cos(angles), np.sin(angles)])
    found = Periodic("0.5 median", 24.0).resolve(x)
    assert found.lengthscale == pytest.approx(0.5 * Gaussian().median(points), rel=1e-10)


# --- places --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengthscale", [1.0, 50.0, 2000.0, 20_000.0, 1e6])
@pytest.mark.parametrize("profile", PROFILES)
def test_places_in_kilometres(lengthscale, profile, dtype, rng, tol):
    x, z = places(rng, 40, dtype), places(rng, 30, dtype)
    z[:20] = x[:20] * np.array([-1.0, 1.0], dtype=np.float32) + np.array(
        [0.0, 180.0], dtype=np.float32
    )  # on the other side
    kernel = Haversine(lengthscale, profile)
    expected = exact(kernel, xp.to_float64(x), xp.to_float64(z))
    for K in (kernel(x, z), TiledEngine(tile_bytes=1 << 9).block(kernel, x, z)):
        atol = 1e-5 if dtype == np.float32 else 1e-8 + tol(dtype, 2) * (EARTH / lengthscale) ** 2
        np.testing.assert_allclose(xp.to_float64(K), expected, rtol=0, atol=atol)
    assert least_eigenvalue(kernel, x) >= -40 * atol


def test_the_default_is_the_exponential_of_scikit_learns_distance(rng):
    x = places(rng, 40)
    d = haversine_distances(np.radians(x))
    for kernel, rows, scale in (
        (kernels.make("haversine", lengthscale=800.0), x, EARTH / 800.0),
        (Haversine(0.2, degrees=False, radius=1.0), np.deg2rad(x), 5.0),
    ):
        np.testing.assert_allclose(kernel(rows, rows), np.exp(-d * scale), atol=1e-9)


def test_smooth_profiles_of_the_great_circle_would_not_be_positive_definite(rng):
    """Which is why they take the straight way."""
    r = haversine_distances(np.radians(places(rng, 200)))
    assert np.linalg.eigvalsh(np.exp(-(r**2) / 2)).min() < -1e-4
    assert least_eigenvalue(Haversine(EARTH, "gaussian"), places(rng, 200)) > -1e-12


@pytest.mark.parametrize("profile", PROFILES)
def test_the_median_is_that_of_its_distances(profile, rng):
    x = places(rng, 30)[1:-1]
    d = haversine_distances(np.radians(x))[np.triu_indices(28, k=1)]
    d = EARTH * (d if profile == "matern12" else 2 * np.sin(d / 2))
    found = Haversine("median", profile).resolve(x).lengthscale
    low, high = np.sort(d)[[(len(d) - 1) // 2, len(d) // 2]]
    assert low * (1 - 1e-9) <= found <= high * (1 + 1e-9)


# --- blocks of features --------------------------------------------------------------------------

MIXED = 0.5 * Gaussian(1.2).on([0, 2]) * Haversine(400.0).on([4, 3]) + Periodic(1.0, 24.0).on([1])


def test_blocks_see_their_features_alone(dtype, rng, tol):
    x, z = (
        xp.cast(np.concatenate([10 * draw(rng, n, 3), places(rng, n)], axis=1), dtype)
        for n in (31, 17)
    )
    x, z = x[:, [0, 1, 2, 4, 3]], z[:, [0, 1, 2, 4, 3]]
    expected = exact(MIXED, xp.to_float64(x), xp.to_float64(z))
    for K in (MIXED(x, z), TiledEngine(tile_bytes=1 << 9).block(MIXED, x, z)):
        np.testing.assert_allclose(xp.to_float64(K), expected, rtol=0, atol=tol(dtype, 100))
    moved = xp.copy(x)
    moved[:, 1] += 24.0  # a period
    atol = tol(dtype, 1000)
    assert_close(MIXED(moved, z), MIXED(x, z), rtol=0, atol=atol)


def test_medians_of_blocks_are_those_of_their_features(rng):
    x = draw(rng, 40, 3)
    kernel = Gaussian("median").on([2, 0]) + Linear("median").on([1])
    found = kernel.resolve(x)
    expected = Gaussian("median").resolve(x[:, [2, 0]]).on([2, 0]) + Linear().on([1])
    assert found == expected
    assert kernels.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_the_features_that_stay_as_given_are_those_of_their_block():
    assert MIXED.unscaled_features(6) == {1, 3, 4}
    assert (2.0 * Tanimoto().on([5]) * Gaussian()).unscaled_features(6) == {5}
    assert Matern32().unscaled_features(6) == frozenset()


def test_an_estimator_standardises_the_other_features(rng):
    X = np.random.default_rng(0).uniform(size=(80, 3)) * [100.0, 24.0, 3.0]
    y = np.sin(2 * np.pi * X[:, 1] / 24) + X[:, 0] / 50
    kernel = Gaussian(1.5).on([0, 2]) * Periodic(1.0, 24.0).on([1])
    est = KernelRidge(kernel, penalty=1e-4, lengthscale="median", random_state=0).fit(X, y)
    expected = [X[:, 0].mean(), 0.0, X[:, 2].mean()]
    np.testing.assert_allclose(est.model_.standardizer.mean, expected, rtol=1e-12)
    assert float(est.model_.standardizer.scale[1]) == 1.0
    moved = X + np.array([0.0, 48.0, 0.0])
    np.testing.assert_allclose(est.predict(moved), est.predict(X), rtol=0, atol=1e-8)
    both = KernelRidge(kernel, penalty=1e-4, lengthscale="median", standardize=True)
    np.testing.assert_allclose(both.fit(X, y).predict(X), est.predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    "kernel", [Haversine("median"), Periodic(1.0, 24.0), ChiSquared(), Tanimoto(), MIXED], ids=str
)
def test_a_fit_can_be_planned(kernel):
    X = np.zeros((500, kernel.dim or 5))
    plan = KernelRidge(kernel, penalty=1e-4, lengthscale="median").plan(X)
    assert plan.seconds > 0


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [[], [0, 0], [-1], [1, -2]])
def test_columns_are_different_numbers_from_zero(columns):
    with pytest.raises(ValueError, match="columns must be a list of different numbers of features"):
        Gaussian().on(columns)


def test_what_is_no_kernel_of_these_features_is_refused(rng):
    x = draw(rng, 9, 3)
    with pytest.raises(ValueError, match=r"must be 2 numbers for the kernel .*, not 3"):
        Gaussian((1.0, 2.0)).on([0, 1, 2])
    for call in (lambda k: k(x, x), lambda k: k.resolve(x), lambda k: k.diag(x)):
        with pytest.raises(ValueError, match="feature 3, counted from 0, but the rows have only 3"):
            call(Gaussian("median").on([3]))
    with pytest.raises(ValueError, match=r"latitude and longitude.*have 3; .*\.on\("):
        Haversine()(x, x)
    with pytest.raises(ValueError, match="the kernel takes 2 features, but X has 3 features"):
        KernelRidge(Haversine(100.0), penalty=0.1, lengthscale="median").fit(x, x[:, 0])
    with pytest.raises(ValueError, match="2 lengthscales or periods but the rows have 3"):
        Periodic(1.0, (2.0, 3.0))(x, x)
    sparse = SparseRows(scipy.sparse.eye(3, format="csr")).take(np.arange(3))
    dense = xp.to_dense(sparse)
    assert_close(Periodic().on([2])(sparse, x), Periodic().on([2])(dense, x))
    for kernel in (Periodic(), ChiSquared(), Gaussian().on(range(600))):
        assert not kernel.sparse_ok
        with pytest.raises(ValueError, match=r"needs dense rows.*toarray"):
            kernel(sparse, x)


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        ("periodic", {"period": 0.0}, "period must be positive and finite"),
        ("periodic", {"period": "median"}, "period must be positive and finite"),
        (
            "periodic",
            {"period": (1.0, 2.0), "lengthscale": (1.0,)},
            "lengthscales as periods, not 1 and 2",
        ),
        ("haversine", {"lengthscale": (1.0, 2.0)}, "takes a single lengthscale"),
        ("haversine", {"profile": "linear"}, "profile must be 'matern12', 'matern32'"),
        ("haversine", {"radius": -1.0}, "radius must be positive"),
    ],
)
def test_parameters_that_are_no_kernel(name, parameters, match):
    with pytest.raises(ValueError, match=match):
        kernels.make(name, **parameters)


def test_longitudes_that_come_first_are_seen():
    x = np.array([[151.2, -33.9], [2.3, 48.9]], dtype=np.float32)
    with pytest.raises(ValueError, match=r"latitude 151\.2 is outside the sphere"):
        Haversine(100.0)(x, x)


def test_columns_can_be_made_by_name():
    made = kernels.make("columns", kernel=Gaussian(), columns=[1, 0])
    assert made == Columns(Gaussian(), (1, 0))
