"""Periodic kernel, which maps each feature to a circle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from .._lengthscale import checked_lengthscale
from ..base import Prepared, kernels
from .gaussian import Gaussian
from .mapped import Mapped


@kernels.register("periodic")
@dataclass(frozen=True)
class Periodic(Mapped):
    r"""Periodic kernel :math:`\prod_k \exp(-2 \sin^2(\pi (x_k - z_k) / p_k) / \ell_k^2)`.

    Each feature is mapped to a point on a circle of radius 1, once around per period; this is the
    Gaussian kernel of these points. Features are not standardised. If only some features have a
    period, apply the kernel to them with `Kernel.on`.

    Use it for hours, days of the year, or angles, whose largest value is next to the least. An
    entry costs 2 d multiplications.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or "median", default=1.0
        Lengthscale in radii of the circles; scikit-learn's length_scale.
    period : float or sequence of d floats, default=1.0
        In the units of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Periodic
    >>> hours = np.random.default_rng(0).uniform(0, 240, (300, 1))  # of ten days
    >>> load = 5 + np.sin(2 * np.pi * hours[:, 0] / 24)
    >>> est = KernelRidge(Periodic(1.0, period=24.0), penalty=1e-6).fit(hours, load)
    >>> est.predict([[6.0], [6.0 + 24 * 365]]).round(2)  # the same hour, a year later
    array([6., 6.])
    """

    period: Any = 1.0

    differentiable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            period = checked_lengthscale(self.period)
        except ValueError:
            # An error of the lengthscale's check would name the wrong parameter.
            period = ""
        if isinstance(period, str):
            raise ValueError(
                "period must be positive and finite, or one such number per feature, not "
                f"{self.period!r}"
            )
        object.__setattr__(self, "period", period)
        if isinstance(period, tuple) and self.dim not in (None, len(period)):
            raise ValueError(
                f"there must be as many lengthscales as periods, not {self.dim} and {len(period)}"
            )

    @property
    def dim(self) -> int | None:
        vectors = [
            parameter
            for parameter in (self.lengthscale, self.period)
            if isinstance(parameter, tuple)
        ]
        return len(vectors[0]) if vectors else None

    @property
    def inner(self) -> Gaussian:
        twice = isinstance(self.lengthscale, tuple)  # each feature has two coordinates
        return Gaussian(self.lengthscale * 2 if twice else self.lengthscale)

    def map_points(self, points: Array) -> Array:
        if self.dim not in (None, points.shape[1]):
            raise ValueError(
                f"the kernel has {self.dim} lengthscales or periods but the rows have "
                f"{points.shape[1]} features; give one number, or one per feature"
            )
        x = xp.to_float64(points)
        turns = x / _numbers(self.period, x)
        # Whole turns are removed first: the cosine of a large angle loses the digits of the
        # fraction.
        angles = 2 * math.pi * (turns - turns.round())
        return xp.cast(xp.concat([xp.cos(angles), xp.sin(angles)], axis=1), points.dtype)

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return gradients, see `Kernel.gradients`: gradients at the points, along the circles."""
        at_points = self.inner.gradients(left, right, v, weights)
        # The prepared rows of the Gaussian kernel are the points over the lengthscale: -2 times its
        # scale is 1.
        x = left[0][:, :-2] * _numbers(self.inner.lengthscale, v)
        cos, sin = xp.chunk(x[:, None], 2, axis=2)
        along_cos, along_sin = xp.chunk(at_points, 2, axis=2)
        turned = cos * along_sin - sin * along_cos
        return xp.multiply_(turned, 2 * math.pi / _numbers(self.period, v))


def _numbers(values: Any, like: Array) -> Array:
    return xp.array(values, dtype=like.dtype, like=like)
