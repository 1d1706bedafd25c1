"""Operations on compressed sparse rows against the same on dense matrices."""

from __future__ import annotations

import pytest
import scipy.sparse
import torch
from torch import Tensor

from gramian import _sparse
from gramian.data import SparseRows

SHAPES = [(1, 1), (1, 7), (13, 1), (11, 5), (30, 17)]


def both(n: int, d: int, dtype: torch.dtype, rng: torch.Generator, density: float = 0.3):
    """Return one matrix twice: compressed rows, some of them empty, and dense."""
    dense = torch.randn(n, d, generator=rng, dtype=torch.float64).to(dtype)
    dense[torch.rand(n, d, generator=rng) > density] = 0.0
    dense[n // 2] = 0.0
    return sparse(dense), dense


def sparse(dense: Tensor) -> Tensor:
    rows = SparseRows(scipy.sparse.csr_matrix(dense.numpy()))
    return rows.take(torch.arange(len(dense)))


def check(actual: Tensor, expected: Tensor) -> None:
    """Check the values and that the result is a valid matrix of compressed rows."""
    assert _sparse.is_sparse(actual)
    assert actual.dtype == expected.dtype
    rebuilt = torch.sparse_csr_tensor(
        actual.crow_indices(),
        actual.col_indices(),
        actual.values(),
        size=actual.shape,
        check_invariants=True,
    )
    assert torch.equal(rebuilt.to_dense(), expected)


def test_is_sparse(dtype, rng):
    for x, expected in zip(both(3, 2, dtype, rng), (True, False), strict=True):
        assert _sparse.is_sparse(x) is expected


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_slice_rows(n, d, dtype, rng):
    x, dense = both(n, d, dtype, rng)
    for start, stop in [(0, n), (0, 1), (n // 2, n), (n // 2, n // 2 + 1), (n - 1, n), (0, 0)]:
        check(_sparse.slice_rows(x, start, stop), dense[start:stop])
        assert torch.equal(_sparse.slice_rows(dense, start, stop), dense[start:stop])


def test_slices_of_slices(dtype, rng):
    x, dense = both(20, 4, dtype, rng)
    check(_sparse.slice_rows(_sparse.slice_rows(x, 3, 17), 5, 9), dense[8:12])


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_scale_columns(n, d, dtype, rng):
    x, dense = both(n, d, dtype, rng)
    for factor in (torch.tensor(-2.5, dtype=dtype), torch.rand(d, generator=rng, dtype=dtype) + 1):
        check(_sparse.scale_columns(x, factor), dense * factor)
        assert torch.equal(_sparse.scale_columns(dense, factor), dense * factor)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_squared_norms(n, d, dtype, rng, tol):
    x, dense = both(n, d, dtype, rng)
    expected = dense.double().square().sum(dim=1).to(dtype)
    for form in (x, dense):
        torch.testing.assert_close(
            _sparse.squared_norms(form), expected, rtol=tol(dtype, d + 1), atol=0
        )


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_append_columns(n, d, k, dtype, rng):
    x, dense = both(n, d, dtype, rng)
    columns = [torch.randn(n, generator=rng, dtype=dtype) for _ in range(k)]
    expected = torch.cat([dense, torch.stack(columns, dim=1)], dim=1)
    check(_sparse.append_columns(x, *columns), expected)
    assert torch.equal(_sparse.append_columns(dense, *columns), expected)


def test_append_to_a_matrix_without_entries(dtype):
    x = sparse(torch.zeros(4, 3, dtype=dtype))
    column = torch.arange(4, dtype=dtype)
    expected = torch.cat([torch.zeros(4, 3, dtype=dtype), column[:, None]], dim=1)
    check(_sparse.append_columns(x, column), expected)


@pytest.mark.parametrize("target", [torch.float32, torch.float64])
def test_cast(target, dtype, rng):
    x, dense = both(9, 4, dtype, rng)
    check(_sparse.cast(x, target), dense.to(target))
    assert torch.equal(_sparse.cast(dense, target), dense.to(target))
    assert (_sparse.cast(x, target) is x) == (target == dtype)  # no copy where none is needed


def test_arguments_are_left_alone(dtype, rng):
    x, dense = both(9, 4, dtype, rng)
    _sparse.scale_columns(x, torch.tensor(3.0, dtype=dtype))
    _sparse.append_columns(x, torch.ones(9, dtype=dtype))
    _sparse.squared_norms(x)
    check(x, dense)


class TestProduct:
    """Products of sparse rows with a sparse matrix, compiled and by SciPy."""

    @pytest.fixture(params=["compiled", "scipy"])
    def product(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
        if request.param == "scipy":
            monkeypatch.setattr(_sparse, "_compiled", lambda: None)
        elif _sparse._compiled() is None:
            pytest.skip("the compiled tiles are not installed")
        return _sparse.product

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize(("n", "u", "m"), [(1, 1, 1), (7, 1, 3), (5, 30, 2), (40, 17, 29)])
    def test_it_is_that_of_dense_matrices(self, product, n, u, m, dtype, rng):
        (a, dense_a), (b, dense_b) = both(n, u, dtype, rng), both(u, m, dtype, rng)
        found = product(a, b)
        assert found.dtype == dtype
        torch.testing.assert_close(found, dense_a @ dense_b)

    @pytest.mark.parametrize("n", [0, 4])
    def test_without_rows_or_entries(self, product, n):
        a, b = sparse(torch.zeros(4, 3)), sparse(torch.zeros(3, 4))
        a = _sparse.slice_rows(a, 0, n)
        found = product(a, b)
        assert found.shape == (n, 4)
        assert not bool(found.any())


@pytest.mark.skipif(_sparse._compiled() is None, reason="the compiled tiles are not installed")
@pytest.mark.parametrize("part", range(6))
def test_compiled_products_refuse_what_is_no_matrix(part, rng):
    (a, _), (b, _) = both(5, 7, torch.float64, rng), both(7, 3, torch.float64, rng)
    given = [*_sparse._stored(a), *_sparse._stored(b)]
    given[part] = given[part].clone()
    given[part] = given[part][:-1] if part % 3 == 2 else given[part] + 7
    with pytest.raises(ValueError, match=r"the (left|right) matrix must be"):
        _sparse._compiled().sparse_product(*given, torch.empty(5, 3, dtype=torch.float64))


@pytest.mark.parametrize("known", [[], [0], [3, 5, 2**40], list(range(0, 3000, 7))])
@pytest.mark.parametrize("compiled", [True, False])
def test_numbers_of_known_values(known, compiled, monkeypatch, rng):
    if not compiled:
        monkeypatch.setattr(_sparse, "_compiled", lambda: None)
    values = torch.randint(0, 4000, (500,), generator=rng)
    values[:3] = torch.tensor([0, 5, 2**40])
    found = _sparse._numbers(values, torch.tensor(known, dtype=torch.int64))
    assert found.tolist() == [known.index(v) if v in known else -1 for v in values.tolist()]
