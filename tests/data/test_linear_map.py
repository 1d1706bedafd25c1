"""Linear maps of rows: a matrix or scales, there and back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from gramian.data import ArrayRows, LinearMap, as_rows


def matrix(rng: torch.Generator, d: int = 4, k: int = 3) -> torch.Tensor:
    return torch.randn(d, k, generator=rng, dtype=torch.float64)


class TestApply:
    def test_a_matrix(self, dtype, rng):
        R, x = matrix(rng), torch.randn(9, 4, generator=rng, dtype=dtype)
        rows = LinearMap(matrix=R).apply(ArrayRows(x, feature_names=list("abcd")))
        assert (rows.shape, rows.dtype, rows.feature_names) == ((9, 3), dtype, None)
        expected = (x.double() @ R).to(dtype)
        got = torch.cat([block for _, block in rows.blocks(2)])
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(rows.take(torch.tensor([3, 3])), expected[[3, 3]])

    def test_scales(self, dtype, rng):
        x = torch.randn(9, 4, generator=rng, dtype=dtype)
        scales = torch.tensor([0.0, 1.0, 2.0, 0.5])
        rows = LinearMap(scales=scales).apply(ArrayRows(x, feature_names=list("abcd")))
        assert (rows.shape, rows.dtype, rows.feature_names) == ((9, 4), dtype, tuple("abcd"))
        assert torch.equal(rows.take(torch.arange(9)), x * scales.to(dtype))

    def test_scales_of_sparse_rows_stay_sparse(self, rng):
        x = scipy.sparse.random_array((9, 4), density=0.4, rng=0, format="csr")
        rows = LinearMap(scales=np.arange(4.0)).apply(as_rows(x))
        assert rows.sparse
        np.testing.assert_allclose(
            rows.take(torch.arange(9)).to_dense(), x.toarray() * np.arange(4.0)
        )

    def test_a_matrix_of_sparse_rows_is_refused(self, rng):
        x = scipy.sparse.csr_array(np.eye(4))
        with pytest.raises(ValueError, match="matrix would fill the zeros of sparse rows"):
            LinearMap(matrix=matrix(rng)).apply(as_rows(x))

    def test_other_features_are_refused(self, rng):
        with pytest.raises(ValueError, match="3 features, but the linear map takes 4"):
            LinearMap(matrix=matrix(rng)).apply(as_rows(torch.ones(2, 3)))

    def test_back_is_the_transpose(self, rng):
        g = torch.randn(5, 2, 3, generator=rng)
        for given in (LinearMap(matrix=matrix(rng)), LinearMap(scales=torch.tensor([2.0, 0, 3]))):
            x = torch.randn(5, given.inputs, generator=rng, requires_grad=True)
            forth = x @ given.matrix.float() if given.matrix is not None else x * given.scales
            (expected,) = torch.autograd.grad((forth * g[:, 0]).sum(), x)
            assert given.pull_back(g).dtype == g.dtype
            torch.testing.assert_close(given.pull_back(g)[:, 0], expected.to(g.dtype))


class TestValues:
    def test_arrays(self, rng):
        R = matrix(rng)
        assert torch.equal(LinearMap.of(R.numpy()).matrix, R)
        assert torch.equal(LinearMap.of([1, 2]).scales, torch.tensor([1.0, 2.0]).double())
        same = LinearMap(matrix=R)
        assert LinearMap.of(same) is same
        assert (same.inputs, same.outputs) == (4, 3)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "a matrix or scales, and not both"),
            ({"matrix": torch.eye(2), "scales": torch.ones(2)}, "and not both"),
            ({"matrix": torch.ones(2)}, r"matrix must have shape \(d, k\), not \(2,\)"),
            ({"scales": torch.eye(2)}, r"scales must have shape \(d,\), not \(2, 2\)"),
            ({"scales": torch.ones(0)}, r"scales must have shape \(d,\), not \(0,\)"),
            ({"scales": torch.tensor([1.0, torch.nan])}, "scales of a linear map must be finite"),
        ],
    )
    def test_what_is_no_map_is_refused(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            LinearMap(**arguments)

    def test_it_comes_back(self, rng):
        for given in (LinearMap(matrix=matrix(rng)), LinearMap(scales=torch.ones(3))):
            again = LinearMap.from_tensors(given.tensors())
            assert torch.equal(again.array, given.array)
            assert again.tensors().keys() == given.tensors().keys()

    @pytest.mark.parametrize(
        ("tensors", "message"),
        [
            ({}, "and not both"),
            ({"matrix": torch.eye(2).double(), "scales": torch.ones(2).double()}, "and not both"),
            ({"matrix": torch.eye(2)}, "matrix of a linear map must be float64"),
        ],
    )
    def test_damage_is_refused(self, tensors, message):
        with pytest.raises(ValueError, match=message):
            LinearMap.from_tensors(tensors)
