"""Documented precision of entries, and the factor, profile and parameters of a kernel."""

from __future__ import annotations

from dataclasses import fields

from ...kernels import Kernel
from ...kernels._lengthscale import LengthscaleKernel
from ...kernels.combined import Scaled

ROUNDING_LIMIT = 6e-6
"""Largest error of a kernel entry that float32 distances may cause before float64 is used."""

FAST_LIMIT = 6e-5
"""Largest estimated error of an entry from two bfloat16 pieces; the documented error is 1e-4."""

FEW_FEATURES = 8
"""Features up to which differences cost little more than a product of rows."""

BFLOAT16_BITS = 8
"""Significant bits of a bfloat16 number."""


def two_pieces_error(bits: int, reach: float, fourth: float) -> float:
    """Return the error of squared distances from two pieces of `bits` significant bits.

    Two pieces omit up to 2^-2bits / 4 of each coordinate, and as much of each product of features.
    The errors add up as a random walk, except for the mean of the squares of the second pieces,
    which is common to near pairs. `fourth` is the root of the sum of the fourth powers of the
    coordinates.
    """
    return 2.0 ** (-1 - 2 * bits) * (0.25 * reach + 3.0 * fourth)


def unscale_kernel(kernel: Kernel) -> tuple[float, Kernel]:
    """Return the factor c and the kernel k of a kernel c k."""
    factor = 1.0
    while isinstance(kernel, Scaled):
        factor, kernel = factor * kernel.factor, kernel.kernel
    return factor, kernel


def parameters(kernel: LengthscaleKernel) -> list[float]:
    """Return the parameters of a kernel except the lengthscale, in the order of its fields."""
    return [float(getattr(kernel, f.name)) for f in fields(kernel) if f.name != "lengthscale"]
