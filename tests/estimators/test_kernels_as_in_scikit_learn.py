"""What scikit-learn promises of its KernelRidge, KernelPCA and Nystroem, of ours by our names.

The cases are those of its tests of version 1.9, for ``alpha = n * penalty`` (of weights, their sum
takes the place of n), ``gamma = 1 / (2 * lengthscale**2)`` and ``standardize=False``. Where ours
differ on purpose, a test says how:

- a penalty of 0 is refused by solvers that factorise, with no fall back to least squares;
- a matrix that is not symmetric is refused, not symmetrised;
- `KernelPCA` has one component where all are 0, not none, and drops those of no variance;
- a matrix with negative eigenvalues is refused however few components are asked for;
- more Nystrom features than there are distinct rows are refused, and those of a singular matrix are
  fewer;
- Nystrom features of a matrix are those of all its rows, not only where all are landmarks.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs, make_circles, make_regression
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron, Ridge
from sklearn.metrics.pairwise import pairwise_kernels, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gramian import KernelPCA, KernelRidge, NystromTransformer, kernels

X, Y = make_regression(n_samples=100, n_features=10, random_state=0)
TWICE = np.column_stack([Y, Y])
N = len(X)
FEW, NEW = np.random.default_rng(0).random((5, 4)), np.random.default_rng(1).random((2, 4))
GAMMA = 0.3

NAMED: dict[str, tuple[Any, dict[str, Any]]] = {
    "linear": (kernels.Linear(1.0), {}),
    "rbf": (kernels.Gaussian((0.5 / GAMMA) ** 0.5), {"gamma": GAMMA}),
    "poly": (kernels.Polynomial(degree=3, coef0=1.0, lengthscale=GAMMA**-0.5), {"gamma": GAMMA}),
    "cosine": (kernels.Cosine(1.0), {}),
    "laplacian": (kernels.make("l1_laplacian", lengthscale=1 / GAMMA), {"gamma": GAMMA}),
}
"""Our kernels by scikit-learn's names, and its parameters."""


def ridge(kernel: Any, alpha: float = 1.0, total: float = N, **settings: Any) -> KernelRidge:
    return KernelRidge(kernel, penalty=alpha / total, standardize=False, **settings)


def theirs(alpha: float = 1.0) -> Ridge:
    return Ridge(alpha=alpha, fit_intercept=False)


# --- KernelRidge ---------------------------------------------------------------------------------


def test_a_linear_kernel_is_ridge_regression():
    got = ridge(kernels.Linear(1.0)).fit(X, Y).predict(X)
    assert_allclose(got, theirs().fit(X, Y).predict(X), rtol=1e-8)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_so_it_is_of_sparse_rows(container):
    got = ridge(kernels.Linear(1.0)).fit(container(X), Y).predict(container(X))
    assert_allclose(got, theirs().fit(X, Y).predict(X), rtol=1e-8)


def test_no_penalty_is_refused():
    for kernel, rows in ((kernels.Linear(1.0), X), ("precomputed", X @ X.T)):
        with pytest.raises(ValueError, match="Direct needs a positive penalty, not 0"):
            ridge(kernel, alpha=0.0, solver="direct").fit(rows, Y)


@pytest.mark.parametrize("name", NAMED)
def test_a_matrix_predicts_as_its_kernel(name):
    kernel, parameters = NAMED[name]
    K = pairwise_kernels(X, X, metric=name, **parameters)
    expected = ridge(kernel).fit(X, Y).predict(X)
    assert_allclose(ridge("precomputed").fit(K, Y).predict(K), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", ["direct", "pcg", "askotch"])
def test_the_matrix_stays_as_it_was(solver):
    K = X @ X.T
    before = K.copy()
    ridge("precomputed", solver=solver).fit(K, Y)
    assert_array_equal(K, before)


def test_weights_count_as_in_ridge_regression():
    weights = np.random.default_rng(0).random(N)
    expected = theirs().fit(X, Y, sample_weight=weights).predict(X)
    rows = ridge(kernels.Linear(1.0), total=weights.sum()).fit(X, Y, weights)
    matrix = ridge("precomputed", total=weights.sum()).fit(X @ X.T, Y, weights)
    assert_allclose(rows.predict(X), expected, rtol=1e-8)
    assert_allclose(matrix.predict(X @ X.T), expected, rtol=1e-8)


def test_several_targets_are_fitted_at_once():
    got = ridge(kernels.Linear(1.0)).fit(X, TWICE).predict(X)
    assert_allclose(got, theirs().fit(X, TWICE).predict(X), rtol=1e-8)
    one = ridge("precomputed").fit(X @ X.T, Y).predict(X @ X.T)
    assert_allclose(got, np.column_stack([one, one]), rtol=1e-8)


# --- KernelPCA -----------------------------------------------------------------------------------


def pca(kernel: Any = "linear", count: int | None = 4, **settings: Any) -> KernelPCA:
    return KernelPCA(count, kernel=kernel, landmarks=None, random_state=0, **settings)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
@pytest.mark.parametrize("inverse", [False, True])
def test_fitting_and_transforming_at_once_is_the_same(kernel, inverse):
    est = pca(kernel, fit_inverse_transform=inverse)
    once = est.fit_transform(FEW)
    assert once.size
    assert_array_equal(once, est.fit(FEW).transform(FEW))
    codes = est.transform(NEW)
    assert codes.shape[1] == once.shape[1]
    if inverse:
        assert est.inverse_transform(codes).shape == NEW.shape


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
def test_components_of_sparse_rows(kernel):
    rows, new = scipy.sparse.csr_array(FEW), scipy.sparse.csr_array(NEW)
    est = pca(kernel)
    assert_allclose(est.fit_transform(rows), pca(kernel).fit_transform(FEW), atol=1e-9)
    with pytest.raises(NotFittedError):
        est.inverse_transform(est.transform(new))


def test_a_matrix_has_no_pre_images():
    with pytest.raises(ValueError, match="fit_inverse_transform=True requires rows"):
        pca("precomputed", fit_inverse_transform=True).fit(np.eye(10))


@pytest.mark.parametrize("kernel", ["gaussian", "precomputed"])
def test_rows_that_change_after_the_fit_do_not_change_it(kernel):
    rows = rbf_kernel(np.random.default_rng(0).random((10, 10)))
    kept = rows.copy()
    est = pca(kernel).fit(rows)
    before = est.transform(kept)
    rows[:, 0] = 666.0
    assert_array_equal(est.transform(kept), before)


def test_the_same_rows_have_the_same_components():
    state = np.random.RandomState(0)
    rows = state.rand(10, 10)
    found = [KernelPCA(2, random_state=state).fit_transform(rows)[0] for _ in range(5)]
    assert_allclose(found, np.tile(found[0], (5, 1)), rtol=1e-9)


@pytest.mark.parametrize("d", [4, 10])
def test_of_a_linear_kernel_they_are_principal_components(d):
    rows, new = np.random.default_rng(d).random((5, d)), np.random.default_rng(9).random((2, d))
    expected = PCA(4).fit(rows).transform(new)
    assert_allclose(np.abs(pca().fit(rows).transform(new)), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_so_many_components_as_were_asked_for(count):
    assert pca("gaussian", count).fit(FEW).transform(NEW).shape == (2, count)


def test_components_without_variance_are_left_out():
    alike = np.array([[1 - 1e-30, 1], [1, 1], [1, 1 - 1e-20]])
    found = pca("linear", None).fit_transform(alike)
    assert found.shape == (3, 1)
    assert_allclose(found, 0.0, atol=1e-12)
    two = np.array([[1.0, 1.0], [0.0, 0.0]])
    est = pca("linear", 2)
    with pytest.warns(UserWarning, match="the features span: keeping"):
        once = est.fit_transform(two)
    assert_array_equal(est.transform(two), once)


def test_components_of_a_matrix_are_those_of_the_rows():
    matrix = pca("precomputed").fit(FEW @ FEW.T)
    assert_allclose(matrix.transform(NEW @ FEW.T), pca().fit(FEW).transform(NEW), atol=1e-9)
    assert_array_equal(matrix.fit_transform(FEW @ FEW.T), matrix.transform(FEW @ FEW.T))


def test_a_matrix_that_is_not_symmetric_is_refused():
    with pytest.raises(ValueError, match="needs a symmetric matrix"):
        pca("precomputed", 1).fit(np.array([[1.0, 2.0], [3.0, 40.0]]))


INDEFINITE = np.array(
    [
        [4.48, -1.0, 8.07, 2.33, -5.76],
        [-1.0, 6.48, 4.5, -1.24, -0.81],
        [8.07, 4.5, 5.48, 2.09, -11.1],
        [2.33, -1.24, 2.09, 4.0, 1.02],
        [-5.76, -0.81, -11.1, 1.02, 4.86],
    ]
)


@pytest.mark.parametrize("count", [1, 5])
def test_a_matrix_of_no_kernel_is_refused(count):
    assert np.linalg.eigvalsh(INDEFINITE)[0] < -1
    with pytest.raises(
        ValueError, match=r"must be positive semidefinite, but its eigenvalues range from -"
    ):
        pca("precomputed", count).fit(INDEFINITE)
    with pytest.raises(ValueError, match="must be positive semidefinite"):
        NystromTransformer(kernel="precomputed", landmarks=None).fit(INDEFINITE)
    with pytest.raises(ValueError, match="use a positive definite kernel"):
        ridge("precomputed", alpha=1e-3).fit(INDEFINITE, np.arange(5.0))


def test_rounding_is_no_negative_eigenvalue():
    K = np.array(
        [
            [1.0, 0.5, 0.25, 0.125],
            [0.5, 0.25, 0.125, 0.0625],
            [0.25, 0.125, 0.0625, 0.03125],
            [0.125, 0.0625, 0.03125, 0.015625],
        ]
    )  # of rank one
    noise = 1e-9 * np.random.default_rng(0).normal(size=K.shape)
    est = pca("precomputed", None).fit(K + noise + noise.T)
    assert est.eigenvalues_.min() >= 0


def test_the_lengthscale_is_found_by_a_search():
    rows, labels = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    pipe = make_pipeline(KernelPCA(2, random_state=0), Perceptron(max_iter=5, tol=None))
    search = GridSearchCV(pipe, {"kernelpca__lengthscale": [0.35, 0.5, 0.7, 1.0]}, cv=3)
    assert search.fit(rows, labels).best_score_ == 1


def test_and_of_a_matrix_the_number_of_components():
    rows, labels = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    est = KernelPCA(kernel="precomputed", random_state=0)
    pipe = make_pipeline(est, Perceptron(max_iter=5, tol=None))
    search = GridSearchCV(pipe, {"kernelpca__n_components": [1, 2]}, cv=3)
    assert search.fit(rbf_kernel(rows, gamma=2.0), labels).best_score_ == 1


def test_nested_circles_are_told_apart():
    rows, labels = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    assert Perceptron(max_iter=5, tol=None).fit(rows, labels).score(rows, labels) < 0.8
    found = KernelPCA(2, lengthscale=0.5, random_state=0).fit_transform(rows)
    assert Perceptron(max_iter=5, tol=None).fit(found, labels).score(found, labels) == 1


@pytest.mark.parametrize("count", [4, 10])
def test_landmarks_find_the_components_of_all_rows(count):
    rows, _ = make_circles(1100, factor=0.3, noise=0.05, random_state=0)
    exact = KernelPCA(count, landmarks=None, random_state=0).fit(rows[:1000])
    few = KernelPCA(count, landmarks=200, random_state=0).fit(rows[:1000])
    got, expected = (np.abs(est.transform(rows[1000:])) for est in (few, exact))
    assert_allclose(got, expected, atol=1e-5)


def test_pre_images_come_close():
    rows, _ = make_blobs(100, n_features=4, random_state=0)
    est = KernelPCA(20, fit_inverse_transform=True, penalty=1e-5, random_state=0)
    again = est.inverse_transform(est.fit_transform(rows))
    assert np.linalg.norm(rows - again) / np.linalg.norm(rows) < 0.1


def test_there_are_none_unless_they_were_asked_for():
    with pytest.raises(NotFittedError):
        KernelPCA().fit(FEW).inverse_transform(FEW)


def test_float32_rows_have_as_many_components():
    rows, _ = make_blobs(30, centers=[[0, 0, 0], [1, 1, 1]], random_state=0, cluster_std=0.1)
    wide, narrow = pca("linear", None), pca("linear", None)
    assert wide.fit_transform(rows).shape == narrow.fit_transform(rows.astype("float32")).shape


@pytest.mark.parametrize("kernel", ["gaussian", "precomputed"])
def test_names_and_frames_of_components(kernel):
    rows, _ = load_iris(return_X_y=True, as_frame=True)
    given = pd.DataFrame(rbf_kernel(rows)) if kernel == "precomputed" else rows
    est = KernelPCA(2, kernel=kernel, random_state=0).set_output(transform="pandas")
    assert list(est.fit_transform(given).columns) == ["kernelpca0", "kernelpca1"]
    assert_array_equal(est.get_feature_names_out(), ["kernelpca0", "kernelpca1"])


# --- Nystroem ------------------------------------------------------------------------------------

TEN = np.random.default_rng(2).random((10, 4))


def nystrom(kernel: Any, count: int = 10) -> NystromTransformer:
    return NystromTransformer(kernel=kernel, n_components=count, random_state=0)


@pytest.mark.parametrize("name", NAMED)
def test_all_rows_as_landmarks_are_exact(name):
    kernel, parameters = NAMED[name]
    K = pairwise_kernels(TEN, metric=name, **parameters)
    F = nystrom(kernel).fit_transform(TEN)
    assert_allclose(F @ F.T, K, atol=1e-8)
    assert nystrom(kernel, 2).fit(TEN).transform(TEN).shape == (10, 2)


@pytest.mark.parametrize("name", sorted(kernels.names()))
def test_each_kernel_has_features(name):
    kernel = kernels.make(name)
    rows = TEN[:, :2] if name == "haversine" else TEN
    assert nystrom(kernel, 2).fit(rows).transform(rows).shape == (10, 2)


def test_repeated_rows_do_not_matter():
    rows = np.vstack([TEN, TEN])
    est = nystrom(kernels.Gaussian((0.5 / 100) ** 0.5)).set_params(landmarks=None)
    for count in (None, 10):
        F = est.set_params(n_components=count).fit_transform(rows)
        assert F.shape == (20, 10)
        assert_allclose(F @ F.T, rbf_kernel(rows, gamma=100), atol=1e-8)
    with pytest.raises(ValueError, match="gives 10; give more landmarks"):
        nystrom("gaussian", 20).fit(rows)


def test_parameters_of_a_kernel_are_its_own():
    kernel = kernels.Polynomial(degree=3, coef0=0.1, lengthscale=2.0)
    F = nystrom(kernel).fit_transform(TEN)
    K = polynomial_kernel(TEN, degree=3, coef0=0.1, gamma=0.25)
    assert_allclose(F @ F.T, K, atol=1e-9)
    with pytest.raises(ValueError, match="has no effect on a kernel object"):
        nystrom(kernel).set_params(lengthscale=2.0).fit(TEN)


def test_a_matrix_has_exact_features_and_those_of_some_rows():
    K = polynomial_kernel(TEN, degree=2, coef0=0.1)
    F = nystrom("precomputed").fit_transform(K)
    assert_allclose(F @ F.T, K, atol=1e-9)
    some = nystrom("precomputed", 4).fit(K)
    index = some.landmark_index_
    expected = K[:, index] @ np.linalg.inv(K[np.ix_(index, index)]) @ K[index]
    assert_allclose(some.transform(K) @ some.transform(K).T, expected, atol=1e-8)
    with pytest.raises(ValueError, match="has no effect on kernel='precomputed'"):
        nystrom("precomputed").set_params(lengthscale=2.0).fit(K)


def test_landmarks_are_known_by_their_numbers():
    est = nystrom("gaussian").fit(X)
    assert_array_equal(est.components_, X[est.landmark_index_])
    expected = [f"nystromtransformer{k}" for k in range(10)]
    assert_array_equal(est.get_feature_names_out(), expected)
    again = pickle.loads(pickle.dumps(est))
    assert_array_equal(again.transform(X), est.transform(X))
