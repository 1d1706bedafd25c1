"""Kernels on the sphere, of latitudes and longitudes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._messages.checks import as_positive
from ..base import Kernel, Prepared, kernels
from .base import Radial, deepest
from .gaussian import Gaussian
from .mapped import Mapped
from .matern import Matern32, Matern52

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Profile: TypeAlias = Literal["matern12", "matern32", "matern52", "gaussian"]
else:  # what users give is checked by the kernel
    Profile = Any

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth in kilometres."""

LATITUDE_NAMES = ("lat", "latitude", "lats", "latitudes")
LONGITUDE_NAMES = ("lon", "long", "lng", "longitude", "lons", "longs", "longitudes")

CHORDAL_PROFILES: dict[str, type[Radial]] = {
    "matern32": Matern32,
    "matern52": Matern52,
    "gaussian": Gaussian,
}


@dataclass(frozen=True)
class _Arc(Radial):
    """The exponential kernel of the great-circle distance of points on a sphere."""

    radius: float = 1.0

    scale: ClassVar[float] = 1.0
    sharp: ClassVar[bool] = True

    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        across = 2 * self.radius / self.lengthscale
        # Rounding may exceed the diameter, of which the arc sine would be NaN.
        u = xp.divide_(xp.sqrt_(xp.clip_(s, 0.0, across**2)), across)
        xp.multiply_(xp.asin(u, out=u), across)
        return xp.exp_(xp.negative_(xp.clip_(u, max=deepest(u.dtype))))

    def median(self, sample: Float[Array, "s d"]) -> float:
        across = 2 * self.radius
        chord: float = super().median(sample)
        # The arc grows with the chord, so the median of the arcs is the arc of the median chord.
        return float(across * math.asin(min(1.0, chord / across)))

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        """Return a larger error than other kernels, as slopes are steep near the opposite point."""
        radii: float = self.radius / self.lengthscale
        far_error = math.sqrt(eps) * radii * math.exp(-math.pi * radii)
        return max(super().rounding(left, right, eps), far_error)


@kernels.register("haversine")
@dataclass(frozen=True)
class Haversine(Mapped):
    r"""Kernel of the distance on a sphere; a row is (latitude, longitude), as in scikit-learn.

    With ``profile="matern12"`` the kernel is :math:`\exp(-r)`, with r the great-circle distance
    over the lengthscale. Other profiles are not positive definite in this distance. They use the
    straight distance through the sphere, which is shorter by 0.1 % at 1,000 km. For rows with other
    features, apply the kernel to two features with `Kernel.on`. Features are not standardised.
    Latitudes beyond the poles are an error, as are columns whose names are in the other order.

    Use it for places on the Earth, beyond a few hundred kilometres, near the poles, or across the
    date line. An entry costs three multiplications and an arc sine.

    Parameters
    ----------
    lengthscale : float or "median", default=1.0
        Lengthscale in the unit of the radius.
    profile : {"matern12", "matern32", "matern52", "gaussian"}, default="matern12"
    degrees : bool, default=True
        Whether features are in degrees; else in radians.
    radius : float, default=6371.0088
        Radius of the sphere; by default of the Earth, in kilometres. With 1, distances are the same
        as in scikit-learn.

    References
    ----------
    .. [1] T. Gneiting, *Strictly and non-strictly positive definite functions on spheres*,
       Bernoulli 2013, table 1: the Matern function of the great-circle distance is positive
       definite only up to smoothness 1/2.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Haversine
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> where = ["latitude", "longitude"]
    >>> est = KernelRidge(Haversine(100.0), random_state=0).fit(train[where], train["target"])
    >>> print(f"R2 {est.score(test[where], test['target']):.2f}")
    R2 0.66
    """

    profile: Profile = "matern12"
    degrees: bool = True
    radius: float = EARTH_RADIUS_KM

    dim: ClassVar[int | None] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.lengthscale, tuple):
            raise ValueError(
                "the haversine kernel takes a single lengthscale, in the unit of its radius"
            )
        if self.profile != "matern12" and self.profile not in CHORDAL_PROFILES:
            raise ValueError(
                f"profile must be 'matern12', {', '.join(map(repr, CHORDAL_PROFILES))}, not "
                f"{self.profile!r}"
            )
        as_positive(self.radius, "radius")

    def with_names(self, names: Sequence[str] | None) -> Kernel:
        """Return this kernel; raise ValueError if the names are (longitude, latitude)."""
        if names is not None and len(names) == 2:
            first, second = names
            if _is_one_of(first, LONGITUDE_NAMES) and _is_one_of(second, LATITUDE_NAMES):
                raise ValueError(
                    "the haversine kernel takes (latitude, longitude), in this order, but the "
                    f"columns are {first!r} and {second!r}; swap them, as in "
                    f".on([{second!r}, {first!r}])"
                )
        return self

    @property
    def inner(self) -> Radial:
        if self.profile == "matern12":
            return _Arc(self.lengthscale, self.radius)
        return CHORDAL_PROFILES[self.profile](self.lengthscale)

    def map_points(self, points: Array) -> Array:
        """Return points of the sphere in space."""
        if points.shape[1] != 2:
            raise ValueError(
                "the haversine kernel takes 2 features, latitude and longitude, but the rows have "
                f"{points.shape[1]}; choose them, as in Haversine(100.0).on([3, 4])"
            )
        # Each step in float32 would move a point on the Earth by about a metre.
        angles = xp.to_float64(points)
        angles = xp.deg2rad(angles) if self.degrees else angles
        lat, lon = angles[:, 0], angles[:, 1]
        # The margin accepts poles that were rounded to float32.
        if bool((xp.abs(lat) > math.pi / 2 * (1 + 1e-6)).any()):
            farthest = float(points[int(xp.abs(lat).argmax()), 0])
            limit = "90 degrees" if self.degrees else "pi / 2 radians"
            setting = "degrees=False for radians" if self.degrees else "degrees=True for degrees"
            raise ValueError(
                f"latitude {farthest:.6g} is outside the sphere, expected at most {limit}; "
                "give rows of (latitude, longitude), in this order: swap the columns if the first "
                f"is the longitude, as in .on([1, 0]), or give {setting}"
            )
        cos = xp.cos(lat)
        space = xp.stack([cos * xp.cos(lon), cos * xp.sin(lon), xp.sin(lat)], axis=1)
        return xp.cast(self.radius * space, points.dtype)


def _is_one_of(column: str, names: tuple[str, ...]) -> bool:
    """Return whether a word of the name of a column, such as start_lat, is one of some names."""
    return not set(re.split(r"[^a-z]+", column.lower())).isdisjoint(names)
