"""KMeans against scikit-learn's, and what its centers stand for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import sklearn.cluster
from close import assert_close
from sklearn.exceptions import ConvergenceWarning

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import KMeans, Landmarks
from gramian.landmarks.kmeans import assign, lloyd
from gramian.operators import KernelOperator

N = 300


def points(n: int = N, d: int = 3, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float64)


def operator(X: Any) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernels.Gaussian(1.0), rows, rows)


def select(X: Any, m: int | None = None, seed: int = 0, **settings: Any) -> Landmarks:
    rng = RandomStream(seed)
    return KMeans(m, **settings).select(operator(X), rng=rng)


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_lloyds_algorithm_is_that_of_scikit_learn(steps):
    X, start = points(), points(12, seed=1)
    ours = lloyd(as_rows(X), start, steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = sklearn.cluster.KMeans(
            12, init=start, n_init=1, max_iter=steps, tol=0, algorithm="lloyd"
        ).fit(X)
    assert_close(ours.centers, theirs.cluster_centers_)
    if steps == 50:  # scikit-learn counts rows after the last step
        assert ours.inertia == pytest.approx(theirs.inertia_)
        assert ours.sizes.tolist() == np.bincount(theirs.labels_).tolist()


def test_distances_and_sums_are_those_of_the_nearest_center():
    for offset in (0.0, 1e4):
        X, Z = xp.cast(points(), np.float32) + offset, points(20, seed=1) + offset
        found = assign(as_rows(X), Z)
        distance, label = xp.min_with_index(xp.cdist(xp.to_float64(X), Z) ** 2, 1)
        onehot = xp.to_float64(np.eye(20, dtype=np.int64)[label])
        doubts = 0.01 * len(X)  # that float32 has
        assert np.abs(found.sizes - onehot.sum(axis=0)).sum() < doubts
        assert found.inertia == pytest.approx(float(distance.sum()), rel=1e-3)
        wide = assign(as_rows(xp.to_float64(X)), Z)
        assert wide.sizes.tolist() == onehot.sum(axis=0).tolist()
        assert_close(wide.sums, onehot.T @ xp.to_float64(X))
        far, _ = xp.topk(distance, 20)
        assert_close(found.farthest, far, rtol=1e-3, atol=1e-2)
        assert_close(distance[found.where], far, rtol=1e-3, atol=1e-2)


def test_a_center_is_the_mean_of_what_it_stands_for():
    chosen = select(points(), 10, iterations=100)
    label = xp.cdist(points(), chosen.points).argmin(axis=1)
    onehot = xp.to_float64(np.eye(10, dtype=np.int64)[label])
    assert_close(chosen.points, onehot.T @ points() / onehot.sum(axis=0)[:, None])
    assert_close(chosen.weight, 10 * onehot.mean(axis=0))
    assert chosen.index is None


def test_separated_clusters_are_found():
    X = np.concatenate([0.01 * points(size) + 10 * k for k, size in enumerate((50, 150, 100))])
    for seed in range(20):  # by k-means++: random starts miss one in half of the cases
        chosen = select(X, 3, seed)
        assert sorted((chosen.weight * 100).round().tolist()) == [50, 100, 150]


def test_a_cluster_without_rows_moves_to_the_farthest_row():
    X = np.concatenate([points(), np.full((1, 3), 50.0, dtype=np.float32)])
    start = np.concatenate(
        [points(4), np.full((1, 3), -100.0, dtype=np.float32)]
    )  # the last one is nobody's nearest
    found = lloyd(as_rows(X), start, 5)
    assert len(found.centers) == 5
    assert bool((found.centers == 50).all(axis=1).any())


def test_clusters_without_rows_move_to_different_rows_the_farthest_of_all():
    """In order of the distance: a center that stayed where it was would be left out at the end."""
    X = np.concatenate(
        [points() / 100, np.array([[50.0, 0, 0], [0, 40.0, 0], [0, 0, 3.0]], dtype=np.float32)]
    )
    start = np.concatenate(
        [points(2) / 100, np.full((2, 3), -100.0, dtype=np.float32)]
    )  # nobody's nearest
    found = lloyd(as_rows(xp.to_float64(X)), xp.to_float64(start), 2)
    assert_close(found.centers[2:], xp.to_float64(X[-3:-1]))
    assert found.sizes[2:].tolist() == [1, 1]


def test_fewer_distinct_rows_than_centers():
    X = np.tile(points(6), (20, 1))
    for same in (X, xp.cast(X, np.float32), xp.cast(X, np.float32) + 1000):
        chosen = select(same, 10)
        assert len(chosen.points) == 6
        assert_close(chosen.weight, xp.to_float64(np.ones(6, np.float32)))
    one = select(np.full((30, 2), 0.1, dtype=np.float32), 4)
    assert_close(one.points, np.full((1, 2), 0.1, dtype=np.float32))


def test_many_centers_start_from_random_rows():
    chosen = select(points(1500), 1100, iterations=1)
    assert len(chosen.points) == 1100
    assert float(chosen.weight.sum()) == pytest.approx(1100)


def parquet(X: np.ndarray, folder: Path) -> Path:
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, folder / "x.parquet", row_group_size=17)
    return folder / "x.parquet"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet_and_sparse_rows(dtype, tmp_path):
    X = np.where(points(seed=1) > 0, points(), 0).astype(dtype)
    here = select(X, 20)
    assert here.points.dtype == as_rows(X).dtype
    for source in (parquet(X, tmp_path), scipy.sparse.csr_array(X)):
        there = select(source, 20)
        assert_close(here.points, there.points)
        assert_close(here.weight, there.weight)


def test_the_penalty_is_where_the_effective_dimension_is_a_third_of_the_size():
    chosen = select(points(), 60)
    K = operator(points()).dense()
    values = np.linalg.eigvalsh(K).clip(min=0)
    dimension = float((values / (values + N * chosen.penalty)).sum())
    assert dimension == pytest.approx(20, rel=0.3)


def test_a_penalty_gives_the_size():
    K = operator(points()).dense()
    values = np.linalg.eigvalsh(K).clip(min=0)
    dimension = float((values / (values + N * 1e-2)).sum())
    chosen = select(points(), penalty=1e-2)
    assert len(chosen.points) == pytest.approx(3 * dimension, rel=0.3)
    assert chosen.penalty == 1e-2


def test_kernel_evaluations_are_those_of_the_penalty():
    K = operator(points())
    KMeans(20).select(K, rng=RandomStream(0))
    assert K.meter.evaluations == 20 * 20


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs exactly one of m, a number of landmarks, and penalty"),
        ({"m": 3, "oversampling": 0.0}, "oversampling must be positive"),
        ({"m": 3, "iterations": 0}, "iterations must be a whole number of at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        KMeans(**settings)
