"""Nearest training rows, and the weights of their targets."""

import numpy as np
import pytest

from gramian import KernelRidge
from gramian.explain import nearest_rows
from gramian.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = np.sin(X[:, 0]) + X[:, 2]


@pytest.mark.parametrize("landmarks", [None, 40])
def test_weighted_targets_are_the_prediction(landmarks):
    est = KernelRidge(
        Gaussian(2.0), penalty=1e-3, landmarks=landmarks, tol=1e-12, max_iter=500, random_state=0
    ).fit(X, Y)
    rows = RNG.normal(size=(3, 4))
    nearest = nearest_rows(est, rows, X, count=len(X), weights=True)
    shift = Y.mean()
    predicted = shift + (nearest.weights * (Y[nearest.index] - shift)).sum(axis=1)
    np.testing.assert_allclose(predicted, est.predict(rows), atol=1e-7)


def test_order_is_the_kernels():
    est = KernelRidge(Gaussian(2.0), penalty=1e-3, standardize=False).fit(X, Y)
    nearest = nearest_rows(est, X[:5], X, count=3)
    assert nearest.weights is None
    assert nearest.index[:, 0].tolist() == list(range(5))
    np.testing.assert_allclose(nearest.similarity[:, 0], 1)
    distance = np.linalg.norm(X[:5, None] - X, axis=2)
    np.testing.assert_array_equal(nearest.index, np.argsort(distance, axis=1)[:, :3])


def test_similarity_does_not_depend_on_the_length_of_rows():
    est = KernelRidge(Linear(), penalty=1e-3, standardize=False).fit(X, Y)
    nearest = nearest_rows(est, 0.1 * X[:2], X, count=1)
    assert nearest.index[:, 0].tolist() == [0, 1]
    np.testing.assert_allclose(nearest.similarity, 1)


def test_weights_that_are_not_determined_are_refused():
    est = KernelRidge(Gaussian(2.0), penalty=1e-3, loss="huber").fit(X, Y)
    with pytest.raises(ValueError, match="its loss is not squared"):
        nearest_rows(est, X[:1], X, weights=True)
    with pytest.raises(ValueError, match="count must be"):
        nearest_rows(est, X[:1], X, count=0)
