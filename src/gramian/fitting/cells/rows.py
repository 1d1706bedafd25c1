"""CellRows: the rows of all cells, cell by cell, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..._parallel.workers import one_thread_each
from ...cells import Cells, Partition
from ...data import RowSource, as_rows, scratch
from ..inputs.training_data import TrainingData
from ..plans.cells import BLOCK_BYTES, BYTES_PER_ROW

SAMPLE_ROWS, SAMPLE_OF_A_CELL = 100_000, 50
"""Smallest sample from which cells are grown; larger if each cell would have few rows of it."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows of all cells; a row in a band of two cells occurs twice.

    Attributes
    ----------
    cells : Cells
    starts : Tensor of shape (c + 1,)
        Cell i has the rows ``starts[i]`` to ``starts[i + 1] - 1`` of X.
    X : Tensor of shape (m, k)
    numbers : Tensor of shape (m,)
        Numbers of these rows in the training data; empty for remote rows.
    """

    cells: Cells
    starts: Int[Tensor, " s"]
    X: Float[Tensor, "m k"]
    numbers: Int[Tensor, " _"]

    def __len__(self) -> int:
        """Return the number of cells."""
        return self.cells.count

    def bounds(self, cell: int) -> slice:
        """Return the start and the end of the rows of a cell."""
        return slice(int(self.starts[cell]), int(self.starts[cell + 1]))

    def count(self, cell: int) -> int:
        """Return the number of rows of a cell."""
        return int(self.starts[cell + 1] - self.starts[cell])

    def of(self, cell: int, data: TrainingData) -> TrainingData:
        """Return the training data of a cell, with all of its rows."""
        own_rows = self.bounds(cell)
        return data.part(self.numbers[own_rows], as_rows(self.X[own_rows]))

    @property
    def usual(self) -> int:
        """The number of a cell of median size."""
        return int(self.starts.diff().argsort(stable=True)[self.cells.count // 2])


def rows_by_cell(
    partition: Partition,
    rows: RowSource,
    *,
    memory_bytes: int,
    block_bytes: int = BLOCK_BYTES,
    unused: Sequence[int] = (),
    rng: torch.Generator,
) -> CellRows:
    """Grow cells from a sample of the rows, and write each row to its cells.

    Parameters
    ----------
    partition : Partition
    rows : RowSource of shape (n, d)
        Dense rows.
    memory_bytes : int
        Memory for the rows; more rows are in a temporary file, see `gramian.data.scratch`.
    block_bytes : int, default=2**28
        Memory for rows that are routed at once.
    unused : sequence of int
        Numbers of the features that no cell is cut along.
    rng : torch.Generator

    Notes
    -----
    Cost: three passes over the rows, for the sample, for the size of each cell, and to write them;
    two if there are few rows. Additional memory: `block_bytes`, and the sample.

    A cell whose rows are all equal cannot be divided: it keeps as many random rows as other cells
    have. A cell without rows, which rounding may leave, gets the rows of its neighbour.
    """
    # Many small operations, which threads would slow down; operations on rows have workers.
    with one_thread_each():
        cells, seed = grow_cells(partition, rows, unused, rng)
        return _divide_rows(partition, cells, seed, rows, memory_bytes, block_bytes, rng)


def _divide_rows(
    partition: Partition,
    cells: Cells,
    seed: int,
    rows: RowSource,
    memory_bytes: int,
    block_bytes: int,
    rng: torch.Generator,
) -> CellRows:
    """Return the rows of all cells; see `rows_by_cell`."""
    d = rows.shape[1]
    counts = torch.zeros(cells.count, dtype=torch.int64)
    row_bytes = 3 * d * rows.dtype.itemsize + BYTES_PER_ROW
    routed = _Routed(cells, rows, seed, max(1, block_bytes // row_bytes))
    for _, _, members in routed:
        counts += torch.tensor([len(index) for index in members])
    kept_rows = taken_of_large(counts, partition, rng)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), fill_empty(counts).cumsum(dim=0)])
    m = int(starts[-1])
    X = scratch((m, d), rows.dtype, memory_bytes)
    # `scratch` has floating-point numbers only; int64 has the same size.
    numbers = scratch((m,), torch.float64, memory_bytes).view(torch.int64)
    cell_rows = CellRows(cells, starts, X, numbers)
    _write(cell_rows, routed, kept_rows)
    # Only after all rows are written: an empty cell copies its neighbour.
    for cell in (counts == 0).nonzero()[:, 0].tolist():
        own_rows, neighbour_rows = cell_rows.bounds(cell), cell_rows.bounds(beside(counts, cell))
        X[own_rows], numbers[own_rows] = X[neighbour_rows], numbers[neighbour_rows]
    return cell_rows


@dataclass(frozen=True, eq=False)
class _Routed:
    """Blocks of rows with the rows of each cell; equal in each pass.

    Attributes
    ----------
    cells : Cells
    rows : RowSource
    seed : int
        Seed of random cells.
    size : int
        Rows of a block.
    """

    cells: Cells
    rows: RowSource
    seed: int
    size: int

    def __iter__(self) -> Iterator[tuple[int, Float[Tensor, "b d"], list[Tensor]]]:
        """Yield the number of the first row, the block, and the row numbers within it by cell."""
        # Seeded in each pass, so that the pass that counts and the pass that writes agree.
        rng = torch.Generator().manual_seed(self.seed)
        for start, block in _gather_blocks(self.rows, self.size):
            yield start, block, self.cells.members(block, rng=rng)


def _write(found: CellRows, routed: _Routed, kept: dict[int, Tensor]) -> None:
    """Write all rows to their cells; of undivided large cells only the rows at positions `kept`."""
    written_counts = [0] * len(found)
    starts = found.starts.tolist()
    for start, block, members in routed:
        for cell, index in enumerate(members):
            first, last = written_counts[cell], written_counts[cell] + len(index)
            written_counts[cell] = last
            # The positions within the cell of this block's rows, of
            # which only the kept ones are written.
            if cell in kept:
                low, high = torch.searchsorted(kept[cell], torch.tensor([first, last])).tolist()
                index = index[kept[cell][low:high] - first]
                first, last = low, high
            if len(index):
                own_rows = slice(starts[cell] + first, starts[cell] + last)
                torch.index_select(block, 0, index, out=found.X[own_rows])
                torch.add(index, start, out=found.numbers[own_rows])


def _gather_blocks(rows: RowSource, size: int) -> Iterator[tuple[int, Float[Tensor, "b d"]]]:
    """Yield blocks of at least `size` rows, except the last, and the number of their first row.

    In the smaller blocks of some sources each cell would have only a row or two.
    """
    waiting: list[Tensor] = []
    start = count = 0
    for part, block in rows.blocks(size):
        # A source may reuse the memory of its block for the next one, unless there is only one.
        waiting.append(block if part.start == 0 and part.stop == len(rows) else block.clone())
        count += len(block)
        if count >= size or part.stop == len(rows):
            yield start, torch.cat(waiting) if len(waiting) > 1 else waiting[0]
            start, count, waiting = part.stop, 0, []


def grow_cells(
    partition: Partition, rows: RowSource, unused: Sequence[int], rng: torch.Generator
) -> tuple[Cells, int]:
    """Return cells grown from a sample of the rows, and a seed for routing rows to random cells.

    Features that are zero in the sample change no cell: see `Partition.grow`.
    """
    n = len(rows)
    sample = rows.take(sample_of(partition, n, rng))
    if unused:
        # A feature that is zero in the whole sample changes no cell.
        sample = sample.index_fill(1, torch.tensor(unused), 0.0)
    cells = partition.grow(sample, n, rng=rng)
    return cells, int(torch.randint(2**31 - 1, (), generator=rng))


def taken_of_large(
    counts: Int[Tensor, " k"], partition: Partition, rng: torch.Generator
) -> dict[int, Int[Tensor, " _"]]:
    """Choose the rows of cells that could not be divided; reduce their counts to these rows."""
    # The number of rows that are taken replaces the count, because it determines the bounds.
    kept_rows = {
        int(cell): some_of(int(counts[cell]), partition.rows, rng)
        for cell in (counts > partition.largest_cell_rows).nonzero()[:, 0]
    }
    for cell, kept_of_cell in kept_rows.items():
        counts[cell] = len(kept_of_cell)
    return kept_rows


def sample_of(partition: Partition, n: int, rng: torch.Generator) -> Int[Tensor, " k"]:
    """Return the numbers of the rows of the sample from which cells are grown."""
    return some_of(n, max(SAMPLE_ROWS, SAMPLE_OF_A_CELL * (n // partition.rows)), rng)


def some_of(n: int, most: int, rng: torch.Generator) -> Int[Tensor, " k"]:
    """Return at most `most` random numbers below n, increasing and without repeats."""
    if n <= most:
        return torch.arange(n)
    if n <= 8 * most:
        return torch.randperm(n, generator=rng)[:most].sort().values
    drawn: Tensor = torch.randint(n, (most + most // 4,), generator=rng)
    # A quarter more is drawn, because few numbers are drawn twice. A permutation
    # of n numbers, much larger, would take long.
    drawn = torch.unique(drawn)
    return drawn[torch.randperm(len(drawn), generator=rng)[:most]].sort().values


def fill_empty(counts: Int[Tensor, " c"]) -> Int[Tensor, " c"]:
    """Return the sizes of cells; an empty cell has the size of its neighbour."""
    sizes = counts.clone()
    for cell in (counts == 0).nonzero()[:, 0].tolist():
        sizes[cell] = counts[beside(counts, cell)]
    return sizes


def beside(counts: Int[Tensor, " c"], cell: int) -> int:
    """Return the nearest cell that has rows."""
    filled_cells = counts.nonzero()[:, 0]
    return int(filled_cells[(filled_cells - cell).abs().argmin()])
