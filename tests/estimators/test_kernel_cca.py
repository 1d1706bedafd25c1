"""KernelCCA against the generalised eigenproblem of the exact kernel matrices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.cross_decomposition import CCA

from gramian import KernelCCA, kernels
from gramian.estimators.decomposition.cca import _side_by_side

N = 60


def views(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    hidden = rng.uniform(-2, 2, n)
    X = np.column_stack([hidden, rng.normal(size=n)])
    Y = np.column_stack([np.sin(2 * hidden), rng.normal(size=n), hidden**2])
    return X, Y + 0.1 * rng.normal(size=Y.shape)


def centered(X: np.ndarray, lengthscale: float) -> np.ndarray:
    x = X
    K = kernels.Gaussian(lengthscale)(x, x)
    H = np.eye(len(X)) - 1 / len(X)
    return H @ K @ H


def exact_correlations(X, Y, lengthscale, penalty_x, penalty_y) -> np.ndarray:
    r"""Solve [0, KL; LK, 0] w = rho [K² + n p K, 0; 0, L² + n q L] w, outside of the null space."""
    n = len(X)
    K, L = centered(X, lengthscale), centered(Y, lengthscale)
    zero = np.zeros((n, n))
    A = np.block([[zero, K @ L], [L @ K, zero]])
    B = scipy.linalg.block_diag(K @ K + n * penalty_x * K, L @ L + n * penalty_y * L)
    values, vectors = np.linalg.eigh(B)
    basis = vectors[:, values > 1e-9 * values[-1]] / np.sqrt(values[values > 1e-9 * values[-1]])
    return np.linalg.eigvalsh(basis.T @ A @ basis)[::-1]


@pytest.mark.parametrize(("penalty_x", "penalty_y"), [(1e-2, None), (1e-1, 1e-3)])
def test_with_all_rows_as_landmarks_correlations_are_exact(penalty_x, penalty_y):
    X, Y = views()
    ours = KernelCCA(
        3, lengthscale=1.5, landmarks=None, penalty=penalty_x, penalty_y=penalty_y
    ).fit(X, Y)
    expected = exact_correlations(X, Y, 1.5, penalty_x, penalty_y or penalty_x)[:3]
    assert np.allclose(ours.correlations_, expected, atol=1e-5)
    assert (np.diff(ours.correlations_) <= 0).all()


def test_pairs_are_uncorrelated_and_their_covariance_is_the_correlation():
    X, Y = views()
    penalty = 1e-2
    ours = KernelCCA(3, landmarks=20, penalty=penalty, random_state=0).fit(X, Y)
    first, second = ours.transform(X, Y)
    for scores, weights in ((first, ours.x_weights_), (second, ours.y_weights_)):
        assert np.allclose(scores.mean(axis=0), 0, atol=1e-12)
        unit = scores.T @ scores / N + penalty * weights.T @ weights
        assert np.allclose(unit, np.eye(3), atol=1e-9)
    assert np.allclose(first.T @ second / N, np.diag(ours.correlations_), atol=1e-9)


def test_linear_kernels_and_no_penalty_to_speak_of_give_linear_cca():
    X, Y = views(300)
    ours = KernelCCA(2, kernel="linear", landmarks=50, penalty=1e-12, random_state=0).fit(X, Y)
    first, second = CCA(2, max_iter=5000, tol=1e-12).fit_transform(X, Y)
    theirs = [np.corrcoef(first[:, i], second[:, i])[0, 1] for i in range(2)]
    assert np.allclose(ours.correlations_, theirs, atol=1e-6)
    assert ours.score(X, Y) == pytest.approx(np.mean(theirs), abs=1e-6)


def test_a_curve_is_found_on_rows_that_were_not_seen():
    X, Y = views(1000)
    ours = KernelCCA(1, landmarks=80, penalty=1e-3, random_state=0).fit(X[:500], Y[:500])
    assert ours.score(X[500:], Y[500:]) > 0.95
    linear = KernelCCA(1, kernel="linear", landmarks=80, random_state=0).fit(X[:500], Y[:500])
    assert linear.score(X[500:], Y[500:]) < ours.score(X[500:], Y[500:]) - 0.1


def test_each_view_may_have_its_own_kernel_and_landmarks():
    X, Y = views()
    ours = KernelCCA(
        1,
        kernel="laplacian",
        lengthscale=(1.0, 2.0),
        landmarks=X[:10],
        kernel_y="gaussian",
        lengthscale_y=2.0,
        landmarks_y=Y[:12],
    ).fit(X, Y)
    assert ours.kernel_ == kernels.Laplacian((1.0, 2.0))
    assert ours.kernel_y_ == kernels.Gaussian(2.0)
    assert (ours.map_.width, ours.map_y_.width) == (10, 12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_source_of_rows(dtype, tmp_path):
    X, Y = (view.astype(dtype) for view in views())
    ours = KernelCCA(2, lengthscale=1.5, landmarks=15, penalty=1e-2, random_state=0)
    expected = ours.fit(X, Y).correlations_
    assert ours.transform(X).dtype == dtype
    pd.DataFrame(X, columns=list("ab")).to_parquet(tmp_path / "x.parquet", row_group_size=7)
    pd.DataFrame(Y, columns=list("abc")).to_parquet(tmp_path / "y.parquet", row_group_size=11)
    for first, second in (
        (tmp_path / "x.parquet", tmp_path / "y.parquet"),
        (scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(Y)),
        (tmp_path / "x.parquet", Y),
    ):
        ours.fit(first, second)
        assert np.allclose(ours.correlations_, expected, atol=1e-4 if dtype == np.float32 else 1e-8)


def test_blocks_cut_at_different_rows_are_joined():
    rows = np.arange(20.0, dtype=np.float32).reshape(10, 2)
    first = (rows[i : i + 3, :1] for i in range(0, 10, 3))
    second = (rows[i : i + 4, 1:] for i in range(0, 10, 4))
    assert np.array_equal(np.concatenate(list(_side_by_side(first, second))), rows)


def test_views_of_different_lengths_are_refused():
    X, Y = views()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelCCA().fit(X, Y[:-1])


def test_a_second_view_of_another_width_is_refused():
    X, Y = views()
    with pytest.raises(ValueError, match="y has 2 features, but KernelCCA was fitted with 3"):
        KernelCCA().fit(X, Y).transform(X, Y[:, :2])
