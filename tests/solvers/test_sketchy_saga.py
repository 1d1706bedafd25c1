"""SketchySAGA: full batches are gradient descent, gradients are unbiased, the fixed point."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.preconditioners import FalkonFactor
from gramian.problems import NystromProblem
from gramian.solvers import (
    Direct,
    Falkon,
    SketchySAGA,
    State,
    max_iterations,
    solve,
    tolerance,
)
from gramian.solvers.sketchy_saga import state as certificate

N, M = 200, 15


def problem(penalty=1e-2, weighted=False, dtype=np.float64, kernel=None) -> NystromProblem:
    rng = RandomStream(0)
    X = rng.standard_normal((N, 3), np.float64)
    y = np.sin(2 * X[:, :2]) + 0.1 * rng.standard_normal((N, 2), np.float64)
    rows = as_rows(xp.cast(X, dtype))
    weights = np.linspace(0.3, 2, N, dtype=np.float64) if weighted else None
    K = KernelOperator(kernel or kernels.Laplacian(2.0), rows, rows)
    index = rng.permutation(N)[:M]
    return NystromProblem.at(K, index, xp.cast(y, dtype), penalty, weights)


def gradient(p: NystromProblem, w: np.ndarray) -> np.ndarray:
    K, K_mm = p.K.dense(), p.K_mm.dense()
    omega = np.ones(N, np.float64) if p.weights is None else p.weights
    omega = (omega / omega.mean())[:, None]
    return K.T @ (omega * (K @ w - p.targets)) / N + p.penalty * K_mm @ w


def states(p: NystromProblem, solver: SketchySAGA, count: int, state: Any = None, seed: int = 1):
    rng = RandomStream(seed)
    return list(islice(solver.iterate(p, state, rng=rng), count))


@pytest.mark.parametrize("ridge", ["direct", "rows"])
@pytest.mark.parametrize("weighted", [False, True])
def test_full_batches_are_preconditioned_gradient_descent(ridge, weighted):
    p = problem(weighted=weighted)
    solver = SketchySAGA(batch=N, rank=5, ridge=ridge)
    found = states(p, solver, 6)
    setup = solver.setup(p, found[0].seed)
    w = np.zeros((M, 2), np.float64)
    for state in found:
        assert_close(state.coef, w, rtol=1e-10, atol=1e-12)
        w = w - setup.sketch.step * (setup.sketch.P @ gradient(p, w))


@pytest.mark.parametrize("ridge", ["direct", "rows"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_batches_are_unbiased(ridge, weighted):
    p = problem(weighted=weighted)
    solver = SketchySAGA(batch=50, rank=5, ridge=ridge)
    later = states(p, solver, 4)[-1]
    setup = solver.setup(p, later.seed)
    total = np.zeros_like(later.coef)
    for B in np.arange(N).reshape(-1, 50):  # batches that make up all rows
        w, x, table = xp.copy(later.coef), xp.copy(later.average), xp.copy(later.table)
        solver.run_(setup, w, x, table, 1.0, [(B, p.K.rows.take(B))])
        total += setup.sketch.P.apply(later.coef - w) / 4
    assert_close(total, gradient(p, later.coef), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fixed_point_is_that_of_falkon(weighted):
    p = problem(weighted=weighted)
    result = solve(p, SketchySAGA(batch=40), stop=[tolerance(1e-9), max_iterations(400)])
    expected = solve(p, Falkon(), stop=[tolerance(1e-13), max_iterations(99)]).state.coef
    assert result.reason == "converged"
    assert float(xp.norm(result.state.coef - expected) / xp.norm(expected)) < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fixed_point_is_the_same_with_the_ridge_in_rows(weighted):
    p = problem(weighted=weighted)
    expected = solve(p, Falkon(), stop=[tolerance(1e-14), max_iterations(99)]).state.coef
    solver = SketchySAGA(batch=40, ridge="rows")
    stayed = states(p, solver, 4, State(0, expected))[-1]
    assert_close(stayed.coef, expected, rtol=1e-7, atol=1e-9)
    away = states(p, solver, 40, State(0, 1.5 * expected))[-1]
    assert float(xp.norm(away.coef - expected)) < 0.3 * float(xp.norm(0.5 * expected))


def true_error(p: NystromProblem, coef: np.ndarray) -> float:
    """Return the error of predictions on the rows, over the standard deviation, by `Direct`."""
    gap = xp.to_float64(p).K @ (coef - solve(p, Direct()).state.coef)
    return float((np.sqrt(np.square(gap).mean(axis=0)) / p.targets.std(axis=0)).max())


def test_the_residual_is_in_the_metric_of_falkon():
    p = problem()
    last = states(p, SketchySAGA(batch=50), 12)[-1]
    B = FalkonFactor.build(p, "auto")
    norm, size = (
        xp.norm(B.solve_At(B.solve_Tt(g)), axis=0)
        for g in (gradient(p, last.coef), p.K.dense().T @ p.targets / N)
    )
    true = float((norm / size).max())
    assert 0.2 * true < last.metrics["rel_residual"] < 5 * true


def test_converged_means_that_predictions_are_near():
    """Normal equations see little of this: 1e-5 of them left 20 % of the spread and more."""
    rng = RandomStream(0)
    X = rng.standard_normal((400, 1), np.float64)
    y = np.sin(X) + 0.3 * rng.standard_normal((400, 1), np.float64)
    for tol in (1e-3, 1e-5):
        for kernel in (kernels.Polynomial(0.1), kernels.Gaussian(2.0)):
            K = KernelOperator(kernel, as_rows(X), as_rows(X))
            p = NystromProblem.at(K, np.array([0, 1, 2]), y, 1e-6)
            result = solve(p, SketchySAGA(), stop=[tolerance(tol), max_iterations(60)])
            error = true_error(p, result.state.coef)
            estimate = result.history[-1]["prediction_error"]
            assert error < 5 * estimate
            assert estimate <= tol or result.reason == "max_iterations"


@pytest.mark.parametrize("metric", ["falkon", "sketch"])
@pytest.mark.parametrize("case", range(6))
def test_the_prediction_error_is_near_the_true_one(case, metric, monkeypatch):
    kernel = [kernels.Laplacian(1.0), kernels.Matern32(2.0), kernels.Gaussian(1.0)][case % 3]
    p = problem(penalty=10.0 ** -(2 + case), weighted=case % 2 == 1, kernel=kernel)
    if metric == "sketch":  # as for landmarks whose factor would cost too much
        monkeypatch.setattr(certificate, "FACTOR_EPOCHS", 0)
    for state in states(p, SketchySAGA(batch=40), 31)[10::10]:
        error = true_error(p, state.coef)
        if error > 1e-6:
            assert 0.1 < state.metrics["prediction_error"] / error < 100


def test_resuming_keeps_the_prediction_error():
    whole = states(problem(), SketchySAGA(batch=30), 6)
    rest = states(problem(), SketchySAGA(batch=30), 3, state=whole[3], seed=77)
    assert rest[-1].metrics == whole[5].metrics


def test_float32_rows(dtype):
    p = problem(penalty=0.1, dtype=dtype)
    last = states(p, SketchySAGA(batch=50), 60)[-1]
    expected = solve(xp.to_float64(p), Falkon(), stop=[tolerance(1e-12)]).state.coef
    assert float(xp.norm(last.coef - expected) / xp.norm(expected)) < 3 * xp.finfo(dtype).eps ** 0.5


def test_resuming_within_an_epoch_changes_nothing():
    solver = SketchySAGA(batch=30, states_per_epoch=3)
    whole = states(problem(), solver, 8)
    rest = states(problem(), solver, 5, state=whole[3], seed=77)
    assert np.array_equal(rest[-1].coef, whole[-1].coef)
    assert np.array_equal(rest[-1].table, whole[-1].table)
    assert whole[3].metrics["epoch"] == 1


def test_a_step_that_is_too_long_is_halved_visibly(caplog):
    solver = SketchySAGA(batch=40, step_scale=64.0)
    with caplog.at_level(logging.WARNING, "gramian"):
        result = solve(problem(), solver, stop=[max_iterations(60)])
    halvings = result.history[-1]["halvings"]
    assert 1 <= halvings <= 10
    assert sum("the step is halved" in r.message for r in caplog.records) == halvings
    assert result.reason == "max_iterations"
    assert result.history[-1]["batch_mse"] < 0.8 * float(np.square(problem().targets).mean())
    assert bool(np.isfinite(result.state.coef).all())


def test_where_half_a_step_does_not_help_it_starts_again_from_zero():
    rng = RandomStream(0)
    p = problem()
    solver = SketchySAGA(batch=50)
    setup = solver.setup(p, 0)
    away = setup.start(1e3 * rng.standard_normal((M, 2), np.float64), None)
    bad = replace(away, least=1e-6 * away.least, metrics={"halvings": 0})
    once = solver.next(setup, bad)
    assert np.array_equal(once.coef, bad.coef)
    twice = solver.next(setup, once)
    assert not twice.coef.any()
    assert twice.halvings == 2
    for _ in range(5):
        twice = solver.next(setup, twice)
    assert twice.halvings == 2
    assert twice.metrics["batch_mse"] < float(np.square(p.targets).mean())


def test_a_step_of_which_nothing_is_left_has_diverged():
    state = replace(states(problem(), SketchySAGA(batch=50), 1)[-1], halvings=39)
    assert state.verdict is None
    assert state.halve_step(1.0, math.nan).verdict == "diverged"


def test_rows_that_are_nearly_all_zero_to_the_kernel_leave_a_finite_step():
    X = np.zeros((400, 1), np.float64)
    X[7], X[300] = 1.0, -2.0
    rows = as_rows(X)
    K = KernelOperator(kernels.Linear(1.0), rows, rows)
    p = NystromProblem.at(K, np.array([7]), 3.0 * X + 1, 1e-4)
    first = next(SketchySAGA(batch=32).iterate(p, rng=RandomStream(0)))
    assert 0 < first.settings["step"] < 10


@pytest.mark.parametrize("seed", [9, 33, 51, 55, 86, 87, 119])
def test_a_gradient_that_passes_through_zero_once_is_no_end(seed):
    """With one landmark that of the table does: these ended with 16 to 36 times the tolerance."""
    X = xp.to_float64(RandomStream(0).standard_normal((150, 3), np.float32))
    rng = RandomStream(seed)
    y = 1 + 0.1 * xp.to_float64(rng.standard_normal((150, 1), np.float32))
    K = KernelOperator(kernels.Gaussian(1.5), as_rows(X), as_rows(X))
    p = NystromProblem.at(K, np.array([seed]), y, 1e-5)
    stop = [tolerance(1e-3), max_iterations(200)]
    found = solve(p, SketchySAGA(batch=32), stop=stop, rng=rng)
    assert found.reason == "converged"
    k, w = kernels.Gaussian(1.5)(X, X[[seed]]), found.state.coef
    left = k.T @ (k @ w - y) / 150 + 1e-5 * w
    assert float(xp.norm(left)) < 15e-3 * float(xp.norm(k.T @ y) / 150)


@pytest.mark.parametrize("case", range(10))
def test_automatic_settings_do_not_diverge(case):
    rng = RandomStream(case)
    kernel = [kernels.Gaussian(1.0), kernels.Gaussian(6.0), kernels.Laplacian(1.0)][case % 3]
    X = rng.standard_normal((400, 1 + 3 * (case % 2)), np.float32)
    X[:200] = X[:200] * 0.05 + 3 * (case % 2)
    y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((400, 1), np.float32)
    rows = as_rows(X if case % 4 else xp.to_float64(X))
    K = KernelOperator(kernel, rows, rows)
    p = NystromProblem.at(K, rng.permutation(400)[:50], y, 10.0 ** -(case % 7))
    result = solve(p, SketchySAGA(batch=(32, 100, 400)[case % 3]), stop=[max_iterations(10)])
    assert result.reason == "max_iterations"
    assert result.history[-1]["halvings"] == 0
    errors = [row["batch_mse"] for row in result.history if "batch_mse" in row]
    assert errors[-1] <= 1.15 * errors[0] <= 1.3 * float(np.square(y).mean())  # of other rows


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "batch must be a whole number of at least 1 or 'auto', not 0"),
        ({"rank": 0}, "rank must be"),
        ({"damping": -1.0}, "damping must be positive and finite"),
        ({"step_scale": 0.0}, "step_scale must be positive and finite"),
        ({"ridge": "none"}, "ridge must be one of auto, direct, rows, not 'none'"),
        ({"states_per_epoch": 0}, "states_per_epoch must be"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        SketchySAGA(**settings)


def test_the_ridge_cannot_be_in_rows_that_are_not_known():
    p = problem()
    without = NystromProblem(p.K, p.targets, p.penalty)
    with pytest.raises(ValueError, match="ridge='rows' needs distinct landmarks that are rows"):
        solve(without, SketchySAGA(ridge="rows"))
    start = solve(without, SketchySAGA(), stop=[max_iterations(1)]).state
    assert start.settings["ridge_in_rows"] == 0
    assert solve(p, SketchySAGA(), stop=[max_iterations(1)], state=State(0, start.coef))
