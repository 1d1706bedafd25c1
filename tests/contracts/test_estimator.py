"""One fit of each estimator, and the property for which a user takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, clone

import gramian
from gramian import (
    GaussianProcess,
    GradientEnhancedRidge,
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    NystromTransformer,
    RandomFourierFeatures,
    TableEncoder,
    kernels,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1]
is_right = X[:, 0] > 0
two_groups = X + np.where(is_right[:, None], 6.0, -6.0)
gaussian = kernels.Gaussian(1.5)
K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
two_trials = {"budget": 4, "cv": 2, "random_state": 0}


def check_r2(est: Any) -> None:
    assert est.fit(X, y).score(X, y) > 0.9


def check_noise(est: Any) -> None:
    est.fit(X, y + 0.3 * np.random.default_rng(1).standard_normal(120))
    assert abs(est.noise_**0.5 - 0.3) < 0.1
    near, far = est.predict([[0.0, 0.0], [50.0, 50.0]], return_std=True)[1]
    assert 0.2 < near < 0.5 < far


def check_accuracy(est: Any) -> None:
    assert est.fit(X, is_right).score(X, is_right) > 0.95


def check_slopes(est: Any) -> None:
    est.fit(X, X[:, 0] ** 2, 2 * X * [1.0, *[0.0] * (X.shape[1] - 1)])
    assert_allclose(est.gradient(X)[:, 0], 2 * X[:, 0], atol=1e-3)


def check_inner_products(est: Any) -> None:
    F = est.fit_transform(X)
    assert np.abs(F @ F.T - K).max() < 0.2


def check_components(est: Any) -> None:
    H = np.eye(len(K)) - 1 / len(K)
    values = np.linalg.eigvalsh(H @ K @ H)[::-1]
    assert_allclose((est.fit_transform(X) ** 2).sum(axis=0), values[:2], rtol=1e-4)


def check_clusters(est: Any) -> None:
    labels = est.fit_predict(two_groups)
    assert len(set(labels[is_right])) == len(set(labels[~is_right])) == 1
    assert len(set(labels)) == 2


def check_correlation(est: Any) -> None:
    assert est.fit(X, np.stack([X[:, 0] ** 2, X[:, 1]], axis=1)).correlations_[0] > 0.9


def check_numbers(est: Any) -> None:
    table = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "y", "x"]})
    encoded = est.fit_transform(table)
    assert len(encoded) == 3
    assert np.isfinite(encoded).all()


CASES = [
    (KernelRidge(random_state=0), check_r2),
    (KernelRidgeCV(**two_trials), check_r2),
    (GaussianProcess(random_state=0), check_noise),
    (GradientEnhancedRidge(), check_slopes),
    (KernelRidgeClassifier(random_state=0), check_accuracy),
    (KernelRidgeClassifierCV(**two_trials), check_accuracy),
    (NystromTransformer(gaussian, landmarks=60, random_state=0), check_inner_products),
    (RandomFourierFeatures(gaussian, n_components=4000, random_state=0), check_inner_products),
    (KernelPCA(2, kernel=gaussian, landmarks=None), check_components),
    (KernelKMeans(2, random_state=0), check_clusters),
    (KernelCCA(1, random_state=0), check_correlation),
    (TableEncoder(random_state=0), check_numbers),
]


@pytest.mark.parametrize(("est", "check"), CASES, ids=lambda it: type(it).__name__)
def test_a_fit(est: BaseEstimator, check: Callable[[Any], None]):
    check(clone(est))


def test_each_estimator_has_a_case():
    public = (getattr(gramian, name) for name in gramian.__all__)
    estimators = {it for it in public if isinstance(it, type) and issubclass(it, BaseEstimator)}
    assert estimators == {type(est) for est, _ in CASES}
