"""Cells cover all rows with weights that sum to one, whatever the rows are."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.cells import (
    CenterCells,
    KMeansCells,
    MedianSplits,
    RandomCells,
    TreeCells,
    cells_from_parts,
    centers,
    divide_rows,
    kinds,
    partitions,
)

BLENDED = [MedianSplits(60, 0.2), KMeansCells(60, 0.2)]
ALL = [*BLENDED, MedianSplits(60, 0.0), KMeansCells(60, 0.0), RandomCells(60)]


def generator() -> RandomStream:
    return RandomStream(0)


def normal(n: int, d: int = 3, dtype: np.dtype = np.float64) -> np.ndarray:
    return generator().standard_normal((n, d), dtype)


AWKWARD = {
    "one feature": normal(500, 1),
    "many features": normal(400, 784),
    "float32": normal(500, dtype=np.float32),
    "repeated rows": np.tile(normal(5), (100, 1)),
    "all the same": np.ones((300, 2), np.float64),
    "a constant direction": np.concatenate(
        [normal(500, 1), xp.to_float64(np.ones((500, 1), np.float32))], axis=1
    ),
    "one giant cluster": np.concatenate(
        [xp.to_float64(np.zeros((470, 2), np.float32)), 1e6 * normal(30, 2)]
    ),
    "far away": 1e12 + normal(500),
    "tiny": 1e-200 * normal(500),
    "two values": xp.to_float64(normal(500, 4) > 0),
    "one row": normal(1),
    "two rows": normal(2),
}


@pytest.mark.parametrize("partition", ALL, ids=repr)
@pytest.mark.parametrize("name", AWKWARD)
class TestAnyRows:
    def test_weights_are_a_partition_of_unity(self, partition, name):
        X = AWKWARD[name]
        cells = partition.grow(X, len(X), rng=generator())
        for points in (X, X + X.std(axis=0), -X):
            total = np.zeros(len(points), np.float64)
            for share in cells.route(points):
                assert bool((share.weight > 0).all())
                assert bool((xp.diff(share.index) > 0).all())
                total[share.index] += share.weight
            assert np.allclose(total, np.ones_like(total), atol=1e-12)

    def test_every_row_is_a_member_and_no_cell_is_far_too_large(self, partition, name):
        X = AWKWARD[name]
        cells = partition.grow(X, len(X), rng=generator())
        members = cells.members(X, rng=generator())
        assert len(members) == cells.count
        assert np.unique(np.concatenate(members)).tolist() == list(range(len(X)))
        distinct = len(np.unique(X, axis=0)) > 400
        if distinct and isinstance(partition, MedianSplits):
            assert max(map(len, members)) <= 1.2 * partition.rows

    def test_a_file_keeps_them(self, partition, name):
        X = AWKWARD[name]
        cells = partition.grow(X, len(X), rng=generator())
        again = cells_from_parts(kinds.name_of(cells), cells.tensors())
        for a, b in zip(cells.route(X), again.route(X), strict=True):
            assert a.cell == b.cell
            assert np.array_equal(a.weight, b.weight)


class TestTree:
    @pytest.mark.parametrize("n", [1000, 1024, pytest.param(7777, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("overlap", [0.0, 0.1, 0.4])
    def test_cells_have_at_most_their_rows(self, n, overlap):
        X = normal(n, 2)
        partition = MedianSplits(100, overlap)
        cells = partition.grow(X, n, rng=generator())
        sizes = [len(index) for index in cells.members(X, rng=generator())]
        assert max(sizes) <= 1.15 * 100
        assert min(sizes) >= 40
        assert cells.count == partition.number_of_cells(n)

    def test_a_sample_is_enough(self):
        X = normal(20_000, 2)
        cells = MedianSplits(1000, 0.1).grow(X[:2000], 20_000, rng=generator())
        sizes = [len(index) for index in cells.members(X, rng=generator())]
        assert 500 < min(sizes) <= max(sizes) < 1300

    def test_splits_across_the_longest_direction(self):
        X = normal(1000, 2) * xp.to_float64(np.array([1.0, 10.0], dtype=np.float32))
        cells = MedianSplits(500, 0.0).grow(X, 1000, rng=generator())
        assert abs(float(cells.direction[0, 1])) > 0.99

    def test_one_cell_has_no_splits(self):
        cells = MedianSplits(1000).grow(normal(500), 500, rng=generator())
        assert cells.count == 1
        assert cells.features is None
        (share,) = cells.route(normal(3))
        assert share.weight.tolist() == [1.0] * 3

    def test_the_same_rows_have_the_same_tree(self):
        X = normal(600)
        a, b = (MedianSplits(100).grow(X, 600, rng=generator()) for _ in range(2))
        assert all(np.array_equal(a.tensors()[name], b.tensors()[name]) for name in a.tensors())

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("child", np.array([[1, -1], [0, -2]]), "do not form a tree"),
            ("child", np.array([[1, -1], [-2, -2]]), "do not form a tree"),
            ("child", np.array([[-1, -2], [-3, -4]]), "do not form a tree"),
            ("low", xp.to_float64(np.array([1.0, 9.0], dtype=np.float32)), "before it begins"),
            ("low", xp.to_float64(np.array([1.0, float("nan")], dtype=np.float32)), "not finite"),
            ("high", xp.to_float64(np.array([1.0], dtype=np.float32)), "different lengths"),
        ],
    )
    def test_damage(self, name, value, said):
        good = TreeCells(
            xp.to_float64(np.eye(2, dtype=np.float32)),
            xp.to_float64(np.zeros(2, np.float32)),
            xp.to_float64(np.ones(2, np.float32)),
            np.array([[1, -1], [-2, -3]]),
        ).tensors()
        TreeCells.from_tensors(good)
        with pytest.raises(ValueError, match=said):
            TreeCells.from_tensors({**good, name: value})
        with pytest.raises(ValueError, match="have the tensors"):
            TreeCells.from_tensors({k: v for k, v in good.items() if k != name})


@pytest.mark.parametrize("partition", BLENDED, ids=repr)
@pytest.mark.parametrize("d", [1, 3])
class TestContinuity:
    def test_weights_have_no_jumps(self, partition, d):
        X = normal(400, d)
        cells = partition.grow(X, 400, rng=generator())
        steps = 20_000
        line = X[0] + xp.to_float64(np.linspace(0, 1, steps, dtype=np.float32))[:, None] * 3 * (
            X[1] - X[0]
        )
        weights = np.zeros((steps, cells.count), np.float64)
        for share in cells.route(line):
            weights[share.index, share.cell] = share.weight
        assert float(np.abs(np.diff(weights, axis=0)).max()) < 0.05
        assert (
            float(xp.to_float64(xp.max(weights, axis=1) < 0.999).mean()) > 0.02
        )  # there are bands

    def test_slopes_are_those_of_finite_differences(self, partition, d):
        X = normal(400, d)
        cells = partition.grow(X, 400, rng=generator())
        points, step = normal(200, d) * 0.9, 1e-7

        def weights(x: np.ndarray) -> np.ndarray:
            found = np.zeros((len(x), cells.count), np.float64)
            for share in cells.route(x):
                found[share.index, share.cell] = share.weight
            return found

        found = np.zeros((200, cells.count, d), np.float64)
        for share in cells.route(points, slopes=True):
            found[share.index, share.cell] = share.slope
        sides = [
            np.stack(
                [
                    weights(points + sign * step * e)
                    for e in xp.to_float64(np.eye(d, dtype=np.float32))
                ],
                axis=2,
            )
            for sign in (1, -1)
        ]
        off = np.abs(found - (sides[0] - sides[1]) / (2 * step)).max(axis=(1, 2))
        assert float(np.quantile(off, 0.98)) < 1e-5  # kinks lie between some of the points
        assert float(np.abs(found).max()) > 0


class Peak:
    """Watches for the most numbers of float64 that arrays have held at once."""

    def __enter__(self) -> Peak:
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.numbers = tracemalloc.get_traced_memory()[1] // 8
        tracemalloc.stop()


def peaks(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], watch: Peak | None = None
) -> list[int]:
    """Return the numbers that work holds with blocks of few rows, and with one of all rows."""
    found = []
    for at_once in (1000, 1 << 30):
        monkeypatch.setattr(centers, "AT_ONCE", at_once)
        largest = watch or Peak()
        if watch is None:
            with largest:
                work()
        else:
            work()
        found.append(largest.numbers)
    return found


class TestCentersByBlocks:
    """Distances of all rows are never held at once."""

    n, d, c = 2000, 6, 40

    @pytest.fixture(params=[0.2, 0.0], ids=["blended", "disjoint"])
    def cells(self, request: pytest.FixtureRequest) -> CenterCells:
        partition = KMeansCells(self.n // self.c, request.param)
        return partition.grow(normal(self.n, self.d), self.n, rng=generator())

    @pytest.mark.parametrize("slopes", [False, True])
    def test_blocks_need_a_part_of_the_memory(self, cells, slopes, monkeypatch):
        X, found = normal(self.n, self.d), []

        def route() -> None:
            found.append(sum(len(share.index) for share in cells.route(X, slopes=slopes)))

        few, all_rows = peaks(monkeypatch, route)
        assert self.n <= found[0] == found[1] < 3 * self.n
        assert few < 0.7 * all_rows  # the shares themselves are in both

    @pytest.mark.parametrize("slopes", [False, True])
    def test_a_row_of_all_cells_is_found_by_blocks_too(self, slopes, monkeypatch):
        cells, X, found = CenterCells(normal(50, 3), np.array(1e6)), normal(200), []
        real, largest = cells._pairs, Peak()

        def watched(*args: Any) -> Any:
            with largest:
                return real(*args)

        monkeypatch.setattr(CenterCells, "_pairs", lambda _, *args: watched(*args))
        few, all_rows = peaks(
            monkeypatch,
            lambda: found.append(sum(len(s.index) for s in cells.route(X, slopes=slopes))),
            largest,
        )
        assert found == [200 * 50] * 2
        assert few < all_rows / 2

    def test_clusters_of_a_sample_are_found_by_blocks(self, monkeypatch):
        X = normal(self.n, self.d)
        few, all_rows = peaks(
            monkeypatch, lambda: KMeansCells(20, 0.1).grow(X, self.n, rng=generator())
        )
        assert few < all_rows / 2

    @pytest.mark.parametrize("slopes", [False, True])
    def test_blocks_change_nothing(self, cells, slopes, monkeypatch):
        X = normal(self.n + 1, self.d)
        whole = list(cells.route(X, slopes=slopes))
        monkeypatch.setattr(centers, "AT_ONCE", 3000)
        parts = list(cells.route(X, slopes=slopes))
        assert [share.cell for share in parts] == [share.cell for share in whole]
        for a, b in zip(parts, whole, strict=True):
            assert np.array_equal(a.index, b.index)
            assert np.allclose(a.weight, b.weight, rtol=0, atol=1e-12)
            if slopes:
                assert np.allclose(a.slope, b.slope, rtol=0, atol=1e-10)
            else:
                assert a.slope is None


def test_random_cells_are_disjoint_and_average():
    cells = RandomCells(30).grow(normal(100), 100, rng=generator())
    members = cells.members(normal(100), rng=generator())
    assert sorted(map(len, members)) == [25] * 4
    assert xp.sort(np.concatenate(members)).tolist() == list(range(100))
    assert [share.weight[0].item() for share in cells.route(normal(2))] == [0.25] * 4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MedianSplits(0), "rows must be"),
        (lambda: MedianSplits(10, 0.5), "overlap must be"),
        (lambda: MedianSplits(10, -0.1), "overlap must be"),
        (lambda: KMeansCells(10, 1.0), "overlap must be"),
        (lambda: KMeansCells(-1), "rows must be"),
        (lambda: RandomCells(0), "rows must be"),
        (lambda: partitions.make("median_split"), "median_splits"),
        (lambda: cells_from_parts("forest", {}), "forest"),
        (lambda: cells_from_parts("mean", {"number": np.array(0)}), "positive"),
        (
            lambda: cells_from_parts(
                "centers",
                {"centers": np.ones(3, np.float32), "width": np.array(1.0, dtype=np.float32)},
            ),
            "matrix",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


class TestDivided:
    def test_rows_that_are_all_the_same_are_drawn_from(self):
        X = np.concatenate([np.zeros((900, 2), np.float32), xp.cast(normal(100, 2), np.float32)])
        cells, members = divide_rows(MedianSplits(50, 0.0), X, rng=generator())
        assert len(members) == cells.count
        assert max(map(len, members)) <= 75
        assert all(bool((xp.diff(index) > 0).all()) for index in members)

    @pytest.mark.parametrize("empty", [0, 3, -1])
    def test_a_cell_without_rows_has_those_beside_it(self, empty, monkeypatch):
        real = TreeCells.members

        def without(self: TreeCells, *args: object, **more: object) -> list[np.ndarray]:
            found = real(self, *args, **more)
            found[empty] = found[empty][:0]
            return found

        monkeypatch.setattr(TreeCells, "members", without)
        _, members = divide_rows(MedianSplits(50, 0.0), normal(400), rng=generator())
        assert all(len(index) for index in members)
        near = members[empty - 1] if empty else members[1]
        assert np.array_equal(members[empty], near)

    def test_a_sample_of_the_rows_grows_them(self):
        _, members = divide_rows(MedianSplits(500, 0.0), normal(5000), most=300, rng=generator())
        assert xp.sort(np.concatenate(members)).tolist() == list(range(5000))


def overlapping_tree(depth: int, d: int = 2) -> TreeCells:
    """Return cells to all of which nearly every row belongs: their bands are wide."""
    p = 2**depth - 1
    child = np.arange(1, 2 * p + 1).reshape(p, 2)
    child = np.where(child < p, child, p - 1 - child)
    direction = np.full((p, d), d**-0.5, np.float32)
    return TreeCells(
        direction,
        np.full((p,), -9.0, dtype=np.float32),
        np.full((p,), 9.0, dtype=np.float32),
        child,
    )


@pytest.mark.parametrize("slopes", [False, True])
def test_rows_of_too_many_cells_are_routed_in_parts(slopes, monkeypatch):
    cells = TreeCells.from_tensors(overlapping_tree(4).tensors())
    X = RandomStream(0).standard_normal((200, 2), np.float32)
    whole = {share.cell: share for share in cells.route(X, slopes=slopes)}
    monkeypatch.setattr("gramian.cells.tree.SHARES_AT_ONCE", 1000)
    total = np.zeros((200, 16), np.float64)
    for share in cells.route_in_parts(X, slopes=slopes):
        assert len(share.index) < 200
        total[share.index, share.cell] += share.weight
        if slopes:
            assert np.array_equal(share.slope, whole[share.cell].slope[share.index])
    for cell, share in whole.items():
        assert np.array_equal(total[:, cell], share.weight)
    monkeypatch.setattr("gramian.cells.tree.SHARES_AT_ONCE", 1)
    assert len(list(cells.route_in_parts(X[:1]))) == 16  # one row is never too many
