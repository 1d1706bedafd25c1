"""Random Fourier features of stationary kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._sparse import cast
from ..data import RowSource
from ..kernels import Kernel
from .base import FeatureMap
from .spectra import draw_frequencies


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
