"""GaussianProcess: agreement with scikit-learn, covariances, random functions, noise per row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import gramian
from gramian import GaussianProcess, KernelRidge
from gramian.fitting.uncertainty import posterior
from gramian.kernels import Gaussian, Haversine, Matern52

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (120, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] / 3 + 0.1 * RNG.standard_normal(120)
NEW = RNG.uniform(-5, 5, (30, 2))
OURS = 1.5 * Matern52((1.0, 2.0)) + 0.5 * Gaussian(0.7)
THEIRS = ConstantKernel(1.5) * Matern((1.0, 2.0), nu=2.5) + ConstantKernel(0.5) * RBF(0.7)
ROW_NOISE = RNG.uniform(0.01, 0.05, 120)


def process(**settings: object) -> GaussianProcess:
    return GaussianProcess(
        **{"kernel": OURS, "tune": False, "noise": 0.02, "standardize": False} | settings
    )


# Scaled by the weighted mean and deviation where noise differs between rows, unlike theirs.
@pytest.mark.parametrize(
    ("noise", "scaled"),
    [(0.02, False), (0.02, True), (ROW_NOISE, False)],
    ids=["raw", "scaled", "noise of rows"],
)
def test_values_are_those_of_scikit_learn(noise, scaled):
    unit = Y.std() ** 2 if scaled else 1.0
    ours = process(noise=noise * unit, standardize_target=scaled).fit(X, Y)
    theirs = GaussianProcessRegressor(THEIRS, alpha=noise, optimizer=None, normalize_y=scaled)
    theirs.fit(X, Y)
    mean, std = theirs.predict(NEW, return_std=True)
    _, covariance = theirs.predict(NEW, return_cov=True)
    found = ours.predict(NEW, return_std=True, include_noise=False)
    np.testing.assert_allclose(found, (mean, std), rtol=0, atol=1e-8)
    found = ours.predict(NEW, return_cov=True, include_noise=False)
    np.testing.assert_allclose(found[1], covariance, rtol=0, atol=1e-8)
    likelihood = theirs.log_marginal_likelihood_value_
    np.testing.assert_allclose(ours.log_marginal_likelihood_, likelihood, rtol=1e-8)
    np.testing.assert_allclose(ours.log_marginal_likelihood(), likelihood, rtol=1e-8)


def test_likelihood_and_gradient_at_a_theta_are_those_of_scikit_learn():
    theirs = GaussianProcessRegressor(THEIRS + WhiteKernel(0.02), alpha=0.0, optimizer=None)
    theirs.fit(X, Y)
    ours = process().fit(X, Y)
    # Theirs begins with the factor of each term.
    theta = ours.theta_ + RNG.normal(0, 0.3, len(ours.theta_))
    order = [2, 0, 1, 4, 3, 5]
    value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
    expected = theirs.log_marginal_likelihood(theta[order], eval_gradient=True)
    np.testing.assert_allclose(value, expected[0], rtol=1e-8)
    np.testing.assert_allclose(gradient[order], expected[1], rtol=1e-6)
    with pytest.raises(ValueError, match="6 logarithms"):
        ours.log_marginal_likelihood([0.0])


def test_noise_of_observations_is_added_to_the_latent_variance():
    est = process(standardize_target=True).fit(X, Y)
    latent = est.predict(NEW, return_std=True, include_noise=False)[1]
    np.testing.assert_allclose(est.noise_, 0.02, rtol=1e-12)
    std = est.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(std**2 - latent**2, 0.02, rtol=1e-8)
    covariance = est.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-8)


def test_weights_are_precisions():
    by_noise = process(noise=ROW_NOISE).fit(X, Y)
    by_weight = process(noise=1.0).fit(X, Y, sample_weight=1 / ROW_NOISE)
    np.testing.assert_allclose(by_noise.predict(NEW), by_weight.predict(NEW), rtol=1e-10)
    assert not np.allclose(process().fit(X, Y).predict(NEW), by_noise.predict(NEW))


@pytest.mark.parametrize("landmarks", [None, 40], ids=["all rows", "landmarks"])
class TestPosterior:
    def test_covariances_have_the_deviations_on_their_diagonal(self, landmarks):
        est = process(landmarks=landmarks, random_state=0).fit(X, Y)
        _, std = est.predict(NEW, return_std=True)
        _, covariance = est.predict(NEW, return_cov=True)
        np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-8)
        assert np.linalg.eigvalsh(covariance).min() > 0

    @pytest.mark.parametrize("most", [1000, 10], ids=["exact", "pathwise"])
    def test_random_functions_have_mean_and_covariance(self, landmarks, most, monkeypatch):
        monkeypatch.setattr(posterior, "EXACT_ROWS", most)
        est = process(landmarks=landmarks, random_state=0).fit(X, Y)
        mean, covariance = est.predict(NEW, return_cov=True, include_noise=False)
        draws = est.sample_y(NEW, 4000)
        assert draws.shape == (30, 4000)
        # Standard errors of 4,000 draws, and of 4,000 features, of a variance of 2.
        np.testing.assert_allclose(draws.mean(axis=1), mean, rtol=0, atol=0.1)
        np.testing.assert_allclose(np.cov(draws), covariance, rtol=0, atol=0.2)

    def test_pathwise_functions_are_the_same_at_other_rows(self, landmarks, monkeypatch):
        monkeypatch.setattr(posterior, "EXACT_ROWS", 10)
        est = process(landmarks=landmarks, random_state=0).fit(X, Y)
        draws = est.sample_y(NEW, 3, random_state=1)
        np.testing.assert_allclose(est.sample_y(NEW[:20], 3, random_state=1), draws[:20])
        assert not np.allclose(est.sample_y(NEW, 3, random_state=2), draws)


def test_many_rows_need_fourier_features(monkeypatch):
    monkeypatch.setattr(posterior, "EXACT_ROWS", 10)
    est = process(kernel=1.0 * Haversine(3000.0)).fit(20 * X, Y)
    with pytest.raises(ValueError, match="more than 10 rows need a kernel with random Fourier"):
        est.sample_y(20 * NEW)


def test_tuned_values_are_at_the_maximum_of_scikit_learn():
    theirs = GaussianProcessRegressor(
        ConstantKernel() * Matern((1.0, 1.0), nu=2.5) + WhiteKernel(), alpha=0.0,
        n_restarts_optimizer=3, random_state=0,
    ).fit(X, Y)  # fmt: skip
    est = GaussianProcess(Matern52((1.0, 1.0)), standardize=False, random_state=0).fit(X, Y)
    value, gradient = est.log_marginal_likelihood(eval_gradient=True)
    assert value > theirs.log_marginal_likelihood_value_ - 1e-3
    assert np.abs(gradient).max() < 0.1
    assert 0.005 < est.noise_ < 0.02


def test_a_known_noise_stays_while_the_kernel_is_tuned():
    est = GaussianProcess("matern52", noise=0.04, random_state=0).fit(X, Y)
    np.testing.assert_allclose(est.noise_, 0.04, rtol=1e-12)
    assert est.kernel_ != Matern52("median")


def test_places_keep_their_degrees():
    places = np.column_stack([20 * X[:, 0], 50 * X[:, 1]])
    est = GaussianProcess(Haversine(3000.0), random_state=0).fit(places, np.cos(X[:, 1]))
    assert est.model_.standardizer is None
    assert est.score(places, np.cos(X[:, 1])) > 0.9


@pytest.mark.parametrize("rows", [120, 1], ids=["constant", "one row"])
def test_targets_that_do_not_vary_are_predicted_with_a_warning(rows):
    y = np.full(rows, 3.0)
    both = np.column_stack([y, 2 * y])
    weights = np.ones(rows)
    with pytest.warns(ConvergenceWarning, match="likelihood of .* no maximum: .* tune=False"):
        mean, std = GaussianProcess(random_state=0).fit(X[:rows], y).predict(NEW, True)
    np.testing.assert_allclose(mean, 3.0)
    assert (std < 0.1).all()
    with pytest.warns(ConvergenceWarning, match="deviations mean nothing"):
        GaussianProcess().fit(X[:rows], both, sample_weight=weights)
    # What the user gives determines the deviations, as with scikit-learn.
    std = process(standardize_target=True).fit(X[:rows], y).predict(NEW + 50, True)[1]
    np.testing.assert_allclose(std**2, 2.02, rtol=1e-6)


def test_a_target_that_varies_is_enough_to_tune():
    GaussianProcess(random_state=0).fit(X, np.column_stack([Y, np.full(120, 3.0)]))


def test_rows_of_weight_zero_do_not_vary_the_targets():
    y, weights = np.full(120, 3.0), np.ones(120)
    y[0], weights[0] = 5.0, 0.0
    with pytest.warns(ConvergenceWarning, match="likelihood of 119 rows of one target value"):
        GaussianProcess(random_state=0, standardize_target=False).fit(X, y, sample_weight=weights)


def test_several_targets_and_tables():
    both = np.column_stack([Y, 10 * np.cos(X[:, 1])])
    est = GaussianProcess(random_state=0).fit(X, both)
    mean, std = est.predict(NEW, return_std=True)
    assert mean.shape == std.shape == est.sample_y(NEW)[..., 0].shape == (30, 2)
    assert est.predict(NEW, return_cov=True)[1].shape == (30, 30, 2)
    assert est.noise_.shape == (2,)
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "x", "y"), "y": Y})
    est = GaussianProcess(random_state=0).fit(frame, "y")
    assert est.score(frame) > 0.9
    assert est.predict(frame.head(3), return_std=True)[1].shape == (3,)


def test_files_and_copies_keep_the_deviations(tmp_path):
    est = process().fit(X, Y)
    std = est.predict(NEW, return_std=True)[1]
    est.save(tmp_path / "process.model")
    loaded = gramian.load(tmp_path / "process.model")
    np.testing.assert_allclose(loaded.predict(NEW, return_std=True)[1], std, rtol=1e-10)
    assert clone(est).kernel is OURS


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noise": "some"}, "'auto', a positive number, or one for each row"),
        ({"noise": -1.0}, "'auto', a positive number, or one for each row"),
        ({"noise": [0.1, 0.0]}, "'auto', a positive number, or one for each row"),
        ({"noise": "auto"}, "a number with tune=False"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        process(**wrong).fit(X, Y)


def test_one_noise_does_not_suit_several_units():
    with pytest.raises(ValueError, match="units of one target"):
        process(standardize_target=True).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="cannot be combined"):
        process().fit(X, Y).predict(X, return_std=True, return_cov=True)


class TestHole:
    """Kriging with a quarter of the square empty: 20 draws."""

    @pytest.mark.parametrize(
        ("estimator", "kind"),
        [(GaussianProcess, True), (KernelRidge, True), (KernelRidge, "errors")],
        ids=["process", "ridge", "ridge, by errors"],
    )
    @pytest.mark.parametrize("seed", range(20))
    def test_deviations_grow_inside_a_hole_of_the_data(self, seed, estimator, kind):
        rng = np.random.default_rng(seed)
        places = rng.uniform(0, 100, (400, 2))
        places = places[(places.min(axis=1) < 50)][:300]
        waves = rng.standard_normal((2, 200)) / 20

        def truth(at: np.ndarray) -> np.ndarray:
            return amplitudes @ np.cos(waves.T @ at.T + phases[:, None]) * (2 / 200) ** 0.5

        amplitudes, phases = rng.standard_normal(200), rng.uniform(0, 2 * np.pi, 200)
        height = truth(places) + 0.1 * rng.standard_normal(len(places))
        est = estimator(random_state=0).fit(places, height)
        edge = np.column_stack([np.linspace(52, 98, 12)] * 2)
        mean, std = est.predict(edge, return_std=kind)
        # Errors nearby may fall before the hole begins.
        assert (np.diff(std[4:] if kind == "errors" else std) > 0).all()
        assert std[-1] > 3 * std[0]
        assert est.out_of_range(edge[4:]).all()
        # Four deviations: 12 correlated places of 20 draws.
        assert (np.abs(mean - truth(edge)) < 4 * std).all()
        inside = est.predict(places, return_std=kind)[1]
        assert inside.mean() < 0.3 * std[-1]
