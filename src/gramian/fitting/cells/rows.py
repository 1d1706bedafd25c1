"""Rows of all cells, ordered by cell, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._parallel.workers import one_blas_thread
from ...cells import Cells, Partition
from ...data import RowSource, as_rows, scratch
from ..inputs.training_data import TrainingData
from ..plans.cells import BLOCK_BYTES, BYTES_PER_ROW

SAMPLE_ROWS, SAMPLE_OF_A_CELL = 100_000, 50
"""Smallest sample from which cells are grown; larger if each cell would have few rows of it."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows of all cells; a row in a band of two cells occurs twice.

    - `starts`: cell i has the rows ``starts[i]`` to ``starts[i + 1] - 1`` of X.
    - `numbers`: indices of these rows in the training data; empty for remote rows.
    """

    cells: Cells
    starts: Int[Array, " s"]
    X: Float[Array, "m k"]
    numbers: Int[Array, " _"]

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
        """Return the training data of a cell, with all rows of the cell."""
        own_rows = self.bounds(cell)
        return data.part(self.numbers[own_rows], as_rows(self.X[own_rows]))

    def points(self, rows: RowSource) -> RowSource:
        """Return rows that are near: the rows of all cells, where the given ones may be mapped."""
        return as_rows(self.X)

    @property
    def usual(self) -> int:
        """Index of a cell of median size."""
        return int(xp.diff(self.starts).argsort(stable=True)[self.cells.count // 2])


def rows_by_cell(
    partition: Partition,
    rows: RowSource,
    *,
    memory_bytes: int,
    block_bytes: int = BLOCK_BYTES,
    unused: Sequence[int] = (),
    rng: RandomStream,
) -> CellRows:
    """Grow cells from a sample of the rows, and write each row to its cells.

    - `rows`: dense rows.
    - `memory_bytes`: memory for the rows; more rows are in a temporary file, see
      `gramian.data.scratch`.
    - `block_bytes`: memory for rows that are routed at once.
    - `unused`: indices of the features along which no cell is divided.

    Cost: three passes over the rows, for the sample, for the size of each cell, and to write them;
    two if there are few rows. Additional memory: `block_bytes`, and the sample.

    A cell whose rows are all equal cannot be divided: it keeps as many random rows as other cells
    have. A cell without rows, which rounding may leave, gets the rows of its neighbour.
    """
    # Many small operations, which threads would slow down; operations on rows have workers.
    with one_blas_thread:
        cells, seed = grow_cells(partition, rows, unused, rng)
        d = rows.shape[1]
        counts = xp.zeros(cells.count, xp.int64)
        row_bytes = 3 * d * rows.dtype.itemsize + BYTES_PER_ROW
        routed = _Routed(cells, rows, seed, max(1, block_bytes // row_bytes))
        for _, _, members in routed:
            counts += xp.array([len(index) for index in members], xp.int64)
        kept_rows = taken_of_large(counts, partition, rng)
        starts = xp.concat([xp.zeros(1, xp.int64), fill_empty(counts).cumsum(axis=0)])
        m = int(starts[-1])
        X = scratch((m, d), rows.dtype, memory_bytes)
        # `scratch` has floating-point numbers only; int64 has the same size.
        numbers = scratch((m,), xp.float64, memory_bytes).view(xp.int64)
        cell_rows = CellRows(cells, starts, X, numbers)
        _write(cell_rows, routed, kept_rows)
        # Only after all rows are written: an empty cell copies its neighbour.
        for cell in xp.flatnonzero(counts == 0).tolist():
            own_rows = cell_rows.bounds(cell)
            neighbour_rows = cell_rows.bounds(beside(counts, cell))
            X[own_rows], numbers[own_rows] = X[neighbour_rows], numbers[neighbour_rows]
        return cell_rows


@dataclass(frozen=True, eq=False)
class _Routed:
    """Iterable of blocks with the positions of the rows of each cell, the same in each pass.

    - `seed`: seed of random cells.
    - `size`: rows of a block.
    """

    cells: Cells
    rows: RowSource
    seed: int
    size: int

    def __iter__(self) -> Iterator[tuple[int, Float[Array, "b d"], list[Array]]]:
        """Yield the index of the first row, the block, and the positions in the block by cell."""
        # Seeded in each pass, so that the pass that counts and the pass that writes agree.
        rng = RandomStream(self.seed)
        for start, block in _gather_blocks(self.rows, self.size):
            yield start, block, self.cells.members(block, rng=rng)


def _write(found: CellRows, routed: _Routed, kept: dict[int, Array]) -> None:
    """Write each row to its cells; of cells that could not be divided only the rows `kept`."""
    written_counts = [0] * len(found)
    starts = found.starts.tolist()
    for start, block, members in routed:
        for cell, index in enumerate(members):
            first, last = written_counts[cell], written_counts[cell] + len(index)
            written_counts[cell] = last
            # The positions within the cell of this block's rows, of
            # which only the kept ones are written.
            if cell in kept:
                low, high = xp.find_insertions(
                    kept[cell], xp.array([first, last], xp.int64)
                ).tolist()
                index = index[kept[cell][low:high] - first]
                first, last = low, high
            if len(index):
                own_rows = slice(starts[cell] + first, starts[cell] + last)
                found.X[own_rows] = block[index]
                found.numbers[own_rows] = index + start


def _gather_blocks(rows: RowSource, size: int) -> Iterator[tuple[int, Float[Array, "b d"]]]:
    """Yield blocks of at least `size` rows, except the last, with the index of the first row.

    In the smaller blocks of some sources each cell would have only a row or two.
    """
    waiting: list[Array] = []
    start = count = 0
    for part, block in rows.blocks(size):
        # A source may reuse the memory of its block for the next one, unless there is only one.
        waiting.append(block if part.start == 0 and part.stop == len(rows) else xp.copy(block))
        count += len(block)
        if count >= size or part.stop == len(rows):
            yield start, xp.concat(waiting) if len(waiting) > 1 else waiting[0]
            start, count, waiting = part.stop, 0, []


def grow_cells(
    partition: Partition, rows: RowSource, unused: Sequence[int], rng: RandomStream
) -> tuple[Cells, int]:
    """Divide a sample of the rows into cells; return the cells, and a seed for random cells.

    Features that are zero in the sample change no cell: see `Partition.grow`.
    """
    n = len(rows)
    sample = rows.take(some_of(n, max(SAMPLE_ROWS, SAMPLE_OF_A_CELL * (n // partition.rows)), rng))
    if unused:
        # A feature that is zero in the whole sample changes no cell.
        sample = xp.copy(sample)
        sample[:, xp.array(unused, xp.int64)] = 0.0
    cells = partition.grow(sample, n, rng=rng)
    return cells, int(rng.integers(2**31 - 1, size=()))


def taken_of_large(
    counts: Int[Array, " k"], partition: Partition, rng: RandomStream
) -> dict[int, Int[Array, " _"]]:
    """Choose some rows of cells that could not be divided; reduce `counts` to these rows."""
    # The number of rows that are taken replaces the count, because it determines the bounds.
    kept_rows = {
        int(cell): some_of(int(counts[cell]), partition.rows, rng)
        for cell in xp.flatnonzero(counts > partition.largest_cell_rows)
    }
    for cell, kept_of_cell in kept_rows.items():
        counts[cell] = len(kept_of_cell)
    return kept_rows


def some_of(n: int, most: int, rng: RandomStream) -> Int[Array, " k"]:
    """Return at most `most` distinct random integers below n, in increasing order."""
    if n <= most:
        return xp.arange(n)
    if n <= 8 * most:
        return xp.sort(rng.sample(n, most))
    drawn: Array = rng.integers(n, size=(most + most // 4,))
    # A quarter more is drawn, because few numbers are drawn twice. A permutation
    # of n numbers, much larger, would take long.
    drawn = xp.unique(drawn)
    return xp.sort(drawn[rng.sample(len(drawn), most)])


def fill_empty(counts: Int[Array, " c"]) -> Int[Array, " c"]:
    """Return the sizes of cells; an empty cell gets the size of the nearest cell with rows."""
    sizes = xp.copy(counts)
    for cell in xp.flatnonzero(counts == 0).tolist():
        sizes[cell] = counts[beside(counts, cell)]
    return sizes


def beside(counts: Int[Array, " c"], cell: int) -> int:
    """Return the index of the nearest cell with rows."""
    filled_cells = xp.flatnonzero(counts)
    return int(filled_cells[xp.abs(filled_cells - cell).argmin()])
