"""Disjoint blocks of rows that lie near each other as a kernel sees them, and K between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import _linalg as la
from ..cells import MedianSplits
from ..data import RowSource, as_rows, gathered
from ..data.rows.base import comfortable_size
from ..operators import KernelOperator

SAMPLE_ROWS = 100_000
"""Rows that splits are found from, at most."""

SAMPLED_SHARE = 0.95
"""Of the rows of a block that are aimed at if splits are those of a sample."""


COUPLING_ROWS = 100
"""Rows of which the entries within and outside of blocks are compared."""


def blocks_of_rows(
    K: KernelOperator, size: int, *, rng: torch.Generator
) -> list[Int[Tensor, " _"]]:
    """Divide the rows by median splits along principal directions, as the kernel sees them.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
        Of any source of dense rows.
    size : int
        Rows of a block, at most.
    rng : torch.Generator
        Draws the sample, and starts the search for directions.

    Returns
    -------
    list of Tensor of shape (s,)
        Increasing numbers of rows; each row is in one block.

    Notes
    -----
    Memory: `SAMPLE_ROWS` d numbers. Cost: two passes over the rows. Rows that are all the same,
    and blocks that came out too large, are cut into equal parts.
    """
    n = K.shape[0]
    some, aimed = torch.arange(n), size
    if n > SAMPLE_ROWS:
        some = torch.randperm(n, generator=rng)[:SAMPLE_ROWS].sort().values
        aimed = max(1, int(SAMPLED_SHARE * size))
    sample = K.kernel.coordinates(K.rows.take(some))
    cells = MedianSplits(rows=aimed, overlap=0.0).grow(sample, n, rng=rng)
    found: list[list[Tensor]] = [[] for _ in range(cells.count)]
    for part, X in K.rows.blocks(comfortable_size(K.rows)):
        for share in cells.route(K.kernel.coordinates(X)):
            found[share.cell].append(part.start + share.index)
    whole = [torch.cat(parts) for parts in found if parts]
    return [index for cell in whole for index in cell.tensor_split(-(-len(cell) // size))]


def coupling(K: KernelOperator, blocks: Sequence[Tensor], *, rng: torch.Generator) -> float:
    """Estimate what K has outside of the blocks over what it has within: sums of absolute entries.

    Cost: n times `COUPLING_ROWS` kernel evaluations.
    """
    n = K.shape[0]
    block_of = torch.empty(n, dtype=torch.int64)
    for number, index in enumerate(blocks):
        block_of[index] = number
    some = torch.randperm(n, generator=rng)[:COUPLING_ROWS].sort().values
    within, total = 0.0, 0.0
    for part, entries in K.against(K.rows.take(some)).strips():
        size = entries.cpu().abs().double()
        within += float((size * (block_of[part, None] == block_of[some])).sum())
        total += float(size.sum())
    return (total - within) / within if within > 0 else 0.0


def diagonal_blocks(
    K: KernelOperator, index: Sequence[Int[Tensor, " _"]]
) -> Iterator[Float[Tensor, "_ _"]]:
    """Yield K between the rows of each block: float64, by columns, a new tensor.

    Rows without random access are gathered first, in a file if they exceed the budget.
    """
    K = K.double()
    rows: RowSource = K.rows
    if not rows.random_access:
        rows = as_rows(gathered(rows, torch.arange(len(rows)), K.host_bytes))
    for block in index:
        here = as_rows(rows.take(block))
        entries = replace(K, rows=here, cols=here).dense()
        la.prepare_(entries)
        yield la.by_columns(entries)
