"""Cells of a tree of splits with blended bands, and the descent of rows through the tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from .._parallel.workers import default_threads, run
from .base import Cells, Share, kinds

AT_ONCE = 1 << 18
"""Numbers in the rows that descend a tree together: they stay in the cache."""

SHARES_AT_ONCE = 1 << 17
"""Largest number of pairs of rows and cells in memory: about 100 MB with temporary tensors. Four
pairs for each row are always allowed."""


@kinds.register("tree")
@dataclass(frozen=True, eq=False)
class TreeCells(Cells):
    """A binary tree of splits; a row in the band of a split belongs to both sides.

    Attributes
    ----------
    direction : Array of shape (p, d)
        Directions of the splits, of norm 1.
    low, high : Array of shape (p,)
        Start and end of the band of each split, along its direction: the weight of the second side
        grows linearly from 0 to 1 within. If they are equal, rows up to this value belong to the
        first side.
    child : Array of shape (p, 2)
        Number of a later split, or -1 - c for the cell c.
    """

    direction: Float[Array, "p d"]
    low: Float[Array, " p"]
    high: Float[Array, " p"]
    child: Int[Array, "p 2"]

    @property
    def count(self) -> int:
        return len(self.low) + 1

    @property
    def features(self) -> int | None:
        return self.direction.shape[1] if len(self.low) else None

    def route(self, X: Float[Array, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        yield from self._shares(self._leaves(X, weights=True, slopes=slopes), slopes)

    def route_in_parts(self, X: Float[Array, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        # Four shares per row are always allowed, and one row may belong to all cells: halving
        # ends.
        limit = max(SHARES_AT_ONCE // (X.shape[1] if slopes else 1), 4 * len(X), self.count)
        try:
            leaves = self._leaves(X, weights=True, slopes=slopes, limit=limit)
        except _TooManySharesError:
            half = len(X) // 2
            for first, part in ((0, X[:half]), (half, X[half:])):
                for share in self.route_in_parts(part, slopes=slopes):
                    yield replace(share, index=share.index + first)
        else:
            yield from self._shares(leaves, slopes)

    def _shares(self, leaves: tuple[Array, ...], slopes: bool) -> Iterator[Share]:
        leaf, row, weight, slope = leaves
        for cell, positions in self._by_cell(leaf):
            # Rounding at the end of a band may leave a weight of zero.
            positions = positions[weight[positions] > 0]
            if len(positions):
                yield Share(
                    cell, row[positions], weight[positions], slope[positions] if slopes else None
                )

    def members(self, X: Float[Array, "n d"], *, rng: RandomStream) -> list[Array]:
        leaf, row, _, _ = self._leaves(X)
        return [row[positions] for _, positions in self._by_cell(leaf)]

    def _by_cell(self, leaf: Int[Array, " e"]) -> Iterator[tuple[int, Array]]:
        """Yield each cell with the increasing positions of its entries."""
        order = leaf.argsort(stable=True)
        sizes = xp.bincount(leaf, minlength=self.count).tolist()
        yield from enumerate(xp.split(order, sizes))

    def _leaves(
        self,
        X: Array,
        *,
        weights: bool = False,
        slopes: bool = False,
        limit: float | int = math.inf,
    ) -> tuple[Array, ...]:
        """Return cells, rows, weights and slopes, ordered by row within each cell."""
        parts = xp.split(X, max(1, AT_ONCE // X.shape[1]))
        descents = (_Descent(self, part, weights, slopes, limit) for part in parts)
        outcomes: list[tuple[Array, ...]] = []
        for leaves in run(default_threads(), _Descent.leaves, descents):
            # Check as results arrive, so that a file with overlapping bands cannot fill the
            # memory.
            outcomes.append(leaves)
            _check_shares(sum(len(leaf) for leaf, *_ in outcomes), limit)
        first = 0
        for leaf_and_rest, part in zip(outcomes, parts, strict=True):
            # The parts number their rows from 0.
            xp.add_(leaf_and_rest[1], first)
            first += len(part)
        return tuple(map(xp.concat, zip(*outcomes, strict=True)))

    @staticmethod
    def check_tensors(tensors: Mapping[str, Array]) -> None:
        names = ("direction", "low", "high", "child")
        direction, low, high, child = (tensors[name] for name in names)
        p = len(low)
        shapes = (direction.shape[:1], low.shape, high.shape, child.shape)
        # A file may be damaged or forged. A tree that loops would be descended without end.
        if direction.ndim != 2 or shapes != ((p,), (p,), (p,), (p, 2)):
            raise ValueError("the tensors of the splits of the cells have different lengths")
        if bool((high < low).any()):
            raise ValueError("a band of the cells ends before it begins")
        # Each split except the first must be the child of an earlier one, exactly once, and each
        # cell must be a leaf, exactly once.
        later = child >= 0
        parent = xp.expand(xp.arange(p)[:, None], (p, 2))
        inner, leaves = xp.sort(child[later]), xp.sort(-1 - child[~later])
        if (
            bool((child[later] <= parent[later]).any())
            or not xp.array_equal(inner, xp.arange(1, max(p, 1)))
            or (p and not xp.array_equal(leaves, xp.arange(p + 1)))
        ):
            raise ValueError("the splits of the cells do not form a tree")


@dataclass(frozen=True, eq=False)
class _Descent:
    """Descent of some rows through a tree, all together, one level in each step.

    - `weights`, `slopes`: whether to compute weights and slopes.
    - `limit`: largest number of pairs of rows and cells.
    """

    cells: TreeCells
    X: Float[Array, "n d"]
    weights: bool
    slopes: bool
    limit: float | int

    def leaves(self) -> tuple[Array, ...]:
        """Return cells, row numbers, weights and slopes of all pairs of rows and cells.

        Rows increase within each cell. Weights and slopes are empty unless requested.
        """
        n, d = self.X.shape
        row = xp.arange(n)
        # A tree without splits is one cell, of number -1 - 0.
        at = xp.zeros_like(row) if len(self.cells.low) else xp.full_like(row, -1)
        weight = xp.ones((n, int(self.weights)), xp.float64)
        slope = xp.zeros((n, d if self.slopes else 0), xp.float64)
        pending: tuple[Array, ...] = (at, row, weight, slope)
        parts: list[tuple[Array, ...]] = []
        while len(pending[0]):
            _check_shares(len(pending[0]) + sum(len(ended) for ended, *_ in parts), self.limit)
            ends = pending[0] < 0
            parts.append(_of(pending, xp.flatnonzero(ends)))
            pending = self._below(*_of(pending, xp.flatnonzero(~ends)))
        leaf, row, weight, slope = map(xp.concat, zip(*parts, strict=True))
        return -1 - leaf, row, weight[:, 0] if self.weights else weight, slope

    def _below(self, at: Array, row: Array, weight: Array, slope: Array) -> tuple[Array, ...]:
        """Return the descent one level further down; a row in a band continues on both sides.

        Rows at the same split are ordered by number.
        """
        if not len(at):
            return at, row, weight, slope
        low, high, direction, children = _of(
            (self.cells.low, self.cells.high, self.cells.direction, self.cells.child), at
        )
        where = place_rows(self.X[row], direction)
        sides = []
        # `where <= low` matters for splits without a band, where low equals high.
        for side, is_on_side in enumerate(((where < high) | (where <= low), where > low)):
            positions = xp.flatnonzero(is_on_side)
            child, after, steeper = _of((children[:, side], weight, slope), positions)
            if self.weights:
                first, last, along, at_ = _of((low, high, direction, where), positions)
                # Splits without a band have a width of zero: the clamp makes the share 0 or 1.
                width = (last - first).clip(min=TINY_WIDTH)
                # A width of zero makes infinity, which the limits make 0 or 1.
                with np.errstate(over="ignore"):
                    second = ((at_ - first) / width).clip(0.0, 1.0)
                share, sign = (second, 1.0) if side else (1.0 - second, -1.0)
                if self.slopes:
                    # Product rule: the share times the slope so far, plus the slope of the share
                    # inside the band.
                    inner = (second > 0) & (second < 1)
                    ramp = xp.where(inner, sign / width, 0.0)[:, None] * after
                    steeper = steeper * share[:, None] + ramp * xp.to_float64(along)
                after = after * share[:, None]
            sides.append((child, row[positions], after, steeper))
        return tuple(map(xp.concat, zip(*sides, strict=True)))


class _TooManySharesError(Exception):
    """Error for rows that belong to more cells than the limit allows; a single row never does."""


def _check_shares(count: int, limit: float | int) -> None:
    if count > limit:
        raise _TooManySharesError


def place_rows(X: Float[Array, "n d"], direction: Float[Array, "*n d"]) -> Float[Array, " n"]:
    """Return the places of rows along a common direction, or along a direction for each row."""
    # Not a matrix product: it rounds otherwise than products row by row, which routing needs, since
    # each row has the direction of its own split. Rows at the edge of a band would change sides.
    return xp.to_float64((X * xp.cast(direction, X.dtype)).sum(axis=1))


def _of(tensors: Iterable[Array], index: Int[Array, " k"]) -> tuple[Array, ...]:
    """Return the rows `index` of each array."""
    return tuple(tensor[index] for tensor in tensors)


TINY_WIDTH = 1e-300
