"""ASkotch: exact where a block is everything, the same fixed point, exact resumption, no units."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest
import torch
from torch import Tensor

from gramian import kernels
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import ASkotch, max_iterations, solve, tolerance

N = 240


def problem(penalty=1e-3, dtype=torch.float64, weights=None, kernel=None, scale=1.0) -> FullProblem:
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(N, 3, generator=rng, dtype=torch.float64)
    y = torch.sin(2 * X[:, :2]) + 0.1 * torch.randn(N, 2, generator=rng, dtype=torch.float64)
    rows = as_rows(X.to(dtype))
    K = KernelOperator(kernel or kernels.Gaussian(1.0), rows, rows)
    return FullProblem(K, scale * y.to(dtype), penalty, weights)


def exact(p: FullProblem) -> Tensor:
    K = p.K.double().dense()
    return torch.linalg.solve(K + p.ridge.flatten().expand(N).diag(), p.targets.double())


def error(coef: Tensor, p: FullProblem) -> float:
    return float((coef - exact(p)).norm() / exact(p).norm())


def objective(coef: Tensor, p: FullProblem) -> float:
    K = p.K.double().dense() + p.ridge.flatten().expand(N).diag()
    return float((coef * (K @ coef)).sum() / 2 - (coef * p.targets).sum())


def states(solver: ASkotch, p: FullProblem, count: int, state=None, seed: int = 1):
    rng = torch.Generator().manual_seed(seed)
    return list(islice(solver.iterate(p, state, rng=rng), count))


def test_one_block_of_all_rows_and_full_rank_is_one_newton_step_but_for_its_length():
    # P = H + the last eigenvalue of K, and the step is 1 / 1.1 of the exact one
    p = problem(penalty=0.1)
    first = states(ASkotch(block=N, rank=N, accelerated=False), p, 2)[1]
    assert error(first.coef, p) == pytest.approx(1 - 1 / 1.1, rel=1e-3)


@pytest.mark.parametrize("accelerated", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [None, kernels.Matern32(2.0), kernels.Laplacian(2.0)])
def test_fixed_point(accelerated, weighted, kernel):
    weights = torch.linspace(0.3, 2, N, dtype=torch.float64) if weighted else None
    p = problem(weights=weights, kernel=kernel)
    solver = ASkotch(block=60, rank=30, accelerated=accelerated)
    result = solve(p, solver, stop=[tolerance(1e-10), max_iterations(3000)])
    assert result.reason == "converged"
    assert error(result.state.coef, p) < 1e-8


def test_float32_rows_are_stable():
    p = problem(dtype=torch.float32)
    result = solve(p, ASkotch(block=60, rank=30), stop=[max_iterations(600)])
    assert error(result.state.coef, p) < 1e-4


def test_without_acceleration_the_objective_never_rises():
    p = problem(penalty=1e-5)
    values = [objective(s.coef, p) for s in states(ASkotch(40, rank=20, accelerated=False), p, 80)]
    assert all(b <= a + 1e-12 * abs(a) for a, b in pairwise(values))


def test_acceleration_saves_iterations_at_a_small_penalty():
    def iterations(accelerated: bool) -> int:
        solver = ASkotch(60, rank=30, accelerated=accelerated)
        stop = [tolerance(1e-4), max_iterations(5000)]
        return solve(problem(penalty=1e-5), solver, stop=stop).state.iteration

    assert 2 * iterations(True) < iterations(False)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_kernel_and_targets_change_nothing(unit):
    plain = states(ASkotch(60, rank=30), problem(), 40)[-1]
    other = problem(kernel=unit * kernels.Gaussian(1.0), penalty=1e-3 * unit, scale=7.0)
    scaled = states(ASkotch(60, rank=30), other, 40)[-1]
    torch.testing.assert_close(scaled.coef * unit / 7, plain.coef, rtol=1e-5, atol=1e-6)
    assert scaled.metrics["rel_residual"] == pytest.approx(plain.metrics["rel_residual"], rel=1e-4)


def test_the_residual_of_blocks_is_nearly_the_true_one():
    p = problem(penalty=1e-4)
    last = states(ASkotch(60, rank=30), p, 60)[-1]
    true = (p.rhs - p.apply(last.coef)).norm(dim=0) / p.rhs.norm(dim=0)
    assert 0.3 * float(true.max()) < last.metrics["rel_residual"] < 3 * float(true.max())


def test_resuming_changes_nothing():
    whole = states(ASkotch(50, rank=20), problem(), 12)
    rest = states(ASkotch(50, rank=20), problem(), 7, state=whole[5], seed=77)
    assert rest[-1].iteration == whole[-1].iteration == 11
    for name in ("coef", "ahead", "momentum", "recent"):
        assert torch.equal(getattr(rest[-1], name), getattr(whole[-1], name))


def test_momentum_that_does_harm_starts_again():
    p = problem(penalty=1e-4)
    good = states(ASkotch(60, rank=30), p, 30)[-1]
    bad = type(good)(**(vars(good) | {"momentum": good.momentum + 1e4, "least": good.least}))
    after = states(ASkotch(60, rank=30), p, 400, state=bad)
    assert after[-1].restarts >= 1
    assert error(after[-1].coef, p) < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"block": 0}, "block must be a whole number of at least 1 or 'auto', not 0"),
        ({"block": "all"}, "block must be"),
        ({"rank": 0}, "rank must be a whole number of at least 1, not 0"),
        ({"rank": True}, "rank must be"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        ASkotch(**settings)
