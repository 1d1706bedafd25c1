"""PCG with blocks of rows: the solution, the same bits after a pause, and what is planned."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.sparse

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.preconditioners import BlockCholesky, BlockLowRank, LowRankInverse
from gramian.problems import FullProblem
from gramian.solvers import PCG, ProblemSize, max_iterations, solve, tolerance

KINDS = ["cells", "nystrom+cells", "auto"]
each_kind = pytest.mark.parametrize("kind", KINDS)
N, F64 = 301, np.float64


def problem(
    penalty: float = 1e-4,
    dtype: np.dtype = F64,
    *,
    kernel: kernels.Kernel | None = None,
    weighted: bool = False,
    t: int = 2,
    d: int = 3,
    sparse: bool = False,
) -> FullProblem:
    rng = RandomStream(0)
    X = rng.standard_normal((N, d), F64)
    y = np.sin(2 * X[:, :1]) + 0.1 * rng.standard_normal((N, t), F64)
    rows = as_rows(scipy.sparse.csr_array(X) if sparse else xp.cast(X, dtype))
    weights = np.linspace(0.2, 2, N, dtype=F64) if weighted else None
    K = KernelOperator(kernel or kernels.Matern32(0.7), rows, rows)
    return FullProblem(K, xp.cast(y, dtype), penalty, weights)


def solution(p: FullProblem) -> np.ndarray:
    K = p.K.double().dense()
    return np.linalg.solve(K + np.diag(xp.expand(p.ridge.reshape(-1), N)), xp.to_float64(p.targets))


def built(solver: PCG, p: FullProblem):
    return solver.build(p, RandomStream(0))


@each_kind
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("t", "d"), [(1, 1), (3, 3)])
def test_the_solution(kind, weighted, dtype, t, d):
    p = problem(dtype=dtype, weighted=weighted, t=t, d=d)
    result = solve(p, PCG(kind, cell_rows=40), stop=[tolerance(1e-11), max_iterations(500)])
    expected = solution(p)
    assert result.reason == "converged"
    assert float(xp.norm(result.state.coef - expected) / xp.norm(expected)) < 1e-8


@pytest.mark.parametrize("kind", ["cells", "nystrom+cells", "auto"])
def test_kernels_of_columns(kind):
    """Each part has as many lengthscales as it has columns, and not as the rows have."""
    X = RandomStream(0).standard_normal((N, 4), F64)
    k = kernels.Matern52([1.0, 2.0]).on([0, 1]) + kernels.Laplacian([1.0, 2.0]).on([2, 3])
    rows = as_rows(X)
    p = FullProblem(KernelOperator(k, rows, rows), np.sin(X).sum(axis=1, keepdims=True), 1e-3)
    result = solve(p, PCG(kind, cell_rows=50), stop=[tolerance(1e-10), max_iterations(500)])
    expected = np.linalg.solve(k(X, X) + p.ridge * np.eye(N, dtype=F64), p.targets)
    assert float(xp.norm(result.state.coef - expected) / xp.norm(expected)) < 1e-8


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_cell_is_exact(kind, weighted):
    p = problem(1e-7, weighted=weighted)
    result = solve(p, PCG(kind, cell_rows=N), stop=[tolerance(1e-9), max_iterations(9)])
    assert result.state.iteration == 1


def test_cells_and_a_factor_are_better_than_either():
    """A kernel that neither cells nor a factor of few columns has all of."""
    p = problem(1e-6, kernel=kernels.Laplacian(1.5))

    def iterations(*settings, **more) -> int:
        stop = [tolerance(1e-8), max_iterations(2000)]
        return solve(p, PCG(*settings, **more), stop=stop).state.iteration

    both = iterations("nystrom+cells", 30, cell_rows=50)
    assert 3 * both < 2 * iterations("rpcholesky", 30)
    assert 3 * both < 2 * iterations("cells", cell_rows=50)
    assert 2 * both < iterations("none")


@each_kind
@pytest.mark.parametrize("penalty", [1e-4, 1e-9])
def test_resuming_changes_nothing(kind, dtype, penalty):
    def states(rng, state=None):
        p = problem(penalty, dtype)
        return PCG(kind, rank=10, cell_rows=25).iterate(p, state, rng=rng)

    first = list(islice(states(RandomStream(3)), 9))
    rest = list(islice(states(RandomStream(99), first[4]), 5))
    assert [s.iteration for s in rest] == [4, 5, 6, 7, 8]
    assert np.array_equal(rest[-1].coef, first[-1].coef)


@each_kind
@pytest.mark.parametrize("penalty", [1e-10, 1e-14])
def test_penalties_near_rounding(kind, penalty):
    p = problem(penalty, np.float32, kernel=kernels.Matern32(2.0))
    result = solve(p, PCG(kind, cell_rows=N), stop=[tolerance(1e-6), max_iterations(50)])
    assert result.reason == "converged"
    assert result.history[0]["wide"] == 1


@pytest.mark.parametrize(("penalty", "expected"), [(1e-4, np.float32), (1e-9, F64)])
def test_factors_are_float64_where_products_are(penalty, expected, monkeypatch):
    """Where float32 entries are too coarse for the penalty, float32 factors would be, too."""
    found, build = [], BlockCholesky.build

    def watched(*args, **more):
        found.append(build(*args, **more))
        return found[0]

    monkeypatch.setattr(BlockCholesky, "build", watched)
    next(PCG("cells").iterate(problem(penalty, np.float32)))
    assert {R.dtype.type for R in found[0].factors} == {expected}


class TestTheRule:
    @pytest.mark.parametrize(
        ("kernel", "expected"),
        [
            (kernels.Laplacian(0.1), BlockCholesky),
            (kernels.Laplacian(3.0), BlockLowRank),
            (kernels.Gaussian(20.0), LowRankInverse),
        ],
    )
    def test_by_the_width_of_the_kernel(self, kernel, expected):
        P = built(PCG("auto"), problem(kernel=kernel))
        assert isinstance(P, expected)
        if isinstance(P, LowRankInverse):
            assert P.factor.shape[1] < PCG("auto").rank_for(N)

    def test_columns_stand_alone_where_cells_hold_little_of_the_kernel(self):
        p = problem(1e-9, kernel=kernels.Laplacian(3.0))
        usual, small = (built(PCG("auto", cell_rows=rows), p) for rows in (N // 4, 2))
        assert isinstance(usual, BlockLowRank)
        assert isinstance(small, LowRankInverse)
        assert small.factor.shape[1] == PCG().rank_for(N)
        size = ProblemSize(N, 3, 2, N, 8, True)
        assert PCG("auto", cell_rows=2).peak_bytes(size) >= PCG().peak_bytes(size)

    def test_cells_that_are_asked_for_are_built(self):
        p = problem(kernel=kernels.Gaussian(20.0))
        assert isinstance(built(PCG("nystrom+cells"), p), BlockLowRank)

    def test_a_rank_that_is_given_is_kept(self):
        P = built(PCG("auto", rank=25), problem(kernel=kernels.Gaussian(20.0), penalty=0.1))
        assert isinstance(P, LowRankInverse)
        assert P.factor.shape[1] == 25

    def test_sparse_rows_have_no_cells(self):
        P = built(PCG("auto"), problem(kernel=kernels.Laplacian(0.5), sparse=True))
        assert isinstance(P, LowRankInverse)
        assert P.factor.shape[1] == PCG().rank_for(N)

    @pytest.mark.parametrize("kind", KINDS[:2])
    def test_cells_of_sparse_rows_are_refused(self, kind):
        p = problem(sparse=True)
        with pytest.raises(
            ValueError, match=rf"'{kind.replace('+', '.')}' needs dense rows.*toarr"
        ):
            solve(p, PCG(kind))
        assert p.K.meter.evaluations == 0
        assert solve(p, PCG("auto"), stop=[max_iterations(1)]).state.iteration == 1


class TestSizes:
    def sizes(self, solver: PCG, n: int) -> tuple[int, int, int]:
        P = built(solver, problem())
        blocks = P.blocks if isinstance(P, BlockLowRank) else P
        assert isinstance(blocks, BlockCholesky)
        rank = P.low.factor.shape[1] if isinstance(P, BlockLowRank) else 0
        return max(map(len, blocks.index)), rank, sum(xp.size(R) for R in blocks.factors)

    def test_they_grow_like_the_root_of_n(self):
        rows, rank, _ = self.sizes(PCG("nystrom+cells"), N)
        assert (rows, rank) == (61, 34)  # 5 cells, at most 4 sqrt(n) = 68 rows; 2 sqrt(n)
        rows, rank, _ = self.sizes(PCG("cells"), N)
        assert (rows, rank) == (151, 0)

    def test_they_fit_into_memory(self):
        limit = 8 * N * 20
        for kind, shares in (("cells", 1), ("nystrom+cells", 2)):
            rows, rank, numbers = self.sizes(PCG(kind, memory_bytes=limit), N)
            assert 0.7 * limit / shares <= 8 * numbers <= limit / shares
            assert rows <= 20 / shares
            assert rank in (0, 10)

    @pytest.mark.parametrize("kind", KINDS[:2])
    def test_the_plan_has_room_for_what_is_built(self, kind):
        for settings in ({}, {"cell_rows": 100}, {"cell_rows": N}, {"memory_bytes": 10**5}):
            solver = PCG(kind, **settings)
            size = ProblemSize(N, 3, 2, N, 8, True)
            P = built(solver, problem())
            blocks = P.blocks if isinstance(P, BlockLowRank) else P
            held = sum(xp.size(R) * R.itemsize for R in blocks.factors)
            largest = max(xp.size(R) for R in blocks.factors)
            held += xp.size(P.low.factor) * 8 if isinstance(P, BlockLowRank) else 0
            planned = solver.peak_bytes(size) - size.vector_bytes
            assert held + 8 * largest <= planned
            assert planned < 4 * (held + 16 * largest) + 24 * N * 3

    @each_kind
    def test_the_evaluations_are_those_of_the_plan(self, kind):
        p, solver = problem(kernel=kernels.Laplacian(3.0)), PCG(kind)
        built(solver, p)
        planned = solver.evaluations(ProblemSize(N, 3, 2, N, 8, True), 0)
        assert 0.7 * planned <= p.K.meter.evaluations <= 1.4 * planned

    def test_cells_are_planned(self):
        size = ProblemSize(10_000, 3, 2, 10_000, 4, True)
        small, large = (PCG("cells", cell_rows=rows) for rows in (100, 200))
        assert small.bytes_read(size) == 4 * 10_000 * 100
        assert large.evaluations(size, 0) == 10_000 * 200
        assert large.operations(size, 5) == pytest.approx(10_000 * 200**2 / 3)
        assert PCG("cells").operations(size, 5) == pytest.approx(10_000 * 1000**2 / 3)
        whole, more = (PCG("cells", cell_rows=rows) for rows in (10_000, 20_000))
        assert whole.peak_bytes(size) == more.peak_bytes(size)
        sparse = ProblemSize(10_000, 3, 2, 10_000, 4, True, dense=False)
        assert PCG("auto").operations(sparse, 5) == PCG().operations(sparse, 5)
        auto, both = PCG("auto"), PCG("nystrom+cells")
        assert auto.evaluations(size, 5) == both.evaluations(size, 5) + 100 * 10_000
        assert auto.operations(size, 5) == both.operations(size, 5)

    @pytest.mark.parametrize("rows", [0, 2.5, True, "all"])
    def test_rows_of_a_cell_that_cannot_be(self, rows):
        with pytest.raises(ValueError, match="cell_rows must be a whole number of at least 1"):
            PCG("cells", cell_rows=rows)
