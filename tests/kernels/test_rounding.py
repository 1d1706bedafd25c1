"""What kernels say about their rounding errors, against errors that were made."""

from __future__ import annotations

import math

import pytest
import torch

from gramian import kernels

RADIAL = ("gaussian", "laplacian", "matern12", "matern32", "matern52", "rational_quadratic")


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("d", [1, 2, 4, 18, 90, 400, 1500])
@pytest.mark.parametrize("tails", ["light", "heavy"])
def test_the_estimate_is_near_above_the_largest_error(name, d, tails, rng):
    x = torch.randn(800, d, generator=rng)
    if tails == "heavy":
        x = x / torch.randn(800, 3, generator=rng).square().mean(dim=1, keepdim=True).sqrt()
    z = x[:400] + torch.tensor([0.0, 1e-3]).repeat(200)[:, None] * torch.randn(
        400, d, generator=rng
    )
    kernel = kernels.make(name, lengthscale=0.5 * math.sqrt(d))
    left, right = kernel.prepare(x, "left"), kernel.prepare(z, "right")
    error = kernel.tile(left, right, torch.empty(800, 400)).double() - kernel(
        x.double(), z.double()
    )
    bound = kernel.rounding(left, right, torch.finfo(torch.float32).eps)
    assert float(error.abs().max()) < 1.2 * bound + 1e-6  # and the profile has roundings of its own


@pytest.mark.parametrize("name", ["gaussian", "matern32", "matern52", "rational_quadratic"])
def test_the_slope_is_the_largest_derivative(name):
    kernel = kernels.make(name)
    s = torch.cat([torch.tensor([1e-12]), torch.logspace(-6, 1.5, 500)]).double()
    s = math.copysign(1, kernel.scale) * s
    step = 1e-7 * s
    change = (kernel.profile(s + step) - kernel.profile(s - step)) / (2 * step)
    kinks = change[s.abs() > 1e-4].abs().max()  # below, differences have no digits left
    assert float(kinks) == pytest.approx(kernel.slope, rel=0.02)
    assert float(kinks) <= kernel.slope * (1 + 1e-6)
