"""What every selector must do: distinct rows, the same ones again, whatever holds the rows.

A new selector is tested by being registered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels, landmarks
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import Landmarks, Uniform
from gramian.landmarks.base import selectors
from gramian.operators import KernelOperator

N, D = 90, 3
every_selector = pytest.mark.parametrize("name", list(selectors))


def points(n: int = N, d: int = D) -> np.ndarray:
    return RandomStream(0).standard_normal((n, d), np.float64)


def operator(X: Any) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernels.Gaussian(1.0), rows, rows)


def in_order(X: np.ndarray) -> np.ndarray:
    return X[X[:, 0].argsort(stable=True)]


def select(name: str, X: Any, m: int, seed: int = 0) -> Landmarks:
    rng = RandomStream(seed)
    return landmarks.make(name, m=m).select(operator(X), rng=rng)


@every_selector
@pytest.mark.parametrize(("n", "m"), [(1, 1), (N, 1), (N, 7), (N, N - 1), (N, N), (1000, 13)])
def test_distinct_rows_with_positive_weights(name, n, m):
    X = points(n)
    chosen = select(name, X, m)
    if chosen.index is not None:
        assert len(np.unique(chosen.index)) == len(chosen.index) == m
        assert np.array_equal(chosen.points, X[chosen.index])
    assert len(np.unique(chosen.points, axis=0)) == len(chosen.points) == m
    assert chosen.weight.shape == (m,)
    assert bool((chosen.weight > 0).all())


@every_selector
@pytest.mark.parametrize("m", [5, 40])
def test_landmarks_that_are_rows_are_numbered(name, m):
    X = points()
    chosen = select(name, X, m)
    are_rows = bool((chosen.points[:, None] == X).all(axis=2).any(axis=1).all())
    assert (chosen.index is not None) == are_rows


@every_selector
@pytest.mark.parametrize("m", [5, 40])  # few of many rows, and many of few
def test_the_same_seed_the_same_landmarks(name, m):
    X = points()
    first, again = (select(name, X, m, seed=3) for _ in range(2))
    assert np.array_equal(first.points, again.points)


@every_selector
@pytest.mark.parametrize("m", [5, 40])
def test_other_seeds_other_landmarks(name, m):
    """Among a few seeds: rows at equal distances are the same ones from several starts."""
    X = points()
    first, *others = (in_order(select(name, X, m, seed).points) for seed in (3, 4, 5, 6))
    assert not all(np.array_equal(first, other) for other in others)


def parquet(X: np.ndarray, folder: Path) -> Path:
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, folder / "x.parquet", row_group_size=17)
    return folder / "x.parquet"


def memmap(X: np.ndarray, folder: Path) -> Any:
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


SOURCES: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "memmap": memmap,
    "parquet": parquet,
    "sparse": lambda X, folder: scipy.sparse.csr_array(X),
}


@every_selector
@pytest.mark.parametrize("source", SOURCES)
def test_it_does_not_matter_where_rows_live(name, source, tmp_path):
    X = points() * (points() > 0)  # half of it zeros
    here, there = select(name, X, 11), select(name, SOURCES[source](X, tmp_path), 11)
    if here.index is None:  # means are computed, and not in the same order
        assert_close(here.points, there.points)
        return
    assert np.array_equal(here.index, there.index)
    assert np.array_equal(here.points, xp.to_dense(there.points))


@every_selector
def test_more_landmarks_than_rows_is_a_warning_then_all_rows(name):
    with pytest.warns(UserWarning, match="91 landmarks were asked for but there are 90 rows"):
        chosen = select(name, points(), N + 1)
    assert np.array_equal(in_order(chosen.points), in_order(points()))


@every_selector
def test_more_landmarks_approximate_better(name):
    X = points()
    K = kernels.Gaussian(1.0)(X, X)

    def error(m: int) -> float:
        z = select(name, X, m).points
        K_nm, K_mm = kernels.Gaussian(1.0)(X, z), kernels.Gaussian(1.0)(z, z)
        return float((K - K_nm @ np.linalg.pinv(K_mm, rtol=1e-12) @ K_nm.T).trace())

    errors = [error(m) for m in (2, 20, 60, N)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-8 * N


@every_selector
@pytest.mark.parametrize("m", [0, -3])
def test_a_number_that_is_none_is_refused(name, m):
    with pytest.raises(ValueError, match="landmarks must be a whole number of at least 1, not"):
        landmarks.make(name, m=m)


def test_an_unknown_selector_is_told_the_names():
    with pytest.raises(ValueError, match=r"of landmarks 'unifrom'; .*did you mean uniform\?"):
        landmarks.make("unifrom", m=3)


class TestUniform:
    def test_no_kernel_evaluations(self):
        K = operator(points())
        Uniform(9).select(K, rng=RandomStream(0))
        assert K.meter.evaluations == 0

    def test_all_rows_are_equally_likely(self):
        # n = 20 is drawn from a permutation, n = 60 from row numbers with repeats left out
        draws, m = 1500, 5
        for n in (20, 60):
            K, rng = operator(points(n)), RandomStream(0)
            counts = np.zeros(n, np.float32)
            for _ in range(draws):
                counts[Uniform(m).select(K, rng=rng).index] += 1
            p = m / n
            deviations = (counts - draws * p) / (draws * p * (1 - p)) ** 0.5
            assert np.abs(deviations).max() < 4.5  # of 80 normal numbers: once in 2000 times

    def test_weights_are_one(self):
        assert np.array_equal(
            select("uniform", points(), 9).weight, xp.to_float64(np.ones(9, np.float32))
        )

    @pytest.mark.parametrize("copies", [2, 40])
    def test_repeated_rows_are_chosen_once_and_weigh_more(self, copies):
        X = np.tile(points(6), (copies, 1))
        X = np.concatenate([X, X[:1]])  # the first one once more
        chosen = select("uniform", X, 10)
        assert len(np.unique(chosen.points, axis=0)) == len(chosen.points) == 6
        assert chosen.coverage == 1
        first = (chosen.points == X[0]).all(axis=1)
        # a weight is the share of the rows, relative to 1 / m
        share = np.where(first, copies + 1, copies) / len(X)
        assert_close(chosen.weight, 6 * xp.to_float64(share))

    def test_zeros_of_either_sign_are_equal(self):
        X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 0.0]], dtype=np.float64)
        assert len(select("uniform", X, 3).index) == 2
        stored = scipy.sparse.csr_array(([1.0, 0.0, 1.0, 2.0], ([0, 1, 1, 2], [1, 0, 1, 0])))
        assert stored.nnz == 4  # a zero is stored
        assert len(select("uniform", stored, 3).index) == 2

    def test_repeated_sparse_rows(self):
        X = points(6)
        X[:, 1:] = 0
        chosen = select("uniform", scipy.sparse.csr_array(np.tile(X, (5, 1))), 10)
        assert len(np.unique(xp.to_dense(chosen.points), axis=0)) == 6

    def test_coverage_is_the_share_of_rows_if_not_all_were_seen(self):
        assert select("uniform", points(), 9).coverage == pytest.approx(9 / N)

    def test_all_rows_equal(self):
        chosen = select("uniform", np.ones((30, 2), np.float32), 4)
        assert chosen.points.tolist() == [[1.0, 1.0]]
        assert chosen.weight.tolist() == [1.0]


def test_what_has_a_field_is_refused_among_what_else_was_learned():
    with pytest.raises(ValueError, match="info holds coverage"):
        Landmarks(np.zeros((1, 1), np.float32), np.ones(1, np.float32), info={"coverage": 1.0})
