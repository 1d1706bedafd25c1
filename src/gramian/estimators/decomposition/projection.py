"""Projections and moments of features of blocks of rows, and pre-images of projections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float
from ..._sparse import is_sparse, transposed_times
from ...approximations import FeatureMap, NystromMap, RunningMoments
from ...data import BlockReduction, RowSource

Codes = Callable[[Array], Array]
"""Function from a block of rows to its components."""

Products = tuple[int, Array, Array]
"""Number of rows, H'H and H'X."""


@dataclass(frozen=True, eq=False)
class ProductsOfCodes(BlockReduction[Products]):
    """H'H and H'X for features H of the codes of rows X."""

    codes: Codes
    features: NystromMap

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


@dataclass(frozen=True)
class PreImage:
    r"""Map :math:`W^\top h(z)` from a code z to a row, with Nystrom features h.

    W minimises :math:`\frac1n \sum_i \|W^\top h(z_i) - x_i\|^2 + \lambda \|W\|^2`: kernel ridge
    regression with the codes of the landmarks as centers, in one pass over blocks of rows. With all
    rows as landmarks it is exact.

    - `features`: the map h.
    - `weights`: the matrix W.
    """

    features: NystromMap
    weights: Float[Array, "s d"]

    @classmethod
    def build(
        cls, codes: Codes, features: NystromMap, rows: RowSource, size: int, penalty: float
    ) -> PreImage:
        """Fit the regression from the codes of rows to the rows, in blocks.

        Cost: n s² + n s d operations, 8 (s² + s d) bytes.
        """
        count, gram, moment = rows.fold(ProductsOfCodes(codes, features), size=size)
        # The penalty is per row, and H'H is a sum over rows.
        xp.add_(xp.diagonal(gram), count * penalty)
        la.cholesky_(gram)
        return cls(features, la.solve_cholesky(gram, moment))

    def rows(self, codes: RowSource, memory_bytes: int) -> Float[Array, "n d"]:
        """Predict the rows of codes (n, k), in the dtype of the codes."""

        def predict_block(block: Array) -> Array:
            return xp.cast(self.features.apply(xp.to_float64(block)) @ self.weights, block.dtype)

        return codes.map(predict_block, size=self.features.block_size(codes, memory_bytes))


MomentsAndTrace = tuple[RunningMoments, Array]


def project_features(
    mapping: FeatureMap, mean: Float[Array, " s"], vectors: Float[Array, "s k"], block: Array
) -> Float[Array, "b k"]:
    """Project the centered features of a block on vectors, in the dtype of the block."""
    F = mapping.apply(block)
    # In float64: centering cancels, and float32 would lose components of small variance.
    return xp.cast((xp.to_float64(F) - mean) @ vectors, F.dtype)


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
