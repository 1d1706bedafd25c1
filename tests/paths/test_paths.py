"""Paths of penalties against dense solves: each penalty is the system that it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import _linalg as la
from gramian._arrays import RandomStream
from gramian.kernels import Gaussian, Laplacian
from gramian.lowrank import columns_factor
from gramian.operators import CostMeter, KernelOperator, triangle_entries
from gramian.paths import FullPath, direct_path, nystrom_path
from gramian.paths.full import least_penalty
from gramian.paths.sample import Sample, fit_sample, squared_loss
from gramian.preconditioners import LowRankInverse
from gramian.problems import FullProblem, NystromProblem

PENALTIES = (1.0, 1e-2, 1e-4)
MANY_PENALTIES = (*PENALTIES, 1e-5, 1e-6, 1e-7, 1e-8)
N, M, D, T = 60, 12, 3, 2


@pytest.fixture
def X(rng: RandomStream, dtype: np.dtype) -> np.ndarray:
    return xp.cast(rng.standard_normal((N, D), np.float64), dtype)


@pytest.fixture
def Y(rng: RandomStream, X: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def weights(n: int) -> np.ndarray:
    return 0.5 + np.arange(n, dtype=np.float64) % 3


def entries(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.exp(-xp.cdist(xp.to_float64(X), xp.to_float64(Z)))


def full(X: np.ndarray, Y: np.ndarray, w: np.ndarray | None = None) -> FullProblem:
    return FullProblem(KernelOperator(Laplacian(1.0), X, X), Y, 0.0, w)


def few(X: np.ndarray, Y: np.ndarray, Z: np.ndarray, w: np.ndarray | None = None) -> NystromProblem:
    return NystromProblem(KernelOperator(Laplacian(1.0), X, Z), Y, 0.0, w)


def solved(X: np.ndarray, Y: np.ndarray, penalty: float, w: np.ndarray | None = None) -> np.ndarray:
    """Solve the full system as it is written."""
    w = np.ones(len(X), np.float64) if w is None else w
    ridge = np.diag(float(w.sum()) * penalty / w)
    return np.linalg.solve(entries(X, X) + ridge, xp.to_float64(Y))


def projected(
    X: np.ndarray, Y: np.ndarray, Z: np.ndarray, penalty: float, w: np.ndarray | None = None
) -> np.ndarray:
    """Solve the system of landmarks as it is written."""
    w = np.ones(len(X), np.float64) if w is None else w
    K, total = entries(X, Z), float(w.sum())
    A = K.T @ (w[:, None] * K) + total * penalty * entries(Z, Z)
    return np.linalg.solve(A, K.T @ (w[:, None] * xp.to_float64(Y)))


weighted = pytest.mark.parametrize("w", [None, weights(N)], ids=["", "weights"])


class TestDirect:
    @weighted
    @pytest.mark.parametrize("penalties", [PENALTIES, MANY_PENALTIES], ids=["few", "many"])
    def test_each_penalty_is_a_dense_solve(self, X, Y, w, penalties, tol, dtype):
        found = list(direct_path(full(X, Y, w), penalties))
        assert [penalty for penalty, _ in found] == list(penalties)
        for penalty, coef in found:
            expected = solved(X, Y, penalty, w)
            assert coef.dtype == np.float64
            assert_close(coef, expected, rtol=0, atol=1e-8 * float(xp.norm(expected)))

    @weighted
    def test_many_penalties_need_one_tridiagonal_form(self, X, Y, w, monkeypatch):
        def refuse(A: np.ndarray) -> None:
            raise AssertionError("each penalty has its own factorisation")

        monkeypatch.setattr(la, "cholesky_", refuse)
        assert len(list(direct_path(full(X, Y, w), MANY_PENALTIES))) == len(MANY_PENALTIES)

    def test_one_row_has_no_tridiagonal_form(self, X, Y):
        found = list(direct_path(full(X[:1], Y[:1]), MANY_PENALTIES))
        for penalty, coef in found:
            assert_close(coef, solved(X[:1], Y[:1], penalty), rtol=1e-6, atol=1e-9)

    def test_many_penalties_leave_a_stored_matrix_as_it_is(self, X, Y, monkeypatch):
        K = entries(X, X)
        monkeypatch.setattr(KernelOperator, "dense", lambda self: K)
        first, second = (list(direct_path(full(X, Y), MANY_PENALTIES)) for _ in range(2))
        assert np.array_equal(first[-1][1], second[-1][1])

    @pytest.mark.parametrize("penalties", [[1.0, 1e-3], [*np.logspace(0, -3, 8)]])
    def test_it_ends_where_the_matrix_is_not_definite(self, rng, penalties):
        X = np.tile(xp.to_float64(rng.standard_normal((30, 2), np.float32)), (2, 1))
        K = KernelOperator(Gaussian(1.0), X, X)
        found = list(direct_path(FullProblem(K, X[:, :1], 0.0), [*penalties, 1e-30, 1e-31]))
        assert [penalty for penalty, _ in found] == penalties


class TestNystrom:
    @weighted
    def test_each_penalty_is_a_dense_solve(self, X, Y, w, dtype):
        for penalty, coef in nystrom_path(few(X, Y, X[:M], w), PENALTIES):
            expected = projected(X, Y, X[:M], penalty, w)
            error = entries(X, X[:M]) @ (coef - expected)
            assert float(xp.norm(error)) < 1e-4 * float(xp.norm(Y))

    def test_a_weight_is_a_repeated_row(self, X, Y):
        twice = np.concatenate([X, X[:7]])
        w = np.ones(N, np.float64)
        w[:7] = 2
        one = nystrom_path(few(X, Y, X[:M], w), PENALTIES)
        other = nystrom_path(few(twice, np.concatenate([Y, Y[:7]]), X[:M]), PENALTIES)
        for (_, a), (_, b) in zip(one, other, strict=True):
            assert_close(a, b, rtol=1e-5, atol=1e-5)

    def test_fewer_rows_than_landmarks(self, X, Y):
        found = list(nystrom_path(few(X[:5], Y[:5], X[:M]), PENALTIES))
        assert len(found) == len(PENALTIES)
        for penalty, coef in found:  # the same function as with these rows as centers
            there = entries(X[:5], X[:M]) @ coef
            expected = entries(X[:5], X[:5]) @ solved(X[:5], Y[:5], penalty)
            assert_close(there, expected, rtol=0, atol=1e-4)

    def test_repeated_landmarks(self, X, Y):
        Z = np.tile(X[:M], (2, 1))
        for penalty, coef in nystrom_path(few(X, Y, Z), PENALTIES):
            there = entries(X, Z) @ coef
            expected = entries(X, X[:M]) @ projected(X, Y, X[:M], penalty)
            assert_close(there, expected, rtol=0, atol=1e-3)

    def test_it_ends_where_the_matrix_is_not_definite(self, rng):
        X = np.zeros((40, 2), np.float32)  # rank one, and rounding
        K = KernelOperator(Gaussian(1.0), X, X[:20])
        found = nystrom_path(
            NystromProblem(K, rng.standard_normal((40, 1), np.float32), 0.0), [1.0, 0.0]
        )
        assert [penalty for penalty, _ in found] == [1.0]


class TestFull:
    def stage(self, path: FullPath, iterations: int = 60, start: np.ndarray | None = None):
        return next(itertools.islice(path.stages(start), iterations, None))

    @weighted
    def test_several_penalties_at_once_are_dense_solves(self, X, Y, w, rng):
        path = FullPath.build(full(X, Y, w), PENALTIES, rng=rng, rank=15)
        found = self.stage(path)
        assert found.coef.shape == (3, N, T)
        assert found.coef.dtype == np.float64
        for coef, penalty in zip(found.coef, PENALTIES, strict=True):
            expected = solved(X, Y, penalty, w)
            assert_close(coef, expected, rtol=0, atol=1e-5 * float(xp.norm(expected)))
        assert bool((found.residual < 1e-6).all())

    def test_the_residual_is_that_of_the_system(self, X, Y, rng):
        path = FullPath.build(full(X, Y), PENALTIES, rng=rng, rank=5)
        found = self.stage(path, 3)
        for coef, penalty, residual in zip(found.coef, PENALTIES, found.residual, strict=True):
            A = entries(X, X) + N * penalty * np.eye(N, dtype=np.float32)
            expected = xp.norm(Y - A @ coef, axis=0) / xp.norm(xp.to_float64(Y), axis=0)
            assert float(residual) == pytest.approx(float(expected.max()), rel=1e-3, abs=1e-6)

    def test_it_starts_where_it_is_told(self, X, Y, rng):
        start = np.stack([solved(X, Y, penalty) for penalty in PENALTIES])
        path = FullPath.build(full(X, Y), PENALTIES, rng=rng)
        found = self.stage(path, 0, start)
        assert_close(found.coef, start)
        assert bool((found.residual < 1e-5).all())

    def test_stored_entries_are_the_same(self, rng, Y):
        X = rng.standard_normal((N, 100), np.float32)
        problem = full(X, xp.cast(Y, np.float32))
        need = 4 * triangle_entries(N)
        stored = FullPath.build(problem, [1e-2], rng=rng, store_bytes=need)
        again = FullPath.build(problem, [1e-2], rng=rng, store_bytes=need - 1)
        assert stored.problem.K.stored_entries is not None
        assert again.problem.K.stored_entries is None
        assert_close(self.stage(stored).coef, self.stage(again).coef, rtol=0, atol=1e-4)

    def test_a_target_of_zeros_stays_zero(self, X, Y, rng):
        Y = np.stack([Y[:, 0], np.zeros_like(Y[:, 0])], axis=1)
        found = self.stage(FullPath.build(full(X, Y), PENALTIES, rng=rng), 20)
        assert bool((found.coef[:, :, 1] == 0).all())
        assert bool(np.isfinite(found.coef).all())

    def test_repeated_rows(self, rng, dtype):
        X = np.tile(xp.cast(rng.standard_normal((20, D), np.float32), dtype), (3, 1))
        Y = np.sin(X[:, :1])
        path = FullPath.build(full(X, Y), [1e-2, 1e-3], rng=rng)
        for coef, penalty in zip(self.stage(path).coef, (1e-2, 1e-3), strict=True):
            assert_close(coef, solved(X, Y, penalty), rtol=0, atol=1e-4)

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_few_rows(self, n, X, Y, rng):
        found = self.stage(FullPath.build(full(X[:n], Y[:n]), [0.1], rng=rng), 10)
        assert_close(found.coef[0], solved(X[:n], Y[:n], 0.1), rtol=0, atol=1e-5)

    def test_the_least_penalty_is_a_shift(self, X, Y, dtype):
        expected = 1e-2 if dtype == np.float32 else 1e-9
        assert least_penalty(full(X, Y, weights(N))) * float(weights(N).sum()) == pytest.approx(
            expected
        )


class TestColumnsFactor:
    def test_all_columns_give_the_matrix(self, X, rng, dtype):
        F = columns_factor(KernelOperator(Laplacian(1.0), X, X), N, rng=rng)
        assert F.dtype == dtype
        assert_close(xp.to_float64(F @ F.T), entries(X, X), rtol=0, atol=1e-3)

    def test_some_columns_give_what_is_below_it(self, X, rng):
        F = xp.to_float64(columns_factor(KernelOperator(Gaussian(3.0), X, X), 20, rng=rng))
        K = np.exp(-np.square(xp.cdist(xp.to_float64(X), xp.to_float64(X))) / 18)
        assert F.shape == (N, 20)
        left = np.linalg.eigvalsh(K - F @ F.T)
        assert float(left[0]) > -1e-3
        assert float(left.sum()) < 0.1 * N

    def test_repeated_rows_and_more_columns_than_rows(self, rng, dtype):
        X = np.tile(xp.cast(rng.standard_normal((10, D), np.float32), dtype), (2, 1))
        F = columns_factor(KernelOperator(Laplacian(1.0), X, X), 50, rng=rng)
        assert F.shape == (20, 20)
        assert_close(xp.to_float64(F @ F.T), entries(X, X), rtol=0, atol=5e-3)


@pytest.mark.parametrize("ridge", [0.3, weights(N)[:, None]], ids=["number", "diagonal"])
def test_inverses_of_a_path_are_those_of_each(ridge, rng, dtype, tol):
    F = xp.cast(rng.standard_normal((N, 7), np.float32), dtype)
    g = rng.standard_normal((N, 2), np.float64)
    for scale, inverse in zip((2.0, 0.5), LowRankInverse.path(F, ridge, [2.0, 0.5]), strict=True):
        D = scale * xp.expand(np.asarray(ridge, dtype=np.float64), (N, 1))[:, 0]
        expected = np.linalg.solve(xp.to_float64(F) @ xp.to_float64(F).T + np.diag(D), g)
        one = LowRankInverse.build(F, scale * ridge)
        for found in (inverse @ g, one @ g):
            assert_close(found, expected, rtol=0, atol=tol(dtype, 1e4))


class TestSample:
    def sample(self, X: np.ndarray, Y: np.ndarray, w: np.ndarray | None = None) -> Sample:
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
            errors = np.square(entries(sample.held_X, Z) @ coef - sample.held_Y).mean(axis=1)
            u = np.ones(20, np.float32) if w is None else w[40:]
            expected[penalty] = float((u * errors).sum() / u.sum())
        assert found.penalty == min(expected, key=expected.__getitem__)
        assert found.loss == pytest.approx(expected[found.penalty], rel=1e-3)
        assert dict(found.losses) == pytest.approx(
            {p: expected[p] for p, _ in found.losses}, rel=1e-3
        )
        assert found.total == (40 if w is None else float(w[:40].sum()))

    def test_a_path_ends_where_the_noise_is_fitted(self, X, rng):
        noise = xp.cast_like(rng.standard_normal((N, 1), np.float32), X)
        found = fit_sample(self.sample(X, noise), Gaussian(2.0), landmarks=40)
        assert len(found.losses) < 10
        assert found.losses[-1][1] > 1.5 * found.loss

    def test_what_is_no_number_is_infinite(self):
        y = np.array([[1.0], [float("nan")]], dtype=np.float32)
        assert squared_loss(y, np.ones((2, 1), np.float32)) == float("inf")
        assert (
            squared_loss(
                np.ones((2, 1), np.float32),
                np.zeros((2, 1), np.float32),
                np.array([1.0, 3.0], dtype=np.float32),
            )
            == 1.0
        )

    def test_kernel_evaluations_are_counted(self, X, Y):
        meter = CostMeter()
        fit_sample(self.sample(X, Y), Laplacian(1.0), landmarks=10, meter=meter)
        assert meter.evaluations == 40 * 10 + 10 * 10 + 20 * 10
