"""Rows by cell: the same in blocks, in files and in memory, whatever the rows are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.cells import KMeansCells, MedianSplits, Partition, RandomCells
from gramian.data import RowSource, as_rows
from gramian.fitting.cells import rows as cell_rows
from gramian.fitting.cells.rows import CellRows, rows_by_cell

PARTITIONS = [MedianSplits(60), MedianSplits(60, 0.0), KMeansCells(60), RandomCells(60)]
X = RandomStream(0).standard_normal((1000, 3), np.float32)


def divided(partition: Partition, rows: np.ndarray = X, **more: int) -> CellRows:
    given = {"memory_bytes": 1 << 30, **more}
    rng = RandomStream(1)
    return rows_by_cell(partition, as_rows(rows), rng=rng, **given)


@pytest.mark.parametrize("partition", PARTITIONS, ids=repr)
class TestAnyPartition:
    @pytest.mark.parametrize("blocks", [1 << 30, 10_000], ids=["one block", "blocks"])
    def test_rows_are_those_of_their_numbers(self, partition, blocks):
        found = divided(partition, block_bytes=blocks)
        assert np.array_equal(found.X, X[found.numbers])
        assert np.array_equal(np.unique(found.numbers), np.arange(1000))
        for cell in range(len(found)):
            assert bool((xp.diff(found.numbers[found.bounds(cell)]) > 0).all())

    def test_files_hold_the_same(self, partition):
        a, b = divided(partition), divided(partition, memory_bytes=0)
        assert np.array_equal(a.X, b.X)
        assert np.array_equal(a.numbers, b.numbers)
        assert np.array_equal(a.starts, b.starts)


@pytest.mark.parametrize("partition", PARTITIONS[:3], ids=repr)
def test_cells_have_the_rows_that_are_routed_to_them(partition):
    found = divided(partition, block_bytes=10_000)
    for share in found.cells.route(X):
        assert np.array_equal(found.numbers[found.bounds(share.cell)], share.index)


def test_random_cells_follow_the_generator():
    a, b, c = (
        rows_by_cell(RandomCells(60), as_rows(X), rng=RandomStream(seed), memory_bytes=1 << 30)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(a.numbers, b.numbers)
    assert not np.array_equal(a.numbers, c.numbers)


def test_blocks_make_no_difference():
    a, b = divided(MedianSplits(60)), divided(MedianSplits(60), block_bytes=10_000)
    assert np.array_equal(a.numbers, b.numbers)


class OneBuffer(RowSource):
    """Rows in blocks of 70, all in the same memory."""

    shape, dtype = (1000, 3), np.dtype("float32")

    def blocks(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        out = np.empty((70, 3), np.float32)
        for start in range(0, 1000, 70):
            part = slice(start, min(start + 70, 1000))
            yield part, xp.assign_(out[: part.stop - start], X[part])

    def take(self, index: np.ndarray) -> np.ndarray:
        return X[index]


def test_sources_may_use_their_memory_again():
    a = rows_by_cell(MedianSplits(60), OneBuffer(), memory_bytes=1 << 30, rng=RandomStream(1))
    b = divided(MedianSplits(60))
    assert np.array_equal(a.numbers, b.numbers)
    assert np.array_equal(a.X, b.X)


@pytest.mark.parametrize("blocks", [1 << 30, 10_000], ids=["one block", "blocks"])
def test_of_rows_that_are_all_the_same_some_are_taken(blocks):
    rows = np.concatenate([np.ones((900, 3), np.float32), X[:100]])
    found = divided(MedianSplits(60), rows, block_bytes=blocks)
    sizes = xp.diff(found.starts)
    assert int(sizes.max()) <= 1.5 * 60
    assert np.array_equal(found.X, rows[found.numbers])
    large = int(sizes[[bool((found.X[found.bounds(c)] == 1).all()) for c in range(len(found))]][0])
    assert large == 60
    same = found.numbers[(found.X == 1).all(axis=1)]
    assert int(same.min()) < 300 < 600 < int(same.max())  # from everywhere


def test_an_empty_cell_has_the_rows_of_the_next_one():
    far = np.full((40, 3), 50.0, dtype=np.float32)
    cells = KMeansCells(20, 0.0)
    grown = cells.grow(np.concatenate([X[:40], far]), 80, rng=RandomStream(0))

    class Given(KMeansCells):
        def grow(self, sample: np.ndarray, n: int, *, rng: RandomStream) -> object:
            return grown

    found = divided(Given(20, 0.0), X[:40])
    sizes = xp.diff(found.starts)
    assert bool((sizes > 0).all())
    assert len(found.X) > 40


@pytest.mark.parametrize(("cell", "beside"), [(1, 0), (3, 4), (5, 4)])
def test_the_next_one_is_the_nearest(cell, beside):
    assert cell_rows.beside(np.array([7, 0, 0, 0, 9, 0]), cell) == beside


def test_the_usual_cell_has_median_size():
    found = divided(KMeansCells(60))
    sizes = xp.diff(found.starts)
    assert int(sizes[found.usual]) == int(xp.sort(sizes)[len(sizes) // 2])


@pytest.mark.parametrize("n", [10, 100, 10_000])
def test_samples_have_no_repeats(n):
    some = cell_rows.some_of(n, 50, RandomStream(0))
    assert len(some) == min(n, 50)
    assert bool((xp.diff(some) > 0).all())
    assert 0 <= int(some[0]) <= int(some[-1]) < n


@pytest.mark.parametrize("partition", [MedianSplits(60), KMeansCells(60)])
def test_features_that_are_not_used_cut_no_cell(partition):
    """Wherever they lie, and however wide they are."""
    other = np.concatenate([X[:, :1], 1000 * xp.flip(X[:, 1:], 0)], axis=1)
    unused = range(1, X.shape[1])
    first, second = (divided(partition, rows, unused=unused) for rows in (X, other))
    assert len(first) > 2
    assert np.array_equal(first.starts, second.starts)
    assert np.array_equal(first.numbers, second.numbers)
    (slope,) = {
        float(np.abs(share.slope[:, 1:]).max()) for share in first.cells.route(X, slopes=True)
    }
    assert slope == 0.0
