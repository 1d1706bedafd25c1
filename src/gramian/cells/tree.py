"""MedianSplits: a tree of median splits along principal directions, blended across bands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import as_count
from .base import Cells, Partition, Share, check_names, kinds, partitions

POWER_ITERATIONS = 15
"""Products with the covariance until a direction is principal enough to split along."""

DIRECTION_ROWS = 4000
"""Rows that a direction is found from."""

LEAST = 2
"""Rows of a sample below which a cell is divided no further."""

NAMES = ("direction", "low", "high", "child")


@kinds.register("tree")
@dataclass(frozen=True, eq=False)
class TreeCells(Cells):
    """A binary tree of splits; a row in the band of a split belongs to both sides.

    Attributes
    ----------
    direction : Tensor of shape (p, d)
        Of the splits, of norm 1.
    low, high : Tensor of shape (p,)
        Where the band of a split begins and ends, along its direction: the weight of the second
        side grows linearly from 0 to 1 within. Equal: rows up to it are of the first side.
    child : Tensor of shape (p, 2)
        The number of a later split, or -1 - c for the cell c.
    """

    direction: Float[Tensor, "p d"]
    low: Float[Tensor, " p"]
    high: Float[Tensor, " p"]
    child: Int[Tensor, "p 2"]

    @property
    def count(self) -> int:
        return len(self.low) + 1

    @property
    def features(self) -> int | None:
        return self.direction.shape[1] if len(self.low) else None

    def route(self, X: Float[Tensor, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        n = len(X)
        slope = X.new_zeros(X.shape, dtype=torch.float64) if slopes else None
        whole = Share(0, torch.arange(n), torch.ones(n, dtype=torch.float64), slope)
        if not len(self.low):
            yield whole
            return
        found: list[Share] = []
        waiting = [(0, whole)]
        while waiting:
            split, share = waiting.pop()
            for side, part in enumerate(self._divided(split, share, X)):
                child = int(self.child[split, side])
                if child >= 0:
                    waiting.append((child, part))
                else:
                    found.append(Share(-1 - child, part.index, part.weight, part.slope))
        yield from sorted((s for s in found if len(s.index)), key=lambda share: share.cell)

    def _divided(self, split: int, share: Share, X: Tensor) -> tuple[Share, Share]:
        """Return the rows of both sides."""
        low, high = float(self.low[split]), float(self.high[split])
        direction = self.direction[split]
        at = (X[share.index] @ direction.to(X.dtype)).double()
        second = (at > low).double()
        if high > low:
            second = ((at - low) / (high - low)).clamp(0.0, 1.0)
        sides = []
        for weight, sign in ((1.0 - second, -1.0), (second, 1.0)):
            here = weight > 0
            product, slope = share.weight[here] * weight[here], None
            if share.slope is not None:
                inner = (weight[here] < 1) & (high > low)
                ramp = torch.where(inner, sign / max(high - low, TINY), 0.0)
                slope = share.slope[here] * weight[here, None]
                slope += (share.weight[here] * ramp)[:, None] * direction.double()
            sides.append(Share(0, share.index[here], product, slope))
        return sides[0], sides[1]

    def tensors(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> TreeCells:
        check_names(tensors, NAMES)
        direction, low, high, child = (tensors[name] for name in NAMES)
        p = len(low)
        shapes = (direction.shape[:1], low.shape, high.shape, child.shape)
        if direction.ndim != 2 or shapes != ((p,), (p,), (p,), (p, 2)):
            raise ValueError("the splits of the cells have different numbers of parts")
        if bool((high < low).any()):
            raise ValueError("a band of the cells ends before it begins")
        later = child >= 0
        parent = torch.arange(p)[:, None].expand(p, 2)
        inner, leaves = child[later].sort().values, (-1 - child[~later]).sort().values
        if (
            bool((child[later] <= parent[later]).any())
            or not torch.equal(inner, torch.arange(1, max(p, 1)))
            or (p and not torch.equal(leaves, torch.arange(p + 1)))
        ):
            raise ValueError("the splits of the cells are no tree")
        return cls(direction, low, high, child)


TINY = 1e-300

_Waiting = tuple[Tensor, int, tuple[int, int] | None]


@partitions.register("median_splits")
@dataclass(frozen=True)
class MedianSplits(Partition):
    """Split along the first principal direction, in halves, until a cell has few rows.

    So many cells as are needed are divided between both sides: a number of cells that is no power
    of two has splits that are a little off the median.

    Parameters
    ----------
    rows : int, default=10_000
        Of a cell, at most, but for rows that are all the same.
    overlap : float, default=0.05
        Share of the rows of a split that lie in its band, and belong to both sides: predictions
        are blended across it, linearly. 0: predictions jump.

    Notes
    -----
    Each level of the tree multiplies the rows of all cells by 1 + overlap. Cost: some passes over
    the sample for each level, s d operations each.

    A direction along which rows do not differ is replaced by the feature of largest spread; rows
    that do not differ at all are one cell.
    """

    rows: int = 10_000
    overlap: float = 0.05

    def __post_init__(self) -> None:
        as_count(self.rows, "rows")
        if not 0 <= self.overlap < 0.5:
            raise ValueError(f"overlap must be at least 0 and below 0.5, not {self.overlap!r}")

    def number_of_cells(self, n: int) -> int:
        """Return the least number of cells of which none has too many of n rows, bands included."""
        cells = max(1, -(-n // self.rows))
        while cells > 1 and n * (1 + self.overlap) ** math.log2(cells) > self.rows * cells:
            cells += 1
        return cells

    def inflated(self, n: int) -> float:
        return float(n * (1 + self.overlap) ** math.log2(self.number_of_cells(n)))

    def grow(self, sample: Float[Tensor, "s d"], n: int, *, rng: torch.Generator) -> TreeCells:
        splits: list[tuple[Tensor, float, float]] = []
        children: list[list[int]] = []
        cells, whole = 0, torch.arange(len(sample))
        waiting: list[_Waiting] = [(whole, self.number_of_cells(n), None)]
        while waiting:
            index, leaves, parent = waiting.pop(0)
            split = None
            if leaves > 1 and len(index) >= 2 * LEAST:
                split = _split(sample[index], (leaves // 2) / leaves, self.overlap, rng)
            number = -1 - cells
            if split is None:
                cells += 1
            else:
                number, (direction, low, high) = len(splits), split
                splits.append(split)
                children.append([0, 0])
                at = sample[index] @ direction
                first, second = (at <= low, at > low) if high <= low else (at < high, at > low)
                waiting.append((index[first], leaves // 2, (number, 0)))
                waiting.append((index[second], leaves - leaves // 2, (number, 1)))
            if parent is not None:
                children[parent[0]][parent[1]] = number
        d = sample.shape[1]
        return TreeCells(
            torch.stack([s[0] for s in splits]) if splits else sample.new_zeros(0, d),
            torch.tensor([s[1] for s in splits], dtype=torch.float64),
            torch.tensor([s[2] for s in splits], dtype=torch.float64),
            torch.tensor(children, dtype=torch.int64).reshape(-1, 2),
        )


def _split(
    X: Float[Tensor, "s d"], share: float, overlap: float, rng: torch.Generator
) -> tuple[Tensor, float, float] | None:
    """Return direction and band of a split with a share of the rows on its first side.

    None if the rows are all the same.
    """
    spread = X.amax(dim=0) - X.amin(dim=0)
    if not bool((spread > 0).any()):
        return None
    direction = _principal(X, rng)
    at = (X @ direction).double().sort().values
    if not bool(at[-1] > at[0]):  # they differ by less than rounding along it
        direction = torch.zeros_like(direction)
        direction[int(spread.argmax())] = 1.0
        at = (X @ direction).double().sort().values
    s = len(at)
    middle, half = min(max(1, round(share * s)), s - 1), overlap * s / 2
    low = float(at[max(0, int(middle - half) - 1)])
    high = float(at[min(s - 1, int(middle + half))])
    if overlap == 0 or not high > low or low <= float(at[0]) or high >= float(at[-1]):
        low = high = _between(at, middle)
    return direction, low, high


def _between(at: Float[Tensor, " s"], middle: int) -> float:
    """Return a value that some of the sorted values are above, and some are not; near the middle.

    Half way to the next one, so that rounding moves no row to the other side.
    """
    value = at[middle - 1]
    if not bool(at[-1] > value):  # the upper half is all the same
        value = at[at < value][-1]
    above = at[at > value][0]
    half = float((value + above) / 2)
    return half if float(value) <= half < float(above) else float(value)


def _principal(X: Float[Tensor, "s d"], rng: torch.Generator) -> Float[Tensor, " d"]:
    """Return the first principal direction of some rows, about."""
    step = max(1, len(X) // DIRECTION_ROWS)
    some = X[::step].double()
    some = some - some.mean(dim=0)
    some = some / some.abs().max().clamp(min=TINY)
    v = torch.randn(X.shape[1], dtype=torch.float64, generator=rng)
    for _ in range(POWER_ITERATIONS):
        v = some.T @ (some @ v)
        v = v / v.norm().clamp(min=TINY)
    return v.to(X.dtype)
