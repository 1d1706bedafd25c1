"""Lloyd's algorithm on features that are computed again in each iteration."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..approximations import FeatureMap
from ..data import RowSource


@dataclass(frozen=True)
class Lloyd:
    """Clusters of features, and where the iteration stands.

    Attributes
    ----------
    centers : Tensor of shape (k, s)
    labels : Tensor of shape (n,)
        The nearest of the centers.
    inertia : float
        Sum of the squared distances from them.
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
    ) -> Lloyd:
        """Move each center to the mean of the rows nearest to it, until they rest.

        Parameters
        ----------
        features : FeatureMap
        rows : RowSource of shape (n, d)
        centers : Tensor of shape (k, s)
            Where to start; float64. A center that is nearest to no row stays where it is.
        max_iter : int
            Most passes over the rows; one more assigns them to the last centers.
        tol : float
            Squared movement of all centers, relative to the variance of the features.
        memory_bytes : int
            For blocks.

        Notes
        -----
        Cost of a pass: the features, n s k operations, no memory that grows with n but labels.
        """
        iteration = 0
        while iteration < max_iter:
            iteration += 1
            found = _Pass.over(features, rows, centers, memory_bytes)
            moved = found.means(centers)
            shift = float((moved - centers).square().sum())
            centers = moved
            if shift <= tol * found.variance:
                break
        last = _Pass.over(features, rows, centers, memory_bytes)
        return cls(centers, last.labels, last.inertia, iteration)


@dataclass
class _Pass:
    """Statistics of one pass over the rows: labels; count, sum and squares of each cluster."""

    labels: Tensor
    counts: Tensor
    sums: Tensor
    squares: float = 0.0
    inertia: float = 0.0

    @classmethod
    def over(
        cls, features: FeatureMap, rows: RowSource, centers: Tensor, memory_bytes: int
    ) -> _Pass:
        counts = torch.zeros(len(centers), dtype=torch.float64)
        labels = torch.empty(len(rows), dtype=torch.int32)
        found = cls(labels, counts, torch.zeros_like(centers))
        for part, _, F in features.strips(rows, memory_bytes=memory_bytes):
            F = F.double()
            nearest = squared_distances(F, centers).min(dim=1)
            found.labels[part] = nearest.indices.int()
            found.inertia += float(nearest.values.sum())
            found.counts += torch.bincount(nearest.indices, minlength=len(centers))
            found.sums.index_add_(0, nearest.indices, F)
            found.squares += float(torch.linalg.vector_norm(F)) ** 2
        return found

    def means(self, centers: Tensor) -> Tensor:
        """Return the mean of each cluster, or the old center of an empty one."""
        means = self.sums / self.counts.clamp(min=1)[:, None]
        return torch.where(self.counts[:, None] > 0, means, centers)

    @property
    def variance(self) -> float:
        """Variance of the features, averaged over them."""
        n, s = len(self.labels), self.sums.shape[1]
        mean = self.sums.sum(dim=0) / n
        return max(self.squares / n - float(mean @ mean), 0.0) / s


def squared_distances(
    F: Float[Tensor, "b s"], centers: Float[Tensor, "k s"]
) -> Float[Tensor, "b k"]:
    """Return the squared distances of features from centers, in float64."""
    values = F.double()
    norms = torch.linalg.vector_norm(values, dim=1, keepdim=True) ** 2  # without a copy of F
    distances: Tensor = norms + centers.square().sum(dim=1)
    return distances.addmm_(values, centers.t(), alpha=-2.0).clamp_(min=0)
