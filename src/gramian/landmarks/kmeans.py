"""KMeans: landmarks are the means of clusters, not rows of the data."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from jaxtyping import Float, Int
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from .. import _linalg as la
from .._checks import as_count, as_positive
from .._sparse import is_sparse, squared_norms
from .._spectrum import Spectrum
from ..data import RowSource, as_rows, gathered
from ..operators import KernelOperator
from .base import Landmarks, SizeOrPenalty, capped, selectors
from .bless import effective_dimension_estimate
from .leverage import gram
from .uniform import Uniform

MOST_SEEDED_CENTERS = 1000
"""Centers up to which they start from k-means++, which places them one after the other."""

SEEDING_ROWS = 20
"""Rows per center that k-means++ looks at."""

BLOCK_NUMBERS = 1 << 22
DEVICE_BLOCKS = 16
"""Factor by which blocks are larger on a device, where starting something takes as long."""


@selectors.register("kmeans")
@dataclass(frozen=True)
class KMeans(SizeOrPenalty):
    r"""Take the centers of clusters in the space of the features, as in [1]_.

    Parameters
    ----------
    m : int, optional
        Number of centers. `Landmarks.penalty` is the one at which `oversampling` times the
        effective dimension is m, by the spectrum of the weighted kernel matrix of the centers.
    penalty : float, optional
        Ridge per sample. As many centers as `oversampling` times the effective dimension, which
        `Bless` estimates.
    oversampling : float, default=3
    iterations : int, default=10
        Steps of Lloyd's algorithm, each a pass over the rows. Fewer if nothing changes. For
        landmarks a few are enough: the last ones move centers by little.

    Notes
    -----
    The centers start from k-means++ on a sample of 20 m rows, above 1,000 from random rows. A
    cluster that loses all its rows is moved to the row farthest from its center; if all rows are
    at centers, as with fewer distinct rows than m, it is left out.

    A center is the mean of the rows of one cluster; its weight is m times their share. Centers are
    dense, also those of sparse rows: 8 m d bytes. `Landmarks.index` is None.

    Cost: n m d multiplications an iteration, in blocks of any row source; no kernel evaluations
    but m² for the penalty. Memory: 8 m d bytes and 16 for each row.

    References
    ----------
    .. [1] Zhang & Kwok, *Improved Nystrom low-rank approximation and error analysis*, ICML 2008.
    """

    _: KW_ONLY
    oversampling: int | float = 3.0
    iterations: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.oversampling, "oversampling")
        as_count(self.iterations, "iterations")

    def select(self, K: KernelOperator, *, rng: torch.Generator) -> Landmarks:
        n = K.shape[0]
        m = self._size(K, rng)
        clusters = lloyd(K.fed_rows(), first_centers(K, m, rng), self.iterations)
        points = clusters.centers.to(K.rows.dtype)
        weight = clusters.sizes.cpu() * (len(points) / n)
        penalty = self.penalty or self._penalty(K, points, weight)
        info, coverage = {"inertia": clusters.inertia}, len(points) / n
        points = K.on_device(gathered(as_rows(points), torch.arange(len(points)), K.host_bytes))
        return Landmarks(points, weight, penalty=penalty, coverage=coverage, info=info)

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        return 32 * m * d + 16 * n

    def evaluations(self, n: int, m: int) -> int:
        return m * m

    def operations(self, n: int, d: int, m: int) -> float:
        # besides the product, finding the least distance takes about as long as 16 features
        return 2.0 * self.iterations * n * m * (d + 16)

    def _size(self, K: KernelOperator, rng: torch.Generator) -> int:
        if self.m is not None:
            return capped(self.m, K.shape[0])
        d = effective_dimension_estimate(K, float(self.penalty or 0), rng=rng)
        return min(max(1, math.ceil(self.oversampling * d)), K.shape[0])

    def _penalty(self, K: KernelOperator, points: Tensor, weight: Tensor) -> float:
        m, root = len(points), weight.sqrt()[:, None]
        A = gram(K, points.double())
        least = 1e-13 * float(A.diagonal().max()) or 1e-13
        root = root.to(A)
        spectrum = Spectrum.build(lambda v: root * (A @ (root * v)) / m, m, A.device)
        return spectrum.penalty_for(m / self.oversampling, least)


@dataclass(frozen=True)
class Clusters:
    """Centers, how many rows each is the mean of, and the sum of the squared distances to them."""

    centers: Float[Tensor, "m d"]
    sizes: Float[Tensor, " m"]
    inertia: float


def first_centers(K: KernelOperator, m: int, rng: torch.Generator) -> Float[Tensor, "m d"]:
    """Return distinct rows to start from, dense; fewer than m if there are fewer."""
    n, d = K.rows.shape
    affordable = K.host_bytes // (64 * d)
    sample = min(n, SEEDING_ROWS * m, affordable) if m <= MOST_SEEDED_CENTERS else m
    dense = _dense(Uniform(max(sample, m)).select(K, rng=rng).points)
    if len(dense) <= m:
        return dense
    seed = int(torch.randint(2**31 - 1, (), generator=rng))
    _, index = kmeans_plusplus(dense.cpu().numpy(), m, random_state=seed)
    return dense[torch.from_numpy(index)]


def lloyd(rows: RowSource, centers: Float[Tensor, "m d"], iterations: int) -> Clusters:
    """Move centers to the means of the rows nearest to them, some times over.

    Up to as many more iterations follow as it takes for all clusters to have rows.
    """
    last: Tensor | None = None
    for step in range(2 * iterations):
        found = assign(rows, centers)
        size = torch.bincount(found.label, minlength=len(centers))
        centers = found.sums / size.clamp(min=1)[:, None]
        empty = (size == 0).nonzero()[:, 0]
        farthest = found.distance.topk(len(empty))
        moved = empty[farthest.values > 0]
        same = last is not None and torch.equal(found.label, last)
        if same or (step + 1 >= iterations and len(moved) == 0):
            break
        centers[moved] = _dense(rows.take(farthest.indices[: len(moved)]))
        last = found.label
    kept = size > 0
    return Clusters(centers[kept], size[kept].double(), float(found.distance.sum()))


@dataclass(frozen=True)
class Assignment:
    """The nearest center of each row, its squared distance, and the sum of rows of each center."""

    label: Int[Tensor, " n"]
    distance: Float[Tensor, " n"]
    sums: Float[Tensor, "m d"]


def assign(rows: RowSource, centers: Float[Tensor, "m d"]) -> Assignment:
    """Find the nearest center of each row, in one pass. Sums are float64."""
    n, (m, d) = rows.shape[0], centers.shape
    label = torch.empty(n, dtype=torch.int64, device=centers.device)
    out = Assignment(label, centers.new_empty(n, dtype=torch.float64), 0 * centers)
    # the origin amid the centers, so that squares do not cancel; sparse rows cannot be moved
    origin = 0 * centers[0] if rows.sparse else centers.mean(dim=0)
    z = (centers - origin).to(rows.dtype)
    half = (z.double().square().sum(dim=1) / 2).to(rows.dtype)
    numbers = BLOCK_NUMBERS * (DEVICE_BLOCKS if la.is_on_device(centers) else 1)
    for part, block in rows.blocks(max(1, numbers // max(m, d))):
        x = block if rows.sparse else block - origin.to(block.dtype)
        value, out.label[part] = (x @ z.t() - half).max(dim=1)
        squares = squared_norms(x)
        distance = squares - 2 * value
        rounding = 64 * torch.finfo(x.dtype).eps * squares
        out.distance[part] = torch.where(distance > rounding, distance, 0).double()
        _add_rows(out.sums, block, out.label[part])
    return out


def _add_rows(sums: Tensor, block: Tensor, label: Tensor) -> None:
    if not is_sparse(block):
        if la.is_on_device(block):  # where index_add_ has another order, and sum, in each run
            sums.index_put_((label,), block.double(), accumulate=True)
        else:
            sums.index_add_(0, label, block.double())
        return
    row = label.repeat_interleave(block.crow_indices().diff())
    sums.view(-1).index_add_(0, row * sums.shape[1] + block.col_indices(), block.values().double())


def _dense(points: Tensor) -> Float[Tensor, "k d"]:
    return (points.to_dense() if is_sparse(points) else points).double()
