"""Lloyd's algorithm on features that each iteration recomputes, and distances from centers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ...approximations import FeatureMap
from ...data import BlockReduction, RowSource


@dataclass(frozen=True)
class Lloyd:
    """Result of Lloyd's algorithm on features.

    - `labels`: index of the nearest center.
    - `inertia`: weighted sum of the squared distances from the nearest centers.
    """

    centers: Float[Array, "k s"]
    labels: Int[Array, " n"]
    inertia: float
    iterations: int

    @classmethod
    def run(
        cls,
        features: FeatureMap,
        rows: RowSource,
        centers: Float[Array, "k s"],
        max_iter: int,
        tol: float,
        memory_bytes: int,
        weights: Float[Array, " n"] | None = None,
    ) -> Lloyd:
        """Move each center to the mean of its nearest rows until the centers converge.

        - `centers`: initial centers, float64. A center that is nearest to no row does not move.
        - `max_iter`: largest number of passes over the rows; an additional pass assigns the labels.
        - `tol`: squared movement of all centers, relative to the variance of the features.
        - `memory_bytes`: memory for blocks.
        - `weights`: not negative; ones if None.

        Cost of a pass: the features and n s k operations; only the labels grow with n.
        """
        size, iteration = features.block_size(rows, memory_bytes), 0
        beside = () if weights is None else (weights,)
        while iteration < max_iter:
            iteration += 1
            nearest = rows.fold(_Nearest(features, centers), *beside, size=size)
            moved = nearest.means(centers)
            shift = float(xp.square(moved - centers).sum())
            centers = moved
            if shift <= tol * nearest.variance:
                break
        # The centers have moved since the last assignment: labels and inertia need a further pass.
        last = rows.fold(_Nearest(features, centers, labels=True), *beside, size=size)
        return cls(centers, xp.concat(last.labels), last.inertia, iteration)


@dataclass
class _Clusters:
    """Sums over the rows of each cluster: weights, features and squares, with optional labels."""

    counts: Array
    sums: Array
    squares: float = 0.0
    inertia: float = 0.0
    labels: list[Array] = field(default_factory=list)

    def means(self, centers: Array) -> Array:
        """Return the mean of each cluster, or the old center of an empty cluster."""
        has_rows = self.counts[:, None] > 0
        return xp.where(
            has_rows, self.sums / xp.where(has_rows, self.counts[:, None], 1.0), centers
        )

    @property
    def variance(self) -> float:
        """Mean variance of a feature."""
        n, s = float(self.counts.sum()), self.sums.shape[1]
        mean = self.sums.sum(axis=0) / n
        # The difference cancels for features that hardly vary: rounding may make it negative.
        return max(self.squares / n - float(mean @ mean), 0.0) / s


@dataclass(frozen=True, eq=False)
class _Nearest(BlockReduction[_Clusters]):
    """Reduction that assigns each row to the nearest center, and sums the rows of each cluster.

    - `labels`: whether to keep the labels, whose memory grows with the rows.
    """

    map: FeatureMap
    centers: Float[Array, "k s"]
    labels: bool = False

    def __call__(self, start: int, block: Array, *rowwise: Array) -> _Clusters:
        """Assign the first block."""
        counts = xp.zeros(len(self.centers), xp.float64)
        return self.add(_Clusters(counts, xp.zeros_like(self.centers)), start, block, *rowwise)

    def merge(self, a: _Clusters, b: _Clusters) -> _Clusters:
        """Add two statistics."""
        a.counts += b.counts
        a.sums += b.sums
        a.squares += b.squares
        a.inertia += b.inertia
        a.labels += b.labels
        return a

    def add(self, total: _Clusters, start: int, block: Array, *rowwise: Array) -> _Clusters:
        """Assign the next block."""
        F = xp.to_float64(self.map.apply(block))
        distance, nearest = xp.min_with_index(squared_distances(F, self.centers), 1)
        w = xp.to_float64(rowwise[0]) if rowwise else xp.ones(len(F), xp.float64)
        total.inertia += float(distance @ w)
        total.counts += xp.bincount(nearest, w, minlength=len(self.centers))
        total.squares += float(xp.square(xp.norm(F, axis=1)) @ w)
        # Weighted only now: inertia and squares above have multiplied by the weights themselves.
        F = F * w[:, None] if rowwise else F
        xp.add_at(total.sums, nearest, F)
        if self.labels:
            # int32, as in scikit-learn, and half the memory of the one result that grows with n.
            total.labels.append(xp.cast(nearest, xp.int32))
        return total


def squared_distances(F: Float[Array, "b s"], centers: Float[Array, "k s"]) -> Float[Array, "b k"]:
    """Return the squared distances of features from centers, in float64."""
    values = xp.to_float64(F)
    norms = xp.norm(values, axis=1, keepdims=True) ** 2  # without a copy of F
    distances: Array = norms + xp.square(centers).sum(axis=1)
    # |f|² + |c|² - 2 f'c cancels near a center, hence float64; rounding below zero is cut off.
    return xp.clip_(xp.addmm_(distances, values, centers.T, alpha=-2.0), min=0)


def distances(mapping: FeatureMap, centers: Float[Array, "k s"], block: Array) -> Array:
    """Return the distances of a block from centers, (b, k), in the dtype of the block."""
    F = mapping.apply(block)
    return xp.cast(xp.sqrt(squared_distances(F, centers)), F.dtype)


def nearest_centers(mapping: FeatureMap, centers: Float[Array, "k s"], block: Array) -> Array:
    """Return the index of the nearest center of each row of a block."""
    return xp.cast(squared_distances(mapping.apply(block), centers).argmin(axis=1), xp.int32)


def inertia(
    mapping: FeatureMap, centers: Float[Array, "k s"], block: Array, *weights: Array
) -> Float[Array, ""]:
    """Return the sum of the squared distances from the nearest centers, times optional weights."""
    smallest = xp.min(squared_distances(mapping.apply(block), centers), axis=1)
    return smallest @ xp.to_float64(weights[0]) if weights else smallest.sum()
