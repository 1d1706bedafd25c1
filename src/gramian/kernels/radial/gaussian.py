"""Gaussian kernel, for smooth functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array
from ..base import kernels
from .base import Radial, deepest


@kernels.register("gaussian")
@dataclass(frozen=True)
class Gaussian(Radial):
    r"""Gaussian kernel :math:`\exp(-r^2 / 2)`; scikit-learn's gamma is :math:`1 / (2 \ell^2)`.

    Use it if the target is a smooth function of the features, such as a simulation. Noise and kinks
    require a rougher kernel. An entry costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Gaussian
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(Gaussian("2 median"), penalty=1e-7).fit(train, "target")
    >>> print(f"R2 {est.score(test):.3f}")
    R2 0.991
    """

    scale: ClassVar[float] = -0.5

    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        # The clamp costs a pass: it is left out where the rows exclude subnormal entries.
        return xp.exp_(xp.clip_(s, -deepest(s.dtype), 0.0) if underflow else s)

    def derivative(self, s: Array) -> Array:
        return self.profile(s)

    def second_derivative(self, s: Array) -> Array:
        return self.profile(s)
