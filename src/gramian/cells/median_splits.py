"""Partition by median splits along principal directions, until cells have few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_count
from .base import Partition, partitions
from .tree import TreeCells, place_rows

POWER_ITERATIONS = 15
"""Power iterations for the principal direction of a split."""

DIRECTION_ROWS = 4000
"""Rows that determine a direction."""

LEAST_SAMPLE_ROWS = 2
"""Least number of sampled rows on each side of a split."""

TINY_WIDTH = 1e-300

_Waiting = tuple[Array, int, tuple[int, int] | None]


@partitions.register("median_splits")
@dataclass(frozen=True)
class MedianSplits(Partition):
    """Split along the first principal direction, in halves, until all cells have few rows.

    Each split divides the number of cells between its sides. If this number is not a power of two,
    some splits are slightly off the median.

    Use it, as ``cells=5000`` does, for hundreds of thousands of rows and more.

    Parameters
    ----------
    rows : int, default=10_000
        Largest number of rows of a cell; cells of equal rows may be larger.
    overlap : float, default=0.05
        Fraction of the rows of a split that are in its band, and belong to both sides: predictions
        are blended linearly across the band. 0: predictions jump.

    Notes
    -----
    Each depth of the tree multiplies the rows of all cells by 1 + overlap. Cost: some passes over
    the sample for each depth, s d operations each.

    A direction along which rows do not differ is replaced by the feature of largest spread; equal
    rows form one cell.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.cells import MedianSplits
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> kernel = dict(kernel="laplacian", lengthscale="2 median", penalty=1e-4, random_state=0)
    >>> est = KernelRidge(**kernel, cells=MedianSplits(300)).fit(train, "target")
    >>> print(f"{len(est.history_)} cells, R2 {est.score(test):.2f}")
    4 cells, R2 0.80
    """

    rows: int = 10_000
    overlap: float = 0.05

    def __post_init__(self) -> None:
        as_count(self.rows, "rows")
        if not 0 <= self.overlap < 0.5:
            raise ValueError(f"overlap must be at least 0 and below 0.5, not {self.overlap!r}")

    def number_of_cells(self, n: int) -> int:
        """Return the least number of cells of at most `rows` of the n rows, bands included."""
        cells = max(1, -(-n // self.rows))
        # Bands multiply the rows with each level, so the number of cells grows until the largest
        # cell fits.
        while cells > 1 and n * (1 + self.overlap) ** math.log2(cells) > self.rows * cells:
            cells += 1
        return cells

    def total_cell_rows(self, n: int) -> float:
        return float(n * (1 + self.overlap) ** math.log2(self.number_of_cells(n)))

    def grow(self, sample: Float[Array, "s d"], n: int, *, rng: RandomStream) -> TreeCells:
        splits: list[tuple[Array, float, float]] = []
        children: list[list[int]] = []
        cells, members = 0, xp.arange(len(sample))
        waiting: list[_Waiting] = [(members, self.number_of_cells(n), None)]
        while waiting:
            # A queue grows the tree level by level: a split then always precedes its children, as
            # files of trees require.
            index, leaves, parent = waiting.pop(0)
            split = None
            if leaves > 1 and len(index) >= 2 * LEAST_SAMPLE_ROWS:
                # An odd number of cells divides the rows in the ratio of the cells, not in
                # halves.
                split = _split(sample[index], (leaves // 2) / leaves, self.overlap, rng)
            # Leaves have the numbers -1, -2, ... in place of splits: one array of children serves
            # both.
            number = -1 - cells
            if split is None:
                cells += 1
            else:
                number, (direction, low, high) = len(splits), split
                splits.append(split)
                children.append([0, 0])
                at = place_rows(sample[index], direction)
                # The rows of a band continue on both sides.
                first, second = (at <= low, at > low) if high <= low else (at < high, at > low)
                waiting.append((index[first], leaves // 2, (number, 0)))
                waiting.append((index[second], leaves - leaves // 2, (number, 1)))
            # The number of a child is known only when it leaves the queue.
            if parent is not None:
                children[parent[0]][parent[1]] = number
        d = sample.shape[1]
        return TreeCells(
            xp.stack([s[0] for s in splits]) if splits else xp.zeros((0, d), like=sample),
            xp.array([s[1] for s in splits], dtype=xp.float64),
            xp.array([s[2] for s in splits], dtype=xp.float64),
            xp.array(children, dtype=xp.int64).reshape(-1, 2),
        )


def _split(
    X: Float[Array, "s d"], share: float, overlap: float, rng: RandomStream
) -> tuple[Array, float, float] | None:
    """Return direction and band of a split with a fraction `share` of the rows on its first side.

    Return None if all rows are equal.
    """
    spread = xp.max(X, axis=0) - xp.min(X, axis=0)
    if not bool((spread > 0).any()):
        return None
    direction = _principal(X, rng)
    at = xp.sort(place_rows(X, direction))
    # Along the direction the rows differ by less than rounding.
    if not bool(at[-1] > at[0]):
        direction = xp.zeros_like(direction)
        direction[int(spread.argmax())] = 1.0
        at = xp.sort(place_rows(X, direction))
    s = len(at)
    # Each side keeps at least one row of the sample.
    middle, half = min(max(1, round(share * s)), s - 1), overlap * s / 2
    low = float(at[max(0, int(middle - half) - 1)])
    high = float(at[min(s - 1, int(middle + half))])
    # A band that is empty, or reaches the ends of the rows, separates nothing: split without one.
    if overlap == 0 or not high > low or low <= float(at[0]) or high >= float(at[-1]):
        low = high = _between(at, middle)
    return direction, low, high


def _between(at: Float[Array, " s"], middle: int) -> float:
    """Return a value near the middle that separates the sorted values.

    The value is half way between two values, so that rounding moves no row to the other side.
    """
    value = at[middle - 1]
    # The upper half has one value: split below it.
    if not bool(at[-1] > value):
        value = at[at < value][-1]
    above = at[at > value][0]
    half = float((value + above) / 2)
    return half if float(value) <= half < float(above) else float(value)


def _principal(X: Float[Array, "s d"], rng: RandomStream) -> Float[Array, " d"]:
    """Return the approximate first principal direction of some rows."""
    step = max(1, len(X) // DIRECTION_ROWS)
    sampled = xp.to_float64(X[::step])
    sampled = sampled - sampled.mean(axis=0)
    # Products of huge features would overflow; the direction does not depend on the scale.
    sampled = sampled / xp.abs(sampled).max().clip(min=TINY_WIDTH)
    v = rng.standard_normal(X.shape[1], xp.float64)
    for _ in range(POWER_ITERATIONS):
        v = sampled.T @ (sampled @ v)
        v = v / xp.norm(v).clip(min=TINY_WIDTH)
    return xp.cast(v, X.dtype)
