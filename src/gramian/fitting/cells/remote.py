"""Fit by cells of remote rows: this process divides a sample, and workers solve the cells."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ...callbacks import Checkpoint
from ...callbacks.journal import Journal
from ...cells import Cells, Partition
from ...data import (
    BlockReduction,
    RemoteRows,
    RowNumbers,
    RowSource,
    as_rows,
    default_block_size,
    scratch,
)
from ..inputs.training_data import TrainingData
from .problems import CellProblems
from .rows import CellRows, beside, fill_empty, grow_cells, taken_of_large
from .solver import CellSolver, CellTask, SolvedCell


@dataclass(frozen=True, eq=False)
class Members:
    """Function that returns the rows of a block by cell, and can be sent to workers.

    - `seed`: seed of random cells.
    - `copied`: for each cell without rows, the cell whose rows it copies.
    - `only`: the only requested cell; all cells if None.
    """

    cells: Cells
    seed: int
    copied: Mapping[int, int] = field(default_factory=dict)
    only: int | None = None

    def __call__(self, start: int, block: Float[Array, "b d"]) -> list[Array]:
        """Return for each cell the positions of its rows within the block."""
        # The seed depends on the block alone: each pass and each worker route a row alike.
        rng = RandomStream(self.seed + start)
        members = self.cells.members(block, rng=rng)
        # Rounding may leave a cell empty: it gets the rows of its neighbour.
        for empty, source_cell in self.copied.items():
            members[empty] = members[source_cell]
        return members if self.only is None else [members[self.only]]


@dataclass(frozen=True, eq=False)
class _Counts(BlockReduction[Array]):
    """Reduction that counts the rows of each cell."""

    members: Members

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Array:
        """Count one block."""
        return xp.array([len(index) for index in self.members(start, block)], xp.int64)

    def merge(self, a: Array, b: Array) -> Array:
        """Add the counts of two parts."""
        return xp.add_(a, b)


@dataclass(frozen=True, eq=False)
class CellRowsThere(CellRows):
    """Remote rows of all cells.

    The rows of a cell arrive with the solution of the cell, as its centers.

    - `kept_rows`: index of the rows to keep, for cells that could not be divided.
    """

    source: RemoteRows
    members: Members
    kept_rows: Mapping[int, Array]

    def points(self, rows: RowSource) -> RowSource:
        """Return the rows themselves: the rows of cells are not known yet."""
        return rows

    # Each call takes a pass over the remote rows.
    @functools.lru_cache(maxsize=1)  # noqa: B019  the object is frozen, and ends with the fit
    def of(self, cell: int, data: TrainingData) -> TrainingData:
        """Return the training data of a cell in memory, for choosing kernel and penalty."""
        only = replace(self.members, only=cell)
        fetch = _Fetched(self.kept_rows.get(cell))
        (fetched,) = self.source.by_group(only, fetch, 1, *_beside(data), size=_size(data.rows))
        X, targets, weights = fetched
        return TrainingData(as_rows(X), targets, weights, data.classes, data.feature_names)


def remote_cell_rows(
    partition: Partition,
    rows: RemoteRows,
    *,
    memory_bytes: int,
    unused: Sequence[int] = (),
    rng: RandomStream,
) -> CellRowsThere:
    """Grow cells from a sample of remote rows, and count the rows of each.

    - `rows`: dense.
    - `memory_bytes`: memory for the centers; more centers are in a temporary file, see
      `gramian.data.scratch`.
    - `unused`: indices of the features along which no cell is divided.

    Cost: a pass over the remote rows, and the transfer of the sample.
    """
    cells, seed = grow_cells(partition, rows, unused, rng)
    counts = rows.fold(_Counts(Members(cells, seed)), size=_size(rows))
    kept_rows = taken_of_large(counts, partition, rng)
    empty = xp.flatnonzero(counts == 0).tolist()
    copied = {cell: beside(counts, cell) for cell in empty}
    kept_rows |= {
        cell: kept_rows[source_cell]
        for cell, source_cell in copied.items()
        if source_cell in kept_rows
    }
    starts = xp.concat([xp.zeros(1, xp.int64), fill_empty(counts).cumsum(axis=0)])
    # Still empty: the rows of a cell arrive with its solution.
    X = scratch((int(starts[-1]), rows.shape[1]), rows.dtype, memory_bytes)
    members = Members(cells, seed, copied)
    return CellRowsThere(cells, starts, X, xp.empty(0, xp.int64), rows, members, kept_rows)


@dataclass(frozen=True, eq=False)
class _Fetched:
    """Function that returns the rows, targets and weights of a cell."""

    kept_rows: Int[Array, " k"] | None

    def __call__(
        self, group: int, X: Array, targets: Array, *weights: Array
    ) -> tuple[Array, Array, Array | None]:
        """Return rows, targets and weights; in a cell too large to solve, of `kept_rows` alone."""
        fetched = [X, targets, *weights]
        if self.kept_rows is not None:
            # Rows that are all equal cannot be divided into cells: a sample of them is enough.
            fetched = [numbers[self.kept_rows] for numbers in fetched]
        return fetched[0], fetched[1], fetched[2] if weights else None


@dataclass(frozen=True, eq=False)
class _Solved:
    """Solver of a cell on the worker that has its rows.

    - `until`: the time of day at which the fit must end, because machines share no other clock.
    """

    solver: CellSolver
    kept_rows: Mapping[int, Array]
    seed: int
    until: float

    def __call__(self, group: int, *found: Array) -> tuple[Array, SolvedCell]:
        """Return the rows of the cell, which are its centers, and its coefficients."""
        X, targets, weights = _Fetched(self.kept_rows.get(group))(group, *found)
        # Monotonic clocks of machines have different origins.
        ends = time.monotonic() + self.until - time.time()
        rng = RandomStream(self.seed ^ group)
        data = TrainingData(as_rows(X), targets, weights)
        return X, self.solver(CellTask(data, ends, rng))


class ProblemsThere(CellProblems):
    """Full problems of the cells of remote rows, which the workers solve."""

    rows: CellRowsThere

    def journal(self, checkpoint: Checkpoint) -> Journal:
        """Raise ValueError: a journal identifies cells by their rows, which are remote."""
        raise ValueError(
            "a fit by cells of rows on other machines has no checkpoint; leave Checkpoint out"
        )

    def solve_cells(self, journal: Journal | None = None) -> Iterator[SolvedCell]:
        """Yield all cells in order, and keep their rows as centers."""
        data, rows, ends = self.prepared.data, self.rows, self.prepared.ends
        until = math.inf if math.isinf(ends) else time.time() + ends - time.monotonic()
        solve = _Solved(
            CellSolver.of(self.prepared, self.workers),
            dict(rows.kept_rows),
            self.seed,
            until,
        )
        size = _size(data.rows)
        solved_cells = rows.source.by_group(
            rows.members, solve, len(rows), *_beside(data), size=size
        )
        for cell, (X, solved_cell) in enumerate(solved_cells):
            # The worker has sent the rows that it has solved for, in its order.
            rows.X[rows.bounds(cell)] = X
            yield solved_cell


def _beside(data: TrainingData) -> list[RowNumbers]:
    return [data.targets] if data.weights is None else [data.targets, data.weights]


def _size(rows: RowSource) -> int:
    """Return the number of rows of a block, large because each cell has few rows of a block."""
    return 16 * default_block_size(rows)
