"""Projections and moments of the features of blocks of rows, which pickle for remote rows."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...approximations import FeatureMap, RunningMoments
from ...data import BlockReduction

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
