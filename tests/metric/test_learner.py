"""The kernel that a metric is learned with may be another one than that of the fit."""

from __future__ import annotations

import pytest
import torch

from gramian.data import as_rows
from gramian.kernels import Gaussian, Laplacian, Matern32
from gramian.metric import RecursiveFeatureMachine

RNG = torch.Generator().manual_seed(0)
X = torch.randn(120, 3, generator=RNG, dtype=torch.float64)
Y = (2 * X[:, :1]).sin() + X[:, 1:2]


def matrix(machine, kernel):
    rng = torch.Generator().manual_seed(1)
    return machine.learn(kernel, as_rows(X), Y, rng=rng).matrix


def test_its_gradients_are_those_of_that_kernel():
    named = RecursiveFeatureMachine(kernel="matern32")
    own = RecursiveFeatureMachine()
    expected = matrix(own, Matern32("median"))
    assert torch.equal(matrix(named, Gaussian("2 median")), expected)
    assert torch.equal(matrix(named, Laplacian("median")), expected)
    assert not torch.equal(matrix(own, Gaussian("2 median")), expected)


def test_a_kernel_that_there_is_not():
    with pytest.raises(ValueError, match="matern32"):
        RecursiveFeatureMachine(kernel="matern23")
