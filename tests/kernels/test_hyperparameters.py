"""Hyper-parameters of kernels: names and values, and gradients against difference quotients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gramian.kernels import (
    ChiSquared,
    Cosine,
    Gaussian,
    Haversine,
    Kernel,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Tanimoto,
)
from gramian.kernels._hyperparameters import (
    amplify,
    contract_gradients,
    hyperparameters,
    times_lengthscales,
    with_factors,
    with_hyperparameters,
)

RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.uniform(-60, 60, 40), RNG.uniform(-170, 170, 40), RNG.uniform(0.1, 3, (40, 3))]
)
G = RNG.standard_normal((40, 40))
G += G.T
PLACES = Haversine(3000.0).on([0, 1])
KERNELS = {
    "gaussian": Gaussian(2.0).on([2, 3]),
    "several lengthscales": Matern32((1.0, 2.0, 0.5)).on([2, 3, 4]),
    "kink": Laplacian((1.0, 2.0)).on([2, 3]),
    "l1": L1Laplacian((1.0, 2.0)).on([2, 3]),
    "alpha": RationalQuadratic(1.0, alpha=0.7).on([2, 3]),
    "polynomial": Polynomial(2.0, degree=3, coef0=0.5).on([2, 3]),
    "cosine": Cosine((1.0, 2.0)).on([2, 3]),
    "tanimoto": Tanimoto((1.0, 2.0)).on([2, 3]),
    "chi squared": ChiSquared(2.0).on([2, 3]),
    "periodic": Periodic((0.5, 1.0), period=1.5).on([2, 3]),
    "arc": PLACES,
    "chord": Haversine(3000.0, profile="matern32").on([0, 1]),
    "sum and product": 2.0 * PLACES * Matern52(2.0).on([2])
    + 0.5 * (1.5 * Gaussian(1.0).on([3]) + Linear().on([4])),
}


def sum_entries(kernel: Kernel) -> float:
    return float((G * kernel(X, X)).sum())


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gradients_are_those_of_difference_quotients(kernel):
    values = np.array(list(hyperparameters(kernel).values()))
    expected = []
    for k in range(len(values)):
        steps = np.where(np.arange(len(values)) == k, 1e-5, 0.0)
        ends = [
            sum_entries(with_hyperparameters(kernel, values * np.exp(s))) for s in (steps, -steps)
        ]
        expected.append((ends[0] - ends[1]) / 2e-5)
    found = contract_gradients(kernel, X, G)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * max(np.abs(expected)))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_values_come_back(kernel):
    values = list(hyperparameters(kernel).values())
    assert with_hyperparameters(kernel, values) == kernel
    doubled = with_hyperparameters(kernel, [2 * value for value in values])
    assert list(hyperparameters(doubled).values()) == [2 * value for value in values]


def test_each_term_of_a_sum_gets_one_factor():
    given = PLACES * Matern52(2.0).on([2]) + 3.0 * Gaussian().on([3])
    kernel = with_factors(given)
    assert kernel == 1.0 * (PLACES * Matern52(2.0).on([2])) + 3.0 * Gaussian().on([3])
    assert with_factors(kernel) == kernel


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_an_amplitude_multiplies_the_kernel_and_adds_no_factor(kernel):
    kernel = with_factors(kernel)
    louder = amplify(kernel, 3.0)
    assert math.isclose(sum_entries(louder), 3 * sum_entries(kernel), rel_tol=1e-12)
    assert hyperparameters(louder).keys() == hyperparameters(kernel).keys()


def test_only_lengthscales_are_multiplied():
    kernel = 2.0 * RationalQuadratic(3.0, alpha=0.7)
    assert times_lengthscales(kernel, 2.0) == 2.0 * RationalQuadratic(6.0, alpha=0.7)


def test_a_lengthscale_without_effect_or_value():
    assert hyperparameters(Tanimoto(2.0) + 2.0 * Linear()) == {"second__factor": 2.0}
    with pytest.raises(ValueError, match=r"'median' of .* has no value yet"):
        hyperparameters(Gaussian("median"))
