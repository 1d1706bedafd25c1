"""Ridge regression on values and gradients, against differences, KernelRidge and dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import GradientEnhancedRidge, KernelRidge
from gramian.estimators.ridge import gradient_enhanced
from gramian.kernels import Gaussian, Matern52, RationalQuadratic

RNG = np.random.default_rng(0)
KERNELS = (Gaussian(0.8), Matern52(1.3), Matern52((0.7, 2.0)))


def function(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) * X[:, 1] + 5.0


def slopes(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(X[:, 0]) * X[:, 1], np.sin(X[:, 0])])


def rows(n: int) -> np.ndarray:
    return RNG.uniform(-2, 2, (n, 2))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_system_is_of_derivatives_of_the_kernel(kernel):
    """Coefficients solve the system whose entries are differences of the kernel."""
    X, h = rows(6) + 100.0, 1e-4
    y, G = RNG.standard_normal(6), RNG.standard_normal((6, 2))
    model = GradientEnhancedRidge(kernel, penalty=1e-3).fit(X, y, G)

    def entry(x: np.ndarray, z: np.ndarray) -> float:
        return float(kernel(x[None], z[None])[0, 0])

    steps = h * np.eye(2)
    K = np.empty((18, 18))
    for i, x in enumerate(X):
        for j, z in enumerate(X):
            K[i, j] = entry(x, z)
            for q in range(2):
                at = 6 + 2 * j + q
                K[i, at] = (entry(x, z + steps[q]) - entry(x, z - steps[q])) / (2 * h)
                K[at, i] = K[i, at]
                for r in range(2):
                    both = [
                        sign * entry(x + u * steps[r], z + v * steps[q])
                        for u, v, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
                    ]
                    K[6 + 2 * i + r, at] = sum(both) / (4 * h * h)
    ridge = np.full(18, 6e-3)
    ridge[6:] *= K.diagonal()[6:].mean()
    b = np.linalg.solve(K + np.diag(ridge), np.concatenate([y - y.mean(), G.ravel()]))
    fitted = model.predict(X) - y.mean()
    np.testing.assert_allclose(fitted, (K @ b)[:6], atol=2e-5)
    np.testing.assert_allclose(model.gradient(X).ravel(), (K @ b)[6:], atol=2e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_alone_are_kernel_ridge_regression(kernel):
    X, new = rows(40), rows(10)
    y = function(X)
    model = GradientEnhancedRidge(kernel, penalty=1e-4).fit(X, y)
    settings = dict(solver="direct", landmarks=None, standardize=False, standardize_target=True)
    expected = KernelRidge(kernel, penalty=1e-4, **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(new), expected.predict(new), rtol=1e-9)
    np.testing.assert_allclose(model.gradient(new), expected.gradient(new), atol=1e-8)


def test_gradients_are_of_the_predictions():
    X, new, h = rows(30), rows(5), 1e-5
    model = GradientEnhancedRidge(penalty=1e-6).fit(X, function(X), slopes(X))
    for q, step in enumerate(h * np.eye(2)):
        difference = (model.predict(new + step) - model.predict(new - step)) / (2 * h)
        np.testing.assert_allclose(model.gradient(new)[:, q], difference, atol=1e-7)


def test_gradients_say_more_than_values():
    X, new = rows(20), rows(200) * 0.9
    with_gradients = GradientEnhancedRidge("gaussian").fit(X, function(X), slopes(X))
    alone = GradientEnhancedRidge("gaussian").fit(X, function(X))
    errors = [np.abs(m.predict(new) - function(new)).mean() for m in (with_gradients, alone)]
    assert errors[0] < 0.1 * errors[1]
    np.testing.assert_allclose(with_gradients.predict(X), function(X), atol=1e-3)
    np.testing.assert_allclose(with_gradients.gradient(X), slopes(X), atol=1e-2)


def test_coordinates_by_a_jacobian():
    """Polar coordinates: a fit to derivatives by radius and angle is the fit to the others."""
    X, new = rows(25) + 3.0, rows(5) + 3.0

    def jacobian(X: np.ndarray) -> np.ndarray:
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        return np.stack([unit, np.column_stack([-X[:, 1], X[:, 0]])], axis=2)

    polar = np.einsum("ndp,nd->np", jacobian(X), slopes(X))
    model = GradientEnhancedRidge("gaussian", lengthscale=1.0).fit(
        X, function(X), polar, jacobian(X)
    )
    plain = GradientEnhancedRidge("gaussian", lengthscale=1.0).fit(X, function(X), slopes(X))
    np.testing.assert_allclose(model.predict(new), plain.predict(new), rtol=1e-3)
    expected = np.einsum("ndp,nd->np", jacobian(new), model.gradient(new))
    np.testing.assert_allclose(model.gradient(new, jacobian(new)), expected, rtol=1e-9)


def test_auto_takes_the_likeliest_lengthscale(monkeypatch):
    monkeypatch.setattr(gradient_enhanced, "AUTO_EQUATIONS", 60)
    X = rows(60)[:, :1]
    rough = GradientEnhancedRidge(penalty=1e-6).fit(X, np.sin(6 * X[:, 0]))
    smooth = GradientEnhancedRidge(penalty=1e-6).fit(X, np.sin(X[:, 0]))
    assert rough.kernel_.lengthscale < smooth.kernel_.lengthscale


@pytest.mark.parametrize("d", [1, 3])
def test_repeated_rows_and_blocks(d, monkeypatch):
    X = np.repeat(RNG.standard_normal((8, d)), 2, axis=0)
    y, G = np.sin(X).sum(axis=1), np.cos(X)
    model = GradientEnhancedRidge(penalty=1e-8).fit(X, y, G)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)
    whole = model.predict(X), model.gradient(X)
    monkeypatch.setattr(gradient_enhanced, "BLOCK_BYTES", 1)
    np.testing.assert_allclose(model.predict(X), whole[0], rtol=1e-12)
    np.testing.assert_allclose(model.gradient(X), whole[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"kernel": "matern32"}, {}, "kernel must be a kernel with two derivatives"),
        ({"kernel": RationalQuadratic(1.0)}, {}, "kernel must be a kernel with two derivatives"),
        ({"penalty": 0.0}, {}, "penalty must be positive and finite"),
        ({"memory_limit": "1 MB"}, {}, "30 equations, which need"),
        ({"kernel": Gaussian(1e6), "penalty": 1e-18}, {}, "increase penalty"),
        ({}, {"gradients": np.ones((10, 3))}, r"gradients must be of shape \(10, 2\)"),
        ({}, {"jacobian": np.ones((10, 3, 2))}, r"jacobian must be of shape \(10, 2, p\)"),
        ({}, {"gradients": None, "jacobian": np.ones((10, 2, 2))}, "None without gradients"),
    ],
    ids=str,
)
def test_errors_name_the_remedy(settings, given, message):
    X = rows(10)
    call = {"gradients": slopes(X)} | given
    with pytest.raises(ValueError, match=message):
        GradientEnhancedRidge(**settings).fit(X, function(X), **call)


def test_the_factor_takes_the_memory_of_the_matrix():
    A = np.eye(50) + 1.0
    factor = gradient_enhanced._factor(A)
    assert np.shares_memory(factor, A)
    np.testing.assert_allclose(factor @ factor.T, np.eye(50) + 1.0)


def test_predictions_need_no_jacobian_of_new_rows(monkeypatch):
    X = rows(10)
    model = GradientEnhancedRidge(penalty=1e-6).fit(X, function(X), slopes(X))
    expected = model.predict(X), model.gradient(X)
    monkeypatch.setattr(gradient_enhanced, "_jacobian", None)
    assert np.array_equal(model.predict(X), expected[0])
    assert np.array_equal(model.gradient(X), expected[1])
