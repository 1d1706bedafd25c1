"""What kernels say about their rounding errors, against errors that were made."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian import kernels

RADIAL = ("gaussian", "laplacian", "matern12", "matern32", "matern52", "rational_quadratic")


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("d", [1, 2, 4, 18, 90, 400, 1500])
@pytest.mark.parametrize("tails", ["light", "heavy"])
def test_the_estimate_is_near_above_the_largest_error(name, d, tails, rng):
    x = rng.standard_normal((800, d), np.float32)
    if tails == "heavy":
        x = x / np.sqrt(
            np.square(rng.standard_normal((800, 3), np.float32)).mean(axis=1, keepdims=True)
        )
    z = x[:400] + np.array([0.0, 1e-3], dtype=np.float32).repeat(200)[
        :, None
    ] * rng.standard_normal((400, d), np.float32)
    kernel = kernels.make(name, lengthscale=0.5 * math.sqrt(d))
    left, right = kernel.prepare(x, "left"), kernel.prepare(z, "right")
    error = xp.to_float64(kernel.tile(left, right, np.empty((800, 400), np.float32))) - kernel(
        xp.to_float64(x), xp.to_float64(z)
    )
    bound = kernel.rounding(left, right, xp.finfo(np.float32).eps)
    assert (
        float(np.abs(error).max()) < 1.2 * bound + 1e-6
    )  # and the profile has roundings of its own


@pytest.mark.parametrize("name", ["gaussian", "matern32", "matern52", "rational_quadratic"])
def test_the_slope_is_the_largest_derivative(name):
    kernel = kernels.make(name)
    s = xp.to_float64(
        np.concatenate(
            [np.array([1e-12], dtype=np.float32), np.logspace(-6, 1.5, 500, dtype=np.float32)]
        )
    )
    s = math.copysign(1, kernel.scale) * s
    step = 1e-7 * s
    change = (kernel.profile(s + step) - kernel.profile(s - step)) / (2 * step)
    kinks = np.abs(change[np.abs(s) > 1e-4]).max()  # below, differences have no digits left
    assert float(kinks) == pytest.approx(kernel.slope, rel=0.02)
    assert float(kinks) <= kernel.slope * (1 + 1e-6)
