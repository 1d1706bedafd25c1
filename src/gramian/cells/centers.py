"""KMeansCells: cells about centers, blended where two centers are about as near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import as_count
from .base import Cells, Partition, Share, check_names, kinds, partitions

ITERATIONS = 10

QUANTILE_ROWS = 1_000_000
"""Rows that the width of bands is chosen by: `torch.quantile` takes no more than 16 million."""

NAMES = ("centers", "width")


@kinds.register("centers")
@dataclass(frozen=True, eq=False)
class CenterCells(Cells):
    """Cells of the rows that are nearest to a center.

    Attributes
    ----------
    centers : Tensor of shape (c, d)
    width : Tensor of shape ()
        A cell's weight falls linearly, to zero where its center is so much farther than the
        nearest one; before weights are divided by their sum. 0: rows have one cell.
    """

    centers: Float[Tensor, "c d"]
    width: Float[Tensor, ""]

    @property
    def count(self) -> int:
        return len(self.centers)

    @property
    def features(self) -> int | None:
        return self.centers.shape[1]

    def route(self, X: Float[Tensor, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        distances = torch.cdist(X.double(), self.centers.double())
        nearest, first = distances.min(dim=1)
        width = float(self.width)
        if width > 0:
            raw = (1.0 - (distances - nearest[:, None]) / width).clamp(min=0.0)
        else:
            raw = torch.nn.functional.one_hot(first, self.count).double()
        total = raw.sum(dim=1)
        gradients = self._gradients(X.double(), distances, first, raw) if slopes else None
        for cell in range(self.count):
            index = (raw[:, cell] > 0).nonzero()[:, 0]
            if not len(index):
                continue
            slope, share = None, raw[index, cell] / total[index]
            if gradients is not None:
                whole = gradients.sum(dim=1)[index]
                slope = (gradients[index, cell] - share[:, None] * whole) / total[index, None]
            yield Share(cell, index, share, slope)

    def _gradients(self, X: Tensor, distances: Tensor, first: Tensor, raw: Tensor) -> Tensor:
        """Return the gradients of the weights before they are divided by their sum, (n, c, d)."""
        if float(self.width) == 0:
            return torch.zeros(*raw.shape, X.shape[1], dtype=torch.float64)
        offsets = X[:, None, :] - self.centers.double()
        units = offsets / distances.clamp(min=TINY)[..., None]
        nearest = units[torch.arange(len(X)), first][:, None, :]
        inside = ((raw > 0) & (raw < 1))[..., None]
        return torch.where(inside, -(units - nearest) / float(self.width), 0.0)

    def tensors(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> CenterCells:
        check_names(tensors, NAMES)
        centers, width = (tensors[name] for name in NAMES)
        if centers.ndim != 2 or not len(centers) or width.ndim or float(width) < 0:
            raise ValueError("centers of cells are a matrix, and their width is not negative")
        return cls(centers, width)


TINY = 1e-300


@partitions.register("kmeans")
@dataclass(frozen=True)
class KMeansCells(Partition):
    """Cells about the means of clusters, by Lloyd's algorithm on the sample.

    Parameters
    ----------
    rows : int, default=10_000
        Of a cell, on average: clusters may be larger.
    overlap : float, default=0.1
        Share of the rows that have two centers about as near, and belong to both cells.

    Notes
    -----
    Cost: s c d operations for each of 10 iterations, c the number of cells. Cells are of different
    sizes, and so are the seconds that they take.
    """

    rows: int = 10_000
    overlap: float = 0.1

    def __post_init__(self) -> None:
        as_count(self.rows, "rows")
        if not 0 <= self.overlap < 1:
            raise ValueError(f"overlap must be at least 0 and below 1, not {self.overlap!r}")

    def inflated(self, n: int) -> float:
        return float(n * (1 + self.overlap)) if n > self.rows else float(n)

    def grow(self, sample: Float[Tensor, "s d"], n: int, *, rng: torch.Generator) -> CenterCells:
        distinct = torch.unique(sample, dim=0)
        c = min(-(-n // self.rows), len(distinct))
        centers = distinct[torch.randperm(len(distinct), generator=rng)[:c]].double()
        X = sample.double()
        for _ in range(ITERATIONS):
            nearest = torch.cdist(X, centers).argmin(dim=1)
            sums = torch.zeros_like(centers).index_add_(0, nearest, X)
            sizes = torch.bincount(nearest, minlength=c)
            centers = torch.where(
                (sizes > 0)[:, None], sums / sizes.clamp(min=1)[:, None].double(), centers
            )
        if c < 2 or self.overlap == 0:
            return CenterCells(centers, torch.zeros((), dtype=torch.float64))
        near = torch.cdist(X, centers).topk(2, dim=1, largest=False).values
        return CenterCells(centers, torch.quantile(near[:QUANTILE_ROWS].diff(dim=1), self.overlap))
