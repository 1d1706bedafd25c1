"""LAPACK routines in place, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg.lapack
import torch
from threadpoolctl import threadpool_info
from torch import Tensor

from gramian import _linalg as la
from gramian._linalg import dense, device, refined

SIZES = [1, 2, 7, 64, 129]
BEYOND_A_BLOCK = 1100  # triangles are copied in blocks of 256


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def positive(m: int) -> Tensor:
    G = normal(m, m)
    return G @ G.T + m * torch.eye(m, dtype=torch.float64)


def triangular(m: int) -> Tensor:
    """Return a well-conditioned matrix, full, whose triangles are both used."""
    return normal(m, m) / m + 2 * torch.eye(m, dtype=torch.float64)


def by_columns(A: Tensor) -> Tensor:
    """Return A itself in memory by columns (`la.by_columns` transposes: it is for symmetric A)."""
    return A.t().clone(memory_format=torch.contiguous_format).t()


@pytest.mark.parametrize("m", SIZES)
def test_cholesky_replaces_the_upper_triangle_only(m):
    P = la.by_columns(positive(m))
    A = P.clone()
    la.cholesky_(P)
    R = P.triu()
    torch.testing.assert_close(R.T @ R, A)
    torch.testing.assert_close(P.tril(-1), A.tril(-1), rtol=0, atol=0)


def test_cholesky_of_an_indefinite_matrix():
    with pytest.raises(la.NotPositiveDefinite, match="pivot 3 of 3"):
        la.cholesky_(la.by_columns(torch.diag(torch.tensor([1.0, 2.0, -1.0]).double())))


@pytest.mark.parametrize("m", SIZES)
def test_times_transpose(m):
    R = normal(m, m)
    P = by_columns(R)
    la.times_transpose_(P)
    U = R.triu()
    torch.testing.assert_close(P.triu(), (U @ U.T).triu())
    torch.testing.assert_close(P.tril(-1), R.tril(-1), rtol=0, atol=0)


def triangle(A: Tensor, *, lower: bool, transpose: bool, unit: bool) -> Tensor:
    R = A.tril() if lower else A.triu()
    if unit:
        R = R - torch.diag(R.diagonal()) + torch.eye(len(R), dtype=R.dtype)
    return R.T if transpose else R


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("m", "t"), [(1, 1), (2, 5), (64, 1), (129, 3)])
def test_triangular_solve_and_product(m, t, lower, transpose, unit):
    A, b = triangular(m), normal(m, t)
    kept = b.clone()
    how = {"lower": lower, "transpose": transpose, "unit": unit}
    R = triangle(A, **how)
    x = la.solve_triangular(by_columns(A), b, **how)
    torch.testing.assert_close(R @ x, b, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(
        la.times_triangular(by_columns(A), x, **how), b, rtol=1e-10, atol=1e-11
    )
    assert torch.equal(b, kept)
    assert x.is_contiguous()


@pytest.mark.parametrize("t", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("m", SIZES)
def test_solve_cholesky(m, t):
    A, b = positive(m), normal(m, t)
    P = la.by_columns(A.clone())
    la.cholesky_(P)
    kept, x = b.clone(), la.solve_cholesky(P, b)
    torch.testing.assert_close(A @ x, b, rtol=1e-9, atol=1e-10)
    assert torch.equal(b, kept)
    assert x.is_contiguous()


@pytest.mark.parametrize("m", [*SIZES, BEYOND_A_BLOCK])
@pytest.mark.parametrize("mirror", ["upper", "lower"])
def test_mirror(m, mirror):
    A = normal(m, m)
    P = by_columns(A)
    getattr(la, f"mirror_{mirror}_")(P)
    half = A.triu() if mirror == "upper" else A.tril()
    assert torch.equal(P, half + half.T - torch.diag(A.diagonal()))


def test_stacked_triangle_is_that_of_the_stack():
    blocks = [normal(5, 4), normal(1, 4) * 3, normal(9, 4) - 1]
    R = la.stacked_triangle(blocks)
    stack = torch.cat(blocks)
    assert torch.equal(R, R.triu())
    torch.testing.assert_close(R.T @ R, stack.T @ stack)


@pytest.mark.parametrize("rows", [1, dense.EIGEN_ROWS])  # by SciPy, and by torch
@pytest.mark.parametrize("m", [0, 1, 2, 40])
def test_eigenpairs(m, rows, monkeypatch):
    monkeypatch.setattr(dense, "EIGEN_ROWS", rows)
    A = normal(m, m)
    A = A + A.T
    before = A.clone()
    values, vectors = la.eigenpairs(A)
    assert torch.equal(A, before)
    assert values.shape == (m,)
    assert torch.equal(values, values.sort().values)
    torch.testing.assert_close(vectors * values @ vectors.T, A, rtol=0, atol=1e-12 * max(m, 1))
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(m).double())
    torch.testing.assert_close(la.eigenvalues(A), values)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_require_finite(bad):
    K = normal(6, 4)
    la.require_finite(K)
    la.require_finite(torch.full((2, 2), 1e308, dtype=torch.float64))  # whose sum is not finite
    K[5, 3] = bad
    for function in (la.require_finite, la.prepare_):
        with pytest.raises(ValueError, match="not finite"):
            function(K)


class TestRefined:
    """The solution by a factor in float32 is that of one in float64."""

    @staticmethod
    def system(m: int, ridge: float, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        x = normal(m, 3)
        A = scale * torch.exp(-torch.cdist(x, x).square() / 8)
        A.diagonal().add_(scale * ridge)
        return la.by_columns(A), normal(m, 4)[:, 1:] * scale

    @pytest.mark.parametrize("rows", [0, dense.LAPACK_ROWS])
    @pytest.mark.parametrize("scale", [1.0, 1e60, 1e-60])
    @pytest.mark.parametrize("m", [1, 2, 300])
    def test_it_solves(self, m, scale, rows, monkeypatch):
        monkeypatch.setattr(dense, "LAPACK_ROWS", rows)
        ridge = 1e-3
        A, b = self.system(m, ridge, scale)
        before = A.clone()
        x = la.solve_refined(A, b, scale * ridge)
        assert torch.equal(A, before)
        R = A.clone()  # by columns, too
        la.cholesky_(R)
        expected = la.solve_cholesky(R, b)
        error, limit = (b - A @ x).norm(dim=0), la.FLOAT64_EPS * A.norm() * x.norm(dim=0)
        assert bool((error <= 8 * limit).all())
        torch.testing.assert_close(x, expected, rtol=0, atol=1e-9 * float(expected.abs().max()))

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
        assert torch.equal(x[:, 1], torch.zeros(30).double())

    def test_entries_far_below_the_others_are_no_denormal_numbers(self):
        A, b = self.system(30, 1e-2)
        A[:15, 15:] = A[15:, :15] = 1e-42  # of float32 they would be
        factor = refined.HalfFactor.of(A, 1e-2)
        assert torch.equal(factor.R[:15, 15:], torch.zeros(15, 15))
        torch.testing.assert_close(A @ la.solve_refined(A, b, 1e-2), b)


class TestCondition:
    def test_no_steps(self):
        assert la.condition_of_lanczos(torch.empty(0), torch.empty(0)) == 1

    def test_one_step(self):
        one = torch.ones(1, dtype=torch.float64)
        assert la.condition_of_lanczos(0.3 * one, one) == 1

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
        estimate = la.condition_of_lanczos(torch.tensor(alphas), torch.tensor(betas))
        assert estimate == pytest.approx(40, rel=1e-9)

    def test_a_restart_cuts_the_recurrence_in_two(self):
        alpha, beta = torch.tensor([1.0, 0.1]).double(), torch.zeros(2).double()
        assert la.condition_of_lanczos(alpha, beta) == pytest.approx(10)


def test_small_factorisations_leave_the_number_of_threads_as_it_was():
    before = [pool["num_threads"] for pool in threadpool_info()]
    la.cholesky_(la.by_columns(positive(20)))
    with pytest.raises(la.NotPositiveDefinite):
        la.cholesky_(-torch.eye(3, dtype=torch.float64))
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_what_is_far_below_rounding_is_flushed(dtype):
    K = torch.tensor([[1e5, -1e-20, 1e-26], [-1e-20, 2.0, 0.0], [1e-26, 0.0, -3.0]], dtype=dtype)
    expected = torch.tensor([[1e5, -1e-20, 0], [-1e-20, 2.0, 0.0], [0, 0.0, -3.0]], dtype=dtype)
    for function in (la.flush_tiny_, la.prepare_):
        flushed = K.clone()
        function(flushed)
        assert torch.equal(flushed, expected)


def test_flushing_goes_over_all_blocks():
    K = torch.eye(1500, dtype=torch.float64) + 1e-40
    la.flush_tiny_(K)
    assert torch.equal(K, torch.eye(1500, dtype=torch.float64))


class TestOnADevice:
    """The block algorithms for a device, on the host, against LAPACK."""

    SIZES = (1, 6, 7, 8, 23)

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device, "BLOCK_ROWS", 7)

    @staticmethod
    def matrix(m: int) -> Tensor:
        B = torch.randn(m, m + 3, dtype=torch.float64, generator=torch.Generator().manual_seed(m))
        return B @ B.t()

    @pytest.mark.parametrize("m", SIZES)
    def test_cholesky_leaves_the_lower_triangle(self, m):
        expected, A = la.by_columns(self.matrix(m)), la.by_columns(self.matrix(m))
        for K in (expected, A):
            K[tuple(torch.tril_indices(m, m, -1))] = 7.0
        la.cholesky_(expected)
        assert device.cholesky_(A) == 0
        torch.testing.assert_close(A, expected, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("bad", [0, 5, 7, 20])
    def test_cholesky_tells_the_pivot(self, bad):
        A = la.by_columns(torch.eye(23, dtype=torch.float64))
        A[bad, bad] = -1.0
        assert device.cholesky_(A) == bad + 1

    @pytest.mark.parametrize("m", SIZES)
    def test_times_transpose(self, m):
        expected, R = la.by_columns(self.matrix(m)), la.by_columns(self.matrix(m))
        la.times_transpose_(expected)
        device.times_transpose_(R)
        torch.testing.assert_close(R, expected)

    @pytest.mark.parametrize("m", SIZES)
    def test_invert_triangle(self, m):
        R = la.by_columns(self.matrix(m))
        below, expected = R.tril(-1), torch.linalg.inv(R.triu())
        device.invert_triangle_(R)
        torch.testing.assert_close(R.triu(), expected, rtol=1e-6, atol=1e-10)
        torch.testing.assert_close(R.tril(-1), below, rtol=0, atol=0)

    @pytest.mark.parametrize("m", SIZES)
    def test_triangles_too_large_for_lapack_are_factorised_by_blocks(self, m, monkeypatch):
        A = self.matrix(m)
        for name in ("dpotrf", "dlauum", "dtrtri"):  # which would end the process
            monkeypatch.delattr(scipy.linalg.lapack, name)
        monkeypatch.setattr(dense, "LAPACK_ROWS", 0)
        R = la.by_columns(A.clone())
        la.cholesky_(R)
        U = R.triu()
        torch.testing.assert_close(U.t() @ U, A)
        la.times_transpose_(R)
        torch.testing.assert_close(R.triu(), (U @ U.t()).triu())
        R = la.by_columns(A.clone())
        la.cholesky_(R)
        la.invert_triangle_(R)
        torch.testing.assert_close(R.triu(), torch.linalg.inv(U), rtol=1e-6, atol=1e-10)

    @pytest.mark.parametrize("m", SIZES)
    def test_inverse_diagonal(self, m):
        R = la.by_columns(self.matrix(m).tril())
        found = device.inverse_diagonal(R)
        torch.testing.assert_close(found, torch.linalg.inv(R.t() @ R).diagonal(), rtol=1e-6, atol=0)

    @pytest.mark.parametrize("m", SIZES)
    @pytest.mark.parametrize("lower", [False, True])
    @pytest.mark.parametrize("transpose", [False, True])
    @pytest.mark.parametrize("unit", [False, True])
    def test_triangles(self, m, lower, transpose, unit):
        R, b = la.by_columns(self.matrix(m) / m + torch.eye(m)), torch.ones(m, 2).double()
        kind = {"lower": lower, "transpose": transpose, "unit": unit}
        solved, times = device.solve_triangular(R, b, **kind), device.times_triangular(R, b, **kind)
        torch.testing.assert_close(solved, la.solve_triangular(R, b, **kind), rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(times, la.times_triangular(R, b, **kind))

    def test_top_eigenpairs(self):
        A = self.matrix(23)
        values, vectors = device.top_eigenpairs(A, 4)
        expected = torch.linalg.eigvalsh(A).flip(0)[:4]
        torch.testing.assert_close(values, expected)
        torch.testing.assert_close(A @ vectors, vectors * values)
