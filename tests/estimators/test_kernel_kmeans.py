"""KernelKMeans against the objective of the kernel matrix, in memory and in passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from gramian import KernelKMeans, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.approximations import NystromMap
from gramian.data import as_rows
from gramian.estimators.decomposition.lloyd import Lloyd

N = 200


def blobs(n: int = N, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(n, d, centers=4, cluster_std=0.6, random_state=0)
    return X, y


def objective(K: np.ndarray, labels: np.ndarray) -> float:
    """Kernel k-means: the trace less what the means of the clusters explain."""
    inside = (K[np.ix_(labels == c, labels == c)].sum() / (labels == c).sum() for c in set(labels))
    return float(np.trace(K) - sum(inside))


def exact(X: np.ndarray, lengthscale: float) -> np.ndarray:
    x = X
    return kernels.Gaussian(lengthscale)(x, x)


def exact_kernel_kmeans(K: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Iterate on the kernel matrix alone until no row changes its cluster."""
    for _ in range(100):
        one = np.eye(k)[labels]
        counts = one.sum(axis=0)
        means = K @ one / counts
        distances = np.einsum("ic,ij,jc->c", one, K, one) / counts**2 - 2 * means
        new = distances.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels


def test_with_all_rows_as_landmarks_inertia_is_the_objective():
    X, _ = blobs()
    ours = KernelKMeans(4, lengthscale=1.0, landmarks=None, random_state=0).fit(X)
    assert ours.inertia_ == pytest.approx(objective(exact(X, 1.0), ours.labels_))


def test_it_stays_where_exact_kernel_kmeans_stays():
    X, y = blobs()
    ours = KernelKMeans(4, lengthscale=2.0, landmarks=None, n_init=5, random_state=0).fit(X)
    K = exact(X, 2.0)
    same = exact_kernel_kmeans(K, ours.labels_.astype(int), 4)
    assert np.array_equal(same, ours.labels_)
    started_at_truth = objective(K, exact_kernel_kmeans(K, y, 4))
    assert objective(K, ours.labels_) <= started_at_truth * (1 + 1e-9)


def test_a_few_landmarks_cost_little():
    X, y = blobs(600)
    K = exact(X, 2.0)
    best = objective(K, exact_kernel_kmeans(K, y, 4))
    few = KernelKMeans(4, lengthscale=2.0, landmarks=40, n_init=5, random_state=0).fit(X)
    assert objective(K, few.labels_) <= 1.02 * best
    assert few.inertia_ <= objective(K, few.labels_)  # what the landmarks miss is left out


def test_circles_are_told_apart():
    # A ring around a disc: in the space of a narrow kernel their means differ, in the plane not.
    X, y = make_circles(400, factor=0.1, noise=0.03, random_state=0)
    found = KernelKMeans(2, lengthscale=0.7, n_init=10, random_state=0).fit(X)
    plain = KMeans(2, n_init=10, random_state=0).fit(X)
    assert adjusted_rand_score(y, found.labels_) > 0.9 > adjusted_rand_score(y, plain.labels_)


def test_predict_transform_and_score_agree():
    X, _ = blobs()
    ours = KernelKMeans(4, landmarks=30, random_state=0).fit(X)
    assert np.array_equal(ours.predict(X), ours.labels_)
    distances = ours.transform(X)
    assert distances.shape == (N, 4)
    assert np.array_equal(distances.argmin(axis=1), ours.labels_)
    assert -ours.score(X) == pytest.approx(ours.inertia_)
    assert (distances.min(axis=1) ** 2).sum() == pytest.approx(ours.inertia_)


# --- weights ------------------------------------------------------------------------------------


def test_inertia_is_the_weighted_objective():
    X, _ = blobs()
    w = np.random.default_rng(0).integers(0, 4, N).astype(float)
    ours = KernelKMeans(4, lengthscale=1.0, landmarks=None, random_state=0)
    ours.fit(X, sample_weight=w)
    again = X.repeat(w.astype(int), axis=0)
    labels = ours.labels_.repeat(w.astype(int))
    assert ours.inertia_ == pytest.approx(objective(exact(again, 1.0), labels))
    assert -ours.score(X, sample_weight=w) == pytest.approx(ours.inertia_)
    assert -ours.score(X) != pytest.approx(ours.inertia_)


def test_weighted_kernel_kmeans_stays_where_that_of_repeated_rows_stays():
    X, _ = blobs()
    w = np.random.default_rng(1).integers(1, 5, N)
    ours = KernelKMeans(6, lengthscale=2.0, landmarks=None, random_state=0)
    labels = ours.fit_predict(X, sample_weight=w)
    K = exact(X.repeat(w, axis=0), 2.0)
    same = exact_kernel_kmeans(K, labels.astype(int).repeat(w), 6)
    assert np.array_equal(same, labels.repeat(w))


def test_weights_are_for_those_who_move_the_centers():
    X, _ = blobs()
    far = np.concatenate([X, [[100.0, 0, 0], [100.0, 0.1, 0]]])
    w = np.concatenate([np.ones(N), np.zeros(2)])
    how = {"lengthscale": 30.0, "landmarks": X[:50], "n_init": 5, "random_state": 0}
    ours = KernelKMeans(4, **how).fit(far, sample_weight=w)
    alone = KernelKMeans(4, **how).fit(X)
    assert len(ours.labels_) == N + 2
    assert ours.inertia_ == pytest.approx(alone.inertia_, rel=1e-6)
    assert adjusted_rand_score(ours.labels_[:N], alone.labels_) == 1


def test_in_passes_weights_are_those_of_scikit_learn():
    X, _ = blobs(1000)
    w = RandomStream(0).random(1000, np.float64)
    w[::7] = 0.0
    rows = as_rows(X)
    features = NystromMap.build(kernels.Gaussian(2.0), X[:40])
    F = features.features(rows)
    start = xp.copy(F[:4])
    found = Lloyd.run(features, rows, start, 100, 0.0, 1 << 24, w)
    theirs = KMeans(4, init=start, n_init=1, max_iter=100, tol=0.0)
    theirs.fit(F, sample_weight=w)
    assert np.array_equal(found.labels, theirs.labels_)
    assert found.inertia == pytest.approx(theirs.inertia_)
    assert np.allclose(found.centers, theirs.cluster_centers_)


def test_weights_of_rows_that_do_not_fit_into_memory():
    X, _ = blobs(3000)
    w = np.where(X[:, 0] > 0, 5.0, 0.5)
    how = {"lengthscale": 2.0, "landmarks": X[:30], "n_init": 10, "random_state": 0}
    whole = KernelKMeans(4, **how).fit(X, sample_weight=w)
    passes = KernelKMeans(4, **how)
    passes._share = lambda rows: 20_000
    passes.fit(X, sample_weight=w)
    assert passes.inertia_ == pytest.approx(whole.inertia_, rel=1e-3)
    assert -passes.score(X, sample_weight=w) == pytest.approx(passes.inertia_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "sample_weight.shape"),
        (-np.ones(N), "[Nn]egative"),
        (np.zeros(N), "non-zero|all zero"),
    ],
)
def test_weights_that_cannot_be(weights, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeans(4).fit(blobs()[0], sample_weight=weights)


# --- rows that do not fit ----------------------------------------------------------------------


def test_in_passes_it_reaches_a_fixed_point_of_all_rows():
    X, _ = blobs(1000)
    rows = as_rows(X)
    features = NystromMap.build(kernels.Gaussian(2.0), X[:40])
    F = features.features(rows)
    start = xp.copy(F[:4])
    found = Lloyd.run(features, rows, start, max_iter=100, tol=0.0, memory_bytes=1 << 28)
    theirs = KMeans(4, init=start, n_init=1, max_iter=100, tol=0.0).fit(F)
    assert adjusted_rand_score(found.labels, theirs.labels_) == 1
    assert found.inertia == pytest.approx(theirs.inertia_)
    assert np.allclose(found.centers, theirs.cluster_centers_)


def test_it_stops_once_centers_move_by_tol_times_the_mean_variance_of_the_features():
    X, _ = blobs()
    features = NystromMap.build(kernels.Gaussian(2.0), X[:10])
    F = xp.to_float64(features.features(as_rows(X)))
    centers, shifts = F[:6].copy(), []
    for _ in range(6):  # written out
        label = ((F[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        moved = np.stack([F[label == k].mean(axis=0) for k in range(6)])
        shifts.append(((moved - centers) ** 2).sum() / F.var(axis=0).mean())
        centers = moved
    assert 0 < shifts[3] < 0.9 * min(shifts[:3])
    for factor, steps in ((1.0005, 4), (0.9995, 5)):
        start, tol = F[:6], factor * shifts[3]
        found = Lloyd.run(features, as_rows(X), start, max_iter=20, tol=tol, memory_bytes=1 << 28)
        assert found.iterations == steps


def test_a_cluster_without_rows_keeps_its_center():
    X, _ = blobs()
    features = NystromMap.build(kernels.Gaussian(2.0), X[:10])
    start = features.features(as_rows(X[:3]))
    start[2] = 100.0
    found = Lloyd.run(features, as_rows(X), start, max_iter=20, tol=0.0, memory_bytes=1 << 28)
    assert np.array_equal(found.centers[2], start[2])
    assert set(found.labels.tolist()) == {0, 1}


def test_features_beyond_the_limit_are_computed_in_passes(monkeypatch, tmp_path):
    X, y = blobs(3000)
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "x.parquet", row_group_size=700)
    whole = KernelKMeans(4, lengthscale=2.0, landmarks=X[:30], random_state=0).fit(X)
    passes = KernelKMeans(4, lengthscale=2.0, landmarks=X[:30], random_state=0)
    calls = []
    run = Lloyd.run

    def counted(*args):
        calls.append(args)
        return run(*args)

    monkeypatch.setattr(Lloyd, "run", counted)
    monkeypatch.setattr(KernelKMeans, "_share", lambda self, rows: 10_000)
    passes.fit(tmp_path / "x.parquet")
    assert calls
    assert adjusted_rand_score(passes.labels_, y) == adjusted_rand_score(whole.labels_, y)
    assert passes.inertia_ == pytest.approx(whole.inertia_, rel=1e-3)
    assert np.array_equal(passes.predict(tmp_path / "x.parquet"), passes.labels_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_source_of_rows(dtype, tmp_path):
    X = blobs()[0].astype(dtype)
    X[np.abs(X) < 0.3] = 0
    ours = KernelKMeans(4, lengthscale=2.0, landmarks=X[:30], random_state=0)
    expected = ours.fit(X).labels_
    assert ours.transform(X).dtype == dtype
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "x.parquet")
    for source in (tmp_path / "x.parquet", scipy.sparse.csr_matrix(X), X):
        assert adjusted_rand_score(ours.fit(source).labels_, expected) == 1


def test_fewer_rows_than_clusters_are_refused():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        KernelKMeans(4).fit(blobs()[0][:3])
