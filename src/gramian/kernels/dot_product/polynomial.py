"""Kernels of the inner product: linear and polynomial."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import squared_norms
from .._lengthscale import LengthscaleKernel
from .._products import matmul, sums_of_rows
from ..base import Kernel, Prepared, Side, kernels


@dataclass(frozen=True)
class InnerProduct(LengthscaleKernel):
    r"""A function of :math:`s = x^\top z / \ell^2`."""

    sparse_ok: ClassVar[bool] = True

    @abstractmethod
    def profile(self, s: Array) -> Array:
        """Return k as a function of s. May overwrite `s`."""

    def derivative(self, s: Array) -> Array:
        """Return dk/ds as a function of s; optional for subclasses. May overwrite `s`."""
        raise NotImplementedError(type(self).__name__)

    @property
    def differentiable(self) -> bool:
        return type(self).derivative is not InnerProduct.derivative

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        if not self.differentiable:
            return super().gradients(left, right, v, weights)
        (x,), (z,) = left, right
        S = self.derivative(matmul(x, z, xp.empty((len(x), len(z)), like=v)))
        if weights is not None:
            S *= weights
        return xp.multiply_(sums_of_rows(S, v, z), self._inverse(z))

    def prepare(self, points: Array, side: Side) -> Prepared:
        return (self.scaled(points),)

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        return self.profile(matmul(left[0], right[0], out))

    def diag(self, x: Array) -> Float[Array, " b"]:
        return self.profile(squared_norms(self.scaled(x)))


@kernels.register("linear")
@dataclass(frozen=True)
class Linear(InnerProduct):
    r"""Linear kernel :math:`x^\top z / \ell^2`.

    Use it for wide sparse rows, such as words, if a linear model is enough, or as a term of a sum.
    Products are computed by the features, without entries of K.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or str, default=1.0
        ``"median"`` means 1, as in scikit-learn's linear kernel, because the kernel has no
        distance.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Linear
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge(Linear(), penalty=0.01).fit(X[:300], y[:300])
    >>> print(f"R2 {est.score(X[300:], y[300:]):.2f}")
    R2 0.50
    """

    bilinear: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True

    def profile(self, s: Array) -> Array:
        return s

    def derivative(self, s: Array) -> Array:
        return xp.fill_(s, 1.0)


@kernels.register("polynomial")
@dataclass(frozen=True)
class Polynomial(InnerProduct):
    r"""Polynomial kernel :math:`(x^\top z / \ell^2 + c)^p`.

    Use it if products of up to p features matter, such as products of pixels. An entry costs d
    multiplications.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or str, default=1.0
        ``"median"`` means :math:`\sqrt d`, scikit-learn's default ``gamma = 1 / d``.
    degree : int, default=3
        The power p, at least 1.
    coef0 : float, default=1.0
        The constant c, at least 0: with a negative constant the kernel is not positive definite.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import KernelRidgeClassifier
    >>> from gramian.kernels import Polynomial
    >>> X, y = load_digits(return_X_y=True)
    >>> est = KernelRidgeClassifier(Polynomial("median", degree=3), penalty=1e-4)
    >>> print(f"{est.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]):.2f} are right")
    0.96 are right
    """

    degree: int = 3
    coef0: float = 1.0

    tuned: ClassVar[tuple[str, ...]] = ("lengthscale", "coef0")

    def __post_init__(self) -> None:
        super().__post_init__()
        if int(self.degree) != self.degree or self.degree < 1:
            raise ValueError(f"degree must be a whole number of at least 1, not {self.degree!r}")
        if not (math.isfinite(self.coef0) and self.coef0 >= 0):
            raise ValueError(f"coef0 must be finite and at least 0, not {self.coef0!r}")

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        if self.medians is None:
            return self
        return replace(self, lengthscale=self.medians * math.sqrt(sample.shape[1]))

    def profile(self, s: Array) -> Array:
        return xp.power(xp.add_(s, self.coef0), self.degree, out=s)

    def derivative(self, s: Array) -> Array:
        return xp.multiply_(xp.power(xp.add_(s, self.coef0), self.degree - 1, out=s), self.degree)
