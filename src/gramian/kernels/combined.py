"""Sums, products and scalings of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from .. import _arrays as xp
from .._arrays import Array, Float
from .base import Kernel, Prepared, Side, kernels


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels on the same points, combined entry by entry."""

    first: Kernel
    second: Kernel

    @property
    def stationary(self) -> bool:
        return self.first.stationary and self.second.stationary

    @property
    def sparse_ok(self) -> bool:
        return self.first.sparse_ok and self.second.sparse_ok

    @property
    def nonnegative(self) -> bool:
        return self.first.nonnegative or self.second.nonnegative

    @property
    def scale_free(self) -> bool:
        return self.first.scale_free and self.second.scale_free

    def unscaled_features(self, d: int) -> frozenset[int]:
        return self.first.unscaled_features(d) | self.second.unscaled_features(d)

    def used_features(self, d: int) -> frozenset[int]:
        return self.first.used_features(d) | self.second.used_features(d)

    @property
    def parts(self) -> int:
        return self.first.parts + self.second.parts

    @property
    def differentiable(self) -> bool:
        return self.first.differentiable and self.second.differentiable

    @property
    def kinked(self) -> bool:
        return self.first.kinked or self.second.kinked

    @property
    def dim(self) -> int | None:
        return self.first.dim or self.second.dim

    def coordinates(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        first, second = self.first.coordinates(points), self.second.coordinates(points)
        return xp.concat([first, second], axis=1)

    def prepare(self, points: Array, side: Side) -> Prepared:
        return self.first.prepare(points, side) + self.second.prepare(points, side)

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        return replace(self, first=self.first.resolve(sample), second=self.second.resolve(sample))

    def _tiles(self, left: Prepared, right: Prepared, out: Array) -> tuple[Array, Array]:
        k = self.first.parts
        first = self.first.tile(left[:k], right[:k], out)
        # The second kernel needs memory of its own, because the first result is in `out`.
        return first, self.second.tile(left[k:], right[k:], xp.empty_like(out))

    def _gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Array,
        of_first: Array | None,
        of_second: Array | None,
    ) -> Array:
        """Return the sum of the gradients of both kernels, each with weights of its own."""
        k = self.first.parts
        first = self.first.gradients(left[:k], right[:k], v, of_first)
        return xp.add_(first, self.second.gradients(left[k:], right[k:], v, of_second))

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        k = self.first.parts
        first = self.first.rounding(left[:k], right[:k], eps)
        return first + self.second.rounding(left[k:], right[k:], eps)


@kernels.register("sum")
@dataclass(frozen=True)
class Sum(_Pair):
    """The sum k1(x, z) + k2(x, z).

    Use it for effects that add up: a trend and its residual, or separate features; ``k1 + k2``
    creates one.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Gaussian, Linear
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge(Linear() + Gaussian("median"), penalty=0.02).fit(X[:300], y[:300])
    >>> print(f"R2 {est.score(X[300:], y[300:]):.2f}")
    R2 0.51
    """

    def tile(self, left: Prepared, right: Prepared, out: Array, *, underflow: bool = True) -> Array:
        first, second = self._tiles(left, right, out)
        return xp.add_(first, second)

    def gradients(
        self, left: Prepared, right: Prepared, v: Array, weights: Array | None = None
    ) -> Array:
        return self._gradients(left, right, v, weights, weights)

    def diag(self, x: Array) -> Array:
        return self.first.diag(x) + self.second.diag(x)


@kernels.register("product")
@dataclass(frozen=True)
class Product(_Pair):
    """The product k1(x, z) k2(x, z).

    Use it if rows are similar only if both kernels are large, such as in place and in time; ``k1 *
    k2`` creates one.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Gaussian, Haversine
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> k = Haversine(200.0).on([6, 7]) * Gaussian("median").on(range(6))  # where, and what
    >>> est = KernelRidge(k, penalty=1e-4).fit(train, "target")
    >>> print(f"R2 {est.score(test):.2f}")
    R2 0.87
    """

    def tile(self, left: Prepared, right: Prepared, out: Array, *, underflow: bool = True) -> Array:
        first, second = self._tiles(left, right, out)
        return xp.multiply_(first, second)

    def gradients(
        self, left: Prepared, right: Prepared, v: Array, weights: Array | None = None
    ) -> Array:
        first, second = self._tiles(left, right, xp.empty((len(left[0]), len(right[0])), like=v))
        if weights is not None:
            first, second = xp.multiply_(first, weights), xp.multiply_(second, weights)
        # By the product rule, the entries of each kernel weigh the gradients of the other.
        return self._gradients(left, right, v, second, first)

    def diag(self, x: Array) -> Array:
        return self.first.diag(x) * self.second.diag(x)


@dataclass(frozen=True)
class OfOne(Kernel):
    """Base of kernels that wrap another kernel and have its properties."""

    kernel: Kernel

    @property
    def stationary(self) -> bool:
        return self.kernel.stationary

    @property
    def nonnegative(self) -> bool:
        return self.kernel.nonnegative

    @property
    def scale_free(self) -> bool:
        return self.kernel.scale_free

    @property
    def parts(self) -> int:
        return self.kernel.parts

    @property
    def differentiable(self) -> bool:
        return self.kernel.differentiable

    @property
    def kinked(self) -> bool:
        return self.kernel.kinked


@kernels.register("scaled")
@dataclass(frozen=True)
class Scaled(OfOne):
    """The kernel c k(x, z) with a positive factor c.

    Use it to weigh the terms of a sum; ``3 * k`` creates one.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Gaussian, Linear
    >>> X, y = load_diabetes(return_X_y=True)
    >>> for factor in (0.1, 10.0):
    ...     est = KernelRidge(factor * Linear() + Gaussian("median"), penalty=0.02)
    ...     print(f"R2 {est.fit(X[:300], y[:300]).score(X[300:], y[300:]):.2f}")
    R2 0.52
    R2 0.51
    """

    factor: float

    tuned: ClassVar[tuple[str, ...]] = ("factor",)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise ValueError(
                f"the factor of a kernel must be positive and finite, not {self.factor}"
            )

    @property
    def sparse_ok(self) -> bool:
        return self.kernel.sparse_ok

    def unscaled_features(self, d: int) -> frozenset[int]:
        return self.kernel.unscaled_features(d)

    def used_features(self, d: int) -> frozenset[int]:
        return self.kernel.used_features(d)

    @property
    def dim(self) -> int | None:
        return self.kernel.dim

    def coordinates(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        return self.kernel.coordinates(points)

    def prepare(self, points: Array, side: Side) -> Prepared:
        return self.kernel.prepare(points, side)

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        return replace(self, kernel=self.kernel.resolve(sample))

    def tile(self, left: Prepared, right: Prepared, out: Array, *, underflow: bool = True) -> Array:
        return xp.multiply_(self.kernel.tile(left, right, out, underflow=underflow), self.factor)

    def gradients(
        self, left: Prepared, right: Prepared, v: Array, weights: Array | None = None
    ) -> Array:
        return xp.multiply_(self.kernel.gradients(left, right, v, weights), self.factor)

    def diag(self, x: Array) -> Array:
        return self.kernel.diag(x) * self.factor

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        return self.kernel.rounding(left, right, eps)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: xp.DType) -> bool:
        return self.kernel.may_underflow(left, right, dtype)
