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
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from gramian import kernels
from gramian.data import as_rows
from gramian.landmarks import KMeans, Landmarks
from gramian.landmarks.kmeans import assign, lloyd
from gramian.operators import KernelOperator

N = 300


def points(n: int = N, d: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def operator(X: Any) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernels.Gaussian(1.0), rows, rows)


def select(X: Any, m: int | None = None, seed: int = 0, **settings: Any) -> Landmarks:
    rng = torch.Generator().manual_seed(seed)
    return KMeans(m, **settings).select(operator(X), rng=rng)


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_lloyds_algorithm_is_that_of_scikit_learn(steps):
    X, start = points(), points(12, seed=1)
    ours = lloyd(as_rows(X), start, steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = sklearn.cluster.KMeans(
            12, init=start.numpy(), n_init=1, max_iter=steps, tol=0, algorithm="lloyd"
        ).fit(X.numpy())
    torch.testing.assert_close(ours.centers, torch.from_numpy(theirs.cluster_centers_))
    if steps == 50:  # scikit-learn counts rows after the last step
        assert ours.inertia == pytest.approx(theirs.inertia_)
        assert ours.sizes.tolist() == np.bincount(theirs.labels_).tolist()


def test_distances_and_sums_are_those_of_the_nearest_center():
    for offset in (0.0, 1e4):
        X, Z = points().float() + offset, points(20, seed=1) + offset
        found = assign(as_rows(X), Z)
        distance, label = (torch.cdist(X.double(), Z) ** 2).min(dim=1)
        onehot = torch.nn.functional.one_hot(label, 20).double()
        doubts = 0.01 * len(X)  # that float32 has
        assert (found.sizes - onehot.sum(dim=0)).abs().sum() < doubts
        assert found.inertia == pytest.approx(float(distance.sum()), rel=1e-3)
        wide = assign(as_rows(X.double()), Z)
        assert wide.sizes.tolist() == onehot.sum(dim=0).tolist()
        torch.testing.assert_close(wide.sums, onehot.T @ X.double())
        far = distance.topk(20)
        torch.testing.assert_close(found.farthest, far.values, rtol=1e-3, atol=1e-2)
        torch.testing.assert_close(distance[found.where], far.values, rtol=1e-3, atol=1e-2)


def test_a_center_is_the_mean_of_what_it_stands_for():
    chosen = select(points(), 10, iterations=100)
    label = torch.cdist(points(), chosen.points).argmin(dim=1)
    onehot = torch.nn.functional.one_hot(label, 10).double()
    torch.testing.assert_close(chosen.points, onehot.T @ points() / onehot.sum(dim=0)[:, None])
    torch.testing.assert_close(chosen.weight, 10 * onehot.mean(dim=0))
    assert chosen.index is None


def test_separated_clusters_are_found():
    X = torch.cat([0.01 * points(size) + 10 * k for k, size in enumerate((50, 150, 100))])
    for seed in range(20):  # by k-means++: random starts miss one in half of the cases
        chosen = select(X, 3, seed)
        assert sorted((chosen.weight * 100).round().tolist()) == [50, 100, 150]


def test_a_cluster_without_rows_moves_to_the_farthest_row():
    X = torch.cat([points(), torch.full((1, 3), 50.0)])
    start = torch.cat([points(4), torch.full((1, 3), -100.0)])  # the last one is nobody's nearest
    found = lloyd(as_rows(X), start, 5)
    assert len(found.centers) == 5
    assert bool((found.centers == 50).all(dim=1).any())


def test_clusters_without_rows_move_to_different_rows_the_farthest_of_all():
    """In order of the distance: a center that stayed where it was would be left out at the end."""
    X = torch.cat([points() / 100, torch.tensor([[50.0, 0, 0], [0, 40.0, 0], [0, 0, 3.0]])])
    start = torch.cat([points(2) / 100, torch.full((2, 3), -100.0)])  # nobody's nearest
    found = lloyd(as_rows(X.double()), start.double(), 2)
    torch.testing.assert_close(found.centers[2:], X[-3:-1].double())
    assert found.sizes[2:].tolist() == [1, 1]


def test_fewer_distinct_rows_than_centers():
    X = points(6).repeat(20, 1)
    for same in (X, X.float(), X.float() + 1000):
        chosen = select(same, 10)
        assert len(chosen.points) == 6
        torch.testing.assert_close(chosen.weight, torch.ones(6).double())
    one = select(torch.full((30, 2), 0.1), 4)
    torch.testing.assert_close(one.points, torch.full((1, 2), 0.1))


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
    X = torch.where(points(seed=1) > 0, points(), 0).numpy().astype(dtype)
    here = select(X, 20)
    assert here.points.dtype == as_rows(X).dtype
    for source in (parquet(X, tmp_path), scipy.sparse.csr_array(X)):
        there = select(source, 20)
        torch.testing.assert_close(here.points, there.points)
        torch.testing.assert_close(here.weight, there.weight)


def test_the_penalty_is_where_the_effective_dimension_is_a_third_of_the_size():
    chosen = select(points(), 60)
    K = operator(points()).dense()
    values = torch.linalg.eigvalsh(K).clamp(min=0)
    dimension = float((values / (values + N * chosen.penalty)).sum())
    assert dimension == pytest.approx(20, rel=0.3)


def test_a_penalty_gives_the_size():
    K = operator(points()).dense()
    values = torch.linalg.eigvalsh(K).clamp(min=0)
    dimension = float((values / (values + N * 1e-2)).sum())
    chosen = select(points(), penalty=1e-2)
    assert len(chosen.points) == pytest.approx(3 * dimension, rel=0.3)
    assert chosen.penalty == 1e-2


def test_kernel_evaluations_are_those_of_the_penalty():
    K = operator(points())
    KMeans(20).select(K, rng=torch.Generator())
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
