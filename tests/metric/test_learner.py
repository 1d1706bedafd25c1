"""The kernel that a metric is learned with may be another one than that of the fit."""

from __future__ import annotations

import numpy as np
import pytest

from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Gaussian, Laplacian, Matern32
from gramian.metric import RecursiveFeatureMachine

RNG = RandomStream(0)
X = RNG.standard_normal((120, 3), np.float64)
Y = np.sin(2 * X[:, :1]) + X[:, 1:2]


def matrix(machine, kernel):
    rng = RandomStream(1)
    return machine.learn(kernel, as_rows(X), Y, rng=rng).matrix


def test_its_gradients_are_those_of_that_kernel():
    named = RecursiveFeatureMachine(kernel="matern32")
    own = RecursiveFeatureMachine()
    expected = matrix(own, Matern32("median"))
    assert np.array_equal(matrix(named, Gaussian("2 median")), expected)
    assert np.array_equal(matrix(named, Laplacian("median")), expected)
    assert not np.array_equal(matrix(own, Gaussian("2 median")), expected)


def test_a_kernel_that_there_is_not():
    with pytest.raises(ValueError, match="matern32"):
        RecursiveFeatureMachine(kernel="matern23")
