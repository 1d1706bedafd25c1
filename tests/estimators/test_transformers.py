"""NystromTransformer and RandomFourierFeatures beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.kernel_approximation import Nystroem

from gramian import NystromTransformer, RandomFourierFeatures
from gramian.kernels import Gaussian, Laplacian
from gramian.landmarks import Uniform

N, D = 90, 4


def data(dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, D)).astype(dtype)


@pytest.mark.parametrize("m", [1, 10, N])
def test_the_same_inner_products_as_scikit_learn_for_the_same_rows(m):
    X = data()
    theirs = Nystroem(gamma=0.5 / 1.5**2, n_components=m, random_state=0).fit(X)
    ours = NystromTransformer(lengthscale=1.5, landmarks=X[theirs.component_indices_]).fit(X)
    F, G = ours.transform(X), theirs.transform(X)
    assert np.allclose(F @ F.T, G @ G.T, atol=1e-6)
    assert np.array_equal(ours.components_, theirs.components_)


def test_a_drop_in_with_n_components():
    X = data()
    ours = NystromTransformer(Laplacian(1.0), n_components=30, random_state=0)
    assert ours.fit_transform(X).shape == (N, 30)
    assert len(ours.landmark_index_) == 30
    assert np.array_equal(ours.components_, X[ours.landmark_index_])
    names = [f"nystromtransformer{i}" for i in range(30)]
    assert ours.get_feature_names_out().tolist() == names


def test_a_hundred_landmarks_if_nobody_says_and_all_rows_of_fewer():
    X = np.random.default_rng(0).normal(size=(300, D))
    assert len(NystromTransformer(random_state=0).fit(X).components_) == 100
    assert len(NystromTransformer(random_state=0).fit(X[:20]).components_) == 20
    with pytest.warns(UserWarning, match="30 landmarks were asked for but there are 20 rows"):
        found = NystromTransformer(n_components=30, random_state=0).fit(X[:20])
    assert len(found.components_) == 20


def test_a_rank_below_the_landmarks_is_the_best_of_the_landmarks():
    X = data()
    kernel = Gaussian(1.0)
    F = NystromTransformer(kernel, landmarks=None, n_components=7).fit_transform(X)
    K = kernel(X, X)
    values, vectors = np.linalg.eigh(K)
    best = (vectors[:, -7:] * values[-7:]) @ vectors[:, -7:].T
    assert np.allclose(F @ F.T, best)


def test_more_features_than_landmarks_are_refused():
    with pytest.raises(ValueError, match="n_components=20 requires at least as many landmarks"):
        NystromTransformer(landmarks=10, n_components=20, random_state=0).fit(data())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "transformer",
    [
        NystromTransformer(landmarks=Uniform(9), lengthscale=1.0, random_state=0),
        RandomFourierFeatures("laplacian", lengthscale=1.0, n_components=9, random_state=0),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_any_source_of_rows(transformer, dtype, tmp_path):
    X = data(dtype)
    X[np.abs(X) < 0.3] = 0
    expected = transformer.fit(X).transform(X)
    assert expected.dtype == dtype
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    atol = 1e3 * np.finfo(dtype).eps
    for source in (
        tmp_path / "x.parquet",
        str(tmp_path / "x.npy"),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        scipy.sparse.csr_matrix(X),
        X,
        frame,
    ):
        found = transformer.fit(source).transform(source)
        assert found.dtype == dtype
        assert np.allclose(found @ found.T, expected @ expected.T, atol=atol)
    assert transformer.feature_names_in_.tolist() == list("abcd")


def test_output_as_a_frame():
    frame = pd.DataFrame(data(), columns=list("abcd"), index=np.arange(N) + 5)
    waves = RandomFourierFeatures(n_components=3, random_state=0).set_output(transform="pandas")
    out = waves.fit_transform(frame)
    assert out.columns.tolist() == [f"randomfourierfeatures{i}" for i in range(3)]
    assert out.index.equals(frame.index)


def test_what_does_not_fit_is_refused_before_it_is_allocated():
    X = data()
    with pytest.raises(ValueError, match="factors of 90 landmarks"):
        NystromTransformer(landmarks=None, memory_limit="50.6MB").fit(X)
    found = NystromTransformer(landmarks=None, memory_limit="60MB").fit(X)
    many = np.broadcast_to(X[:1], (200_000, D))
    with pytest.raises(ValueError, match="transform fewer rows at a time"):
        found.transform(many)


def test_a_failed_fit_keeps_the_last_one():
    X = data()
    found = NystromTransformer(landmarks=5, random_state=0).fit(X)
    before = found.transform(X)
    with pytest.raises(ValueError, match="NaN"):
        found.fit(np.full((5, 2), np.nan))
    assert np.array_equal(found.transform(X), before)
