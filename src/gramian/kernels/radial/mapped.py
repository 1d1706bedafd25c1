"""Base of kernels of the distance between mapped rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from .._lengthscale import checked_lengthscale, medians, no_value_yet
from ..base import Kernel, Prepared, Side
from .base import Radial


@dataclass(frozen=True)
class Mapped(Kernel):
    """A function of the distance between rows that are mapped to circles or to a sphere.

    Rows are mapped in float64, without centering.

    Parameters
    ----------
    lengthscale : float, or "median", default=1.0
        Lengthscale of the distance between mapped points; also a multiple of the median such as "2
        median".
    """

    lengthscale: Any = 1.0

    tuned: ClassVar[tuple[str, ...]] = ("lengthscale",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))

    @property
    @abstractmethod
    def inner(self) -> Radial:
        """The kernel that is applied to the mapped points."""

    @abstractmethod
    def map_points(self, points: Array) -> Array:
        """Return the points to which rows are mapped."""

    def unscaled_features(self, d: int) -> frozenset[int]:
        return frozenset(range(d))

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        factor = medians(self.lengthscale)
        if factor is None:
            return self
        return replace(
            self, lengthscale=factor * self.inner.median(self.map_points(xp.to_float64(sample)))
        )

    def coordinates(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        return self.inner.coordinates(self.map_points(points))

    def prepare(self, points: Array, side: Side) -> Prepared:
        if medians(self.lengthscale) is not None:
            raise no_value_yet(self.lengthscale)
        return self.inner.prepare(self.map_points(points), side)

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        return self.inner.tile(left, right, out, underflow=underflow)

    def diag(self, x: Array) -> Float[Array, " b"]:
        return xp.ones(x.shape[0], x.dtype, like=x)

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        return self.inner.rounding(left, right, eps)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: xp.DType) -> bool:
        return self.inner.may_underflow(left, right, dtype)
