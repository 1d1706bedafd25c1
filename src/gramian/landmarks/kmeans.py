"""Selector whose landmarks are the means of clusters, not rows of the data."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from .. import _arrays as xp
from .. import _linalg as la
from .. import data
from .._arrays import Array, Float, Int, RandomStream
from .._linalg.spectrum import Spectrum
from .._messages.checks import as_count, as_positive
from .._sparse import is_sparse, squared_norms
from ..data import BlockReduction, RowSource, as_rows
from ..operators import KernelOperator
from .base import Landmarks, SizeOrPenalty, cap_size, selectors
from .leverage.bless import estimate_effective_dimension
from .leverage.scores import gram
from .uniform import Uniform

MOST_SEEDED_CENTERS = 1000
"""Most centers with a k-means++ start, which places them one after the other."""

SEEDING_ROWS = 20
"""Rows per center in the sample of k-means++."""

BLOCK_NUMBERS = 1 << 19
"""Numbers of a block: two megabytes in float32, which stay in the cache."""

DEVICE_BLOCKS = 128
"""Factor by which blocks are larger on a device, where launches take as long as small blocks."""


@selectors.register("kmeans")
@dataclass(frozen=True)
class KMeans(SizeOrPenalty):
    r"""Choose the centers of clusters in the space of the features as landmarks, as in [1]_.

    Use it if the number of landmarks must be small.

    Parameters
    ----------
    m : int, optional
        Number of centers. `Landmarks.penalty` is then the penalty at which `oversampling` times the
        effective dimension is m, from the spectrum of the weighted kernel matrix of the centers.
    penalty : float, optional
        Penalty: the number of centers is `oversampling` times the effective dimension at this
        penalty, which `Bless` estimates.
    oversampling : float, default=3
    iterations : int, default=10
        Steps of Lloyd's algorithm, each a pass over the rows; fewer if nothing changes. A few are
        enough for landmarks, because the last steps move centers only a little.

    Notes
    -----
    The centers start from k-means++ on a sample of 20 m rows, or from random rows for m above
    1,000. A cluster that loses all its rows moves to the row farthest from its center. If all rows
    are at centers, as with fewer distinct rows than m, it is removed.

    A center is the mean of the rows of one cluster; its weight is m times their share. Centers are
    dense, even for sparse rows: 8 m d bytes. Wide sparse rows raise an error.
    `Landmarks.index` is None.

    Cost: n m d multiplications per iteration, in blocks of any row source; no kernel evaluations
    except m² for the penalty. Memory: 8 m d bytes and 16 for each row.

    References
    ----------
    .. [1] Zhang & Kwok, *Improved Nystrom low-rank approximation and error analysis*, ICML 2008.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import nystrom_error
    >>> from gramian.data import sample_path
    >>> from gramian.landmarks import KMeans, Uniform
    >>> places = pd.read_parquet(
    ...     sample_path("california_housing"), columns=["latitude", "longitude"]
    ... )
    >>> places = places.sample(1000, random_state=0)
    >>> for chosen in (Uniform(20), KMeans(20)):
    ...     error = nystrom_error("gaussian", places, chosen, lengthscale=1.0, random_state=0)
    ...     print(f"norm of K - K^: {error:.1f}")
    norm of K - K^: 37.4
    norm of K - K^: 5.2
    """

    _: KW_ONLY
    oversampling: int | float = 3.0
    iterations: int = 10

    dense_points: ClassVar[bool] = True
    takes_remote: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.oversampling, "oversampling")
        as_count(self.iterations, "iterations")

    def select(self, K: KernelOperator, *, rng: RandomStream) -> Landmarks:
        self.check_rows(K.rows)
        n = K.shape[0]
        m = self._size(K, rng)
        clusters = lloyd(K.fed_rows(), first_centers(K, m, rng), self.iterations)
        points = xp.cast(clusters.centers, K.rows.dtype)
        weight = xp.to_host(clusters.sizes) * (len(points) / n)
        penalty = self.penalty or self._penalty(K, points, weight)
        info, coverage = {"inertia": clusters.inertia}, len(points) / n
        points = K.on_device(
            data.gather_rows(as_rows(points), xp.arange(len(points)), K.host_bytes)
        )
        return Landmarks(points, weight, penalty=penalty, coverage=coverage, info=info)

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        return 32 * m * d + 16 * n

    def evaluations(self, n: int, m: int) -> int:
        return m * m

    def operations(self, n: int, d: int, m: int) -> float:
        # The search for the least distance takes about as long as the product of 16 features.
        return 2.0 * self.iterations * n * m * (d + 16)

    def _size(self, K: KernelOperator, rng: RandomStream) -> int:
        if self.m is not None:
            return cap_size(self.m, K.shape[0])
        d = estimate_effective_dimension(K, float(self.penalty or 0), rng=rng)
        return min(max(1, math.ceil(self.oversampling * d)), K.shape[0])

    def _penalty(self, K: KernelOperator, points: Array, weight: Array) -> float:
        m, root = len(points), xp.sqrt(weight)[:, None]
        A = gram(K, xp.to_float64(points))
        # A kernel that vanishes at all centers has no scale, and the search needs a positive bound.
        least_penalty = 1e-13 * float(xp.diagonal(A).max()) or 1e-13
        root = xp.cast_like(root, A)
        spectrum = Spectrum.build(lambda v: root * (A @ (root * v)) / m, m, A.device)
        return spectrum.penalty_for(m / self.oversampling, least_penalty)


@dataclass(frozen=True)
class Clusters:
    """Centers, the number of rows in each cluster, and the sum of squared distances."""

    centers: Float[Array, "m d"]
    sizes: Float[Array, " m"]
    inertia: float


def first_centers(K: KernelOperator, m: int, rng: RandomStream) -> Float[Array, "m d"]:
    """Return up to m distinct rows, dense, as starting centers."""
    # The import takes a third of a second, which only this function needs.
    from sklearn.cluster import kmeans_plusplus

    n, d = K.rows.shape
    affordable = K.host_bytes // (64 * d)
    # k-means++ copies its sample several times, in float64 and dense.
    sample = min(n, SEEDING_ROWS * m, affordable) if m <= MOST_SEEDED_CENTERS else m
    dense = _dense(Uniform(max(sample, m)).select(K, rng=rng).points)
    if len(dense) <= m:
        return dense
    # scikit-learn draws with NumPy, so its seed comes from the generator of the selection.
    seed = int(rng.integers(2**31 - 1, size=()))
    _, index = kmeans_plusplus(xp.to_host(dense), m, random_state=seed)
    return dense[index]


def lloyd(rows: RowSource, centers: Float[Array, "m d"], iterations: int) -> Clusters:
    """Move centers to the means of the nearest rows, `iterations` times.

    Up to as many iterations follow until all clusters have rows.
    """
    last: Assignment | None = None
    for step in range(2 * iterations):
        assignment = assign(rows, centers)
        # An empty cluster has no mean. The clamp keeps its division finite until it moves.
        centers = assignment.sums / assignment.sizes.clip(min=1)[:, None]
        empty = xp.flatnonzero(assignment.sizes == 0)
        # Empty clusters move to the rows farthest from their centers, if such rows exist.
        movable = empty[: int((assignment.farthest[: len(empty)] > 0).sum())]
        # Equal sums and sizes mean equal clusters: the centers stay where they are from here on.
        same = last is not None and assignment.equals(last)
        if same or (step + 1 >= iterations and len(movable) == 0):
            break
        centers[movable] = xp.to_device(
            _dense(rows.take(assignment.where[: len(movable)])), centers.device
        )
        last = assignment
    nonempty = assignment.sizes > 0
    return Clusters(
        centers[nonempty], xp.to_float64(assignment.sizes[nonempty]), assignment.inertia
    )


@dataclass
class Assignment:
    """Assignment of each row to its nearest center.

    - `sizes`: number of rows of each center.
    - `sums`: sums of these rows, in float64.
    - `inertia`: sum of the squared distances.
    - `farthest`: the largest squared distances, at most m, decreasing.
    - `where`: indices of the `farthest` rows.
    """

    sizes: Int[Array, " m"]
    sums: Float[Array, "m d"]
    inertia: float
    farthest: Float[Array, " k"]
    where: Int[Array, " k"]

    def equals(self, other: Assignment) -> bool:
        """Return whether the clusters have the same rows in two assignments, by sizes and sums."""
        return xp.array_equal(self.sizes, other.sizes) and xp.array_equal(self.sums, other.sums)

    def add_distances(self, distance: Float[Array, " b"], where: Int[Array, " b"]) -> None:
        """Merge distances of other rows into the largest distances."""
        # Once the list is full, few rows are far enough, and the search for the largest is left
        # out.
        if len(self.farthest) == len(self.sizes):
            is_farther = distance > self.farthest[-1]
            distance, where = distance[is_farther], where[is_farther]
            if not len(distance):
                return
        merged = xp.concat([self.farthest, distance])
        self.farthest, largest = xp.topk(merged, min(len(self.sizes), len(merged)))
        self.where = xp.concat([self.where, where])[largest]


def assign(rows: RowSource, centers: Float[Array, "m d"]) -> Assignment:
    """Find the nearest center of each row, in one pass."""
    m, d = centers.shape
    numbers = BLOCK_NUMBERS * (DEVICE_BLOCKS if la.is_on_device(centers) else 1)
    nearest = _Nearest.of(centers, rows.dtype, sparse=rows.sparse)
    return rows.fold(nearest, size=max(1, numbers // max(m, d)))


@dataclass(frozen=True, eq=False)
class _Nearest(BlockReduction[Assignment]):
    """Reduction that assigns the rows of each block to the nearest centers.

    - `origin`: a point between the centers, subtracted to avoid cancellation; zero for sparse
      rows, which cannot be shifted.
    - `z`: centers minus the origin, in the dtype of the rows.
    - `half`: half of the squared norms of `z`.
    """

    origin: Float[Array, " d"]
    z: Float[Array, "m d"]
    half: Float[Array, " m"]

    @classmethod
    def of(cls, centers: Float[Array, "m d"], dtype: xp.DType, *, sparse: bool) -> _Nearest:
        """Return the reduction for centers, and for rows of a dtype."""
        # Multiplying by zero keeps the dtype and device of the centers.
        origin = 0 * centers[0] if sparse else centers.mean(axis=0)
        z = xp.cast(centers - origin, dtype)
        return cls(origin, z, xp.cast(xp.square(xp.to_float64(z)).sum(axis=1) / 2, dtype))

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Assignment:
        """Assign a first block."""
        z = self.z
        none = xp.zeros(0, xp.float64, like=z)
        sizes, where = xp.zeros(len(z), xp.int64, like=z), xp.cast(none, xp.int64)
        empty = Assignment(sizes, xp.zeros_like(z, dtype=xp.float64), 0.0, none, where)
        return self.add(empty, start, block)

    def _scores(self, x: Float[Array, "b d"]) -> Float[Array, "b m"]:
        """Return x'z - z'z / 2 for each pair, which is larger for nearer centers."""
        if is_sparse(x):
            return x @ self.z.T - self.half
        return xp.addmm(self.half, x, self.z.T, beta=-1.0)

    def merge(self, a: Assignment, b: Assignment) -> Assignment:
        """Add the sums, and keep the farthest rows of both."""
        a.sizes += b.sizes
        a.sums += b.sums
        a.inertia += b.inertia
        a.add_distances(b.farthest, b.where)
        return a

    def add(self, total: Assignment, start: int, block: Array, *rowwise: Any) -> Assignment:
        """Assign the next block."""
        x = block if is_sparse(block) else block - xp.cast(self.origin, block.dtype)
        value, label = _largest(self._scores(x))
        squares = squared_norms(x)
        distance = squares - 2 * value
        # Below this the difference of squares is rounding: a row at its center must not count as
        # far.
        rounding = 64 * xp.finfo(x.dtype).eps * squares
        distance = xp.to_float64(xp.where(distance > rounding, distance, 0))
        total.sizes += xp.bincount(label, minlength=len(self.z))
        total.inertia += float(distance.sum())
        total.add_distances(distance, start + xp.arange(len(distance), like=distance))
        _add_rows(total.sums, block, label)
        return total


def _largest(scores: Float[Array, "b m"]) -> tuple[Float[Array, " b"], Int[Array, " b"]]:
    """Return the largest entry of each row and its position."""
    if la.is_on_device(scores):
        value, label = xp.max_with_index(scores, 1)
        return value, label
    label = scores.argmax(axis=1)
    return xp.take_along(scores, label[:, None], axis=1)[:, 0], label


def _add_rows(sums: Array, block: Array, label: Array) -> None:
    if not is_sparse(block):
        if la.is_on_device(block):
            # On a device, index_add_ sums in another order, with another result, in each run.
            sums.index_put_((label,), xp.to_float64(block), accumulate=True)
        else:
            xp.add_at(sums, label, xp.to_float64(block))
        return
    # Flat positions let one sum serve the entries of all rows.
    row = xp.repeat(label, xp.diff(xp.indptr(block)))
    xp.add_at(
        sums.reshape(-1), row * sums.shape[1] + xp.indices(block), xp.to_float64(xp.entries(block))
    )


def _dense(points: Array) -> Float[Array, "k d"]:
    return xp.to_float64(xp.to_dense(points) if is_sparse(points) else points)
