"""LAPACK routines in place, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg.blas
import scipy.linalg.lapack
from close import assert_close
from threadpoolctl import threadpool_info, threadpool_limits

from gramian import _arrays as xp
from gramian import _linalg as la
from gramian._arrays import RandomStream
from gramian._linalg import device, pooled, refined

SIZES = [1, 2, 7, 64, 129]
BEYOND_A_BLOCK = 1100  # triangles are copied in blocks of 256


def normal(*shape: int) -> np.ndarray:
    return RandomStream(0).standard_normal(shape, np.float64)


def positive(m: int) -> np.ndarray:
    G = normal(m, m)
    return G @ G.T + m * np.eye(m, dtype=np.float64)


def triangular(m: int) -> np.ndarray:
    """Return a well-conditioned matrix, full, whose triangles are both used."""
    return normal(m, m) / m + 2 * np.eye(m, dtype=np.float64)


def by_columns(A: np.ndarray) -> np.ndarray:
    """Return A itself in memory by columns (`la.by_columns` transposes: it is for symmetric A)."""
    return A.T.copy(order="C").T


@pytest.mark.parametrize("m", SIZES)
def test_cholesky_replaces_the_upper_triangle_only(m):
    P = la.by_columns(positive(m))
    A = xp.copy(P)
    la.cholesky_(P)
    R = np.triu(P)
    assert_close(R.T @ R, A)
    assert_close(np.tril(P, -1), np.tril(A, -1), rtol=0, atol=0)


def test_cholesky_of_an_indefinite_matrix():
    with pytest.raises(la.NotPositiveDefinite, match="pivot 3 of 3"):
        la.cholesky_(
            la.by_columns(np.diag(xp.to_float64(np.array([1.0, 2.0, -1.0], dtype=np.float32))))
        )


@pytest.mark.parametrize("m", SIZES)
def test_times_transpose(m):
    R = normal(m, m)
    P = by_columns(R)
    la.times_transpose_(P)
    U = np.triu(R)
    assert_close(np.triu(P), np.triu(U @ U.T))
    assert_close(np.tril(P, -1), np.tril(R, -1), rtol=0, atol=0)


def triangle(A: np.ndarray, *, lower: bool, transpose: bool, unit: bool) -> np.ndarray:
    R = np.tril(A) if lower else np.triu(A)
    if unit:
        R = R - np.diag(xp.diagonal(R)) + np.eye(len(R), dtype=R.dtype)
    return R.T if transpose else R


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("m", "t"), [(1, 1), (2, 5), (64, 1), (129, 3)])
def test_triangular_solve_and_product(m, t, lower, transpose, unit):
    A, b = triangular(m), normal(m, t)
    kept = xp.copy(b)
    how = {"lower": lower, "transpose": transpose, "unit": unit}
    R = triangle(A, **how)
    x = la.solve_triangular(by_columns(A), b, **how)
    assert_close(R @ x, b, rtol=1e-10, atol=1e-11)
    assert_close(la.times_triangular(by_columns(A), x, **how), b, rtol=1e-10, atol=1e-11)
    assert np.array_equal(b, kept)
    assert xp.is_contiguous(x)


def test_a_solution_in_place_needs_columns():
    R, b = by_columns(triangular(5)), normal(5, 3)
    x = by_columns(b)
    la.solve_triangular_(R, x, lower=False, transpose=False)
    assert_close(np.triu(R) @ x, b)
    with pytest.raises(TypeError, match="by columns"):
        la.solve_triangular_(R, b, lower=False, transpose=False)


@pytest.mark.parametrize("t", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("m", SIZES)
def test_solve_cholesky(m, t):
    A, b = positive(m), normal(m, t)
    P = la.by_columns(xp.copy(A))
    la.cholesky_(P)
    kept, x = xp.copy(b), la.solve_cholesky(P, b)
    assert_close(A @ x, b, rtol=1e-9, atol=1e-10)
    assert np.array_equal(b, kept)
    assert xp.is_contiguous(x)


@pytest.mark.parametrize("m", [*SIZES, BEYOND_A_BLOCK])
@pytest.mark.parametrize("mirror", ["upper", "lower"])
def test_mirror(m, mirror):
    A = normal(m, m)
    P = by_columns(A)
    getattr(la, f"mirror_{mirror}_")(P)
    half = np.triu(A) if mirror == "upper" else np.tril(A)
    assert np.array_equal(P, half + half.T - np.diag(xp.diagonal(A)))


def test_stacked_triangle_is_that_of_the_stack():
    blocks = [normal(5, 4), normal(1, 4) * 3, normal(9, 4) - 1]
    R = la.stacked_triangle(blocks)
    stack = np.concatenate(blocks)
    assert np.array_equal(R, np.triu(R))
    assert_close(R.T @ R, stack.T @ stack)


@pytest.mark.parametrize("m", [0, 1, 2, 40])
def test_eigenpairs(m):
    A = normal(m, m)
    A = A + A.T
    before = xp.copy(A)
    values, vectors = la.eigenpairs(A)
    assert np.array_equal(A, before)
    assert values.shape == (m,)
    assert np.array_equal(values, xp.sort(values))
    assert_close(vectors * values @ vectors.T, A, rtol=0, atol=1e-12 * max(m, 1))
    assert_close(vectors.T @ vectors, np.eye(m))
    assert_close(la.eigenvalues(A), values)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_require_finite(bad):
    K = normal(6, 4)
    la.require_finite(K)
    la.require_finite(np.full((2, 2), 1e308, dtype=np.float64))  # whose sum is not finite
    K[5, 3] = bad
    for function in (la.require_finite, la.prepare_):
        with pytest.raises(ValueError, match="not finite"):
            function(K)


class TestRefined:
    """The solution by a factor in float32 is that of one in float64."""

    @staticmethod
    def system(m: int, ridge: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        x = normal(m, 3)
        A = scale * np.exp(-np.square(xp.cdist(x, x)) / 8)
        xp.add_(xp.diagonal(A), scale * ridge)
        return la.by_columns(A), normal(m, 4)[:, 1:] * scale

    @pytest.mark.parametrize("pooled_from", [0.0, math.inf])
    @pytest.mark.parametrize("scale", [1.0, 1e60, 1e-60])
    @pytest.mark.parametrize("m", [1, 2, 300])
    def test_it_solves(self, m, scale, pooled_from, monkeypatch):
        monkeypatch.setattr(pooled, "BLOCK_ROWS", 64)
        monkeypatch.setattr(pooled, "LEAST_OPERATIONS", pooled_from)
        ridge = 1e-3
        A, b = self.system(m, ridge, scale)
        before = xp.copy(A)
        x = la.solve_refined(A, b, scale * ridge)
        assert np.array_equal(A, before)
        R = xp.copy(A)  # by columns, too
        la.cholesky_(R)
        expected = la.solve_cholesky(R, b)
        error, limit = xp.norm(b - A @ x, axis=0), la.FLOAT64_EPS * xp.norm(A) * xp.norm(x, axis=0)
        assert bool((error <= 8 * limit).all())
        assert_close(x, expected, rtol=0, atol=1e-9 * float(np.abs(expected).max()))

    def test_not_where_float32_is_too_coarse(self, monkeypatch):
        A, b = self.system(300, 1e-7)
        assert la.solve_refined(A, b, 1e-7) is None  # by the bound
        assert la.solve_refined(A, b, 1.0) is None  # or as it does not converge, or breaks down
        A, b = self.system(300, 1e-2)
        assert la.solve_refined(-A, b, 1.0) is None

    def test_a_column_of_zeros_is_solved_by_zeros(self):
        A, b = self.system(30, 1e-2)
        b[:, 1] = 0
        x = la.solve_refined(A, b, 1e-2)
        assert np.array_equal(x[:, 1], xp.to_float64(np.zeros(30, np.float32)))

    def test_entries_far_below_the_others_are_no_denormal_numbers(self):
        A, b = self.system(30, 1e-2)
        A[:15, 15:] = A[15:, :15] = 1e-42  # of float32 they would be
        factor = refined.HalfFactor.of(A, 1e-2)
        assert np.array_equal(factor.R[:15, 15:], np.zeros((15, 15), np.float32))
        assert_close(A @ la.solve_refined(A, b, 1e-2), b)


def condition(alpha: np.ndarray, beta: np.ndarray) -> float:
    """Return the condition number of the tridiagonal matrix behind steps of CG."""
    smallest, largest = la.extremes_of_lanczos(alpha, beta)
    return largest / smallest


class TestCondition:
    def test_no_steps(self):
        assert condition(np.empty(0, np.float32), np.empty(0, np.float32)) == 1

    def test_one_step(self):
        one = np.ones(1, np.float64)
        assert condition(0.3 * one, one) == 1

    def test_it_inverts_the_recurrence_of_conjugate_gradient(self):
        """The tridiagonal matrix has the eigenvalues of A once CG has seen all of them."""
        eigenvalues = np.array([1.0, 3.0, 10.0, 40.0])
        x, r = np.zeros(4), np.array([1.0, -2.0, 0.5, 1.0])
        p, alphas, betas = r, [], []
        for _ in range(4):
            alpha = r @ r / (p @ (eigenvalues * p))
            x, new = x + alpha * p, r - alpha * eigenvalues * p
            beta = new @ new / (r @ r)
            r, p = new, new + beta * p
            alphas.append(alpha)
            betas.append(beta)
        estimate = condition(np.array(alphas), np.array(betas))
        assert estimate == pytest.approx(40, rel=1e-9)

    def test_a_restart_cuts_the_recurrence_in_two(self):
        alpha, beta = (
            xp.to_float64(np.array([1.0, 0.1], dtype=np.float32)),
            xp.to_float64(np.zeros(2, np.float32)),
        )
        assert condition(alpha, beta) == pytest.approx(10)


def test_small_factorisations_leave_the_number_of_threads_as_it_was():
    before = [pool["num_threads"] for pool in threadpool_info()]
    la.cholesky_(la.by_columns(positive(20)))
    with pytest.raises(la.NotPositiveDefinite):
        la.cholesky_(-np.eye(3, dtype=np.float64))
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_what_is_far_below_rounding_is_flushed(dtype):
    K = np.array([[1e5, -1e-20, 1e-26], [-1e-20, 2.0, 0.0], [1e-26, 0.0, -3.0]], dtype=dtype)
    expected = np.array([[1e5, -1e-20, 0], [-1e-20, 2.0, 0.0], [0, 0.0, -3.0]], dtype=dtype)
    for function in (la.flush_tiny_, la.prepare_):
        flushed = xp.copy(K)
        function(flushed)
        assert np.array_equal(flushed, expected)


def test_flushing_goes_over_all_blocks():
    K = np.eye(1500, dtype=np.float64) + 1e-40
    la.flush_tiny_(K)
    assert np.array_equal(K, np.eye(1500, dtype=np.float64))


class TestPooled:
    """The block algorithms of the workers, against LAPACK on one thread."""

    SIZES = (15, 21, 22, 40)

    @pytest.fixture(autouse=True, params=[1, 2, 3])
    def workers(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set the number of workers, and blocks of 7 rows from the first operation on."""
        monkeypatch.setattr(pooled, "default_threads", lambda: request.param)
        monkeypatch.setattr(pooled, "BLOCK_ROWS", 7)
        monkeypatch.setattr(pooled, "LEAST_OPERATIONS", 0.0)

    @pytest.fixture(autouse=True)
    def without_lapack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Remove the functions that blocks replace."""
        for name in ("dpotrf", "spotrf", "dlauum", "dtrtri"):
            monkeypatch.delattr(scipy.linalg.lapack, name)
        for name in ("dsyrk", "dtrmm"):
            monkeypatch.delattr(scipy.linalg.blas, name)

    @pytest.mark.parametrize("m", SIZES)
    def test_cholesky(self, m):
        A = positive(m)
        R = la.by_columns(xp.copy(A))
        la.cholesky_(R)
        assert_close(np.triu(R).T @ np.triu(R), A)
        assert_close(np.tril(R, -1), np.tril(A, -1), rtol=0, atol=0)

    def test_cholesky_in_float32(self):
        A = xp.cast(positive(22), xp.float32)
        R = la.by_columns(xp.copy(A))
        assert pooled.cholesky_(R) == 0
        assert_close(np.triu(R).T @ np.triu(R), A, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("bad", [0, 6, 7, 20])
    def test_cholesky_names_the_pivot(self, bad):
        A = la.by_columns(positive(21))
        A[bad, bad] = -1e3
        with pytest.raises(la.NotPositiveDefinite, match=f"pivot {bad + 1} of 21"):
            la.cholesky_(A)

    @pytest.mark.parametrize("m", SIZES)
    @pytest.mark.parametrize("layout", ["rows", "columns", "part of rows", "strided", "float32"])
    @pytest.mark.parametrize("s", [1, 9])
    def test_add_outer(self, m, s, layout):
        P, whole = positive(m), normal(m, 2 * s)
        S = {
            "rows": xp.copy_by_rows(whole[:, :s]),
            "columns": by_columns(whole[:, :s]),
            "part of rows": whole[:, :s],
            "strided": whole[:, ::2],
            "float32": xp.cast(whole[:, :s], xp.float32),
        }[layout]
        wide, found = xp.to_float64(S), by_columns(P)
        la.add_outer_(found, S, -0.5)
        assert_close(found, np.triu(P - 0.5 * wide @ wide.T) + np.tril(P, -1))

    def test_solve_triangular_of_other_layouts(self):
        A, b = triangular(22), xp.cast(normal(22, 16), xp.float32)
        for R in (A, by_columns(A), by_columns(xp.cast(A, xp.float32))):
            x = la.solve_triangular(R, b, lower=False, transpose=False)
            assert_close(np.triu(xp.to_float64(R)) @ x, xp.to_float64(b))

    def test_matrices_that_a_routine_would_misread_are_refused(self):
        with pytest.raises(TypeError, match="by columns"):
            pooled.cholesky_(positive(20)[:, ::2][::2])
        with pytest.raises(TypeError, match="float"):
            pooled.times_triangle_(xp.cast(normal(20, 9), xp.float32), by_columns(triangular(9)))

    @pytest.mark.parametrize("m", SIZES)
    def test_times_transpose(self, m):
        A = triangular(m)
        R, U = by_columns(A), np.triu(A)
        la.times_transpose_(R)
        assert_close(R, np.triu(U @ U.T) + np.tril(A, -1))

    @pytest.mark.parametrize("m", SIZES)
    def test_invert_triangle(self, m):
        A = triangular(m)
        R = by_columns(A)
        la.invert_triangle_(R)
        assert_close(R, np.triu(np.linalg.inv(np.triu(A))) + np.tril(A, -1), atol=1e-12)

    @pytest.mark.parametrize("m", SIZES)
    def test_times_triangle(self, m):
        A, K = triangular(m), normal(20, m)
        found = xp.copy(K)
        la.times_triangle_(found, by_columns(A))
        assert_close(found, K @ np.triu(A))

    @pytest.mark.parametrize("unit", [False, True])
    @pytest.mark.parametrize("transpose", [False, True])
    @pytest.mark.parametrize("lower", [False, True])
    @pytest.mark.parametrize("b_by_rows", [False, True])
    def test_solve_triangular(self, b_by_rows, lower, transpose, unit, monkeypatch):
        monkeypatch.delattr(scipy.linalg.lapack, "dtrtrs")
        A, b = triangular(22), normal(22, 16)
        kind = {"lower": lower, "transpose": transpose, "unit": unit}
        before = b if b_by_rows else by_columns(b)
        x = la.solve_triangular(by_columns(A), before, **kind)
        assert_close(triangle(A, **kind) @ x, b)
        assert np.array_equal(before, b)


def test_workers_change_no_bit_of_a_factor(monkeypatch):
    """Whole blocks of the real size: the sums of a block are the same for any worker."""
    A, factors = positive(1100), []
    for workers in (1, 2, 3):
        monkeypatch.setattr(pooled, "default_threads", lambda workers=workers: workers)
        R = la.by_columns(xp.copy(A))
        la.cholesky_(R)
        la.invert_triangle_(R)
        la.times_transpose_(R)
        factors.append(R)
    assert np.array_equal(factors[0], factors[1])
    assert np.array_equal(factors[0], factors[2])


def test_the_blas_has_one_thread_between_blocks(monkeypatch):
    """Threads of a BLAS that wait at its barriers took seconds on a busy machine."""
    threads, factorise = [], pooled._factorise_

    def count(A: np.ndarray) -> int:
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        threads.extend(pool["num_threads"] for pool in pools)
        return factorise(A)

    monkeypatch.setattr(pooled, "_factorise_", count)
    with threadpool_limits(2, user_api="blas"):
        assert pooled.cholesky_(la.by_columns(positive(300))) == 0
    assert set(threads) == {1}


class TestOnADevice:
    """The block algorithms for a device, on the host, against LAPACK."""

    SIZES = (1, 6, 7, 8, 23)

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device, "BLOCK_ROWS", 7)

    @staticmethod
    def matrix(m: int) -> np.ndarray:
        B = RandomStream(m).standard_normal((m, m + 3), np.float64)
        return B @ B.T

    @pytest.mark.parametrize("m", SIZES)
    def test_cholesky_leaves_the_lower_triangle(self, m):
        expected, A = la.by_columns(self.matrix(m)), la.by_columns(self.matrix(m))
        for K in (expected, A):
            K[np.tril_indices(m, -1)] = 7.0
        la.cholesky_(expected)
        assert device.cholesky_(A) == 0
        assert_close(A, expected, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("bad", [0, 5, 7, 20])
    def test_cholesky_tells_the_pivot(self, bad):
        A = la.by_columns(np.eye(23, dtype=np.float64))
        A[bad, bad] = -1.0
        assert device.cholesky_(A) == bad + 1

    @pytest.mark.parametrize("m", SIZES)
    def test_times_transpose(self, m):
        expected, R = la.by_columns(self.matrix(m)), la.by_columns(self.matrix(m))
        la.times_transpose_(expected)
        device.times_transpose_(R)
        assert_close(R, expected)

    @pytest.mark.parametrize("m", SIZES)
    def test_invert_triangle(self, m):
        R = la.by_columns(self.matrix(m))
        below, expected = np.tril(R, -1), np.linalg.inv(np.triu(R))
        device.invert_triangle_(R)
        assert_close(np.triu(R), expected, rtol=1e-6, atol=1e-10)
        assert_close(np.tril(R, -1), below, rtol=0, atol=0)

    @pytest.mark.parametrize("m", SIZES)
    def test_inverse_diagonal(self, m):
        R = la.by_columns(np.tril(self.matrix(m)))
        found = device.inverse_diagonal(R)
        assert_close(found, xp.diagonal(np.linalg.inv(R.T @ R)), rtol=1e-6, atol=0)

    @pytest.mark.parametrize("m", SIZES)
    @pytest.mark.parametrize("lower", [False, True])
    @pytest.mark.parametrize("transpose", [False, True])
    @pytest.mark.parametrize("unit", [False, True])
    def test_triangles(self, m, lower, transpose, unit):
        R, b = (
            la.by_columns(self.matrix(m) / m + np.eye(m, dtype=np.float32)),
            xp.to_float64(np.ones((m, 2), np.float32)),
        )
        kind = {"lower": lower, "transpose": transpose, "unit": unit}
        solved, times = device.solve_triangular(R, b, **kind), device.times_triangular(R, b, **kind)
        assert_close(solved, la.solve_triangular(R, b, **kind), rtol=1e-8, atol=1e-8)
        assert_close(times, la.times_triangular(R, b, **kind))

    def test_top_eigenpairs(self):
        A = self.matrix(23)
        values, vectors = device.top_eigenpairs(A, 4)
        expected = xp.flip(np.linalg.eigvalsh(A), 0)[:4]
        assert_close(values, expected)
        assert_close(A @ vectors, vectors * values)
