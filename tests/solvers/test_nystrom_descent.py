"""Gradient methods on the Nystrom problem: each is the loop of its paper, written with NumPy."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from close import assert_close

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import (
    Direct,
    FalkonGD,
    NystromGD,
    NystromSGD,
    Nytro,
    State,
    max_iterations,
    solve,
    tolerance,
)
from gramian.solvers.nystrom.coordinates import Coordinates

N, M = 60, 8


def matrices(n: int = N, m: int = M, d: int = 2, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.stack([np.sin(2 * X[:, 0]), X[:, -1] ** 2], axis=1)
    Z = rng.standard_normal((m, d)) if m > n else X[:m]
    return X, Z, y, rng.uniform(0.5, 2.0, n)


def problem_of(
    X: Any,
    Z: Any,
    y: Any,
    penalty: float,
    weights: Any = None,
    kernel: kernels.Kernel | None = None,
    dtype: np.dtype = np.float64,
) -> NystromProblem:
    rows, centers = (as_rows(xp.cast(A, dtype)) for A in (X, Z))
    K = KernelOperator(kernel or kernels.Matern32(1.5), rows, centers)
    w = None if weights is None else weights
    return NystromProblem(K, y, penalty, w)


def kernel_matrix(kernel: kernels.Kernel, a: Any, b: Any) -> Any:
    return kernel(a, b)


def gradient_descent(B: Any, H: Any, z: Any, tau: float, count: int) -> list[Any]:
    """Return alpha_k = B beta_k of equation (12)."""
    beta, found = np.zeros((B.shape[1], z.shape[1])), []
    for _ in range(count):
        beta = beta - tau * B.T @ (H @ (B @ beta) - z)
        found.append(B @ beta)
    return found


def falkon_root(K_mm: Any, penalty: float) -> Any:
    T = scipy.linalg.cholesky(K_mm)
    A = scipy.linalg.cholesky(T @ T.T / len(T) + penalty * np.eye(len(T)))
    return np.linalg.inv(A @ T)


ROOTS = {
    "coefficients": (NystromGD("coefficients"), lambda K_mm, lam: np.eye(len(K_mm))),
    "functions": (NystromGD(), lambda K_mm, lam: np.linalg.inv(scipy.linalg.cholesky(K_mm))),
    "nytro": (Nytro(), lambda K_mm, lam: np.linalg.inv(scipy.linalg.cholesky(K_mm))),
    "falkon": (FalkonGD(preconditioner_penalty=None), falkon_root),
}


@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_iterates_are_those_of_the_paper(name, weighted):
    solver, root = ROOTS[name]
    X, Z, y, w = matrices()
    lam = 0.0 if name == "nytro" else 1e-2
    problem = problem_of(X, Z, y, lam, w if weighted else None)
    w = w if weighted else np.ones(N)
    K, K_mm = (kernel_matrix(problem.K.kernel, A, Z) for A in (X, Z))
    H = K.T @ (w[:, None] * K) / w.sum() + lam * K_mm
    z = K.T @ (w[:, None] * y) / w.sum()
    states = list(islice(solver.iterate(problem), 7))
    tau = states[0].settings["step"]
    B = root(K_mm, lam)
    largest = np.linalg.eigvalsh(B.T @ H @ B)[-1]
    assert 1 / 1.1 <= tau * largest <= 1
    for state, expected in zip(states[1:], gradient_descent(B, H, z, tau, 6), strict=True):
        np.testing.assert_allclose(state.coef, expected, rtol=1e-8, atol=1e-10)


def test_conjugate_gradient_ends_in_least_squares():
    X, Z, y, _ = matrices()
    problem = problem_of(X, Z, y, 0.0)
    result = solve(problem, Nytro("cg"), stop=[max_iterations(2 * M)])
    K = kernel_matrix(problem.K.kernel, X, Z)
    exact = K @ np.linalg.lstsq(K, y, rcond=None)[0]
    np.testing.assert_allclose(K @ result.state.coef, exact, atol=1e-7)
    errors = [
        float(xp.norm(K @ state.coef - problem.targets))
        for state in islice(Nytro("cg").iterate(problem), M)
    ]
    assert errors == sorted(errors, reverse=True)
    plain = list(islice(Nytro().iterate(problem), M))[-1]
    assert errors[-1] < float(xp.norm(K @ plain.coef - problem.targets))


def closed_form(problem: NystromProblem, X: Any, Z: Any, y: Any) -> Any:
    """Return the exact values at the rows, by least squares over eigenvectors of K_mm."""
    K, K_mm = (kernel_matrix(problem.K.kernel, A, Z) for A in (X, Z))
    values, vectors = np.linalg.eigh(K_mm)
    keep = values > 1e-13 * values[-1]
    F = K @ vectors[:, keep] / np.sqrt(values[keep])
    ridge = np.sqrt(len(X) * problem.penalty) * np.eye(keep.sum())
    rhs = np.vstack([y, np.zeros((keep.sum(), y.shape[1]))])
    return F @ np.linalg.lstsq(np.vstack([F, ridge]), rhs, rcond=None)[0]


HARD: dict[str, dict[str, Any]] = {
    "one feature": {"d": 1, "kernel": kernels.Gaussian(1.0), "m": 30, "n": 200},
    "repeated rows": {"repeat": 10, "m": 30},
    "tiny penalty": {"penalty": 1e-12, "kernel": kernels.Gaussian(1.0), "m": 30, "n": 300, "d": 3},
    "more centers than rows": {"n": 30, "m": 90, "kernel": kernels.Laplacian(1.0)},
    "offset": {"offset": 100.0},
}


@pytest.mark.parametrize("solver", [FalkonGD(), Nytro("cg")])
@pytest.mark.parametrize("name", HARD)
def test_awkward_problems(name, solver, dtype):
    case = {"n": N, "m": M, "d": 2, "penalty": 1e-3, "offset": 0.0, "repeat": 1} | HARD[name]
    X, Z, y, _ = matrices(case["n"], case["m"], case["d"])
    X, y = (A.repeat(case["repeat"], axis=0) for A in (X, y + case["offset"]))
    X, Z = (A.astype(np.float32).astype(np.float64) for A in (X, Z))
    problem = problem_of(X, Z, y, case["penalty"], kernel=case.get("kernel"), dtype=dtype)
    result = solve(problem, solver, stop=[tolerance(1e-7), max_iterations(3000)])
    assert result.reason in ("converged", "no_progress")
    K = kernel_matrix(problem.K.kernel, X, Z)
    gap = K @ result.state.coef - closed_form(problem, X, Z, y)
    # The closed form leaves out functions below 1e-13 of the largest eigenvalue.
    assert float((np.sqrt((gap**2).mean(axis=0)) / y.std(axis=0)).max()) <= 1e-5


@pytest.mark.parametrize("solver", [NystromGD(), NystromGD("coefficients"), Nytro("cg")])
@pytest.mark.parametrize("seed", range(4))
def test_the_estimate_bounds_the_error(solver, seed):
    X, Z, y, _ = matrices(seed=seed)
    problem = problem_of(X, Z, y, 10.0 ** -(1 + seed))
    exact = problem.K @ solve(problem, Direct()).state.coef
    for state in islice(solver.iterate(problem), 0, 40, 3):
        gap = np.sqrt(np.square(problem.K @ state.coef - exact).mean(axis=0))
        assert problem.relative_error(gap) <= 1.001 * state.metrics["prediction_error"] + 1e-9


def test_rounding_ends_a_run():
    X, Z, y, _ = matrices()
    problem = problem_of(X, Z, y, 0.1)
    result = solve(problem, FalkonGD(), stop=[tolerance(1e-30), max_iterations(1000)])
    assert result.reason == "no_progress"
    assert result.history[-1]["rel_residual"] < 1e-13


def test_states_in_other_coordinates_are_starting_points():
    X, Z, y, _ = matrices()
    problem = problem_of(X, Z, y, 1e-2)
    state = solve(problem, NystromGD("coefficients"), stop=[max_iterations(5)]).state
    for solver in (NystromGD(), FalkonGD(), Nytro()):
        first = next(solver.iterate(problem, state))
        np.testing.assert_allclose(first.coef, state.coef, rtol=1e-10)
        expected = Coordinates.build(problem, "functions").gradient(
            Coordinates.build(problem, "functions").from_coef(state.coef)
        )
        if not isinstance(solver, FalkonGD):
            assert_close(first.gradient, expected)


def test_states_after_another_penalty_are_starting_points():
    X, Z, y, _ = matrices()
    problem = problem_of(X, Z, y, 1e-2)
    other = FalkonGD(preconditioner_penalty=1.0)
    state = solve(problem, other, stop=[max_iterations(5)]).state
    plain = State(state.iteration, state.coef)
    after, expected = (
        list(islice(FalkonGD().iterate(problem, start), 2))[1].coef for start in (state, plain)
    )
    assert_close(after, expected)


def test_nytro_stops_before_it_follows_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 1))
    truth = np.sin(X[:, 0])
    y = truth + rng.standard_normal(300)
    est = KernelRidge(
        "gaussian", lengthscale=0.3, penalty=0, landmarks=100, solver=Nytro("cg"), random_state=0
    )
    early = est.set_params(early_stopping=True, max_iter=100).fit(X, y)
    assert early.stop_reason_ == "early_stopping"
    error = np.mean((early.predict(X) - truth) ** 2)
    late = est.set_params(early_stopping=False, max_iter=100).fit(X, y)
    assert error < 0.5 * np.mean((late.predict(X) - truth) ** 2)
    assert "prediction_error" not in late.history_[-1]


class TestNystromSGD:
    @pytest.mark.parametrize("coordinates", ["functions", "coefficients"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_batch_of_all_rows_is_gradient_descent(self, coordinates, weighted):
        X, Z, y, w = matrices()
        problem = problem_of(X, Z, y, 1e-2, w if weighted else None)
        solver = NystromSGD(coordinates=coordinates, batch=N, average=False)
        states = list(islice(solver.iterate(problem), 4))
        w = w if weighted else np.ones(N)
        K, K_mm = (kernel_matrix(problem.K.kernel, A, Z) for A in (X, Z))
        H = K.T @ (w[:, None] * K) / w.sum() + 1e-2 * K_mm
        root = ROOTS[coordinates][1](K_mm, 0.0)
        expected = gradient_descent(
            root, H, K.T @ (w[:, None] * y) / w.sum(), states[0].settings["step"], 3
        )
        for state, alpha in zip(states[1:], expected, strict=True):
            np.testing.assert_allclose(state.coef, alpha, rtol=1e-8, atol=1e-10)

    def test_the_step_is_stable_and_not_much_too_short(self):
        X, Z, y, w = matrices(400)
        w = w**4
        problem = problem_of(X, Z, y, 1e-3, w)
        w = (w / w.mean())[:, None]
        for batch in (1, 20):
            step = next(NystromSGD(batch=batch).iterate(problem)).settings["step"]
            K, K_mm = (kernel_matrix(problem.K.kernel, A, Z) for A in (X, Z))
            F = K @ np.linalg.inv(scipy.linalg.cholesky(K_mm))
            L = np.linalg.eigvalsh(F.T @ (w * F) / 400)[-1] + 1e-3
            trace = (w * F**2).sum(axis=1).max()
            assert 0.85 <= step * (L + trace / batch) <= 1.0

    @pytest.mark.usefixtures("unchecked")
    def test_it_approaches_the_solution(self):
        X, Z, y, _ = matrices(400)
        problem = problem_of(X, Z, y, 1e-2)
        exact = problem.K @ solve(problem, Direct()).state.coef
        errors = {}
        for average in (True, False):
            solver = NystromSGD(batch=20, average=average)
            state = solve(problem, solver, stop=[max_iterations(30)]).state
            gap = np.sqrt(np.square(problem.K @ state.coef - exact).mean(axis=0))
            errors[average] = problem.relative_error(gap)
        assert errors[True] < 0.05
        assert errors[True] < 0.5 * errors[False]

    def test_it_says_that_it_diverges(self):
        X, Z, y, _ = matrices(400)
        problem = problem_of(X, Z, y, 1e-2)
        result = solve(problem, NystromSGD(batch=10, step_scale=5.0), stop=[max_iterations(50)])
        assert result.reason == "diverged"
        assert result.state.iteration <= 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NystromGD("rows"), r"coordinates must be one of coefficients, functions, not"),
        (lambda: NystromSGD(coordinates="falkon"), r"coordinates must be one of coefficients"),
        (lambda: Nytro("sgd"), r"variant must be one of gd, cg, not 'sgd'"),
        (lambda: FalkonGD(preconditioner_penalty=0.0), r"preconditioner_penalty must be positive"),
        (lambda: NystromGD(step_scale=0), r"step_scale must be positive"),
        (lambda: NystromSGD(batch=0), r"batch must be a whole number of at least 1 or 'auto'"),
    ],
)
def test_errors_name_parameter_and_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("field", ["beta", "mean", "coef"])
def test_a_changed_stochastic_state_is_refused(field):
    X, Z, y, _ = matrices()
    problem, solver = problem_of(X, Z, y, 1e-2), NystromSGD(batch=10)
    state = solve(problem, solver, stop=[max_iterations(3)]).state
    solver.verify(problem, state)
    setattr(state, field, getattr(state, field) + 1e4)
    with pytest.raises(ValueError, match="but the recomputed"):
        solver.verify(problem, state)


@pytest.mark.parametrize("field", ["beta", "gradient", "coef"])
@pytest.mark.parametrize("solver", [NystromGD(), FalkonGD(), Nytro("cg")])
def test_a_changed_state_is_refused(solver, field):
    X, Z, y, _ = matrices()
    problem = problem_of(X, Z, y, 1e-2)
    state = solve(problem, solver, stop=[max_iterations(3)]).state
    solver.verify(problem, state)
    setattr(state, field, getattr(state, field) + 1)
    with pytest.raises(ValueError, match="but the recomputed"):
        solver.verify(problem, state)
