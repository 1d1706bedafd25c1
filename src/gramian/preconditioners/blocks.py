"""Disjoint blocks of rows that are near by the kernel's distance, and the entries of K in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int, RandomStream
from ..cells import MedianSplits
from ..data import RowSource, as_rows, gather_rows
from ..data.rows.base import default_block_size
from ..operators import KernelOperator

SAMPLE_ROWS = 100_000
"""Most rows that determine the splits."""

SAMPLED_SHARE = 0.95
"""Target size of a block, relative to the largest one, if a sample determines the splits."""

COUPLING_ROWS = 100
"""Rows whose entries within and outside of blocks are compared."""


def blocks_of_rows(K: KernelOperator, size: int, *, rng: RandomStream) -> list[Int[Array, " _"]]:
    """Divide the rows by median splits along principal directions of the kernel's coordinates.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
        Operator of any source of dense rows.
    size : int
        Largest number of rows of a block.
    rng : RandomStream
        Draws the sample, and the start of the search for directions.

    Returns
    -------
    list of Array of shape (s,)
        Increasing row indices; each row is in one block.

    Notes
    -----
    Memory: `SAMPLE_ROWS` d numbers. Cost: two passes over the rows. Blocks of identical rows, and
    blocks that are too large, are cut into equal parts.
    """
    n = K.shape[0]
    sampled, target_rows = xp.arange(n), size
    if n > SAMPLE_ROWS:
        sampled = xp.sort(rng.permutation(n)[:SAMPLE_ROWS])
        # A sample misplaces the medians a little, and a cell above the limit would be cut in two.
        target_rows = max(1, int(SAMPLED_SHARE * size))
    sample = K.kernel.coordinates(K.rows.take(sampled))
    cells = MedianSplits(rows=target_rows, overlap=0.0).grow(sample, n, rng=rng)
    parts_of_cell: list[list[Array]] = [[] for _ in range(cells.count)]
    for part, X in K.rows.blocks(default_block_size(K.rows)):
        for share in cells.route(K.kernel.coordinates(X)):
            parts_of_cell[share.cell].append(part.start + share.index)
    members = [xp.concat(parts) for parts in parts_of_cell if parts]
    # Cells of equal rows cannot be split by a median, so that they are cut by number.
    return [index for cell in members for index in xp.array_split(cell, -(-len(cell) // size))]


def estimate_coupling(K: KernelOperator, blocks: Sequence[Array], *, rng: RandomStream) -> float:
    """Estimate the sum of absolute entries of K outside of the blocks over the sum within them.

    Cost: n times `COUPLING_ROWS` kernel evaluations.
    """
    n = K.shape[0]
    # The table replaces a search for the block of each row in each strip.
    block_of = xp.empty(n, xp.int64)
    for number, index in enumerate(blocks):
        block_of[index] = number
    columns = xp.sort(rng.permutation(n)[:COUPLING_ROWS])
    within, total = 0.0, 0.0
    for part, entries in K.against(K.rows.take(columns)).strips():
        size = xp.to_float64(xp.abs(xp.to_host(entries)))
        within += float((size * (block_of[part, None] == block_of[columns])).sum())
        total += float(size.sum())
    return (total - within) / within if within > 0 else 0.0


def diagonal_blocks(
    K: KernelOperator, index: Sequence[Int[Array, " _"]]
) -> Iterator[Float[Array, "_ _"]]:
    """Yield K between the rows of each block: float64, by columns, a new tensor.

    Rows without random access are gathered first, in a file if they exceed the memory budget.
    """
    K = K.double()
    rows: RowSource = K.rows
    if not rows.random_access:
        # Each block would take a pass over a sequential source.
        rows = as_rows(gather_rows(rows, xp.arange(len(rows)), K.host_bytes))
    for block in index:
        block_rows = as_rows(rows.take(block))
        entries = replace(K, rows=block_rows, cols=block_rows).dense()
        # Subnormal entries would slow the factorisation down by an order of magnitude.
        la.prepare_(entries)
        yield la.by_columns(entries)
