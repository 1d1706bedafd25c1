"""Test matrices: their entries, and Nystrom approximations against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

from gramian._arrays import RandomStream
from gramian.lowrank import TEST_MATRICES, randomized_nystrom


def matrix(p: int, kind: str) -> np.ndarray:
    rng = RandomStream(1)
    Q, _ = np.linalg.qr(rng.standard_normal((p, p), np.float64))
    if kind == "coherent":  # the largest eigenvectors are few rows
        Q = np.eye(p, dtype=np.float64)[rng.permutation(p)]
    return Q * 0.8 ** np.arange(p, dtype=np.float64) @ Q.T


@pytest.mark.parametrize("kind", ["rotated", "coherent"])
@pytest.mark.parametrize("name", TEST_MATRICES)
@pytest.mark.parametrize("p", [60, 64])
def test_an_approximation_is_below_the_matrix_and_near_its_best_one(name, p, kind):
    H = matrix(p, kind)
    for seed in range(5):
        found = randomized_nystrom(
            lambda x: H @ x, p, 20, float(H.trace()), test_matrix=name, rng=RandomStream(seed)
        )
        error = np.linalg.eigvalsh(H - found.factor @ found.factor.T)
        assert float(error.min()) > -1e-10
        assert float(error.max()) < 20 * 0.8**20


@pytest.mark.parametrize("name", TEST_MATRICES)
def test_at_full_rank_it_is_the_matrix(name):
    H = matrix(60, "rotated")
    found = randomized_nystrom(
        lambda x: H @ x, 60, 60, float(H.trace()), test_matrix=name, rng=RandomStream(0)
    )
    assert np.abs(found.factor @ found.factor.T - H).max() < 1e-12


def test_a_hadamard_matrix_has_its_columns_with_signs_of_rows():
    found = TEST_MATRICES["hadamard"](64, 10, np.float64, RandomStream(3))
    ratio = found * found[:, :1]
    whole = hadamard(64).T.tolist()
    assert all((ratio[:, j]).tolist() in whole for j in range(10))
    assert np.array_equal(found.T @ found, 64 * np.eye(10))
    assert 16 < (found[:, 0] > 0).sum() < 48


@pytest.mark.parametrize("rank", [3, 30])
def test_a_sparse_sign_matrix_has_eight_signs_in_each_row(rank):
    found = TEST_MATRICES["sparse_sign"](200, rank, np.float32, RandomStream(4))
    assert found.dtype == np.float32
    assert set(np.unique(found)) <= {-1, 0, 1}
    assert (np.abs(found).sum(axis=1) == min(8, rank)).all()
    assert (np.abs(found).sum(axis=0) > 20).all()
    assert abs(found.sum()) < 250
