"""Preconditioned conjugate gradient: low-rank approximations, their inverse, and the solution."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.lowrank import randomized_nystrom
from gramian.operators import CostMeter, KernelOperator, triangle_entries
from gramian.preconditioners import LowRankInverse
from gramian.problems import FullProblem
from gramian.solvers import PCG, Direct, ProblemSize, max_iterations, solve, tolerance

KINDS = ["rpcholesky", "nystrom", "greedy"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def problem(n=300, penalty=1e-5, dtype=np.float64, weights=None, t=2, d=3) -> FullProblem:
    rng = RandomStream(0)
    X = rng.standard_normal((n, d), np.float64)
    y = np.sin(2 * X[:, :t]) + 0.1 * rng.standard_normal((n, t), np.float64)
    rows = as_rows(xp.cast(X, dtype))
    K = KernelOperator(kernels.Gaussian(1.0), rows, rows)
    return FullProblem(K, xp.cast(y, dtype), penalty, weights)


def dense(p: FullProblem) -> np.ndarray:
    K = p.K.double().dense()
    return K + np.diag(xp.expand(p.ridge.reshape(-1), len(K)))


class TestRandomizedNystrom:
    def matrix(self, values: np.ndarray) -> np.ndarray:
        rng = RandomStream(1)
        Q, _ = np.linalg.qr(rng.standard_normal((60, 60), np.float64))
        return Q * values @ Q.T

    def build(self, H: np.ndarray, rank: int, seed: int = 0):
        rng = RandomStream(seed)
        trace = float(H.trace())
        return randomized_nystrom(lambda x: H @ x, len(H), rank, trace, dtype=H.dtype, rng=rng)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_exact_for_its_rank(self, dtype):
        values = np.zeros(60, np.float64)
        values[:7] = np.linspace(1, 5, 7, dtype=np.float32)
        H = xp.cast(self.matrix(values), dtype)
        for rank in (7, 12, 60):
            F = self.build(H, rank).factor
            atol = 5e-5 if dtype == np.float32 else 5e-11  # the shift, grown until it works
            assert_close(F @ F.T, H, rtol=0, atol=atol)

    @pytest.mark.parametrize("shift", [1e-14, 0.01])
    def test_the_shift_is_taken_off_again(self, shift):
        """At full rank the matrix is left, whatever was added so that it can be factorised."""
        values = 0.8 ** np.arange(60, dtype=np.float64)
        H, rng = self.matrix(values), RandomStream(0)
        trace = shift / xp.finfo(np.float64).eps
        found = randomized_nystrom(lambda x: H @ x, 60, 60, trace, rng=rng)
        assert_close(found.values, values, rtol=0, atol=1e-12)
        assert_close(found.factor @ found.factor.T, H, rtol=0, atol=1e-12)

    def test_below_the_matrix_and_near_its_best_approximation(self):
        values = 0.8 ** np.arange(60, dtype=np.float64)
        H = self.matrix(values)
        for seed in range(5):
            found = self.build(H, 20, seed)
            error = np.linalg.eigvalsh(H - found.factor @ found.factor.T)
            assert float(error.min()) > -1e-10
            assert float(error.max()) < 10 * float(values[20])
            assert bool((xp.diff(found.values) <= 0).all())
            assert_close(np.square(found.factor).sum(axis=0), found.values)

    def test_zero_and_rank_one(self):
        F = self.build(np.zeros((60, 60), np.float64), 5).factor
        assert float(np.abs(F).max()) < 1e-100
        H = np.ones((60, 60), np.float64)
        F = self.build(H, 5).factor
        assert_close(F @ F.T, H)


class TestLowRankInverse:
    @pytest.mark.parametrize("rank", [0, 1, 30, 80])
    @pytest.mark.parametrize("rowwise", [False, True])
    def test_inverse_of_a_diagonal_plus_low_rank(self, rank, rowwise, dtype, rng, tol):
        F = xp.cast(rng.standard_normal((80, rank), np.float64), dtype)
        D = rng.random((80, 1), np.float64) + 0.5
        D = D if rowwise else np.array(0.7, dtype=np.float64)
        P = xp.to_float64(F) @ xp.to_float64(F).T + np.diag(xp.expand(D.reshape(-1), 80))
        g = xp.cast(rng.standard_normal((80, 3), np.float64), dtype)
        inverse = LowRankInverse.build(F, D)
        expected = np.linalg.solve(P, xp.to_float64(g))
        error = xp.to_float64(inverse @ g) - expected
        assert float(xp.norm(error) / xp.norm(expected)) < tol(dtype, 300)
        assert float(xp.norm(xp.to_float64(inverse.apply(g)) - P @ xp.to_float64(g))) < tol(
            dtype, 1e4
        )

    def test_a_factor_with_columns_of_zeros(self, dtype, rng):
        F = np.zeros((20, 4), dtype)
        g = xp.cast(rng.standard_normal((20, 1), np.float32), dtype)
        assert_close(LowRankInverse.build(F, 0.5) @ g, 2 * g)


class TestPCG:
    @each_kind
    def test_full_rank_takes_at_most_two_iterations(self, kind):
        p = problem()
        result = solve(p, PCG(kind, rank=300), stop=[tolerance(1e-7), max_iterations(9)])
        assert result.state.iteration <= 2

    @each_kind
    def test_so_it_does_with_weights(self, kind):
        p = problem(weights=10.0 ** np.linspace(-2, 2, 300, dtype=np.float64))
        result = solve(p, PCG(kind, rank=300), stop=[tolerance(1e-7), max_iterations(9)])
        assert result.state.iteration <= 2

    @each_kind
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_solution(self, kind, weighted, dtype):
        weights = np.linspace(0.2, 2, 300, dtype=np.float64) if weighted else None
        p = problem(dtype=dtype, penalty=1e-4, weights=weights)
        result = solve(p, PCG(kind), stop=[tolerance(1e-11), max_iterations(500)])
        expected = np.linalg.solve(dense(p), xp.to_float64(p.targets))
        error = float(xp.norm(result.state.coef - expected) / xp.norm(expected))
        assert result.reason == "converged"
        assert error < 1e-8

    @each_kind
    def test_fewer_iterations(self, kind):
        stop = [tolerance(1e-8), max_iterations(2000)]
        plain = solve(problem(), PCG("none"), stop=stop).state.iteration
        assert 4 * solve(problem(), PCG(kind, rank=150), stop=stop).state.iteration < plain

    @each_kind
    def test_resuming_changes_nothing(self, kind):
        def states(rng, state=None):
            return PCG(kind, rank=20).iterate(problem(), state, rng=rng)

        whole = states(RandomStream(3))
        first = [next(whole) for _ in range(9)]
        again = states(RandomStream(99), first[4])
        rest = [next(again) for _ in range(5)]
        assert [s.iteration for s in rest] == [4, 5, 6, 7, 8]
        assert np.array_equal(rest[-1].coef, first[-1].coef)

    def test_the_rank_is_bounded_by_memory_and_stops_where_the_trace_is_spent(self):
        assert PCG().rank_for(300) == 31
        assert PCG().rank_for(50_000) == 1000
        assert PCG(memory_bytes=8 * 50_000 * 40).rank_for(50_000) == 40
        assert PCG("nystrom", memory_bytes=8 * 50_000 * 40).rank_for(50_000) == 8
        assert PCG("none").rank_for(300) == 0
        assert PCG(rank=500).rank_for(300) == 300
        p = problem(penalty=0.3)
        factor = PCG().build(p, RandomStream(0)).factor
        assert factor.shape[1] < 31
        assert float(p.K.diag().sum() - np.square(factor).sum()) <= p.shift

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"preconditioner": "jacobi"}, "preconditioner must be one of rpcholesky, nystrom"),
            ({"rank": 0}, "rank must be a whole number of at least 1 or 'auto', not 0"),
            ({"rank": 2.5}, "rank must be"),
            ({"rank": True}, "rank must be"),
        ],
    )
    def test_settings_that_cannot_be(self, settings, message):
        with pytest.raises(ValueError, match=message):
            PCG(**settings)


class TestFloat32:
    """Penalties below the rounding of the kernel entries, where plain float32 CG diverges."""

    @pytest.mark.slow
    @pytest.mark.parametrize("penalty", [5e-8, 1e-8])
    @each_kind
    def test_small_penalties_reach_1e_8(self, kind, penalty):
        p = problem(penalty=penalty, dtype=np.float32)
        assert p.needs_float64
        stop = [tolerance(1e-8), max_iterations(500)]
        result = solve(p, PCG(kind, rank=250), stop=stop)
        assert result.reason == "converged"
        assert result.history[0]["wide"] == 1
        exact = xp.to_float64(p)
        residual = exact.rhs - exact.apply(result.state.coef)
        assert float((xp.norm(residual, axis=0) / xp.norm(exact.rhs, axis=0)).max()) < 1e-7

    def test_the_true_residual_makes_up_for_float32_products(self):
        p = problem(penalty=1e-2, dtype=np.float32)
        result = solve(p, PCG(), stop=[tolerance(1e-10), max_iterations(100)])
        assert (result.reason, result.history[-1]["wide"]) == ("converged", 0)

    def test_products_widen_when_float32_ones_gain_nothing(self):
        p = problem(penalty=1e-3, dtype=np.float32)
        first, *_, last = list(islice(PCG(rank=50).iterate(p), 4))
        assert first.wide is False
        norms, still = xp.norm(xp.to_float64(last.residual), axis=0), np.zeros_like(last.energy)
        stuck = replace(last, residual=1e-3 * last.residual, energy=still, checked=norms)
        states = list(islice(PCG(rank=50).iterate(p, stuck), 60))
        assert states[-1].wide
        assert states[-1].iteration == stuck.iteration + 59
        assert states[-1].metrics["rel_residual"] < 1e-10

    def test_going_on_in_float64_changes_nothing(self):
        p = problem(penalty=1e-9, dtype=np.float32)
        whole = list(islice(PCG(rank=50).iterate(p), 10))
        rest = list(islice(PCG(rank=50).iterate(p, whole[4]), 6))
        assert np.array_equal(rest[-1].coef, whole[-1].coef)
        assert rest[-1].wide

    def test_coarse_is_a_matter_of_float32_and_scale(self):
        assert not problem(penalty=1e-9).needs_float64
        assert not problem(penalty=1e-5, dtype=np.float32).needs_float64
        rows = as_rows(np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32))
        large = KernelOperator(1e3 * kernels.Gaussian(1.0), rows, rows)
        assert FullProblem(large, np.ones((300, 1), np.float32), 1e-5).needs_float64
        weights = np.ones(300, np.float64)
        weights[0] = 1e6  # the ridge of this row is a millionth of that of the others
        assert problem(penalty=1e-6, dtype=np.float32, weights=weights).needs_float64


class TestStoredEntries:
    @pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 300, dtype=np.float32)])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_solution_is_the_same(self, dtype, weights):
        p = problem(dtype=dtype, weights=weights)
        once = FullProblem(replace(p.K, meter=CostMeter()), p.targets, p.penalty, weights)
        found = solve(once, PCG(store_bytes=8 * 300**2), stop=[tolerance(1e-8)])
        assert found.reason == "converged"
        exact = np.linalg.solve(dense(p), xp.to_float64(p.targets))
        off = 1e-5 if dtype == np.float64 else 1e-2
        assert xp.norm(found.state.coef - exact) <= off * xp.norm(exact)

    def test_entries_are_evaluated_once(self):
        counts = []
        need = 8 * triangle_entries(300)
        for store in (0, need - 1, need):
            p = problem()
            p = FullProblem(replace(p.K, meter=CostMeter()), p.targets, p.penalty)
            solve(p, PCG("none", store_bytes=store), stop=[max_iterations(9)])
            counts.append(p.K.meter.evaluations)
        assert counts[0] == counts[1] > 4 * counts[2]
        assert counts[2] == triangle_entries(300)

    def test_where_they_fit_and_cost_more_than_reading(self):
        few, more = PCG.stored_features
        size = ProblemSize(n=1000, d=few, t=1, m=1000, itemsize=4, full=True)
        solver, need = PCG(), 4 * triangle_entries(1000)
        assert need < 0.7 * 4 * 1000**2
        assert solver.storing(size, need) == PCG(store_bytes=need)
        assert solver.storing(size, need - 1) is solver
        assert solver.storing(size, 2 * need) == PCG(store_bytes=2 * need)  # in float64 if need be
        assert solver.storing(replace(size, d=few - 1), need) is solver
        assert solver.storing(replace(size, t=3), need) is solver
        assert solver.storing(replace(size, d=more, t=3), need) is not solver
        assert solver.storing(replace(size, dense=False), need) is solver
        stored = solver.storing(size, need)
        assert stored.peak_bytes(size) == solver.peak_bytes(size) + need
        assert stored.evaluations(size, 50) < solver.evaluations(size, 50) / 3
        assert stored.bytes_read(size) == solver.bytes_read(size) + need


class TestGoingOverToDirect:
    SOLVER = PCG(rank=5, direct_bytes=12 * 300**2)
    STOP = (tolerance(1e-6), max_iterations(200))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_slow_run_ends_with_the_solution(self, dtype):
        p = problem(penalty=1e-8, dtype=dtype)
        result = solve(p, self.SOLVER, stop=self.STOP)
        assert (result.reason, result.state.settings) == ("converged", {"direct": True})
        assert result.state.iteration < 20
        assert_close(result.state.coef, solve(p, Direct()).state.coef, rtol=1e-12)
        assert result.state.metrics["prediction_error"] < 1e-9

    @pytest.mark.parametrize(
        ("penalty", "solver"),
        [(0.1, SOLVER), (1e-8, PCG(rank=5, direct_bytes=300**2)), (1e-8, PCG(rank=5))],
    )
    def test_a_fast_run_or_little_memory_does_not(self, penalty, solver):
        result = solve(problem(penalty=penalty), solver, stop=self.STOP)
        assert result.state.settings == {}

    @pytest.mark.parametrize("steps", [11, 12, 13])
    def test_a_resumed_run_goes_over_at_the_same_step(self, steps):
        p = problem(penalty=1e-8)
        whole = solve(p, self.SOLVER, stop=self.STOP)
        part = solve(p, self.SOLVER, stop=[max_iterations(steps)])
        again = solve(p, self.SOLVER, stop=self.STOP, state=part.state)
        assert again.state.iteration == whole.state.iteration
        np.testing.assert_array_equal(again.state.coef, whole.state.coef)

    def test_a_changed_solution_is_refused(self):
        p = problem(penalty=1e-8)
        state = solve(p, self.SOLVER, stop=self.STOP).state
        with pytest.raises(ValueError, match="was changed"):
            solve(p, self.SOLVER, state=replace(state, coef=1.1 * state.coef))
