"""Cells around centers, blended between centers at nearly equal distances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_count
from .base import Cells, Partition, Share, kinds, partitions

LLOYD_ITERATIONS = 10

LARGEST_CELL_RATIO = 4.0
"""Largest rows of a cell, as a multiple of the mean; a larger cell consists of equal rows."""

AT_ONCE = 1 << 22
"""Numbers in the largest tensor of a block: rows, distances, or slopes if all centers are near."""

QUANTILE_ROWS = 1_000_000
"""Rows that determine the width of bands."""


@kinds.register("centers")
@dataclass(frozen=True, eq=False)
class CenterCells(Cells):
    """Cells that contain the rows nearest to their centers.

    Attributes
    ----------
    centers : Array of shape (c, d)
    width : Array of shape ()
        The weight of a cell falls linearly with the difference between the distances to its center
        and to the nearest center, and is zero from this difference on; weights are then divided by
        their sum. 0: each row has one cell.
    """

    centers: Float[Array, "c d"]
    width: Float[Array, ""]

    @property
    def count(self) -> int:
        return len(self.centers)

    @property
    def features(self) -> int | None:
        return self.centers.shape[1]

    def route(self, X: Float[Array, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        slope_columns = X.shape[1] if slopes else 1
        pairs = [
            self._pairs(block, distances, start, slopes)
            for start, block, distances in _distances(X, self.centers, slope_columns)
        ]
        row, cell, weight, slope = (xp.concat(parts) for parts in zip(*pairs, strict=True))
        # The sort is stable, so the rows of a cell stay increasing.
        order = cell.argsort(stable=True)
        sizes = xp.bincount(cell, minlength=self.count).tolist()
        for number, at in enumerate(xp.split(order, sizes)):
            if len(at):
                yield Share(number, row[at], weight[at], slope[at] if slopes else None)

    def _pairs(
        self, X: Float[Array, "b d"], distances: Float[Array, "b c"], start: int, slopes: bool
    ) -> tuple[Array, Array, Array, Array]:
        """Return row, cell, weight and slope of each pair of a row in a block and one of its cells.

        Rows increase, and are counted from the first block. Slopes are empty unless requested.
        """
        nearest, first = xp.min_with_index(distances, 1)
        width = float(self.width)
        # Without bands each row has one cell, and the division by the width is left out.
        if width == 0:
            row, slope = xp.arange(len(X)), xp.zeros(X.shape if slopes else 0, like=X)
            return start + row, first, xp.ones_like(nearest), slope
        raw = (1.0 - (distances - nearest[:, None]) / width).clip(min=0.0)
        # The nearest center has the raw weight 1, so the total is never zero.
        total = raw.sum(axis=1)
        row, cell = xp.nonzero(raw > 0)
        weight, slope = raw[row, cell] / total[row], xp.zeros(0, like=X)
        if slopes:
            units = self._units(X[row], cell, distances[row, cell])
            of_nearest = self._units(X, first, nearest)[row]
            # The weight of the nearest center is 1 before the division, whatever the distance:
            # its raw gradient is zero, and only the total changes.
            inside = (raw[row, cell] < 1)[:, None]
            gradient = xp.where(inside, (of_nearest - units) / width, 0.0)
            total_gradient = xp.add_at(xp.zeros_like(X), row, gradient)
            # The quotient rule for raw weight over total.
            slope = (gradient - weight[:, None] * total_gradient[row]) / total[row, None]
        return start + row, cell, weight, slope

    def _units(self, X: Array, cell: Array, distance: Array) -> Array:
        """Return the gradient of the distance of each row to its center."""
        return (X - xp.to_float64(self.centers[cell])) / distance.clip(min=TINY_DISTANCE)[:, None]

    @staticmethod
    def check_tensors(tensors: Mapping[str, Array]) -> None:
        centers, width = tensors["centers"], tensors["width"]
        if centers.ndim != 2 or not len(centers) or width.ndim or float(width) < 0:
            raise ValueError(
                "the cells must have a matrix of centers and a width that is not negative"
            )


TINY_DISTANCE = 1e-300


@partitions.register("kmeans")
@dataclass(frozen=True)
class KMeansCells(Partition):
    """Cells around the means of clusters, by Lloyd's algorithm on the sample.

    Use it if rows form groups that a tree would cut.

    Parameters
    ----------
    rows : int, default=10_000
        Mean number of rows of a cell; clusters may be larger.
    overlap : float, default=0.1
        Fraction of the rows that have two centers at nearly equal distances, and belong to both
        cells.

    Notes
    -----
    Cost: s c d operations for each of 10 iterations, c the number of cells. Cells differ in size,
    and so in the seconds of their fits.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.cells import KMeansCells
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> kernel = dict(kernel="laplacian", lengthscale="2 median", penalty=1e-4, random_state=0)
    >>> est = KernelRidge(**kernel, cells=KMeansCells(300)).fit(train, "target")
    >>> print(f"{len(est.history_)} cells, R2 {est.score(test):.2f}")
    4 cells, R2 0.81
    """

    rows: int = 10_000
    overlap: float = 0.1

    def __post_init__(self) -> None:
        as_count(self.rows, "rows")
        if not 0 <= self.overlap < 1:
            raise ValueError(f"overlap must be at least 0 and below 1, not {self.overlap!r}")

    @property
    def largest_cell_rows(self) -> float:
        return LARGEST_CELL_RATIO * self.rows

    def total_cell_rows(self, n: int) -> float:
        return float(n * (1 + self.overlap)) if n > self.rows else float(n)

    def grow(self, sample: Float[Array, "s d"], n: int, *, rng: RandomStream) -> CenterCells:
        # Two equal centers would leave one of their cells without rows.
        distinct = xp.unique(sample, axis=0)
        c = min(-(-n // self.rows), len(distinct))
        centers = xp.to_float64(distinct[rng.sample(len(distinct), c)])
        X = xp.to_float64(sample)
        for _ in range(LLOYD_ITERATIONS):
            nearest = xp.concat([D.argmin(axis=1) for _, _, D in _distances(X, centers)])
            sums = xp.add_at(xp.zeros_like(centers), nearest, X)
            sizes = xp.bincount(nearest, minlength=c)
            # A center that has lost all of its rows stays in place.
            centers = xp.where(
                (sizes > 0)[:, None], sums / xp.to_float64(sizes.clip(min=1)[:, None]), centers
            )
        if c < 2 or self.overlap == 0:
            return CenterCells(centers, xp.zeros((), xp.float64))
        distances = _distances(X[:QUANTILE_ROWS], centers)
        # The width is the quantile of the difference between the two smallest distances: a share
        # `overlap` of the rows then has a second cell.
        near = xp.concat([xp.topk(D, 2, axis=1, largest=False)[0] for _, _, D in distances])
        return CenterCells(centers, xp.quantile(xp.diff(near), self.overlap))


def _distances(
    X: Float[Array, "n d"], centers: Float[Array, "c d"], held: int = 1
) -> Iterator[tuple[int, Float[Array, "b d"], Float[Array, "b c"]]]:
    """Yield for each block the index of the first row, the rows, and the distances in float64.

    Memory suffices for `held` numbers for each distance. Features that are equal in all
    centers do not divide cells: rows get the value of the centers.
    """
    n, d = X.shape
    size = max(1, AT_ONCE // max(len(centers) * held, d))
    centers, start = xp.to_float64(centers), 0
    differs = (centers != centers[0]).any(axis=0)
    for block in xp.array_split(X, max(1, -(-n // size))):
        # A feature without differences among the centers would add the same number to all squared
        # distances, and its rounding would hide small differences.
        rows = xp.where(differs, xp.to_float64(block), centers[0])
        yield start, rows, xp.cdist(rows, centers)
        start += len(rows)
