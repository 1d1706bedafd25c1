"""Deviations by errors: what they rank, their formula, and what they are refused for."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import gramian
from gramian import GaussianProcess, KernelRidge, KernelRidgeCV
from gramian.fitting.uncertainty import error_scale
from gramian.fitting.uncertainty.error_scale import RIDGE_MULTIPLES
from gramian.kernels import Gaussian, Tanimoto
from gramian.model import AverageModel

N = 400
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (N, 2))
LOUDNESS = np.where(X[:, 0] > 0, 0.5, 0.05)
Y = np.sin(2 * X[:, 0]) + X[:, 1] + LOUDNESS * rng.standard_normal(N)
NEW = rng.uniform(-2, 2, (500, 2))
NEW_LOUDNESS = np.where(NEW[:, 0] > 0, 0.5, 0.05)
TRUTH = np.sin(2 * NEW[:, 0]) + NEW[:, 1] + NEW_LOUDNESS * rng.standard_normal(500)
SETTINGS = {"kernel": "gaussian", "lengthscale": 1.0, "solver": "direct", "standardize": False}


def fitted(y=Y, weights=None, landmarks=None, penalty=1e-4, **settings):
    est = KernelRidge(landmarks=landmarks, penalty=penalty, random_state=0, **SETTINGS | settings)
    return est.fit(X[: len(y)], y, sample_weight=weights)


def averaged():
    """Return the average of two fits, as a search leaves it."""
    fits = fitted(), fitted(kernel="laplacian", penalty=1e-3)
    est = KernelRidgeCV().with_model(AverageModel((0.3, 0.7), tuple(f.model_ for f in fits)))
    est._training, est._penalty = fits[0]._training, (1e-4, 1e-3)
    return est


@pytest.mark.parametrize("make", [fitted, lambda: fitted(landmarks=60), averaged])
def test_they_rank_rows_by_their_noise(make):
    est = make()
    mean, std = est.predict(NEW, return_std="errors")
    by_distance = est.predict(NEW, return_std=True)[1]
    assert spearmanr(std, NEW_LOUDNESS)[0] > 0.8 > 0.3 > spearmanr(by_distance, NEW_LOUDNESS)[0]
    for is_loud in (True, False):
        rows = (NEW[:, 0] > 0) == is_loud
        inside = np.abs(mean - TRUTH)[rows] < 1.645 * std[rows]
        assert 0.82 < inside.mean() < 0.98
    assert std[NEW_LOUDNESS < 0.1].mean() < 0.35 * by_distance.mean()


def test_molecules_like_many_training_molecules_have_small_errors():
    draws = np.random.default_rng(1)
    family = draws.random((2, 60)) < 0.3
    kind = draws.integers(0, 2, 700)
    prints = np.where(draws.random((700, 60)) < 0.1, ~family[kind], family[kind]).astype(float)
    y = prints @ draws.standard_normal(60) + np.where(kind == 1, 1.0, 0.1) * draws.normal(size=700)
    est = KernelRidge(Tanimoto(), landmarks=None, random_state=0).fit(prints[:400], y[:400])
    mean, std = est.predict(prints[400:], return_std="errors")
    assert spearmanr(std, np.abs(mean - y[400:]))[0] > 0.3
    assert std[kind[400:] == 1].mean() > 2 * std[kind[400:] == 0].mean()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_formula_of_the_variance(weighted):
    est = fitted(
        np.column_stack([Y, 3 * Y + X[:, 0]]), np.linspace(0.5, 2, N) if weighted else None
    )
    far = np.concatenate([NEW[:20], 4 * NEW[:20]])
    est.predict(far, return_std="errors")
    variance = est.model_.parts[0].variance
    upper = variance.errors.level + 0.1  # limits some rows
    learned = replace(variance.errors, upper=upper, exponent=variance.errors.exponent + 0.3)
    variance = replace(variance, errors=learned)
    std = replace(est.model_, variance=variance).deviations(far, by_errors=True)
    K, k = Gaussian(1.0)(X, X), Gaussian(1.0)(far, X)
    ridge = 1e-4 * (np.linspace(0.5, 2, N).sum() / np.linspace(0.5, 2, N) if weighted else N)
    v = 1 - np.einsum("ij,ji->i", k, np.linalg.solve(K + ridge * np.eye(N), k.T))
    local = k @ learned.coef + learned.level
    assert 0.1 < (local > learned.upper).mean() < 0.9
    local = np.clip(local, learned.lower, learned.upper)
    scale = np.exp(local) * v[:, None] ** learned.exponent
    beyond = np.maximum(v - variance.limit, 0)[:, None] * (variance.scale + variance.beyond)
    expected = learned.scale * scale**2 + learned.noise + beyond
    np.testing.assert_allclose(std, np.sqrt(expected), rtol=1e-6)
    assert (beyond[:20] == 0).any()
    assert (beyond[20:] > 0).any()


def test_the_logarithms_are_a_ridge_regression_of_the_errors():
    est = fitted()
    est.predict(NEW[:1], return_std="errors")
    learned, errors = est.model_.parts[0].variance.errors, np.abs(Y - est.loo_predictions_)
    logs = np.log(errors + 1e-3 * errors.mean())
    log_v = np.log(est._left_out().variance)
    slope = np.polyfit(log_v, logs, 1)[0]
    assert learned.exponent[0] == pytest.approx(max(slope, 0), rel=1e-8)
    target, K = logs - learned.exponent[0] * log_v, Gaussian(1.0)(X, X)
    off = [
        np.abs((K + ridge * np.eye(N)) @ learned.coef[:, 0] + learned.level[0] - target).max()
        for ridge in RIDGE_MULTIPLES
    ]
    assert min(off) < 1e-6 < sorted(off)[1]


def test_rows_count_by_their_weights(monkeypatch):
    passed = []
    calibrate = error_scale.calibrate_variance
    monkeypatch.setattr(
        error_scale, "calibrate_variance", lambda *given: passed.append(given) or calibrate(*given)
    )
    monkeypatch.setattr(error_scale, "CHOICE_ROWS", 100)
    weights = np.linspace(0.0, 2, N)  # a row of weight zero is no row
    est = fitted(weights=weights)
    est.predict(NEW[:1], return_std="errors")
    ((squares, residuals, row_weights),) = passed
    left = Y - est.loo_predictions_
    index = [int(np.argmin(np.abs(left - residual))) for residual in residuals]
    assert len(squares) == 100
    np.testing.assert_allclose(left[index], residuals, rtol=1e-8)
    np.testing.assert_allclose(row_weights, weights[index])


def test_the_heaviest_model_of_an_average_learns_them():
    est = averaged()
    est.predict(NEW[:1], return_std="errors")
    assert [part.variance.errors is not None for part in est.model_.parts] == [False, True]


def test_far_from_all_rows_they_are_the_spread_of_the_target():
    est = fitted()
    far = est.predict([[50.0, 50.0]], return_std="errors")[1][0]
    assert far >= 0.95 * est.predict([[50.0, 50.0]], return_std=True)[1][0]
    assert est.out_of_range([[50.0, 50.0]]).all()


def test_noise_without_a_pattern_has_one_deviation():
    even = np.sin(2 * X[:, 0]) + 0.5 * np.random.default_rng(3).standard_normal(N)
    std = fitted(even, penalty=1e-2).predict(NEW, return_std="errors")[1]
    assert 0.4 < std.min() < std.max() < 0.75


def test_a_process_has_them_too():
    est = GaussianProcess("gaussian", random_state=0).fit(X, Y)
    mean, std = est.predict(NEW, return_std="errors")
    np.testing.assert_array_equal(mean, est.predict(NEW))
    assert spearmanr(std, NEW_LOUDNESS)[0] > 0.8
    with pytest.raises(ValueError, match="include the noise"):
        est.predict(NEW, return_std="errors", include_noise=False)


@pytest.mark.parametrize("make", [fitted, lambda: fitted(landmarks=60), averaged])
def test_files_and_copies_keep_them(make, tmp_path):
    est = make()
    std = est.predict(NEW, return_std="errors")[1]
    est.save(tmp_path / "a.model")
    for copy in (gramian.load(tmp_path / "a.model"), pickle.loads(pickle.dumps(est))):
        np.testing.assert_allclose(copy.predict(NEW, return_std="errors")[1], std, rtol=1e-9)


def test_a_model_without_them_says_how_to_get_them(tmp_path):
    est = fitted()
    est.predict(NEW, return_std=True)
    est.save(tmp_path / "a.model")
    with pytest.raises(ValueError, match="return_std='errors'"):
        gramian.load(tmp_path / "a.model").model_.deviations(NEW, by_errors=True)
    with pytest.raises(ValueError, match="deviations by errors require the training rows"):
        gramian.load(tmp_path / "a.model").predict(NEW, return_std="errors")


@pytest.mark.parametrize("name", ["coef", "level", "exponent", "scale"])
def test_damaged_numbers_are_refused(name):
    est = fitted()
    est.predict(NEW[:1], return_std="errors")
    variance = est.model_.parts[0].variance
    for wrong in (np.full_like(getattr(variance.errors, name), np.nan), np.zeros(3)):
        tensors = variance.tensors() | {f"errors.{name}": wrong}
        damaged = type(variance).from_parts(variance.to_dict(), tensors)
        with pytest.raises(ValueError, match=f"errors.{name} of a variance must be"):
            damaged.check(N, 1)


def test_what_has_no_scale_is_refused():
    with pytest.raises(ValueError, match="return_std must be False, True or 'errors', not 'error'"):
        fitted().predict(NEW, return_std="error")
    with pytest.raises(ValueError, match="19 rows, fewer than 20"):
        fitted(Y[:19]).predict(NEW, return_std="errors")
    with pytest.raises(ValueError, match="a target without any"):
        fitted(np.zeros(N)).predict(NEW, return_std="errors")
