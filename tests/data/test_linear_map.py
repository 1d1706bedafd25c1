"""Linear maps of rows: a matrix or scales, there and back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import ArrayRows, LinearMap, as_rows


def matrix(rng: RandomStream, d: int = 4, k: int = 3) -> np.ndarray:
    return rng.standard_normal((d, k), np.float64)


class TestApply:
    def test_a_matrix(self, dtype, rng):
        R, x = matrix(rng), rng.standard_normal((9, 4), dtype)
        rows = LinearMap(matrix=R).apply(ArrayRows(x, feature_names=list("abcd")))
        assert (rows.shape, rows.dtype, rows.feature_names) == ((9, 3), dtype, None)
        expected = xp.cast(xp.to_float64(x) @ R, dtype)
        got = np.concatenate([block for _, block in rows.blocks(2)])
        assert_close(got, expected)
        assert_close(rows.take(np.array([3, 3])), expected[[3, 3]])

    def test_scales(self, dtype, rng):
        x = rng.standard_normal((9, 4), dtype)
        scales = np.array([0.0, 1.0, 2.0, 0.5], dtype=np.float32)
        rows = LinearMap(scales=scales).apply(ArrayRows(x, feature_names=list("abcd")))
        assert (rows.shape, rows.dtype, rows.feature_names) == ((9, 4), dtype, tuple("abcd"))
        assert np.array_equal(rows.take(np.arange(9)), x * xp.cast(scales, dtype))

    def test_scales_of_sparse_rows_stay_sparse(self, rng):
        x = scipy.sparse.random_array((9, 4), density=0.4, rng=0, format="csr")
        rows = LinearMap(scales=np.arange(4.0)).apply(as_rows(x))
        assert rows.sparse
        np.testing.assert_allclose(
            xp.to_dense(rows.take(np.arange(9))), x.toarray() * np.arange(4.0)
        )

    def test_a_matrix_of_sparse_rows_is_refused(self, rng):
        x = scipy.sparse.csr_array(np.eye(4))
        with pytest.raises(ValueError, match="matrix would fill the zeros of sparse rows"):
            LinearMap(matrix=matrix(rng)).apply(as_rows(x))

    def test_other_features_are_refused(self, rng):
        with pytest.raises(ValueError, match="3 features, but the linear map takes 4"):
            LinearMap(matrix=matrix(rng)).apply(as_rows(np.ones((2, 3), np.float32)))

    def test_back_is_the_transpose(self, rng):
        g = rng.standard_normal((5, 2, 3), np.float32)
        for given in (
            LinearMap(matrix=matrix(rng)),
            LinearMap(scales=np.array([2.0, 0, 3], dtype=np.float32)),
        ):
            forth = np.diag(given.scales) if given.matrix is None else given.matrix
            expected = g[:, 0] @ forth.T
            assert given.pull_back(g).dtype == g.dtype
            assert_close(given.pull_back(g)[:, 0], xp.cast(expected, g.dtype))


class TestValues:
    def test_arrays(self, rng):
        R = matrix(rng)
        assert np.array_equal(LinearMap.of(R).matrix, R)
        assert np.array_equal(
            LinearMap.of([1, 2]).scales, xp.to_float64(np.array([1.0, 2.0], dtype=np.float32))
        )
        same = LinearMap(matrix=R)
        assert LinearMap.of(same) is same
        assert (same.inputs, same.outputs) == (4, 3)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "a matrix or scales, and not both"),
            (
                {"matrix": np.eye(2, dtype=np.float32), "scales": np.ones(2, np.float32)},
                "and not both",
            ),
            ({"matrix": np.ones(2, np.float32)}, r"matrix must have shape \(d, k\), not \(2,\)"),
            (
                {"scales": np.eye(2, dtype=np.float32)},
                r"scales must have shape \(d,\), not \(2, 2\)",
            ),
            ({"scales": np.ones(0, np.float32)}, r"scales must have shape \(d,\), not \(0,\)"),
            (
                {"scales": np.array([1.0, np.nan], dtype=np.float32)},
                "scales of a linear map must be finite",
            ),
        ],
    )
    def test_what_is_no_map_is_refused(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            LinearMap(**arguments)

    def test_it_comes_back(self, rng):
        for given in (LinearMap(matrix=matrix(rng)), LinearMap(scales=np.ones(3, np.float32))):
            again = LinearMap.from_tensors(given.tensors())
            assert np.array_equal(again.array, given.array)
            assert again.tensors().keys() == given.tensors().keys()

    @pytest.mark.parametrize(
        ("tensors", "message"),
        [
            ({}, "and not both"),
            (
                {
                    "matrix": np.eye(2),
                    "scales": np.ones(2),
                },
                "and not both",
            ),
            ({"matrix": np.eye(2, dtype=np.float32)}, "matrix of a linear map must be float64"),
        ],
    )
    def test_damage_is_refused(self, tensors, message):
        with pytest.raises(ValueError, match=message):
            LinearMap.from_tensors(tensors)
