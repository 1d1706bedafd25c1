"""Problems are the linear systems that their docstrings print."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem

N, M, D, T = 23, 5, 3, 2
KERNEL = kernels.Matern32(1.3)
PENALTY = 0.01


def normal(*shape: int, dtype: np.dtype = np.float64) -> np.ndarray:
    return RandomStream(0).standard_normal(shape, dtype)


def weights(dtype: np.dtype = np.float64) -> np.ndarray:
    return RandomStream(1).random(N, dtype) + 0.5


def operator(dtype: np.dtype = np.float64) -> KernelOperator:
    X = xp.cast(normal(N, D), dtype)
    return KernelOperator(KERNEL, X, X)


def full(w: np.ndarray | None = None, dtype: np.dtype = np.float64) -> FullProblem:
    return FullProblem(operator(dtype), normal(N, T), PENALTY, w)


def nystrom(w: np.ndarray | None = None, dtype: np.dtype = np.float64) -> NystromProblem:
    return NystromProblem.at(operator(dtype), np.arange(M), normal(N, T), PENALTY, w)


@pytest.mark.parametrize("w", [None, weights()], ids=["plain", "weighted"])
class TestSystems:
    def test_shift(self, w):
        total = N if w is None else float(w.sum())
        for problem in (full(w), nystrom(w)):
            assert problem.total == pytest.approx(total)
            assert problem.shift == pytest.approx(total * PENALTY)

    def test_full(self, w, dtype, tol):
        X, coef = xp.cast(normal(N, D), dtype), normal(N, T)
        ridge = np.ones(N, np.float32) if w is None else 1 / w
        problem = full(w, dtype)
        A = xp.to_float64(KERNEL(X, X)) + problem.shift * np.diag(xp.to_float64(ridge))
        atol = tol(dtype, 10 * N)  # sums of N products of numbers of order one
        assert_close(problem.apply(coef), A @ coef, rtol=0, atol=atol)
        assert np.array_equal(problem.rhs, problem.targets)

    def test_nystrom(self, w, dtype, tol):
        X, coef = xp.cast(normal(N, D), dtype), normal(M, T)
        W = xp.to_float64(np.eye(N, dtype=np.float32)) if w is None else np.diag(w)
        problem = nystrom(w, dtype)
        K, K_mm = xp.to_float64(KERNEL(X, X[:M])), xp.to_float64(KERNEL(X[:M], X[:M]))
        A = K.T @ W @ K + problem.shift * K_mm
        atol = tol(dtype, 20 * N)
        assert_close(problem.apply(coef), A @ coef, rtol=0, atol=atol)
        assert_close(problem.rhs, K.T @ W @ problem.targets, rtol=0, atol=atol)
        assert_close(xp.to_float64(problem.K_mm.dense()), K_mm, rtol=0, atol=tol(dtype, 10))

    def test_the_solution_is_the_least_of_the_stated_sum(self, w):
        """The gradient of (1/N) sum w (f - y)² + penalty |f|² vanishes at it."""
        X = normal(N, D)
        observed = xp.to_float64(np.ones(N, np.float32)) if w is None else w
        for problem, centers in ((full(w), X), (nystrom(w), X[:M])):
            K, K_cc = KERNEL(X, centers), KERNEL(centers, centers)
            if isinstance(problem, FullProblem):
                A = K + problem.shift * np.diag(1 / observed)
            else:
                A = K.T @ (observed[:, None] * K) + problem.shift * K_cc
            coef = np.linalg.solve(A, problem.rhs)
            gradient = 2 * K.T @ (observed[:, None] * (K @ coef - problem.targets)) / problem.total
            gradient += 2 * PENALTY * K_cc @ coef
            assert np.abs(gradient).max() < 1e-12


def test_in_float64_values_are_those_of_the_rounded_data():
    problem = xp.to_float64(full(dtype=np.float32))
    X = xp.to_float64(xp.cast(normal(N, D), np.float32))
    assert problem.K.dtype == np.float64
    assert problem.K.rows is problem.K.cols  # so that the diagonal stays exact
    assert_close(problem.K.dense(), KERNEL(X, X), rtol=0, atol=1e-14)
    assert xp.to_float64(nystrom(dtype=np.float32)).K_mm.dtype == np.float64


@pytest.mark.parametrize("w", [None, weights()], ids=["plain", "weighted"])
def test_in_float64_targets_at_landmarks_are_not_copied(w):
    index, y = np.arange(M), xp.cast(normal(N, T), np.float32)
    problem = NystromProblem.at(operator(np.float32), index, y, PENALTY, w)
    wide = problem.double()
    assert wide.targets is y  # of a thousand classes they would be most of a fit's memory
    copied = replace(wide, targets=xp.to_float64(y))
    assert np.array_equal(wide.rhs, copied.rhs)
    coef = normal(M, T)
    given, expected = (p.K.normal(coef, w, p.targets) for p in (wide, copied))
    assert given.dtype == np.float64
    assert np.array_equal(given, expected)


def test_the_meter_is_shared_by_all_that_is_derived():
    problem = nystrom()
    _ = problem.double().K_mm.dense()
    assert problem.K.meter.evaluations == M * M


class TestLandmarks:
    def test_at_takes_rows_and_their_share_of_the_weights(self):
        w, index = weights(), np.array([4, 0, 17])
        problem = NystromProblem.at(operator(), index, normal(N, T), PENALTY, w)
        assert np.array_equal(problem.K.cols.take(np.arange(3)), normal(N, D)[index])
        assert problem.landmark_weight is not None
        assert_close(problem.landmark_weight, w[index] / w.mean())

    def test_weights_of_uneven_sampling_are_kept(self):
        given = xp.to_float64(np.array([0.5, 2.0], dtype=np.float32))
        index = np.array([1, 2])
        problem = NystromProblem.at(operator(), index, normal(N, T), PENALTY, landmark_weight=given)
        assert np.array_equal(problem.landmark_weight, given)

    def test_coverage(self):
        assert nystrom().covered_fraction == pytest.approx(M / N)
        X = normal(3, D)
        own = NystromProblem(KernelOperator(KERNEL, X, normal(7, D)), normal(3, 1), PENALTY)
        assert own.covered_fraction == 0
        square = KernelOperator(KERNEL, X, X)
        every = NystromProblem.at(square, np.arange(3), normal(3, 1), PENALTY)
        assert every.covered_fraction == 1


def test_models_are_the_functions_of_the_coefficients():
    new = normal(6, D) + 1
    X = normal(N, D)
    for problem, centers in ((full(), X), (nystrom(), X[:M])):
        coef = normal(len(centers), T)
        expected = KERNEL(new, centers) @ coef
        assert_close(problem.model(coef).predict(new), expected)


class TestRefusals:
    @pytest.mark.parametrize("penalty", [-1e-3, math.nan, math.inf])
    def test_penalty(self, penalty):
        with pytest.raises(ValueError, match=r"penalty must be finite and at least 0.*alpha / n"):
            FullProblem(operator(), normal(N, T), penalty)

    # The annotations say these shapes, and the test run would refuse others by itself: so they get
    # in by a back door.
    @pytest.mark.parametrize("shape", [(N - 1, T), (N,), (N, T, 1), (T, N)])
    def test_targets(self, shape):
        problem = full()
        object.__setattr__(problem, "targets", normal(*shape))
        with pytest.raises(ValueError, match=r"targets must have shape \(23, t\)"):
            problem.__post_init__()

    @pytest.mark.parametrize("w", [weights()[:-1], weights()[:, None], weights()[0]])
    def test_shape_of_weights(self, w):
        problem = full()
        object.__setattr__(problem, "weights", w)
        with pytest.raises(ValueError, match=r"weights must have shape \(23,\)"):
            problem.__post_init__()

    @pytest.mark.parametrize("first", [-1.0, math.nan, math.inf])
    def test_weights(self, first):
        w = weights()
        w[0] = first
        with pytest.raises(ValueError, match="weights must be finite, not negative"):
            NystromProblem.at(operator(), np.arange(M), normal(N, T), PENALTY, w)

    def test_weights_that_are_all_zero(self):
        with pytest.raises(ValueError, match="not all zero"):
            NystromProblem(operator(), normal(N, T), PENALTY, np.zeros(N, np.float32))

    def test_a_zero_weight_in_the_full_problem(self):
        w = weights()
        w[3] = 0
        with pytest.raises(ValueError, match="leave out the rows of weight zero"):
            full(w)

    def test_two_sources_in_the_full_problem(self):
        K = KernelOperator(KERNEL, normal(N, D), normal(N, D))
        with pytest.raises(ValueError, match="the same row source on both sides"):
            FullProblem(K, normal(N, T), PENALTY)


def test_problems_are_values():
    with pytest.raises(FrozenInstanceError):
        full().penalty = 1.0
