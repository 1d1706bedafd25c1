"""Newton's method against a dense one: all losses, penalties, dtypes, weights, states."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from close import assert_close
from scipy.optimize import minimize

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.landmarks import Uniform
from gramian.losses import Expectile, Gamma, Huber, Logistic, Loss, Poisson, Quantile, Softmax
from gramian.operators import KernelOperator
from gramian.problems import LossProblem, NystromProblem
from gramian.solvers import Newton, State, max_iterations, solve, tolerance

LOSSES = {
    "logistic": Logistic(),
    "softmax": Softmax(),
    "huber": Huber(0.5),
    "quantile": Quantile((0.2, 0.8), smoothing=0.05),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "expectile": Expectile(0.8),
}


def problem(
    loss: Loss,
    penalty: float,
    rng: RandomStream,
    dtype: np.dtype = np.float64,
    n: int = 300,
    m: int = 40,
    d: int = 2,
    weighted: bool = False,
) -> LossProblem:
    X = rng.standard_normal((n, d), np.float64)
    signal = np.sin(2 * X[:, :1]) + 0.5 * rng.standard_normal((n, 1), np.float64)
    y = signal
    if isinstance(loss, Softmax):
        scores = np.concatenate(
            [signal, -signal, xp.to_float64(rng.standard_normal((n, 1), np.float32))], axis=1
        )
        y = np.full((n, 3), -0.5)
        np.put_along_axis(y, scores.argmax(1, keepdims=True), 1.0, 1)
    elif isinstance(loss, Logistic):
        y = xp.to_float64(np.where(signal > 0, 1.0, -1.0))
    elif isinstance(loss, Poisson):
        y = xp.to_float64(np.random.default_rng(0).poisson(np.exp(signal)))
    elif isinstance(loss, Gamma):
        y = np.exp(signal)
    weights = rng.random(n, np.float64) + 0.2 if weighted else None
    X = xp.cast(X, dtype)
    K = KernelOperator(kernels.make("gaussian", lengthscale=1.0), X, X)
    index = rng.permutation(n)[:m]
    at = NystromProblem.at(K, index, y, penalty, weights)
    w = np.ones(n, np.float64) if weights is None else weights
    offset = loss.constant(y, w)
    return LossProblem(
        at.K, y, penalty, weights, at.landmark_weight, at.coverage, index, loss=loss, offset=offset
    )


def objective(P: LossProblem, coef: np.ndarray) -> np.ndarray:
    """Return the objective as its definition says, with dense float64 matrices."""
    K = P.K.double().dense()
    f = K @ coef + P.offset
    w = np.ones(len(f), np.float64) if P.weights is None else P.weights
    loss = (w[:, None] * P.loss.values(f, P.targets)).sum() / w.sum()
    return loss + P.penalty / 2 * (coef * (xp.to_float64(P.K_mm).dense() @ coef)).sum()


def dense_minimum(P: LossProblem) -> float:
    """Return the least objective, by damped Newton steps with the whole second derivative."""
    root = np.linalg.cholesky(
        xp.to_float64(P.K_mm).dense()
        + 1e-13 * xp.to_float64(np.eye(P.K.shape[1], dtype=np.float32))
    )
    F = xp.solve_triangular(root, P.K.double().dense().T, upper=False).T
    w = np.ones(len(F), np.float64) if P.weights is None else P.weights
    w = w / w.sum()
    b = np.zeros((F.shape[1], P.outputs), np.float64)

    def value(b: np.ndarray) -> np.ndarray:
        each = P.loss.values(F @ b + P.offset, P.targets)
        return (w[:, None] * each).sum() + P.penalty / 2 * np.square(b).sum()

    for _ in range(200):
        f = F @ b + P.offset
        g = F.T @ (w[:, None] * P.loss.slopes(f, P.targets)) + P.penalty * b
        if float(np.abs(g).max()) < 1e-13:
            break
        q, r = P.outputs, F.shape[1]
        H = np.zeros((r, q, r, q), np.float64)
        for c in range(q):
            unit = np.zeros_like(f)
            unit[:, c] = 1
            curved = P.loss.curvature_product(f, P.targets, unit)
            for e in range(q):
                H[:, e, :, c] = F.T @ ((w * curved[:, e])[:, None] * F)
            H[:, c, :, c] += P.penalty * xp.to_float64(np.eye(r, dtype=np.float32))
        step = np.linalg.solve(H.reshape(r * q, r * q), -g.reshape(-1)).reshape(r, q)
        size = 1.0
        while size > 1e-12 and value(b + size * step) > value(b):
            size /= 2
        b = b + size * step
    return float(value(b))


def minimised(P: LossProblem, tol: float = 1e-7, most: int = 100, **settings) -> np.ndarray:
    result = solve(P, Newton(**settings), stop=[tolerance(tol), max_iterations(most)])
    assert result.reason == "converged", result.history[-1]
    return result.state.coef


@pytest.mark.parametrize("penalty", [1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("name", LOSSES)
def test_objective_is_that_of_a_dense_solver(name, penalty, rng):
    P = problem(LOSSES[name], penalty, rng)
    found, least = float(objective(P, minimised(P))), dense_minimum(P)
    assert found - least < 1e-8 * max(1, abs(least))


@pytest.mark.parametrize("name", LOSSES)
def test_weights_and_float32(name, rng, dtype):
    P = problem(LOSSES[name], 1e-4, rng, dtype, weighted=True)
    found, least = float(objective(P, minimised(P, 1e-5))), dense_minimum(P)
    assert found - least < (1e-8 if dtype == np.float64 else 1e-6) * max(1, abs(least))


def test_whole_weights_are_repeated_rows(rng):
    P = problem(Logistic(), 1e-3, rng)
    times = 1 + rng.integers(4 - 1, size=(300,))
    rows = P.K.rows.take(np.arange(300))
    repeated = replace(
        P,
        K=replace(P.K, rows=np.repeat(rows, times, axis=0)),
        targets=np.repeat(P.targets, times, axis=0),
        index=None,
    )
    weighted = replace(P, weights=xp.to_float64(times))
    f = [P.K @ minimised(one) for one in (repeated, weighted)]
    assert_close(f[0], f[1], atol=1e-6, rtol=0)


@pytest.mark.parametrize("case", ["d=1", "repeated rows", "flat", "tiny lengthscale", "few rows"])
def test_awkward_rows(case, rng):
    P = problem(Logistic(), 1e-5, rng, d=1 if case == "d=1" else 2)
    if case == "repeated rows":
        X = np.tile(P.K.rows.take(np.arange(10)), (30, 1))
        K = KernelOperator(P.K.kernel, X, X)
        P = replace(P, K=K.against(K.points(np.arange(40))), index=np.arange(40))
    elif case in ("flat", "tiny lengthscale"):
        scale = 1e4 if case == "flat" else 1e-3
        P = replace(P, K=replace(P.K, kernel=kernels.make("gaussian", lengthscale=scale)))
    elif case == "few rows":
        at = np.arange(5)
        K = replace(P.K, rows=P.K.rows.take(at))
        P = replace(
            P,
            K=K,
            targets=xp.to_float64(np.array([[1.0], [-1], [1], [1], [-1]], dtype=np.float32)),
            index=None,
        )
    before = float(objective(P, np.zeros((P.K.shape[1], 1), np.float64)))
    coef = minimised(P, 1e-6)
    assert bool(np.isfinite(coef).all())
    assert float(objective(P, coef)) <= before
    if case in ("d=1", "tiny lengthscale"):
        assert float(objective(P, coef)) - dense_minimum(P) < 1e-8


def test_separable_classes_have_a_finite_function(rng):
    P = problem(Logistic(), 1e-7, rng)
    first = P.K.rows.take(np.arange(300))[:, :1]
    P = replace(P, targets=xp.to_float64(np.where(first > 0, 1.0, -1.0)))
    coef = minimised(P)
    f = P.values(coef)
    assert bool(((f > 0) == (P.targets > 0)).all())
    assert float(objective(P, coef)) - dense_minimum(P) < 1e-8


@pytest.mark.parametrize("penalty", [1e-5, 1e-7, 1e-9])
def test_a_small_log_loss_is_minimised_to_a_small_share_of_it(penalty, rng):
    P = problem(Logistic(), penalty, rng)
    X = P.K.rows.take(np.arange(300))
    P = replace(P, targets=xp.to_float64(np.where(X[:, :1] + X[:, 1:] ** 2 > 0.3, 1.0, -1.0)))
    least = dense_minimum(P)
    assert least < 0.1
    assert float(objective(P, minimised(P, 1e-4))) < (1 + 1e-6) * least


@pytest.mark.slow
def test_exact_quantiles_have_their_share_below(rng):
    P = problem(Quantile((0.1, 0.5, 0.9)), 1e-4, rng, n=1000)
    coef = minimised(P, 1e-5)
    # of a dual solution: rows on the function itself, 40 at most, may be on either side
    below = xp.to_float64(P.targets < P.values(coef)).mean(axis=0)
    assert_close(
        below, xp.to_float64(np.array([0.1, 0.5, 0.9], dtype=np.float32)), atol=0.04, rtol=0
    )
    for width in (1e-2, 1e-3, 1e-4):
        blunt = minimised(replace(P, loss=P.loss.smooth_kink(width)), 1e-5)
        assert float(objective(P, coef)) <= float(objective(P, blunt)) + 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_curved_rows_of_a_kink_make_an_exact_factor(weighted, rng):
    P = problem(Quantile((0.1, 0.9)), 1e-6, rng, weighted=weighted)
    history = solve(P, Newton(), stop=[max_iterations(12)]).history
    assert max(row["cg"] for row in history) <= 2


@pytest.mark.parametrize(("loss", "penalty"), [(Logistic(), 1e-8), (Softmax(), 1e-7)])
def test_hard_steps_are_followed_by_easy_ones(loss, penalty, rng):
    P = problem(loss, penalty, rng, n=600, m=60)
    weight = np.ones(60, np.float64)
    weight[:30] = 1e-4  # half of the landmarks stand for nothing: a bad factor
    # Of a smaller tolerance the last steps meet with rounding, on some processors.
    result = solve(
        replace(P, landmark_weight=weight), Newton(), stop=[tolerance(1e-3), max_iterations(40)]
    )
    cg = [row["cg"] for row in result.history]
    hard = [i for i, count in enumerate(cg) if count > 25]
    assert result.reason == "converged"
    assert len(cg) > hard[0] + 2
    assert max(cg[hard[0] + 1 :]) < 6


def test_exact_quantiles_are_those_of_a_linear_program(rng):
    P = problem(Quantile(0.3), 1e-3, rng, n=80, m=20)
    coef = minimised(P, 1e-5)
    K, root = (
        P.K.dense(),
        np.linalg.cholesky(P.K_mm.dense() + 1e-12 * xp.to_float64(np.eye(20, dtype=np.float32))),
    )
    F = xp.solve_triangular(root, K.T, upper=False)
    lower, upper = np.full(80, 0.3 - 1), np.full(80, 0.3)
    y = P.targets[:, 0] - P.offset

    def dual(a: np.ndarray) -> tuple[float, np.ndarray]:
        v = F @ a / 80
        value = v @ v / (2 * P.penalty) - a @ y / 80
        return value, F.T @ v / (80 * P.penalty) - y / 80

    bounds = list(zip(lower, upper, strict=True))
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-12}
    found = minimize(dual, np.zeros(80), jac=True, bounds=bounds, options=options)
    assert float(objective(P, coef)) == pytest.approx(-found.fun, abs=2e-6)


def test_steps_that_gain_nothing_end_the_run(rng):
    P = problem(Logistic(), 1e-8, rng)
    result = solve(P, Newton(), stop=[tolerance(0.0), max_iterations(200)])
    assert result.reason == "no_progress"
    assert float(objective(P, result.state.coef)) - dense_minimum(P) < 1e-9


def test_going_on_gives_the_same_bits(rng):
    P = problem(Softmax(), 1e-6, rng)
    whole = solve(P, Newton(), stop=[max_iterations(8)])
    half = solve(P, Newton(), stop=[max_iterations(5)])
    rest = solve(P, Newton(), stop=[max_iterations(8)], state=half.state)
    assert np.array_equal(whole.state.coef, rest.state.coef)
    assert whole.history[-1]["objective"] == rest.history[-1]["objective"]


@pytest.mark.slow
def test_coefficients_near_the_minimum_are_a_start(rng):
    P = problem(Logistic(), 1e-6, rng)
    coef = minimised(replace(P, penalty=4e-6))
    cold = solve(P, Newton(), stop=[tolerance(1e-5), max_iterations(50)])
    warm = solve(P, Newton(), stop=[tolerance(1e-5), max_iterations(50)], state=State(0, coef))
    assert warm.reason == "converged"
    assert warm.state.iteration < cold.state.iteration
    with pytest.raises(ValueError, match="shape"):
        solve(P, Newton(), state=State(0, coef[:3]))


def test_outputs_of_softmax_sum_to_zero(rng):
    P = problem(Softmax(), 1e-4, rng)
    f = P.values(minimised(P))
    assert_close(f.sum(axis=1), xp.to_float64(np.zeros(300, np.float32)), atol=1e-9, rtol=0)


def test_two_classes_of_softmax_are_the_logistic_loss(rng):
    P = problem(Logistic(), 2e-4, rng)
    two = replace(
        P,
        targets=np.concatenate([-P.targets, P.targets], axis=1),
        penalty=P.penalty * 2,
        loss=Softmax(),
        offset=np.concatenate([-P.offset, P.offset]) / 2,
    )
    one, both = P.values(minimised(P)), two.values(minimised(two))
    assert_close(both[:, 1:] - both[:, :1], one, atol=1e-5, rtol=0)


def test_objective_never_rises_in_the_last_stage(rng):
    P = problem(Poisson(), 1e-7, rng)
    history = solve(P, Newton(), stop=[tolerance(1e-7), max_iterations(60)]).history
    last = [row["objective"] for row in history if row["stage_penalty"] == P.penalty]
    assert len(last) > 2
    assert all(b <= a + 1e-10 for a, b in itertools.pairwise(last))
    assert history[-1]["rel_residual"] <= 1e-7


def test_other_selectors_and_no_row_numbers(rng):
    P = problem(Logistic(), 1e-4, rng)
    X = P.K.rows.take(np.arange(300))
    found = Uniform(40).select(KernelOperator(P.K.kernel, X, X), rng=rng)
    other = replace(P, K=P.K.against(found.points), landmark_weight=None, index=None)
    assert float(objective(other, minimised(other))) - dense_minimum(other) < 1e-8


@pytest.mark.parametrize("name", ["decrease", "accuracy"])
def test_settings_between_zero_and_one(name):
    with pytest.raises(ValueError, match=f"{name} must be between 0 and 1"):
        Newton(**{name: 1.0})
