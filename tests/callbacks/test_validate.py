"""Validate: the error of several targets, with weights and units."""

import numpy as np
import pytest

from gramian import KernelRidge
from gramian.callbacks import Validate

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 2)), RNG.standard_normal((60, 3))


def test_weighted_error_of_several_targets() -> None:
    weights, scale = RNG.random(20), np.array([1.0, 10.0, 100.0], dtype=np.float32)
    settings = {"lengthscale": 1.0, "penalty": 1e-3, "standardize": False, "landmarks": 10}
    watch = Validate(X[40:], Y[40:], scale=scale, weights=weights)
    est = KernelRidge("gaussian", **settings, callbacks=[watch], random_state=0)
    est.fit(X[:40], Y[:40])
    squares = ((est.predict(X[40:]) - Y[40:]) * scale) ** 2
    expected = np.sqrt(np.average(squares.mean(axis=1), weights=weights))
    assert est.history_[-1]["valid_rmse"] == pytest.approx(expected, rel=1e-6)
