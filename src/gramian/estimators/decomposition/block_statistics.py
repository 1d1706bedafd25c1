"""Functions on the features of one block of rows, which pickle for remote rows.

See `gramian.data.BlockReduction`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ... import _linalg as la
from ...approximations import FeatureMap, RunningMoments
from ...data import BlockReduction, Value

MomentsAndTrace = tuple[RunningMoments, Tensor]

Products = tuple[int, Tensor, Tensor]
"""Number of rows, H'H and H'X."""


@dataclass(frozen=True, eq=False)
class Projected(Value):
    """Projection of centered features on vectors, in the dtype of the rows.

    Attributes
    ----------
    map : FeatureMap
    mean : Tensor of shape (s,)
    vectors : Tensor of shape (s, k)
    """

    map: FeatureMap
    mean: Float[Tensor, " s"]
    vectors: Float[Tensor, "s k"]

    def __call__(self, block: Tensor) -> Float[Tensor, "b k"]:
        """Compute the values of one block."""
        F = self.map.apply(block)
        # In float64: centering cancels, and float32 would lose components of small variance.
        return ((F.double() - self.mean) @ self.vectors).to(F.dtype)


@dataclass(frozen=True, eq=False)
class MomentsOfFeatures(Value, BlockReduction[MomentsAndTrace]):
    """Moments of features, and sum of k(x, x).

    Attributes
    ----------
    map : FeatureMap
    """

    map: FeatureMap

    def __call__(self, start: int, block: Tensor, *rowwise: Tensor) -> MomentsAndTrace:
        """Return the sums of the first block."""
        return self.add((RunningMoments(), torch.zeros((), dtype=torch.float64)), start, block)

    def merge(self, a: MomentsAndTrace, b: MomentsAndTrace) -> MomentsAndTrace:
        """Add two sums."""
        a[0].merge(b[0])
        return a[0], a[1] + b[1]

    def add(self, total: MomentsAndTrace, start: int, block: Tensor, *_: Tensor) -> MomentsAndTrace:
        """Add the sums of the next block."""
        moments, trace = total
        moments.add(self.map.apply(block))
        # k(x, x) instead of the squared features: the total variance then includes the part outside
        # the span of the landmarks.
        return moments, trace + self.map.kernel.diag(block).double().sum()


@dataclass(frozen=True, eq=False)
class ProductsOfCodes(Value, BlockReduction[Products]):
    """H'H and H'X for features H of the codes of rows X.

    Attributes
    ----------
    codes : Projected
    features : FeatureMap
    """

    codes: Projected
    features: FeatureMap

    def __call__(self, start: int, block: Tensor, *rowwise: Tensor) -> Products:
        """Return the sums of the first block."""
        s = self.features.width
        # Both by columns, as LAPACK reads them: `PreImage.build` then solves without copies.
        gram = la.by_columns(torch.zeros(s, s, dtype=torch.float64))
        moment = torch.zeros(block.shape[1], s, dtype=torch.float64).t()
        return self.add((0, gram, moment), start, block)

    def merge(self, a: Products, b: Products) -> Products:
        """Add two sums."""
        # In place: new matrices of s x s in each merge would double the memory.
        return a[0] + b[0], a[1].add_(b[1]), a[2].add_(b[2])

    def add(self, total: Products, start: int, block: Tensor, *rowwise: Tensor) -> Products:
        """Add the sums of the next block."""
        count, gram, moment = total
        H = self.features.apply(self.codes(block).double())
        # Transposed twice, so that the product has the memory layout of the sum.
        part = (block.double().t() @ H).t()
        return count + len(H), gram.addmm_(H.t(), H), moment.add_(part)


@dataclass(frozen=True, eq=False)
class ToCenters(Value):
    """Squared distances of features from centers, in float64.

    Attributes
    ----------
    map : FeatureMap
    centers : Tensor of shape (k, s)
    """

    map: FeatureMap
    centers: Float[Tensor, "k s"]

    def __call__(self, block: Tensor) -> Float[Tensor, "b k"]:
        """Compute the values of one block."""
        return squared_distances(self.map.apply(block), self.centers)


@dataclass(frozen=True, eq=False)
class Distances(ToCenters):
    """Distances of features from centers, in the dtype of the rows."""

    def __call__(self, block: Tensor) -> Float[Tensor, "b k"]:
        """Compute the values of one block."""
        F = self.map.apply(block)
        return squared_distances(F, self.centers).sqrt().to(F.dtype)


@dataclass(frozen=True, eq=False)
class NearestCenter(ToCenters):
    """Index of the nearest center."""

    def __call__(self, block: Tensor) -> Int[Tensor, " b"]:
        """Compute the values of one block."""
        return super().__call__(block).argmin(dim=1).int()


@dataclass(frozen=True, eq=False)
class Inertia(ToCenters):
    """Sum of the squared distances from the nearest centers, times optional weights."""

    def __call__(self, block: Tensor, *rowwise: Tensor) -> Float[Tensor, ""]:
        """Compute the sum of one block."""
        smallest = super().__call__(block).min(dim=1).values
        return smallest @ rowwise[0].double() if rowwise else smallest.sum()


def squared_distances(
    F: Float[Tensor, "b s"], centers: Float[Tensor, "k s"]
) -> Float[Tensor, "b k"]:
    """Return the squared distances of features from centers, in float64."""
    values = F.double()
    norms = torch.linalg.vector_norm(values, dim=1, keepdim=True) ** 2  # without a copy of F
    distances: Tensor = norms + centers.square().sum(dim=1)
    # |f|² + |c|² - 2 f'c cancels near a center, hence float64; rounding below zero is cut off.
    return distances.addmm_(values, centers.t(), alpha=-2.0).clamp_(min=0)
