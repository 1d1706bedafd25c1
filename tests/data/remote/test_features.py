"""Features, components and clusters of rows that are elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close
from remote import Remote

from gramian import KernelKMeans, KernelPCA, NystromTransformer, RandomFourierFeatures
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.approximations import Moments, RunningMoments

N, M, D = 3000, 40, 3
PROMISED = M + 1000
GIVEN = {"random_state": 0, "engine": "numpy"}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def X(request) -> np.ndarray:
    rng = RandomStream(0)
    X = rng.standard_normal((N, D), np.float32) * np.array([1.0, 2.0, 3.0], dtype=np.float32)
    X[::3] += 9
    return X.astype(request.param)


def same(dtype: np.dtype) -> float:
    return 2e-3 if dtype == np.float32 else 1e-8


@pytest.mark.parametrize(
    "est",
    [
        NystromTransformer(landmarks=M, **GIVEN),
        RandomFourierFeatures("gaussian", n_components=20, random_state=0),
        KernelPCA(3, landmarks=M, **GIVEN),
    ],
    ids=lambda est: type(est).__name__,
)
def test_transformers(est, X):
    rows = Remote.of(X)
    found = est.fit(rows).transform(rows)
    assert rows.traffic.taken <= PROMISED
    expected = est.fit(X).transform(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=same(X.dtype))


def test_pre_images(X):
    rows = Remote.of(X)
    est = KernelPCA(3, landmarks=M, fit_inverse_transform=True, **GIVEN).fit(rows)
    assert rows.traffic.taken <= PROMISED
    here = KernelPCA(3, landmarks=M, fit_inverse_transform=True, **GIVEN).fit(X)
    codes = est.transform(X[:50])
    found, expected = est.inverse_transform(codes), here.inverse_transform(codes)
    np.testing.assert_allclose(found, expected, atol=2e-2 if X.dtype == np.float32 else 1e-5)


def test_clusters(X):
    rows = Remote.of(X)
    est = KernelKMeans(2, landmarks=M, lengthscale=4.0, **GIVEN).fit(rows)
    assert rows.traffic.taken <= PROMISED + 10_000
    taken = rows.traffic.taken
    here = KernelKMeans(2, landmarks=M, lengthscale=4.0, **GIVEN).fit(X)
    assert est.inertia_ == pytest.approx(here.inertia_, rel=1e-3)
    assert np.array_equal(est.predict(rows), est.labels_)
    agrees = (est.labels_ == here.labels_).mean()
    assert max(agrees, 1 - agrees) > 0.99
    assert est.score(rows) == pytest.approx(-est.inertia_, rel=1e-6)
    np.testing.assert_allclose(np.sort(est.transform(rows)), np.sort(here.transform(X)), atol=0.05)
    assert rows.traffic.taken == taken


@pytest.mark.parametrize("est", [KernelPCA, KernelKMeans, NystromTransformer])
def test_all_rows_are_no_landmarks(est, X):
    rows = Remote.of(X)
    with pytest.raises(ValueError, match="landmarks=None means all rows"):
        est(landmarks=None, lengthscale=1.0).fit(rows)
    assert rows.traffic.taken == 0


def test_moments_of_parts_are_those_of_all():
    X = np.random.default_rng(0).standard_normal((70, D)) + np.array(
        [1e6, 0.0, -3.0], dtype=np.float32
    )
    first, second = RunningMoments(), RunningMoments()
    for block in xp.split(X[:25], 10):
        first.add(block)
    for block in xp.split(X[25:], 10):
        second.add(block)
    first.merge(second)
    found, expected = first.finish(), Moments.of([X])
    assert found.count == expected.count
    assert_close(found.mean, expected.mean, rtol=1e-14, atol=1e-12)
    assert_close(found.scatter, expected.scatter, rtol=1e-8, atol=1e-8)
