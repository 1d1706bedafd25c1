"""Profiles of the kernels with fused tiles: for each kernel a function of s, registered here.

s is the same as in `gramian.kernels`: the squared distance in lengthscales times the `scale` of the
kernel; the distance itself for the l1 Laplacian. Rounding may have moved s past zero. `shape` is
the kernel's parameter besides the lengthscale, or 0. A NaN stays a NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, no_type_check

import triton
import triton.language as tl

from ...kernels import (
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
)

PROFILE_OF_KERNEL: dict[type[Kernel], Any] = {}
"""The function of each class of kernels, of which a subclass is another kernel."""


SLOPE_OF_KERNEL: dict[type[Kernel], Any] = {}
"""The derivative, as a function of s, of each class without a kink, where float32 would not do."""


def slope(*kernels: type[Kernel]) -> Callable[[Any], Any]:
    """Register a function as the derivative of the profile of these kernels."""

    def register(derivative: Any) -> Any:
        SLOPE_OF_KERNEL.update(dict.fromkeys(kernels, derivative))
        return derivative

    return register


def fused(*kernels: type[Kernel]) -> Callable[[Any], Any]:
    """Register a function as the profile of these kernels."""

    def register(profile: Any) -> Any:
        PROFILE_OF_KERNEL.update(dict.fromkeys(kernels, profile))
        return profile

    return register


@triton.jit
@no_type_check
def root(s):
    """Return the square root of s, limited to where exp(-root) is above zero in float32."""
    # A `where` keeps NaN, which a maximum may drop. Rounding may have made s negative.
    s = tl.where(s < 0.0, 0.0, s)
    return tl.sqrt(tl.where(s > 10816.0, 10816.0, s))


@slope(Gaussian)
@fused(Gaussian)
@triton.jit
@no_type_check
def gaussian(s, shape):
    """Return exp(s): the scale of this kernel is negative."""
    return tl.exp(tl.where(s > 0.0, 0.0, s))


@fused(Laplacian, Matern12)
@triton.jit
@no_type_check
def laplacian(s, shape):
    """Return exp(-sqrt(s))."""
    return tl.exp(-root(s))


@fused(L1Laplacian)
@triton.jit
@no_type_check
def l1_laplacian(s, shape):
    """Return exp(-s)."""
    return tl.exp(-s)


@fused(Matern32)
@triton.jit
@no_type_check
def matern32(s, shape):
    """Return (1 + u) exp(-u) of u = sqrt(s)."""
    u = root(s)
    return (1.0 + u) * tl.exp(-u)


@slope(Matern32)
@triton.jit
@no_type_check
def matern32_slope(s, shape):
    """Return -exp(-u) / 2 of u = sqrt(s)."""
    return tl.exp(-root(s)) * -0.5


@fused(Matern52)
@triton.jit
@no_type_check
def matern52(s, shape):
    """Return (1 + u + u² / 3) exp(-u) of u = sqrt(s)."""
    u = root(s)
    return (1.0 + u + u * u / 3.0) * tl.exp(-u)


@slope(Matern52)
@triton.jit
@no_type_check
def matern52_slope(s, shape):
    """Return -(1 + u) exp(-u) / 6 of u = sqrt(s)."""
    u = root(s)
    return (1.0 + u) * tl.exp(-u) / -6.0


@fused(RationalQuadratic)
@triton.jit
@no_type_check
def rational_quadratic(s, shape):
    """Return (1 + s)^-shape, with a correction for the digits of s that 1 + s drops."""
    s = tl.where(s < 0.0, 0.0, s)
    w = 1.0 + s
    logarithm = tl.where(w == 1.0, s, tl.log(w) * (s / tl.where(w == 1.0, 1.0, w - 1.0)))
    return tl.exp(-shape * logarithm)


@slope(RationalQuadratic)
@triton.jit
@no_type_check
def rational_quadratic_slope(s, shape):
    """Return -shape (1 + s)^(-shape - 1)."""
    k = rational_quadratic(s, shape)
    return -shape * k / (1.0 + tl.where(s < 0.0, 0.0, s))
