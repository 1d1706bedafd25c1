"""Random Fourier features of stationary kernels, from waves of their spectral densities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._sparse import cast
from ..data import RowSource
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
from .base import FeatureMap

Draw = Callable[[int, int, RandomStream], Array]


def draw_frequencies(
    kernel: Kernel, d: int, count: int, rng: RandomStream
) -> tuple[float, Float[Array, "d q"]]:
    r"""Return k(x, x), and random frequencies w with mean cos(w'(x - z)) = k(x, z) / k(x, x).

    Such frequencies exist by Bochner's theorem. A sum draws from one of its two densities, with
    probabilities proportional to k(x, x). A product adds a frequency of each factor, because its
    density is the convolution. Frequencies are 0 along features that a kernel does not use.

    - `kernel`: resolved; see `FourierMap.build`.
    - `d`: features of a row.
    - `count`: number of frequencies q.

    Returns
    -------
    float, and Array of shape (d, count)
        k(x, x), and the frequencies in units of 1 / feature; float64.

    Raises
    ------
    ValueError
        If the spectral density of the kernel, or of a part of it, is not available.
    """
    if isinstance(kernel, Scaled):
        constant, waves = draw_frequencies(kernel.kernel, d, count, rng)
        return kernel.factor * constant, waves
    if isinstance(kernel, Columns):
        constant, used = draw_frequencies(kernel.kernel, len(kernel.columns), count, rng)
        waves = xp.zeros((d, count), like=used)
        waves[list(kernel.columns)] = used
        return constant, waves
    if isinstance(kernel, Sum | Product):
        constant, waves = draw_frequencies(kernel.first, d, count, rng)
        constant_2, waves_2 = draw_frequencies(kernel.second, d, count, rng)
        if isinstance(kernel, Product):
            return constant * constant_2, waves + waves_2
        # Each frequency is from the first kernel with probability proportional to its k(x, x).
        level = rng.random(count, xp.float64) * (constant + constant_2)
        return constant + constant_2, xp.where(level < constant, waves, waves_2)
    waves = _density(kernel)(d, count, rng)
    # Frequencies are inverse lengths, so they are divided by the lengthscale as rows are.
    return 1.0, xp.contiguous(kernel.scaled(waves.T).T)  # type: ignore[attr-defined]


def _normal(d: int, count: int, rng: RandomStream) -> Array:
    return rng.standard_normal((d, count), xp.float64)


def _cauchy(d: int, count: int, rng: RandomStream) -> Array:
    """Draw independent Cauchy numbers: the quotient of two normal numbers."""
    return _normal(d, count, rng) / _normal(d, count, rng)


def _student(freedom: int) -> Draw:
    """Return a function that draws from the multivariate t distribution: normal over chi."""

    def draw(d: int, count: int, rng: RandomStream) -> Array:
        # One chi for all features of a frequency: the density depends on the norm alone.
        chi_squared = xp.square(_normal(freedom, count, rng)).sum(axis=0)
        return _normal(d, count, rng) * xp.sqrt(freedom / chi_squared)

    return draw


def _gamma_mixture(alpha: float) -> Draw:
    """Return a function that draws normal numbers whose precision is Gamma with mean 1."""

    def draw(d: int, count: int, rng: RandomStream) -> Array:
        shape = xp.full((count,), alpha, dtype=xp.float64)
        precision = rng.standard_gamma(shape) / alpha
        return _normal(d, count, rng) * xp.sqrt(precision)

    return draw


SPECTRAL_DENSITIES: dict[type[Kernel], Draw] = {
    Gaussian: _normal,
    Laplacian: _student(1),
    L1Laplacian: _cauchy,
    Matern12: _student(1),
    Matern32: _student(3),
    Matern52: _student(5),
}
"""Spectral density of each kernel for lengthscale 1. For Matern-ν it is the t distribution with 2ν
degrees of freedom (Rasmussen & Williams, *Gaussian processes for machine learning*, eq. 4.15)."""


def _density(kernel: Kernel) -> Draw:
    # The rational quadratic is a mixture of Gaussians: eq. 4.20 of the same book.
    if type(kernel) is RationalQuadratic:
        return _gamma_mixture(kernel.alpha)
    # Exact types only: a subclass may have another density.
    if type(kernel) not in SPECTRAL_DENSITIES:
        names = ", ".join([c.__name__ for c in SPECTRAL_DENSITIES] + [RationalQuadratic.__name__])
        raise ValueError(
            f"random Fourier features need a kernel of {names}, or a multiple, sum or product of "
            f"these, not {kernel}; NystromTransformer works with any kernel"
        )
    return SPECTRAL_DENSITIES[type(kernel)]


@dataclass(frozen=True)
class FourierMap(FeatureMap):
    r"""Features :math:`\sqrt{2c/s}\,[\cos(w_i^\top x + b_i), \sin(w_i^\top x + b_i)]_i`.

    The frequencies w are drawn from the spectral density of the kernel, whose value at equal rows
    is c. The expected inner product of the features of two rows is the kernel; its standard
    deviation falls like :math:`1 / \sqrt{s}`.

    Attributes
    ----------
    kernel : Kernel
    frequencies : Array of shape (d, ceil(s / 2))
        Frequencies w in units of 1 / feature; float64.
    phases : Array of shape (ceil(s / 2),)
        Phases b, which matter only for an odd s, whose last cosine has no sine.
    scale : float
        Factor of the waves, :math:`\sqrt{2c/s}`.
    size : int
        Number of features s.

    Notes
    -----
    Cost of the features of n rows: n s / 2 inner products of d numbers, no kernel evaluations.

    Departure from [1]_: cosine and sine of one frequency rather than one cosine with a random
    phase, so that f(x)'f(x) is exactly c for an even s. The variance at the difference u is then
    smaller if :math:`k(2u) < 2 k(u)^2`, which always holds for the Gaussian kernel [2]_.

    References
    ----------
    .. [1] Rahimi & Recht, *Random features for large-scale kernel machines*, NeurIPS 2007,
       algorithm 1.
    .. [2] Sutherland & Schneider, *On the error of random Fourier features*, UAI 2015, section 2.
    """

    kernel: Kernel
    frequencies: Float[Array, "d q"]
    phases: Float[Array, " q"]
    scale: float
    size: int

    @classmethod
    def build(cls, kernel: Kernel, d: int, size: int, *, rng: RandomStream) -> FourierMap:
        """Draw the frequencies and phases.

        Parameters
        ----------
        kernel : Kernel
            Gaussian, Laplacian, Matern, l1 Laplacian or rational quadratic; multiples, sums and
            products of these, of all features or some; resolved.
        d : int
            Features of a row.
        size : int
            Number of features s.
        rng : RandomStream

        Raises
        ------
        ValueError
            If the spectral density of the kernel is not available.
        """
        count = math.ceil(size / 2)
        constant, waves = draw_frequencies(kernel, d, count, rng)
        phases = 2 * math.pi * rng.random(count, xp.float64)
        return cls(kernel, waves, phases, math.sqrt(2 * constant / size), size)

    @property
    def width(self) -> int:
        return self.size

    @property
    def dim(self) -> int:
        return self.frequencies.shape[0]

    def apply(self, block: Float[Array, "b d"]) -> Float[Array, "b s"]:
        # Angles are large and only their fraction counts, which float32 would lose.
        x = cast(block, xp.float64)
        turns = (x @ self.frequencies + self.phases) / (2 * math.pi)
        angles = xp.cast(2 * math.pi * xp.subtract_(turns, xp.floor(turns)), block.dtype)
        out = xp.empty((len(angles), self.size), block.dtype)
        q = angles.shape[1]
        xp.cos(angles, out=out[:, :q])
        # An odd number of features leaves the last frequency without its sine.
        xp.sin(angles[:, : self.size - q], out=out[:, q:])
        return xp.multiply_(out, self.scale)

    def block_size(self, rows: RowSource, memory_bytes: int) -> int:
        per_row = 24 * rows.shape[1] + 16 * self.size
        return int(max(1, min(memory_bytes // per_row, 1 << 14)))
