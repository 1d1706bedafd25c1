"""KernelPCA against scikit-learn's exact one, and its pre-images against exact ridge regression."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.decomposition import KernelPCA as Exact
from sklearn.exceptions import NotFittedError

from gramian import KernelPCA, kernels

N, D = 80, 3


def data(n: int = N) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, D))


def up_to_sign(a: np.ndarray, b: np.ndarray, atol: float) -> bool:
    signs = np.sign((a * b).sum(axis=0))
    return np.allclose(a, b * signs, atol=atol)


@pytest.mark.parametrize("k", [1, 5])
def test_with_all_rows_as_landmarks_it_is_exact(k):
    X, new = data(), data(200)[N:]
    exact = Exact(k, kernel="rbf", gamma=0.5 / 1.5**2, eigen_solver="dense").fit(X)
    ours = KernelPCA(k, lengthscale=1.5, landmarks=None).fit(X)
    assert np.allclose(ours.eigenvalues_, exact.eigenvalues_)
    assert up_to_sign(ours.transform(X), exact.transform(X), 1e-8)
    assert up_to_sign(ours.transform(new), exact.transform(new), 1e-8)


def test_a_linear_kernel_gives_principal_components():
    from sklearn.decomposition import PCA

    X = data() * [1.0, 2.0, 3.0] + 5  # the mean is removed in the space of the kernel
    exact = PCA().fit(X)
    ours = KernelPCA(kernel="linear", landmarks=20, random_state=0).fit(X)
    assert ours.transform(X).shape == (N, D)
    assert np.allclose(ours.explained_variance_, exact.explained_variance_)
    assert np.allclose(ours.explained_variance_ratio_, exact.explained_variance_ratio_)
    assert up_to_sign(ours.transform(X), exact.transform(X), 1e-9)


def test_variances_are_those_of_the_components():
    X = data()
    ours = KernelPCA(4, landmarks=30, random_state=0).fit(X)
    Z = ours.transform(X)
    assert np.allclose(Z.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(np.cov(Z.T), np.diag(ours.explained_variance_), atol=1e-12)


def test_the_ratio_counts_what_the_landmarks_miss():
    X = data()
    whole = KernelPCA(landmarks=None, lengthscale=1.0).fit(X)
    assert whole.explained_variance_ratio_.sum() == pytest.approx(1)
    some = KernelPCA(landmarks=10, lengthscale=1.0, random_state=0).fit(X)
    assert 0.1 < some.explained_variance_ratio_.sum() < 0.9


def test_enough_landmarks_come_close():
    X = np.random.default_rng(0).normal(size=(600, D))
    exact = KernelPCA(3, landmarks=None, lengthscale=2.0).fit(X)
    near = KernelPCA(3, landmarks=150, lengthscale=2.0, random_state=0).fit(X)
    assert np.allclose(near.eigenvalues_, exact.eigenvalues_, rtol=1e-3)
    assert up_to_sign(near.transform(X), exact.transform(X), 1e-2)


def test_preimages_are_exact_kernel_ridge_regression():
    X = data()
    penalty = 1e-3
    ours = KernelPCA(2, landmarks=None, fit_inverse_transform=True, penalty=penalty).fit(X)
    Z = ours.transform(X)
    kernel = kernels.Gaussian("median").resolve(Z)
    K = kernel(Z, Z)
    weights = np.linalg.solve(K + N * penalty * np.eye(N, dtype=np.float32), X)
    new = ours.transform(data(200)[N:])
    assert np.allclose(ours.inverse_transform(new), kernel(new, Z) @ weights, atol=1e-6)


def test_preimages_denoise():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 500)
    clean = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = clean + 0.15 * rng.normal(size=clean.shape)
    pca = KernelPCA(
        2, lengthscale=1.0, landmarks=60, fit_inverse_transform=True, random_state=0
    ).fit(noisy)
    back = pca.inverse_transform(pca.transform(noisy))
    assert np.mean((back - clean) ** 2) < np.mean((noisy - clean) ** 2)


def test_without_preimages_there_is_no_inverse():
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        KernelPCA(2).fit(data()).inverse_transform(np.zeros((1, 2)))


def test_codes_of_another_width_are_refused():
    pca = KernelPCA(2, fit_inverse_transform=True).fit(data())
    with pytest.raises(ValueError, match="one column for each of the 2 components, not 3"):
        pca.inverse_transform(np.zeros((1, 3)))


def test_more_components_than_there_are_is_a_warning():
    with pytest.warns(UserWarning, match="n_components=50 exceeds the 10 dimensions"):
        pca = KernelPCA(50, landmarks=10, kernel="laplacian", random_state=0).fit(data())
    assert pca.transform(data()).shape == (N, 10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_source_of_rows(dtype, tmp_path):
    X = data().astype(dtype)
    X[np.abs(X) < 0.3] = 0
    pca = KernelPCA(2, lengthscale=1.0, landmarks=X[:20], fit_inverse_transform=True)
    expected = pca.fit(X).transform(X)
    back = pca.inverse_transform(expected)
    assert expected.dtype == back.dtype == dtype
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "x.parquet", row_group_size=13)
    for source in (tmp_path / "x.parquet", scipy.sparse.csr_matrix(X), X):
        found = pca.fit(source).transform(source)
        assert found.dtype == dtype
        assert up_to_sign(found, expected, 2e4 * np.finfo(dtype).eps)
        assert np.allclose(pca.inverse_transform(found), back, atol=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_one_point_to_the_kernel_have_a_zero_component(dtype):
    """Multiples of one row had a component of variance 1e-31, and opposite rows were 2 away."""
    X = np.outer(np.arange(1, 30), [1.0, 2.0]).astype(dtype)
    pca = KernelPCA(kernel="cosine").fit(X)
    assert pca.eigenvalues_.tolist() == [0.0]
    assert np.all(pca.transform(-X) == 0)
