"""Matern kernels of smoothness 1/2 to 5/2, each exp(-u) times a polynomial of u."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array
from ..base import kernels
from .base import Radial, deepest


def _root(s: Array) -> Array:
    """Return u = sqrt(s) in place of `s`, between 0 and where exp(-u) underflows."""
    return xp.sqrt_(xp.clip_(s, 0.0, deepest(s.dtype) ** 2))


@kernels.register("laplacian")
@dataclass(frozen=True)
class Laplacian(Radial):
    r"""Laplacian kernel :math:`\exp(-r)` of the Euclidean distance; the same as Matern 1/2.

    Use it if the target is rough: prices on a map, functions with kinks and steps. An entry costs d
    multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Gaussian, Laplacian
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> where = ["latitude", "longitude"]
    >>> for k in (Laplacian("median"), Gaussian("0.1 median")):
    ...     est = KernelRidge(k, random_state=0).fit(train[where], train["target"])
    ...     print(f"R2 {est.score(test[where], test['target']):.2f}")
    R2 0.66
    R2 0.46
    """

    scale: ClassVar[float] = 1.0
    sharp: ClassVar[bool] = True

    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        return xp.exp_(xp.negative_(_root(s)))

    def derivative(self, s: Array) -> Array:
        u = _root(s)
        # The slope is infinite at the kink, where its mean over both sides is 0, as at infinity.
        inverse = xp.reciprocal(xp.fill_where_(u, u == 0, xp.inf))
        return xp.multiply_(xp.multiply_(xp.exp_(xp.negative_(u)), inverse), -0.5)


@kernels.register("matern12")
@dataclass(frozen=True)
class Matern12(Laplacian):
    r"""Matern-1/2 kernel :math:`\exp(-r)`.

    The same function as `Laplacian`, under its name in the theory of Gaussian processes.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Laplacian, Matern12
    >>> X, y = load_diabetes(return_X_y=True)
    >>> one, two = (KernelRidge(k(2.0), penalty=0.01).fit(X, y) for k in (Matern12, Laplacian))
    >>> bool((one.predict(X) == two.predict(X)).all())
    True
    """


@kernels.register("matern32")
@dataclass(frozen=True)
class Matern32(Radial):
    r"""Matern-3/2 kernel :math:`(1 + \sqrt3 r) \exp(-\sqrt3 r)`.

    Use it if little is known about the target: functions with one derivative, between rough and
    smooth. An entry costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Matern32
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge(Matern32("2 median"), random_state=0).fit(X[:300], y[:300])
    >>> print(f"penalty {est.penalty_:.0e}, R2 {est.score(X[300:], y[300:]):.2f}")
    penalty 1e-03, R2 0.53
    """

    scale: ClassVar[float] = 3.0
    slope: ClassVar[float] = 1 / 2

    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        u = _root(s)
        factor = u + 1.0
        return xp.multiply_(xp.exp_(xp.negative_(u)), factor)

    def derivative(self, s: Array) -> Array:
        decay = xp.exp_(xp.negative_(_root(s)))
        return xp.multiply_(decay, -1 / 2)


@kernels.register("matern52")
@dataclass(frozen=True)
class Matern52(Radial):
    r"""Matern-5/2 kernel :math:`(1 + \sqrt5 r + \tfrac53 r^2) \exp(-\sqrt5 r)`.

    Use it for functions with two derivatives: they are nearly as smooth as with `Gaussian`, and K
    is better conditioned. An entry costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Matern52
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(Matern52("2 median"), penalty=1e-7).fit(train, "target")
    >>> print(f"R2 {est.score(test):.3f}")
    R2 0.998
    """

    scale: ClassVar[float] = 5.0
    slope: ClassVar[float] = 1 / 6

    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        u = _root(s)
        factor = xp.add_(xp.multiply_(xp.add_(u * (1 / 3), 1.0), u), 1.0)
        return xp.multiply_(xp.exp_(xp.negative_(u)), factor)

    def derivative(self, s: Array) -> Array:
        u = _root(s)
        factor = (u + 1.0) * (-1 / 6)
        return xp.multiply_(xp.exp_(xp.negative_(u)), factor)

    def second_derivative(self, s: Array) -> Array:
        return xp.multiply_(xp.exp_(xp.negative_(_root(s))), 1 / 12)
