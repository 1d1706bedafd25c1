"""Where a solver starts from the solution it has nothing left to do, and knows it."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close

from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.preconditioners import FalkonFactor
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Direct, State, make, solve

N, M = 90, 12


def problem_for(name: str) -> FullProblem | NystromProblem:
    rng = RandomStream(0)
    X = as_rows(rng.standard_normal((N, 5), np.float64))
    y = rng.standard_normal((N, 2), np.float64) + 3
    weights = rng.random(N, np.float64) + 0.5
    K = KernelOperator(kernels.Matern32(2.0), X, X)
    if name in ("falkon", "sketchysaga"):
        return NystromProblem.at(K, np.arange(M), y, 1e-3, weights)
    return FullProblem(K, y, 1e-3, weights)


@pytest.mark.parametrize("name", ["pcg", "askotch", "skotch", "falkon", "sketchysaga"])
def test_the_solution_is_a_start_without_a_residual(name):
    problem = problem_for(name)
    exact = solve(problem, Direct()).state.coef
    # A factor of all rows converges in a step from anywhere, so FALKON has one of landmarks.
    choices = {"preconditioner_penalty": "landmarks"} if name == "falkon" else {}
    solver = make(name, **choices)
    states = solver.iterate(problem, State(0, exact), rng=RandomStream(0))
    next(states)
    after = next(states)
    assert after.metrics["rel_residual"] < 1e-9
    assert_close(after.coef, exact, rtol=0, atol=1e-8 * float(np.abs(exact).max()))


def test_the_more_rows_are_landmarks_the_smaller_the_automatic_penalty(monkeypatch):
    # A factor of all rows has the penalty of the problem.
    monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
    problem = problem_for("falkon")
    found = [
        FalkonFactor.build(
            NystromProblem(problem.K, problem.targets, 1e-9, coverage=coverage), "auto"
        ).penalty
        for coverage in (0.1, 0.4, 0.6, 1.0)
    ]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4
    assert found[-1] == 1e-9
