"""Operations on compressed sparse rows against the same on dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian import _sparse
from gramian._arrays import RandomStream
from gramian._sparse import products
from gramian._sparse.rows import stored_parts
from gramian.data import SparseRows

SHAPES = [(1, 1), (1, 7), (13, 1), (11, 5), (30, 17)]


def both(n: int, d: int, dtype: np.dtype, rng: RandomStream, density: float = 0.3):
    """Return one matrix twice: compressed rows, some of them empty, and dense."""
    dense = xp.cast(rng.standard_normal((n, d), np.float64), dtype)
    dense[rng.random((n, d), np.float32) > density] = 0.0
    dense[n // 2] = 0.0
    return sparse(dense), dense


def sparse(dense: np.ndarray) -> np.ndarray:
    rows = SparseRows(scipy.sparse.csr_matrix(dense))
    return rows.take(np.arange(len(dense)))


def check(actual: np.ndarray, expected: np.ndarray) -> None:
    """Check the values and that the result is a valid matrix of compressed rows."""
    assert _sparse.is_sparse(actual)
    assert actual.dtype == expected.dtype
    actual.check()
    assert np.array_equal(xp.to_dense(actual), expected)


def test_is_sparse(dtype, rng):
    for x, expected in zip(both(3, 2, dtype, rng), (True, False), strict=True):
        assert _sparse.is_sparse(x) is expected


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_slice_rows(n, d, dtype, rng):
    x, dense = both(n, d, dtype, rng)
    for start, stop in [(0, n), (0, 1), (n // 2, n), (n // 2, n // 2 + 1), (n - 1, n), (0, 0)]:
        check(_sparse.slice_rows(x, start, stop), dense[start:stop])
        assert np.array_equal(_sparse.slice_rows(dense, start, stop), dense[start:stop])


def test_slices_of_slices(dtype, rng):
    x, dense = both(20, 4, dtype, rng)
    check(_sparse.slice_rows(_sparse.slice_rows(x, 3, 17), 5, 9), dense[8:12])


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_scale_columns(n, d, dtype, rng):
    x, dense = both(n, d, dtype, rng)
    for factor in (np.array(-2.5, dtype=dtype), rng.random(d, dtype) + 1):
        check(_sparse.scale_columns(x, factor), dense * factor)
        assert np.array_equal(_sparse.scale_columns(dense, factor), dense * factor)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_squared_norms(n, d, dtype, rng, tol):
    x, dense = both(n, d, dtype, rng)
    expected = xp.cast(np.square(xp.to_float64(dense)).sum(axis=1), dtype)
    for form in (x, dense):
        assert_close(_sparse.squared_norms(form), expected, rtol=tol(dtype, d + 1), atol=0)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_append_columns(n, d, k, dtype, rng):
    x, dense = both(n, d, dtype, rng)
    columns = [rng.standard_normal(n, dtype) for _ in range(k)]
    expected = np.concatenate([dense, np.stack(columns, axis=1)], axis=1)
    check(_sparse.append_columns(x, *columns), expected)
    assert np.array_equal(_sparse.append_columns(dense, *columns), expected)


def test_append_to_a_matrix_without_entries(dtype):
    x = sparse(np.zeros((4, 3), dtype))
    column = np.arange(4, dtype=dtype)
    expected = np.concatenate([np.zeros((4, 3), dtype), column[:, None]], axis=1)
    check(_sparse.append_columns(x, column), expected)


@pytest.mark.parametrize("target", [np.float32, np.float64])
def test_cast(target, dtype, rng):
    x, dense = both(9, 4, dtype, rng)
    check(_sparse.cast(x, target), xp.cast(dense, target))
    assert np.array_equal(_sparse.cast(dense, target), xp.cast(dense, target))
    assert (_sparse.cast(x, target) is x) == (target == dtype)  # no copy where none is needed


def test_arguments_are_left_alone(dtype, rng):
    x, dense = both(9, 4, dtype, rng)
    _sparse.scale_columns(x, np.array(3.0, dtype=dtype))
    _sparse.append_columns(x, np.ones(9, dtype))
    _sparse.squared_norms(x)
    check(x, dense)


class TestProduct:
    """Products of sparse rows with a sparse matrix, compiled and by SciPy."""

    @pytest.fixture(params=["compiled", "scipy"])
    def product(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
        if request.param == "scipy":
            monkeypatch.setattr(products, "load_compiled", lambda: None)
        elif products.load_compiled() is None:
            pytest.skip("the compiled tiles are not installed")
        return _sparse.product

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize(("n", "u", "m"), [(1, 1, 1), (7, 1, 3), (5, 30, 2), (40, 17, 29)])
    def test_it_is_that_of_dense_matrices(self, product, n, u, m, dtype, rng):
        (a, dense_a), (b, dense_b) = both(n, u, dtype, rng), both(u, m, dtype, rng)
        found = product(a, b)
        assert found.dtype == dtype
        assert_close(found, dense_a @ dense_b)

    @pytest.mark.parametrize("n", [0, 4])
    def test_without_rows_or_entries(self, product, n):
        a, b = sparse(np.zeros((4, 3), np.float32)), sparse(np.zeros((3, 4), np.float32))
        a = _sparse.slice_rows(a, 0, n)
        found = product(a, b)
        assert found.shape == (n, 4)
        assert not bool(found.any())


def _instructions() -> list[str]:
    native = products.load_compiled()
    return [] if native is None else native.instructions()


needs_compiled = pytest.mark.skipif(
    products.load_compiled() is None, reason="the compiled tiles are not installed"
)


@needs_compiled
@pytest.mark.parametrize("instructions", _instructions())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 8, 77, 300])
def test_products_of_all_instruction_sets(instructions, dtype, m, rng):
    (a, dense_a), (b, dense_b) = both(9, 30, dtype, rng), both(30, m, dtype, rng)
    dense_b[:, :] = np.where(np.arange(30)[:, None] % 3 == 0, 0.5, dense_b)  # full rows
    b, out = sparse(dense_b), np.empty((9, m), dtype)
    right = products.load_compiled().SparseRight(instructions, *stored_parts(b), m)
    right.product(*stored_parts(a), out)
    assert_close(out, dense_a @ dense_b)


@needs_compiled
@pytest.mark.parametrize("part", range(6))
def test_compiled_products_refuse_what_is_no_matrix(part, rng):
    (a, _), (b, _) = both(5, 7, np.float64, rng), both(7, 3, np.float64, rng)
    given = [*stored_parts(a), *stored_parts(b)]
    given[part] = xp.copy(given[part])
    given[part] = given[part][:-1] if part % 3 == 2 else given[part] + 7
    native = products.load_compiled()
    refused = pytest.raises(ValueError, match=r"the (left|right) matrix must be")
    if part < 3:
        right, out = (
            native.SparseRight("best", *given[3:], 3),
            xp.to_float64(np.empty((5, 3), np.float32)),
        )
        with refused:
            right.product(*given[:3], out)
    else:
        with refused:
            native.SparseRight("best", *given[3:], 3)


@needs_compiled
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4, 3), np.float64), ((5, 2), np.float64), ((5, 3), np.float32)],
)
def test_compiled_products_refuse_another_place(shape, dtype, rng):
    (a, _), (b, _) = both(5, 7, np.float64, rng), both(7, 3, np.float64, rng)
    right = products.load_compiled().SparseRight("best", *stored_parts(b), 3)
    with pytest.raises(ValueError, match="out must be of the shape and dtype"):
        right.product(*stored_parts(a), np.empty(shape, dtype))


def test_compiled_code_of_older_sources_is_not_taken(monkeypatch, caplog):
    products.load_compiled.cache_clear()
    monkeypatch.setattr("gramian._arrays.elementwise.NATIVE_MODULE", "math")
    assert products.load_compiled() is None
    assert "built from older sources" in caplog.text
    products.load_compiled.cache_clear()


@pytest.mark.parametrize("known", [[], [0], [3, 5, 2**40, 5], list(range(0, 3000, 7))])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_in_known_columns(known, compiled, dtype, monkeypatch, rng):
    if not compiled:
        monkeypatch.setattr(products, "load_compiled", lambda: None)
    d = 2**41
    start = np.array([0, len(known)])
    right = xp.csr(start, np.array(known, dtype=np.int64), np.ones(len(known), np.float32), (1, d))
    columns = 0 + rng.integers(4000 - 0, size=(500,))
    columns[:3] = np.array([0, 5, 2**40])
    values = xp.cast(rng.random(500, np.float32), dtype)
    left = xp.csr(np.array([0, 200, 200, 500]), columns, values, (3, d))
    shared = _sparse.Columns(right)
    found = shared.of(left)
    assert found.shape == (3, len(set(known)))
    assert found.dtype == dtype
    here = np.array([v in known for v in columns.tolist()])
    assert xp.entries(found).tolist() == values[here].tolist()
    expected = np.array([0, *(int(here[:stop].sum()) for stop in (200, 200, 500))])
    assert np.array_equal(xp.indptr(found), expected)
    number = dict(zip(known, xp.indices(shared.rows).tolist(), strict=True))
    assert xp.indices(found).tolist() == [number[v] for v in columns[here].tolist()]


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_times(t, dtype, rng):
    x, dense = both(9, 20, dtype, rng)
    v, u = (
        xp.to_float64(rng.random((20, t), np.float32)),
        xp.to_float64(rng.random((9, t), np.float32)),
    )
    assert_close(_sparse.times(x, v), xp.to_float64(dense) @ v)
    assert_close(_sparse.transposed_times(x, u), xp.to_float64(dense).T @ u)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("given", ["w", "targets", "w targets", "w weights", "w targets weights"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_products_of_shared_columns(compiled, given, dtype, monkeypatch, rng):
    if not compiled:
        monkeypatch.setattr(products, "load_compiled", lambda: None)
    (x, dense_x), (z, _) = both(9, 40, dtype, rng), both(5, 40, dtype, rng)
    known = _sparse.Columns(z)
    X = xp.to_float64(xp.to_dense(known.of(x)))
    assert 0 < known.rows.shape[1] < 40
    assert not np.array_equal(X.sum(axis=1), xp.to_float64(dense_x).sum(axis=1))
    w = rng.random((X.shape[1], 2), np.float32) if "w " in given + " " else None
    y = rng.random((9, 2), np.float32) if "targets" in given else None
    weights = rng.random(9, np.float32) if "weights" in given else None
    u = xp.to_float64(np.zeros((9, 2), np.float32)) if w is None else X @ xp.to_float64(w)
    u = u if y is None else u - y
    u = u if weights is None else u * weights[:, None]
    assert_close(known.normal(x, w, weights, y), X.T @ u)
