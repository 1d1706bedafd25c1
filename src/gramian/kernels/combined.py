"""Sums, products and scalings of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

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

    def coordinates(self, points: Float[Tensor, "n d"]) -> Float[Tensor, "n p"]:
        first, second = self.first.coordinates(points), self.second.coordinates(points)
        return torch.cat([first, second], dim=1)

    def prepare(self, points: Tensor, side: Side) -> Prepared:
        return self.first.prepare(points, side) + self.second.prepare(points, side)

    def resolve(self, sample: Float[Tensor, "s d"]) -> Kernel:
        return replace(self, first=self.first.resolve(sample), second=self.second.resolve(sample))

    def _tiles(self, left: Prepared, right: Prepared, out: Tensor) -> tuple[Tensor, Tensor]:
        k = self.first.parts
        first = self.first.tile(left[:k], right[:k], out)
        # The second kernel needs memory of its own, because the first result is in `out`.
        return first, self.second.tile(left[k:], right[k:], torch.empty_like(out))

    def _gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Tensor,
        of_first: Tensor | None,
        of_second: Tensor | None,
    ) -> Tensor:
        """Return the sum of the gradients of both kernels, each with weights of its own."""
        k = self.first.parts
        first = self.first.gradients(left[:k], right[:k], v, of_first)
        return first.add_(self.second.gradients(left[k:], right[k:], v, of_second))

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

    def tile(
        self, left: Prepared, right: Prepared, out: Tensor, *, underflow: bool = True
    ) -> Tensor:
        first, second = self._tiles(left, right, out)
        return first.add_(second)

    def gradients(
        self, left: Prepared, right: Prepared, v: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        return self._gradients(left, right, v, weights, weights)

    def diag(self, x: Tensor) -> Tensor:
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

    def tile(
        self, left: Prepared, right: Prepared, out: Tensor, *, underflow: bool = True
    ) -> Tensor:
        first, second = self._tiles(left, right, out)
        return first.mul_(second)

    def gradients(
        self, left: Prepared, right: Prepared, v: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        first, second = self._tiles(left, right, v.new_empty(len(left[0]), len(right[0])))
        if weights is not None:
            first, second = first.mul_(weights), second.mul_(weights)
        # By the product rule, the entries of each kernel weigh the gradients of the other.
        return self._gradients(left, right, v, second, first)

    def diag(self, x: Tensor) -> Tensor:
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

    def coordinates(self, points: Float[Tensor, "n d"]) -> Float[Tensor, "n p"]:
        return self.kernel.coordinates(points)

    def prepare(self, points: Tensor, side: Side) -> Prepared:
        return self.kernel.prepare(points, side)

    def resolve(self, sample: Float[Tensor, "s d"]) -> Kernel:
        return replace(self, kernel=self.kernel.resolve(sample))

    def tile(
        self, left: Prepared, right: Prepared, out: Tensor, *, underflow: bool = True
    ) -> Tensor:
        return self.kernel.tile(left, right, out, underflow=underflow).mul_(self.factor)

    def gradients(
        self, left: Prepared, right: Prepared, v: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        return self.kernel.gradients(left, right, v, weights).mul_(self.factor)

    def diag(self, x: Tensor) -> Tensor:
        return self.kernel.diag(x) * self.factor

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        return self.kernel.rounding(left, right, eps)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: torch.dtype) -> bool:
        return self.kernel.may_underflow(left, right, dtype)
