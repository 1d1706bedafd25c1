"""Spectral densities: frequencies of waves whose mean product is a kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels import (
    Columns,
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)

Draw = Callable[[int, int, torch.Generator], Tensor]


def frequencies(
    kernel: Kernel, d: int, count: int, rng: torch.Generator
) -> tuple[float, Float[Tensor, "d q"]]:
    r"""Return k(x, x), and random frequencies w with mean cos(w'(x - z)) = k(x, z) / k(x, x).

    By Bochner's theorem. Of a sum each is drawn from one of the two densities, as likely as its
    share in k(x, x); of a product it is the sum of a frequency of each, whose density is the
    convolution; along features that a kernel does not see it is 0.

    Parameters
    ----------
    kernel : Kernel
        Resolved; see `FourierMap.build`.
    d : int
        Features of a row.
    count : int
        Number of frequencies q.
    rng : torch.Generator

    Returns
    -------
    float, and Tensor of shape (d, count)
        In units of 1 / feature; float64.

    Raises
    ------
    ValueError
        If the spectral density of the kernel, or of a part of it, is not known.
    """
    if isinstance(kernel, Scaled):
        constant, found = frequencies(kernel.kernel, d, count, rng)
        return kernel.factor * constant, found
    if isinstance(kernel, Columns):
        constant, some = frequencies(kernel.kernel, len(kernel.columns), count, rng)
        found = some.new_zeros(d, count)
        found[list(kernel.columns)] = some
        return constant, found
    if isinstance(kernel, Sum | Product):
        constant, found = frequencies(kernel.first, d, count, rng)
        other, more = frequencies(kernel.second, d, count, rng)
        if isinstance(kernel, Product):
            return constant * other, found + more
        first = torch.rand(count, generator=rng, dtype=torch.float64) * (constant + other)
        return constant + other, torch.where(first < constant, found, more)
    waves = _drawer(kernel)(d, count, rng)
    return 1.0, kernel.scaled(waves.t()).t().contiguous()  # type: ignore[attr-defined]


def _normal(d: int, count: int, rng: torch.Generator) -> Tensor:
    return torch.randn(d, count, generator=rng, dtype=torch.float64)


def _cauchy(d: int, count: int, rng: torch.Generator) -> Tensor:
    """Return independent Cauchy numbers: the quotient of two normal ones."""
    return _normal(d, count, rng) / _normal(d, count, rng)


def _student(freedom: int) -> Draw:
    """Return how to draw from the multivariate t distribution: normal over chi."""

    def draw(d: int, count: int, rng: torch.Generator) -> Tensor:
        chi_squared = _normal(freedom, count, rng).square().sum(dim=0)
        return _normal(d, count, rng) * (freedom / chi_squared).sqrt()

    return draw


def _gamma_mixture(alpha: float) -> Draw:
    """Return how to draw normal numbers whose precision is a Gamma number of mean 1."""

    def draw(d: int, count: int, rng: torch.Generator) -> Tensor:
        shape = torch.full((count,), alpha, dtype=torch.float64)
        precision = torch._standard_gamma(shape, generator=rng) / alpha
        return _normal(d, count, rng) * precision.sqrt()

    return draw


_DRAWERS: dict[type[Kernel], Draw] = {
    Gaussian: _normal,
    Laplacian: _student(1),
    L1Laplacian: _cauchy,
    Matern12: _student(1),
    Matern32: _student(3),
    Matern52: _student(5),
}
"""The spectral density of each kernel, for lengthscale 1: that of Matern-ν is t with 2ν degrees of
freedom (Rasmussen & Williams, *Gaussian processes for machine learning*, eq. 4.15)."""


def _drawer(kernel: Kernel) -> Draw:
    if type(kernel) is RationalQuadratic:  # a mixture of Gaussians, eq. 4.20 there
        return _gamma_mixture(kernel.alpha)
    if type(kernel) not in _DRAWERS:
        known = ", ".join([cls.__name__ for cls in _DRAWERS] + [RationalQuadratic.__name__])
        raise ValueError(
            f"random Fourier features are known for {known}, their multiples, sums and products, "
            f"not for {kernel}; NystromTransformer works with any kernel"
        )
    return _DRAWERS[type(kernel)]
