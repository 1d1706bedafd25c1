"""Factors: a kernel matrix of wide sparse rows as a product of two matrices of few columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from .._parallel.workers import Stop, run
from .._sparse import Columns, Kept, cast, is_wide
from ..data import ENTRY_NUMBERS, RowSource, RowWeights, Targets
from ..kernels import Kernel

READ_ROWS = 1 << 16
"""Rows of a block of factors."""


@dataclass(frozen=True, eq=False)
class Factors:
    """L and R of K = L R', reduced to the columns in which R has entries.

    - `left`, `right`: blocks of rows of L and of R; the same blocks if both sides of K are the same
      rows.
    """

    left: tuple[Kept, ...]
    right: tuple[Kept, ...]
    threads: int

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: RowSource,
        z: Array,
        *,
        same: bool,
        most_bytes: int,
        threads: int,
    ) -> Factors | None:
        """Return the factors of a bilinear kernel; None if they exceed `most_bytes`.

        - `z`: wide sparse points.
        - `same`: whether the points are the rows.
        - `threads`: number of threads of products.

        Notes
        -----
        Cost: a pass over the rows. Memory: `most_bytes` and a block of rows.
        """
        columns, blocks = Columns(kernel.prepare(z, "right")[0]), []
        for _, block in rows.blocks(READ_ROWS):
            left_block = columns.of(kernel.prepare(cast(block, z.dtype), "left")[0])
            blocks.append(Kept(left_block))
            # The bytes are known only when a block is made, so the pass stops as soon as they are
            # too many.
            most_bytes -= blocks[-1].nbytes
            if most_bytes < 0:
                return None
        left_blocks = tuple(blocks)
        return cls(left_blocks, left_blocks if same else (Kept(columns.rows),), threads)

    def normal(
        self, v: Array | None, weights: RowWeights | None, targets: Targets | None
    ) -> Float[Array, "m t"]:
        """Return K' W (K v - y) in float64, as R (L' W (L (R' v) - y))."""
        # The brackets decide the cost: from right to left each product has t columns, and no n x m
        # matrix ever exists.
        t = next(part.shape[1] for part in (v, targets) if part is not None)
        w = None if v is None else self._sum_products(self.right, xp.to_float64(v))

        def add(total: Array, L: Kept, rows: slice) -> None:
            terms = [] if w is None else [L.times(w)]
            terms += [] if targets is None else [xp.negative(xp.to_float64(targets[rows]))]
            u = xp.stack(terms).sum(axis=0)
            total += L.transposed_times(
                u if weights is None else u * xp.to_float64(weights[rows])[:, None]
            )

        return self._times(self.right, self._over(self.left, add, t))

    def product(self, v: Float[Array, "m t"]) -> Float[Array, "n t"]:
        """Return K v in float64, as L (R' v)."""
        return self._times(self.left, self._sum_products(self.right, xp.to_float64(v)))

    def _sum_products(self, blocks: tuple[Kept, ...], v: Array) -> Array:
        """Return the product of a transposed factor with vectors."""

        def add(total: Array, block: Kept, rows: slice) -> None:
            total += block.transposed_times(v[rows])

        return self._over(blocks, add, v.shape[1])

    def _times(self, blocks: tuple[Kept, ...], w: Array) -> Array:
        """Return the product of a factor with vectors."""
        block_products = run(min(self.threads, len(blocks)), lambda block: block.times(w), blocks)
        return xp.concat(list(block_products))

    def _over(
        self, blocks: tuple[Kept, ...], add: Callable[[Array, Kept, slice], None], t: int
    ) -> Float[Array, "u t"]:
        """Return a sum over blocks, to which ``add(total, block, rows)`` adds each block."""
        starts = list(itertools.accumulate((block.shape[0] for block in blocks), initial=0))
        threads, stop = min(self.threads, len(blocks)), Stop()

        def part(worker: int) -> Array:
            total = xp.zeros((blocks[0].shape[1], t), xp.float64)
            # Workers take blocks in a fixed order, so that each run adds up the same sums.
            for number in range(worker, len(blocks), threads):
                stop.check()
                add(total, blocks[number], slice(starts[number], starts[number + 1]))
            return total

        return xp.stack(list(run(threads, part, range(threads), stop))).sum(axis=0)

    @property
    def nbytes(self) -> int:
        """Bytes of L, which `of` limits."""
        return sum(block.nbytes for block in self.left)

    def vector_bytes(self, t: int) -> int:
        """Return the bytes of intermediate vectors in a product with t columns."""
        return 8 * t * self.right[0].shape[1] * (2 * self.threads + 3)


def factor_bytes(kernel: Kernel, rows: RowSource) -> int:
    """Return an upper bound of the bytes of factors, for any landmarks; 0 without factors."""
    if not (kernel.bilinear and rows.sparse and rows.entries is not None):
        return 0
    return len(rows) * (4 + Kept.ENTRY_BYTES * rows.entries // ENTRY_NUMBERS)


def have_factors(kernel: Kernel, rows: RowSource, z: Array) -> bool:
    """Return whether a matrix has `Factors`: a bilinear kernel of wide sparse rows."""
    return kernel.bilinear and xp.is_host(xp.device_of(z)) and rows.sparse and is_wide(z)
