"""Functions on the features of one block of rows, which pickle for remote rows.

See `gramian.data.BlockReduction`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, Int
from ..._sparse import is_sparse, transposed_times
from ...approximations import FeatureMap, RunningMoments
from ...data import BlockReduction

MomentsAndTrace = tuple[RunningMoments, Array]

Products = tuple[int, Array, Array]
"""Number of rows, H'H and H'X."""


@dataclass(frozen=True, eq=False)
class Projected:
    """Projection of centered features on vectors, in the dtype of the rows."""

    map: FeatureMap
    mean: Float[Array, " s"]
    vectors: Float[Array, "s k"]

    def __call__(self, block: Array) -> Float[Array, "b k"]:
        """Compute the values of one block."""
        F = self.map.apply(block)
        # In float64: centering cancels, and float32 would lose components of small variance.
        return xp.cast((xp.to_float64(F) - self.mean) @ self.vectors, F.dtype)


@dataclass(frozen=True, eq=False)
class MomentsOfFeatures(BlockReduction[MomentsAndTrace]):
    """Moments of features, and sum of k(x, x)."""

    map: FeatureMap

    def __call__(self, start: int, block: Array, *rowwise: Array) -> MomentsAndTrace:
        """Return the sums of the first block."""
        return self.add((RunningMoments(), xp.zeros((), xp.float64)), start, block)

    def merge(self, a: MomentsAndTrace, b: MomentsAndTrace) -> MomentsAndTrace:
        """Add two sums."""
        a[0].merge(b[0])
        return a[0], a[1] + b[1]

    def add(self, total: MomentsAndTrace, start: int, block: Array, *_: Array) -> MomentsAndTrace:
        """Add the sums of the next block."""
        moments, trace = total
        moments.add(self.map.apply(block))
        # k(x, x) instead of the squared features: the total variance then includes the part outside
        # the span of the landmarks.
        return moments, trace + xp.to_float64(self.map.kernel.diag(block)).sum()


@dataclass(frozen=True, eq=False)
class ProductsOfCodes(BlockReduction[Products]):
    """H'H and H'X for features H of the codes of rows X."""

    codes: Projected
    features: FeatureMap

    def __call__(self, start: int, block: Array, *rowwise: Array) -> Products:
        """Return the number of rows, H'H and H'X of one block, as new arrays."""
        s = self.features.width
        # Both by columns, as LAPACK reads them: `PreImage.build` then solves without copies.
        gram = la.by_columns(xp.zeros((s, s), xp.float64))
        moment = xp.zeros((block.shape[1], s), xp.float64).T
        return self.add((0, gram, moment), start, block)

    def merge(self, a: Products, b: Products) -> Products:
        """Add two sums."""
        # In place: new matrices of s x s in each merge would double the memory.
        return a[0] + b[0], xp.add_(a[1], b[1]), xp.add_(a[2], b[2])

    def add(self, total: Products, start: int, block: Array, *rowwise: Array) -> Products:
        """Add the sums of the next block."""
        count, gram, moment = total
        H = self.features.apply(xp.to_float64(self.codes(block)))
        part = transposed_times(block, H) if is_sparse(block) else xp.to_float64(block).T @ H
        # Transposed twice, so that the product has the memory layout of the sum.
        return count + len(H), xp.addmm_(gram, H.T, H), xp.add_(moment, part.T)


@dataclass(frozen=True, eq=False)
class ToCenters:
    """Squared distances of features from centers, in float64."""

    map: FeatureMap
    centers: Float[Array, "k s"]

    def __call__(self, block: Array) -> Float[Array, "b k"]:
        """Compute the values of one block."""
        return squared_distances(self.map.apply(block), self.centers)


@dataclass(frozen=True, eq=False)
class Distances(ToCenters):
    """Distances of features from centers, in the dtype of the rows."""

    def __call__(self, block: Array) -> Float[Array, "b k"]:
        """Compute the values of one block."""
        F = self.map.apply(block)
        return xp.cast(xp.sqrt(squared_distances(F, self.centers)), F.dtype)


@dataclass(frozen=True, eq=False)
class NearestCenter(ToCenters):
    """Index of the nearest center."""

    def __call__(self, block: Array) -> Int[Array, " b"]:
        """Compute the values of one block."""
        return xp.cast(super().__call__(block).argmin(axis=1), xp.int32)


@dataclass(frozen=True, eq=False)
class Inertia(ToCenters):
    """Sum of the squared distances from the nearest centers, times optional weights."""

    def __call__(self, block: Array, *rowwise: Array) -> Float[Array, ""]:
        """Compute the sum of one block."""
        smallest = xp.min(super().__call__(block), axis=1)
        return smallest @ xp.to_float64(rowwise[0]) if rowwise else smallest.sum()


def squared_distances(F: Float[Array, "b s"], centers: Float[Array, "k s"]) -> Float[Array, "b k"]:
    """Return the squared distances of features from centers, in float64."""
    values = xp.to_float64(F)
    norms = xp.norm(values, axis=1, keepdims=True) ** 2  # without a copy of F
    distances: Array = norms + xp.square(centers).sum(axis=1)
    # |f|² + |c|² - 2 f'c cancels near a center, hence float64; rounding below zero is cut off.
    return xp.clip_(xp.addmm_(distances, values, centers.T, alpha=-2.0), min=0)
