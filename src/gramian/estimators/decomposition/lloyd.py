"""Lloyd's algorithm on features that each iteration recomputes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...approximations import FeatureMap
from ...data import BlockReduction, RowSource, Value
from .block_statistics import squared_distances


@dataclass(frozen=True)
class Lloyd:
    """Result of Lloyd's algorithm on features.

    Attributes
    ----------
    centers : Tensor of shape (k, s)
    labels : Tensor of shape (n,)
        Index of the nearest center.
    inertia : float
        Weighted sum of the squared distances from the nearest centers.
    iterations : int
    """

    centers: Float[Tensor, "k s"]
    labels: Int[Tensor, " n"]
    inertia: float
    iterations: int

    @classmethod
    def run(
        cls,
        features: FeatureMap,
        rows: RowSource,
        centers: Float[Tensor, "k s"],
        max_iter: int,
        tol: float,
        memory_bytes: int,
        weights: Float[Tensor, " n"] | None = None,
    ) -> Lloyd:
        """Move each center to the mean of its nearest rows until the centers converge.

        Parameters
        ----------
        features : FeatureMap
        rows : RowSource of shape (n, d)
        centers : Tensor of shape (k, s)
            Initial centers, float64. A center that is nearest to no row does not move.
        max_iter : int
            Largest number of passes over the rows; an additional pass assigns the labels.
        tol : float
            Squared movement of all centers, relative to the variance of the features.
        memory_bytes : int
            Memory for blocks.
        weights : Tensor of shape (n,), optional
            Not negative; ones if None.

        Notes
        -----
        Cost of a pass: the features and n s k operations; only the labels grow with n.
        """
        size, iteration = features.block_size(rows, memory_bytes), 0
        beside = () if weights is None else (weights,)
        while iteration < max_iter:
            iteration += 1
            nearest = rows.fold(_Nearest(features, centers), *beside, size=size)
            moved = nearest.means(centers)
            shift = float((moved - centers).square().sum())
            centers = moved
            if shift <= tol * nearest.variance:
                break
        # The centers have moved since the last assignment: labels and inertia need a further pass.
        last = rows.fold(_Nearest(features, centers, labels=True), *beside, size=size)
        return cls(centers, torch.cat(last.labels), last.inertia, iteration)


@dataclass
class _Clusters:
    """Statistics of rows: weight, sum and squares of each cluster, and optional labels."""

    counts: Tensor
    sums: Tensor
    squares: float = 0.0
    inertia: float = 0.0
    labels: list[Tensor] = field(default_factory=list)

    def means(self, centers: Tensor) -> Tensor:
        """Return the mean of each cluster, or the old center of an empty one."""
        has_rows = self.counts[:, None] > 0
        return torch.where(has_rows, self.sums / self.counts[:, None].where(has_rows, 1.0), centers)

    @property
    def variance(self) -> float:
        """Variance of the features, averaged over them."""
        n, s = float(self.counts.sum()), self.sums.shape[1]
        mean = self.sums.sum(dim=0) / n
        # The difference cancels for features that hardly vary: rounding may make it negative.
        return max(self.squares / n - float(mean @ mean), 0.0) / s


@dataclass(frozen=True, eq=False)
class _Nearest(Value, BlockReduction[_Clusters]):
    """BlockReduction that assigns each row to the nearest center.

    Attributes
    ----------
    map : FeatureMap
    centers : Tensor of shape (k, s)
    labels : bool, default=False
        Whether to keep the labels, whose memory grows with the rows.
    """

    map: FeatureMap
    centers: Float[Tensor, "k s"]
    labels: bool = False

    def __call__(self, start: int, block: Tensor, *rowwise: Tensor) -> _Clusters:
        """Assign the first block."""
        counts = torch.zeros(len(self.centers), dtype=torch.float64)
        return self.add(_Clusters(counts, torch.zeros_like(self.centers)), start, block, *rowwise)

    def merge(self, a: _Clusters, b: _Clusters) -> _Clusters:
        """Add two statistics."""
        a.counts += b.counts
        a.sums += b.sums
        a.squares += b.squares
        a.inertia += b.inertia
        a.labels += b.labels
        return a

    def add(self, total: _Clusters, start: int, block: Tensor, *rowwise: Tensor) -> _Clusters:
        """Assign the next block."""
        F = self.map.apply(block).double()
        nearest = squared_distances(F, self.centers).min(dim=1)
        w = rowwise[0].double() if rowwise else torch.ones(len(F), dtype=torch.float64)
        total.inertia += float(nearest.values @ w)
        total.counts += torch.bincount(nearest.indices, w, minlength=len(self.centers))
        total.squares += float(torch.linalg.vector_norm(F, dim=1).square() @ w)
        # Weighted only now: inertia and squares above have multiplied by the weights themselves.
        F = F * w[:, None] if rowwise else F
        total.sums.index_add_(0, nearest.indices, F)
        if self.labels:
            # int32, as in scikit-learn, and half the memory of the one result that grows with n.
            total.labels.append(nearest.indices.int())
        return total
