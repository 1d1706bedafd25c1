"""Paths of penalties against dense solves: each penalty is the system that it says."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from gramian.kernels import Gaussian, Laplacian
from gramian.lowrank import columns_factor
from gramian.operators import CostMeter, KernelOperator, triangle_entries
from gramian.paths import FullPath, direct_path, nystrom_path
from gramian.paths.full import least_penalty
from gramian.paths.sample import Sample, fit_sample, squared_loss
from gramian.preconditioners import LowRankInverse
from gramian.problems import FullProblem, NystromProblem

PENALTIES = (1.0, 1e-2, 1e-4)
N, M, D, T = 60, 12, 3, 2


@pytest.fixture
def X(rng: torch.Generator, dtype: torch.dtype) -> Tensor:
    return torch.randn(N, D, generator=rng, dtype=torch.float64).to(dtype)


@pytest.fixture
def Y(rng: torch.Generator, X: Tensor) -> Tensor:
    return torch.stack([X[:, 0].sin(), X[:, 1] * X[:, 2]], dim=1)


def weights(n: int) -> Tensor:
    return 0.5 + torch.arange(n, dtype=torch.float64) % 3


def entries(X: Tensor, Z: Tensor) -> Tensor:
    exact = "donot_use_mm_for_euclid_dist"
    return (-torch.cdist(X.double(), Z.double(), compute_mode=exact)).exp()


def full(X: Tensor, Y: Tensor, w: Tensor | None = None) -> FullProblem:
    return FullProblem(KernelOperator(Laplacian(1.0), X, X), Y, 0.0, w)


def few(X: Tensor, Y: Tensor, Z: Tensor, w: Tensor | None = None) -> NystromProblem:
    return NystromProblem(KernelOperator(Laplacian(1.0), X, Z), Y, 0.0, w)


def solved(X: Tensor, Y: Tensor, penalty: float, w: Tensor | None = None) -> Tensor:
    """Solve the full system as it is written."""
    w = torch.ones(len(X), dtype=torch.float64) if w is None else w
    ridge = torch.diag(float(w.sum()) * penalty / w)
    return torch.linalg.solve(entries(X, X) + ridge, Y.double())


def projected(X: Tensor, Y: Tensor, Z: Tensor, penalty: float, w: Tensor | None = None) -> Tensor:
    """Solve the system of landmarks as it is written."""
    w = torch.ones(len(X), dtype=torch.float64) if w is None else w
    K, total = entries(X, Z), float(w.sum())
    A = K.T @ (w[:, None] * K) + total * penalty * entries(Z, Z)
    return torch.linalg.solve(A, K.T @ (w[:, None] * Y.double()))


weighted = pytest.mark.parametrize("w", [None, weights(N)], ids=["", "weights"])


class TestDirect:
    @weighted
    def test_each_penalty_is_a_dense_solve(self, X, Y, w, tol, dtype):
        found = list(direct_path(full(X, Y, w), PENALTIES))
        assert [penalty for penalty, _ in found] == list(PENALTIES)
        for penalty, coef in found:
            expected = solved(X, Y, penalty, w)
            assert coef.dtype == torch.float64
            torch.testing.assert_close(coef, expected, rtol=0, atol=1e-8 * float(expected.norm()))

    def test_it_ends_where_the_matrix_is_not_definite(self, rng):
        X = torch.randn(30, 2, generator=rng).double().repeat(2, 1)
        K = KernelOperator(Gaussian(1.0), X, X)
        found = list(direct_path(FullProblem(K, X[:, :1], 0.0), [1.0, 1e-3, 1e-30, 1e-31]))
        assert [penalty for penalty, _ in found] == [1.0, 1e-3]


class TestNystrom:
    @weighted
    def test_each_penalty_is_a_dense_solve(self, X, Y, w, dtype):
        for penalty, coef in nystrom_path(few(X, Y, X[:M], w), PENALTIES):
            expected = projected(X, Y, X[:M], penalty, w)
            error = entries(X, X[:M]) @ (coef - expected)
            assert float(error.norm()) < 1e-4 * float(Y.norm())

    def test_a_weight_is_a_repeated_row(self, X, Y):
        twice = torch.cat([X, X[:7]])
        w = torch.ones(N, dtype=torch.float64)
        w[:7] = 2
        one = nystrom_path(few(X, Y, X[:M], w), PENALTIES)
        other = nystrom_path(few(twice, torch.cat([Y, Y[:7]]), X[:M]), PENALTIES)
        for (_, a), (_, b) in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

    def test_fewer_rows_than_landmarks(self, X, Y):
        found = list(nystrom_path(few(X[:5], Y[:5], X[:M]), PENALTIES))
        assert len(found) == len(PENALTIES)
        for penalty, coef in found:  # the same function as with these rows as centers
            there = entries(X[:5], X[:M]) @ coef
            expected = entries(X[:5], X[:5]) @ solved(X[:5], Y[:5], penalty)
            torch.testing.assert_close(there, expected, rtol=0, atol=1e-4)

    def test_repeated_landmarks(self, X, Y):
        Z = X[:M].repeat(2, 1)
        for penalty, coef in nystrom_path(few(X, Y, Z), PENALTIES):
            there = entries(X, Z) @ coef
            expected = entries(X, X[:M]) @ projected(X, Y, X[:M], penalty)
            torch.testing.assert_close(there, expected, rtol=0, atol=1e-3)

    def test_it_ends_where_the_matrix_is_not_definite(self, rng):
        X = torch.zeros(40, 2)  # rank one, and rounding
        K = KernelOperator(Gaussian(1.0), X, X[:20])
        found = nystrom_path(NystromProblem(K, torch.randn(40, 1, generator=rng), 0.0), [1.0, 0.0])
        assert [penalty for penalty, _ in found] == [1.0]


class TestFull:
    def stage(self, path: FullPath, iterations: int = 60, start: Tensor | None = None):
        return next(itertools.islice(path.stages(start), iterations, None))

    @weighted
    def test_several_penalties_at_once_are_dense_solves(self, X, Y, w, rng):
        path = FullPath.build(full(X, Y, w), PENALTIES, rng=rng, rank=15)
        found = self.stage(path)
        assert found.coef.shape == (3, N, T)
        assert found.coef.dtype == torch.float64
        for coef, penalty in zip(found.coef, PENALTIES, strict=True):
            expected = solved(X, Y, penalty, w)
            torch.testing.assert_close(coef, expected, rtol=0, atol=1e-5 * float(expected.norm()))
        assert bool((found.residual < 1e-6).all())

    def test_the_residual_is_that_of_the_system(self, X, Y, rng):
        path = FullPath.build(full(X, Y), PENALTIES, rng=rng, rank=5)
        found = self.stage(path, 3)
        for coef, penalty, residual in zip(found.coef, PENALTIES, found.residual, strict=True):
            A = entries(X, X) + N * penalty * torch.eye(N)
            expected = (Y - A @ coef).norm(dim=0) / Y.double().norm(dim=0)
            assert float(residual) == pytest.approx(float(expected.max()), rel=1e-3, abs=1e-6)

    def test_it_starts_where_it_is_told(self, X, Y, rng):
        start = torch.stack([solved(X, Y, penalty) for penalty in PENALTIES])
        path = FullPath.build(full(X, Y), PENALTIES, rng=rng)
        found = self.stage(path, 0, start)
        torch.testing.assert_close(found.coef, start)
        assert bool((found.residual < 1e-5).all())

    def test_stored_entries_are_the_same(self, rng, Y):
        X = torch.randn(N, 50, generator=rng)
        problem = full(X, Y.float())
        need = 4 * triangle_entries(N)
        stored = FullPath.build(problem, [1e-2], rng=rng, store_bytes=need)
        again = FullPath.build(problem, [1e-2], rng=rng, store_bytes=need - 1)
        assert stored.problem.K.stored_entries is not None
        assert again.problem.K.stored_entries is None
        torch.testing.assert_close(
            self.stage(stored).coef, self.stage(again).coef, rtol=0, atol=1e-4
        )

    def test_a_target_of_zeros_stays_zero(self, X, Y, rng):
        Y = torch.stack([Y[:, 0], torch.zeros_like(Y[:, 0])], dim=1)
        found = self.stage(FullPath.build(full(X, Y), PENALTIES, rng=rng), 20)
        assert bool((found.coef[:, :, 1] == 0).all())
        assert bool(found.coef.isfinite().all())

    def test_repeated_rows(self, rng, dtype):
        X = torch.randn(20, D, generator=rng).to(dtype).repeat(3, 1)
        Y = X[:, :1].sin()
        path = FullPath.build(full(X, Y), [1e-2, 1e-3], rng=rng)
        for coef, penalty in zip(self.stage(path).coef, (1e-2, 1e-3), strict=True):
            torch.testing.assert_close(coef, solved(X, Y, penalty), rtol=0, atol=1e-4)

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_few_rows(self, n, X, Y, rng):
        found = self.stage(FullPath.build(full(X[:n], Y[:n]), [0.1], rng=rng), 10)
        torch.testing.assert_close(found.coef[0], solved(X[:n], Y[:n], 0.1), rtol=0, atol=1e-5)

    def test_the_least_penalty_is_a_shift(self, X, Y, dtype):
        expected = 1e-2 if dtype == torch.float32 else 1e-9
        assert least_penalty(full(X, Y, weights(N))) * float(weights(N).sum()) == pytest.approx(
            expected
        )


class TestColumnsFactor:
    def test_all_columns_give_the_matrix(self, X, rng, dtype):
        F = columns_factor(KernelOperator(Laplacian(1.0), X, X), N, rng=rng)
        assert F.dtype == dtype
        torch.testing.assert_close((F @ F.T).double(), entries(X, X), rtol=0, atol=1e-3)

    def test_some_columns_give_what_is_below_it(self, X, rng):
        F = columns_factor(KernelOperator(Gaussian(3.0), X, X), 20, rng=rng).double()
        K = (-torch.cdist(X.double(), X.double()).square() / 18).exp()
        assert F.shape == (N, 20)
        left = torch.linalg.eigvalsh(K - F @ F.T)
        assert float(left[0]) > -1e-3
        assert float(left.sum()) < 0.1 * N

    def test_repeated_rows_and_more_columns_than_rows(self, rng, dtype):
        X = torch.randn(10, D, generator=rng).to(dtype).repeat(2, 1)
        F = columns_factor(KernelOperator(Laplacian(1.0), X, X), 50, rng=rng)
        assert F.shape == (20, 20)
        torch.testing.assert_close((F @ F.T).double(), entries(X, X), rtol=0, atol=5e-3)


@pytest.mark.parametrize("ridge", [0.3, weights(N)[:, None]], ids=["number", "diagonal"])
def test_inverses_of_a_path_are_those_of_each(ridge, rng, dtype, tol):
    F = torch.randn(N, 7, generator=rng).to(dtype)
    g = torch.randn(N, 2, generator=rng, dtype=torch.float64)
    for scale, inverse in zip((2.0, 0.5), LowRankInverse.path(F, ridge, [2.0, 0.5]), strict=True):
        D = scale * torch.as_tensor(ridge, dtype=torch.float64).expand(N, 1)[:, 0]
        expected = torch.linalg.solve(F.double() @ F.double().T + torch.diag(D), g)
        one = LowRankInverse.build(F, scale * ridge)
        for found in (inverse @ g, one @ g):
            torch.testing.assert_close(found, expected, rtol=0, atol=tol(dtype, 1e4))


class TestSample:
    def sample(self, X: Tensor, Y: Tensor, w: Tensor | None = None) -> Sample:
        held = None if w is None else w[40:]
        return Sample(X[:40], Y[:40], X[40:], Y[40:], None if w is None else w[:40], held)

    @weighted
    @pytest.mark.parametrize("landmarks", [10, 40])
    def test_the_best_penalty_of_dense_solves(self, X, Y, w, landmarks):
        sample, penalties = self.sample(X, Y, w), (1.0, 1e-1, 1e-2, 1e-3)
        found = fit_sample(sample, Laplacian(1.0), landmarks=landmarks, penalties=penalties)
        expected = {}
        for penalty in penalties:
            Z = sample.X[:landmarks]
            v = None if w is None else w[:40]
            coef = projected(sample.X, sample.Y, Z, penalty, v)
            errors = (entries(sample.held_X, Z) @ coef - sample.held_Y).square().mean(dim=1)
            u = torch.ones(20) if w is None else w[40:]
            expected[penalty] = float((u * errors).sum() / u.sum())
        assert found.penalty == min(expected, key=expected.__getitem__)
        assert found.loss == pytest.approx(expected[found.penalty], rel=1e-3)
        assert dict(found.losses) == pytest.approx(
            {p: expected[p] for p, _ in found.losses}, rel=1e-3
        )
        assert found.total == (40 if w is None else float(w[:40].sum()))

    def test_a_path_ends_where_the_noise_is_fitted(self, X, rng):
        noise = torch.randn(N, 1, generator=rng).to(X)
        found = fit_sample(self.sample(X, noise), Gaussian(2.0), landmarks=40)
        assert len(found.losses) < 10
        assert found.losses[-1][1] > 1.5 * found.loss

    def test_what_is_no_number_is_infinite(self):
        y = torch.tensor([[1.0], [float("nan")]])
        assert squared_loss(y, torch.ones(2, 1)) == float("inf")
        assert squared_loss(torch.ones(2, 1), torch.zeros(2, 1), torch.tensor([1.0, 3.0])) == 1.0

    def test_kernel_evaluations_are_counted(self, X, Y):
        meter = CostMeter()
        fit_sample(self.sample(X, Y), Laplacian(1.0), landmarks=10, meter=meter)
        assert meter.evaluations == 40 * 10 + 10 * 10 + 20 * 10
