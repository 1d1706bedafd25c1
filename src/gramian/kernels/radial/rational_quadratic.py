"""Rational quadratic kernel, a mixture of Gaussians of many lengthscales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array
from ..base import kernels
from .base import Radial


@kernels.register("rational_quadratic")
@dataclass(frozen=True)
class RationalQuadratic(Radial):
    r"""Rational quadratic kernel :math:`(1 + r^2 / (2 a))^{-a}`, a mixture of Gaussians.

    Use it if the target has both long and short waves: a small `alpha` mixes more lengthscales. An
    entry costs d multiplications, within a matrix product.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or "median", default=1.0
    alpha : float, default=1.0
        The :math:`a`; the Gaussian kernel is the limit of large values.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import RationalQuadratic
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(RationalQuadratic(2.0, alpha=0.5), penalty=1e-7).fit(train, "target")
    >>> print(f"R2 {est.score(test):.3f}")
    R2 0.994
    """

    alpha: float = 1.0

    tuned: ClassVar[tuple[str, ...]] = ("lengthscale", "alpha")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"alpha must be positive and finite, not {self.alpha!r}")

    @property
    def scale(self) -> float:
        return 0.5 / self.alpha

    @property
    def slope(self) -> float:
        return self.alpha

    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        xp.clip_(s, min=0.0)
        # The default needs one reciprocal in place of a logarithm and an exponential.
        if self.alpha == 1.0:
            xp.add_(s, 1.0)
            return xp.reciprocal(s, out=s)
        # A power of 1 + s would lose the digits of a small s.
        return xp.exp_(xp.multiply_(xp.log1p(s, out=s), -self.alpha))

    def derivative(self, s: Array) -> Array:
        xp.clip_(s, min=0.0)
        return xp.multiply_(xp.exp_(xp.multiply_(xp.log1p(s, out=s), -self.alpha - 1)), -self.alpha)
