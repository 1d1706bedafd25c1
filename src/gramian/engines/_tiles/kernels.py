"""A kernel for the tiles: a factor, a profile, and the parameters of the profile."""

from __future__ import annotations

from dataclasses import fields

from ...kernels import Kernel
from ...kernels._lengthscale import LengthscaleKernel
from ...kernels.combined import Scaled


def unscale_kernel(kernel: Kernel) -> tuple[float, Kernel]:
    """Return the factor c and the kernel k of a kernel c k."""
    factor = 1.0
    while isinstance(kernel, Scaled):
        factor, kernel = factor * kernel.factor, kernel.kernel
    return factor, kernel


def parameters(kernel: LengthscaleKernel) -> list[float]:
    """Return the parameters of a kernel except the lengthscale, in the order of its fields."""
    return [float(getattr(kernel, f.name)) for f in fields(kernel) if f.name != "lengthscale"]
