"""EigenPro 1, 2, 3: identities of the preconditioner, projections, fixed points, and stability."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows, noise
from gramian.operators import KernelOperator
from gramian.preconditioners import EigenProFactor
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import (
    PCG,
    EigenPro1,
    EigenPro2,
    EigenPro3,
    Falkon,
    ProblemSize,
    State,
    max_iterations,
    solve,
    tolerance,
)
from gramian.solvers.eigenpro.projection import InexactProjection

N, P = 120, 12


def operator(dtype=np.float64, kernel=None, n=N) -> KernelOperator:
    rng = RandomStream(0)
    X = as_rows(xp.cast(rng.standard_normal((n, 3), np.float64), dtype))
    return KernelOperator(kernel or kernels.Laplacian(2.0), X, X)


def targets(K: KernelOperator) -> np.ndarray:
    X = xp.to_float64(K.rows.take(np.arange(K.shape[0])))
    rng = RandomStream(1)
    noise = rng.standard_normal((len(X), 2), np.float64)
    return xp.cast(np.stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2], axis=1) + 0.2 * noise, K.dtype)


def full(penalty: float = 0.0, **changes: Any) -> FullProblem:
    K = operator(**changes)
    return FullProblem(K, targets(K), penalty)


def nystrom(
    penalty: float = 0.0, weights: np.ndarray | None = None, **changes: Any
) -> NystromProblem:
    K = operator(**changes)
    return NystromProblem.at(K, np.arange(P), targets(K), penalty, weights)


def factor(K: KernelOperator, **settings: Any) -> EigenProFactor:
    return EigenProFactor.build(K, rng=RandomStream(0), **settings)


def run(problem: Any, solver: Any, iterations: int, state: State | None = None) -> Any:
    return solve(problem, solver, stop=[max_iterations(iterations)], state=state).state


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(xp.norm(a - b) / xp.norm(b))


def kernel_p(P: EigenProFactor, K: np.ndarray) -> np.ndarray:
    """K^P, from the definition and the dense matrix."""
    S = P.index
    return K - K[:, S] @ P.vectors @ P.vectors.T @ K[S]


# --- the preconditioner --------------------------------------------------------------------------


def test_with_all_rows_the_preconditioner_is_q():
    K = operator()
    P = factor(K, subsample=N, rank=12, exponent=1.0)
    values, E = np.linalg.eigh(K.dense())
    values, E = xp.flip(values, 0), xp.flip(E, 1)
    Q = E[:, :12] @ np.diag(1 - values[12] / values[:12]) @ E[:, :12].T
    dense = K.dense()
    back = np.empty(N, np.int64)
    back[P.index] = np.arange(N)
    U = P.vectors[back]
    assert relative(U @ U.T @ dense, Q) < 1e-12
    left = np.linalg.eigvalsh(kernel_p(P, dense))
    assert float(left[-1]) == pytest.approx(float(values[12]), rel=1e-12)
    # (I - Q) K has the eigenvalue lambda_{q+1} in each flattened direction
    assert float(left[-13]) == pytest.approx(float(values[12]), rel=1e-11)


def test_what_is_measured_bounds_what_is_left_and_little_more():
    K = operator(n=400)
    for s in (400, 100):
        P = factor(K, subsample=s)
        largest = float(np.linalg.eigvalsh(kernel_p(P, K.dense()))[-1]) / 400
        assert 0.9 * largest < P.top < 3 * largest
        assert float(xp.diagonal(kernel_p(P, K.dense())).max()) <= 1.1 * P.beta


def test_a_ridge_is_a_kernel_of_its_own():
    K, ridge = operator(), 3.0
    P = factor(K, subsample=N, rank=5, exponent=1.0, ridge=ridge)
    A = K.dense() + ridge * np.eye(N, dtype=np.float64)
    left = np.linalg.eigvalsh(kernel_p(P, A))
    assert float(left[-1]) == pytest.approx(float(np.linalg.eigvalsh(A)[-6]), rel=1e-12)
    part = factor(K, subsample=60, rank=5, exponent=1.0, ridge=ridge)
    assert float(np.linalg.eigvalsh(kernel_p(part, A))[0]) > 0  # still positive definite


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_left_of_the_diagonal_is_that_of_all_rows(weighted, ridge):
    K = operator(n=400, kernel=kernels.Laplacian(2.0) + 0.5 * kernels.Linear())
    omega = np.linspace(0.3, 1.7, 400, dtype=np.float64) if weighted else None
    P = factor(K, subsample=100, weights=omega, ridge=ridge)
    root = xp.to_float64(np.ones(400, np.float32)) if omega is None else np.sqrt(omega)
    A = root[:, None] * K.dense() * root + ridge * xp.to_float64(np.eye(400, dtype=np.float32))
    left = xp.diagonal(kernel_p(replace(P, vectors=P.vectors / root[P.index, None]), A))
    assert P.beta == pytest.approx(float(left.max()), rel=1e-10)
    assert P.longest == float("inf")


def test_rows_that_change_are_guarded_against():
    K = operator(n=400, kernel=kernels.Gaussian(20.0))
    seen, changed = factor(K), factor(K, change=lambda x: x)
    assert seen.beta < 0.1
    assert changed.beta == 0.55
    assert changed.step(1) == 1 / 0.55
    assert seen.step(1) > 10 * changed.step(1)


def test_what_is_left_with_weights_and_a_ridge():
    K, w = operator(n=60), np.linspace(0.5, 1.5, 60, dtype=np.float64)
    P = factor(K, rank=5, exponent=1.0, weights=w, ridge=0.3)
    root = np.sqrt(w[P.index])[:, None]
    M = root * K.dense()[P.index][:, P.index] * root.T + 0.3 * np.eye(60, dtype=np.float64)
    flattened = M @ (P.vectors / root)
    largest = float(np.linalg.eigvalsh(M - flattened @ flattened.T)[-1]) / 60
    assert largest == pytest.approx(float(P.values[-1]), rel=1e-6)
    assert P.top / 1.1 == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize("weighted", [False, True])
def test_features_are_those_of_the_preconditioned_kernel(weighted, dtype):
    K = operator(dtype, n=400)
    omega = np.linspace(0.3, 1.7, 400, dtype=np.float64) if weighted else None
    P = factor(K, subsample=100, weights=omega, features_bytes=1 << 20)
    assert P.features is not None
    assert P.features.dtype == dtype
    expected = K.double().dense()[:, P.index] @ P.vectors
    assert relative(xp.to_float64(P.features), expected) < 20 * xp.finfo(dtype).eps
    assert factor(K, subsample=100, features_bytes=P.features.nbytes - 1).features is None
    assert factor(K, subsample=100, change=lambda x: x, features_bytes=1 << 20).features is None


def test_float32_rows_have_the_eigenvectors_of_float64_ones():
    rng = RandomStream(0)
    X = rng.standard_normal((3000, 4), np.float32)
    narrow, wide = (
        factor(KernelOperator(kernels.Gaussian(2.0), rows, rows), subsample=800, most=100)
        for rows in (as_rows(X), as_rows(xp.to_float64(X)))
    )
    assert narrow.rank == wide.rank > 5
    assert float(np.abs(narrow.values / wide.values - 1).max()) < 0.01
    assert narrow.top == pytest.approx(wide.top, rel=0.02)
    assert narrow.beta == pytest.approx(wide.beta, rel=0.02)


def test_rank_zero_is_plain_gradient_descent():
    p = full()
    K, y = p.K.dense(), p.targets
    state = run(p, EigenPro2(rank=0, batch=N), 7)
    coef = np.zeros_like(y)
    for _ in range(7):
        coef -= state.settings["step"] * (K @ coef - y)
    assert relative(state.coef, coef) < 1e-12


# --- EigenPro 1 and 2 ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("solver", [EigenPro1(), EigenPro2(), EigenPro2(subsample=50, batch=20)])
def test_without_penalty_it_interpolates(solver):
    p = full(kernel=kernels.Laplacian(0.5))
    state = run(p, solver, 120)
    assert relative(p.K @ state.coef, p.targets) < 1e-4
    assert state.metrics["rel_residual"] < 1e-3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", [EigenPro1(), EigenPro2(), EigenPro2(subsample=40, batch=30)])
def test_with_a_penalty_the_fixed_point_is_that_of_pcg(solver, weighted):
    p = full(penalty=3e-2)
    if weighted:
        weights = np.linspace(0.3, 2, N, dtype=np.float64)
        p = FullProblem(p.K, p.targets, p.penalty, weights)
    found = solve(p, solver, stop=[tolerance(1e-10), max_iterations(400)])
    expected = solve(p, PCG(), stop=[tolerance(1e-13), max_iterations(500)]).state.coef
    assert found.reason == "converged"
    assert relative(found.state.coef, expected) < 1e-8


def test_eigenpro2_on_all_rows_with_exponent_one_is_eigenpro1():
    p = full(penalty=1e-3)
    a = run(p, EigenPro1(rank=10, batch=40), 3)
    b = run(p, EigenPro2(subsample=N, rank=10, batch=40, exponent=1.0), 3)
    assert np.array_equal(a.coef, b.coef)


def test_float32_rows(dtype):
    p = full(penalty=1e-1, dtype=dtype)
    expected = solve(
        xp.to_float64(p), PCG(), stop=[tolerance(1e-12), max_iterations(300)]
    ).state.coef
    state = run(p, EigenPro2(subsample=60, batch=60), 60)
    assert state.coef.dtype == np.float64
    assert relative(state.coef, expected) < 20 * xp.finfo(dtype).eps ** 0.5


@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_is_that_on_the_kernel_with_the_ridge(weighted):
    # K and the ridge are one kernel, to the correction, too: in NumPy
    weights = np.linspace(0.3, 2, N, dtype=np.float64) if weighted else None
    p = full(penalty=3e-2)
    p = FullProblem(p.K, p.targets, p.penalty, weights)
    solver = EigenPro2(subsample=40, rank=6, batch=30)
    first, last = list(islice(solver.iterate(p), 2))
    system = solver.system(p, first.seed)
    S, U, eta = system.P.index, system.P.vectors, system.eta
    omega = np.ones(N) if weights is None else (weights / weights.mean())
    A = p.K.dense() + N * p.penalty * np.diag(1 / omega)
    coef = np.zeros((N, 2))
    for B in (B for B in system.shuffle.indices(0)):
        g = omega[B, None] * (A[B] @ coef - p.targets[B])
        coef[B] -= eta * g
        coef[S] += eta * U @ (U.T @ (A[np.ix_(S, B)] @ g))
    np.testing.assert_allclose(last.coef, coef, rtol=1e-9, atol=1e-12)


# --- EigenPro 3 ----------------------------------------------------------------------------------


def test_centers_that_are_the_data_with_exact_projection_are_eigenpro1():
    p = full(kernel=kernels.Laplacian(0.7))
    both = {"rank": 10, "batch": 40, "exponent": 1.0}
    same = NystromProblem.at(p.K, np.arange(N), p.targets, 0.0)
    three = run(same, EigenPro3(subsample=N, projection="exact", average=False, **both), 4)
    one = run(p, EigenPro1(rank=10, batch=40), 4)
    assert relative(p.K @ three.coef, p.K @ one.coef) < 1e-9


@pytest.mark.parametrize("penalty", [0.0, 1e-3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("subsample", [N, 60])
def test_fixed_point(penalty, weighted, subsample):
    weights = np.linspace(0.3, 2, N, dtype=np.float64) if weighted else None
    p = nystrom(penalty, weights)
    solver = EigenPro3(subsample=subsample, rank=4, batch=N, average=False, projection="exact")
    seed = next(solver.iterate(p)).seed
    omega = None if weights is None else weights / weights.mean()
    rng = RandomStream(seed)
    whole = operator()
    P_ = EigenProFactor.build(whole, subsample=subsample, rank=4, weights=omega, rng=rng)
    K = whole.dense()
    KP = kernel_p(P_, K)[:P] * (np.ones(N, np.float32) if omega is None else omega)
    expected = np.linalg.solve(KP @ K[:, :P] + N * penalty * K[:P, :P], KP @ p.targets)
    state = next(solver.iterate(p, State(0, expected)))
    moved = run(p, solver, 3, state).coef
    assert relative(K[:, :P] @ moved, K[:, :P] @ expected) < 1e-10
    far = run(p, solver, 3, State(0, 2 * expected)).coef
    assert relative(K[:, :P] @ far, K[:, :P] @ expected) < 0.7


def test_lemma_6_with_all_rows():
    p = nystrom()
    solver = EigenPro3(subsample=N, exponent=1.0, rank=4, batch=N, average=False)
    coef = run(p, solver, 500).coef
    K = operator().dense()
    values, E = np.linalg.eigh(K)
    D = np.zeros(N, np.float64)
    D[-4:] = 1 - values[-5] / values[-4:]
    left = np.eye(N, dtype=np.float64) - E @ np.diag(D) @ E.T
    A = K[:P] @ left @ K[:, :P]
    expected = np.linalg.solve(A, K[:P] @ left @ p.targets)
    assert relative(K[:, :P] @ coef, K[:, :P] @ expected) < 1e-8


def test_rank_zero_is_least_squares():
    p = nystrom()
    K = operator().dense()[:, :P]
    expected = np.linalg.lstsq(K, p.targets)[0]
    solver = EigenPro3(rank=0, batch=N, average=False)
    assert relative(K @ run(p, solver, 3, State(0, expected)).coef, K @ expected) < 1e-10
    errors = [relative(K @ run(p, solver, k).coef, K @ expected) for k in (10, 100)]
    assert errors[1] < 0.5 * errors[0]


def test_inexact_projection_tends_to_the_exact_one():
    p = nystrom(1e-3)
    common = {"batch": 50, "rank": 4, "average": False}
    exact = run(p, EigenPro3(projection="exact", **common), 3).coef
    errors = [
        relative(run(p, EigenPro3(projection="inexact", **settings, **common), 3).coef, exact)
        for settings in (
            {"projection_epochs": 1},
            {"projection_epochs": 30, "projection_tol": 0},
            {"projection_epochs": 300, "projection_tol": 0},
        )
    ]
    assert errors[0] > 3 * errors[1]
    assert errors[2] < 1e-6


def test_a_projection_that_is_good_enough_ends():
    K = operator()
    P_ = factor(K, subsample=50)
    h = 1e-6 * targets(K)  # the rule is relative
    one, two, many = (
        InexactProjection.build(K, P_, 30, epochs, tol, seed=0).solve(h, 1)
        for epochs, tol in ((1, 0.0), (50, 0.99), (50, 0.0))
    )
    assert np.array_equal(one, two)
    assert relative(K @ many, h) < 0.1 * relative(K @ one, h)


@pytest.mark.parametrize("tol", [0.3, 0.1, 0.03])
def test_an_inexact_projection_leaves_no_more_than_its_tolerance(tol):
    K = operator()
    h = targets(K)
    theta = InexactProjection.build(K, factor(K, subsample=50), 30, 500, tol, seed=0).solve(h, 1)
    left = xp.norm(h - K @ theta, axis=0) / xp.norm(h, axis=0)
    assert 0.1 * tol < float(left.max()) <= tol


def test_delayed_with_one_batch_is_undelayed():
    p = nystrom(1e-3)
    common = {"batch": 40, "rank": 4}
    delayed = run(p, EigenPro3(projection="delayed", delay=1, **common), 3)
    inexact = run(p, EigenPro3(projection="inexact", projection_epochs=1, **common), 3)
    assert np.array_equal(delayed.coef, inexact.coef)


@pytest.mark.parametrize("delay", [3, 4, 9])  # of six batches: two projections, or a rest
def test_where_centers_are_the_data_delay_changes_nothing_but_rounding(delay):
    # the function that is projected is in the span already, so it does not matter when it is
    K = operator(kernel=kernels.Laplacian(0.7))
    p = NystromProblem.at(K, np.arange(N), targets(K), 1e-3)
    common = {"batch": 20, "rank": 4, "projection": "exact", "average": False}
    now = run(p, EigenPro3(delay=1, **common), 2).coef
    later = run(p, EigenPro3(delay=delay, **common), 2).coef
    assert relative(K @ later, K @ now) < 1e-10


@pytest.mark.parametrize("projection", ["exact", "delayed"])
@pytest.mark.parametrize("delay", [1, 2, 3, 5])
def test_neither_chunks_nor_features_change_more_than_rounding(projection, delay, monkeypatch):
    p = nystrom(1e-3, np.linspace(0.3, 2, N, dtype=np.float64))
    solver = EigenPro3(batch=20, rank=4, subsample=50, delay=delay, projection=projection)
    expected, counts = p.K @ run(p, solver, 2).coef, []
    monkeypatch.setattr("gramian.solvers.eigenpro.setup.CHUNK_ENTRIES", 1)
    for rows, share in ((20, 4), (40, 4), (70, 4), (70, 1 << 40)):  # one, two and three batches
        monkeypatch.setattr("gramian.solvers.eigenpro.setup.CHUNK_ROWS", rows)
        monkeypatch.setattr("gramian.solvers.eigenpro.eigenpro3.FEATURES_SHARE", share)
        before = p.K.meter.evaluations
        assert relative(p.K @ run(p, solver, 2).coef, expected) < 1e-10
        counts.append(p.K.meter.evaluations - before)
    assert counts[3] == counts[2] + 2 * N * 50  # those against the subsample


@pytest.mark.parametrize("projection", ["exact", "delayed"])
@pytest.mark.parametrize("delay", [1, 4])
def test_sparse_rows_are_learned_as_dense_ones(projection, delay):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, 8)) < 0.4, rng.standard_normal((N, 8)), 0.0)
    y = np.sin(X[:, 0]) + X[:, 1]
    solver = EigenPro3(batch=20, rank=4, delay=delay, projection=projection)
    est = KernelRidge(
        "gaussian", lengthscale=2.0, penalty=1e-3, landmarks=30, solver=solver, max_iter=2,
        tol=0.0, standardize=False, random_state=0,
    )  # fmt: skip
    expected = est.fit(X, y).predict(X)
    found = est.fit(scipy.sparse.csr_array(X), y).predict(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.std(expected))


@pytest.mark.parametrize("p", [20, 300, 700])
def test_the_plan_counts_the_entries(p):
    K = operator(np.float32, kernels.Gaussian(2.0), 3000)
    problem = NystromProblem.at(K, np.arange(p), targets(K), 0.0)
    solver, size = EigenPro3(subsample=300), ProblemSize(3000, 3, 2, p, 4, full=False)
    assert len(list(islice(solver.iterate(problem), 4))) == 4
    counted = K.meter.evaluations
    assert solver.evaluations(size, 3) == pytest.approx(counted, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("projection", ["exact", "delayed"])
def test_it_learns_with_any_projection(projection):
    p = nystrom(1e-4, n=2000)
    solver = EigenPro3(projection=projection, batch=100, subsample=500)
    result = solve(p, solver, stop=[max_iterations(30)])
    least = solve(p, Falkon(), stop=[tolerance(1e-10)]).state.coef
    errors = [float(np.square(p.K @ c - p.targets).mean()) for c in (result.state.coef, least)]
    assert errors[0] < 1.15 * errors[1]


@pytest.mark.slow
def test_the_mean_is_below_the_noise_floor():
    p = nystrom(1e-3, n=600)
    exact = run(p, EigenPro3(batch=600, rank=3, average=False), 150).coef
    errors = [
        relative(p.K @ run(p, EigenPro3(batch=20, rank=3, average=a), 12).coef, p.K @ exact)
        for a in (True, False)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_in_the_mean_an_iterate_weighs_as_the_eighth_power_of_its_number():
    p, batches = nystrom(1e-3), 4
    common = {"batch": N // batches, "rank": 4, "states_per_epoch": batches}
    iterates = islice(EigenPro3(average=False, **common).iterate(p), 1, 13)
    mean = list(islice(EigenPro3(**common).iterate(p), 13))[-1]
    # k (k + 1) ... (k + 7), whose sums are those with one factor more, over 9
    share = np.array([np.prod(np.arange(k, k + 8.0)) for k in range(1, 13)])
    each = np.stack([s.coef for s in iterates])
    expected = np.tensordot(share / share.sum(), each, axes=1)
    np.testing.assert_allclose(mean.coef, expected, rtol=1e-10)


FLAT = {"wide": (100.0, 1.0), "constant": (1e8, 1.0), "one row": (1.0, 0.0)}


@pytest.mark.parametrize("penalty", [0.0, 1e-6])
@pytest.mark.parametrize("case", FLAT)
@pytest.mark.parametrize("kind", [EigenPro2, EigenPro3])
def test_the_mean_of_the_targets_is_learned_where_the_kernel_is_flat(kind, case, penalty, dtype):
    lengthscale, spread = FLAT[case]
    X = as_rows(spread * xp.cast(RandomStream(0).standard_normal((200, 3), np.float32), dtype))
    K = KernelOperator(kernels.Gaussian(lengthscale), X, X)
    y = 2.9 + 0.01 * xp.cast(RandomStream(1).standard_normal((200, 1), np.float32), dtype)
    p = FullProblem(K, y, penalty)
    if kind is EigenPro3:
        p = NystromProblem.at(K, np.arange(20), y, penalty)
    f = p.K @ run(p, kind(), 15).coef
    assert float(np.abs(f - 2.9).max()) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernels.Linear(2.0), kernels.Polynomial(1.0, degree=3)])
@pytest.mark.parametrize("kind", [EigenPro2, EigenPro3])
def test_a_thousand_equal_rows_do_not_make_it_diverge(kind, kernel, dtype):
    X = as_rows(np.full((1000, 3), 0.7, dtype=dtype))
    K, y = KernelOperator(kernel, X, X), np.full((1000, 1), 2.9, dtype=dtype)
    p = FullProblem(K, y, 0.0)
    if kind is EigenPro3:
        p = NystromProblem.at(K, np.arange(100), y, 0.0)
    f = p.K @ run(p, kind(), 30).coef
    assert float(np.abs(f - 2.9).max()) < 0.3


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("kind", [EigenPro2, EigenPro3])
def test_a_few_rows_are_learned_in_a_few_epochs(kind, n, dtype):
    X = as_rows(np.arange(1.0, n + 1, dtype=dtype)[:, None])
    K, y = KernelOperator(kernels.Linear(1.0), X, X), np.arange(1.0, n + 1, dtype=dtype)[:, None]
    p = FullProblem(K, y, 0.0)
    if kind is EigenPro3:
        p = NystromProblem.at(K, np.arange(n - 1), y, 0.0)
    f = p.K @ run(p, kind(), 30).coef
    assert relative(f, xp.to_float64(y)) < 0.02


def test_a_step_that_is_too_long_ends_as_diverged_before_numbers_end(dtype):
    result = solve(full(1e-3), EigenPro2(step_scale=30.0), stop=[max_iterations(200)])
    assert result.reason == "diverged"
    assert result.history[-1]["batch_mse"] < 1e30


def test_where_nothing_is_learned_it_stops_and_says_so():
    # the one direction there is comes down to nothing, as a rank that is given has it
    X, y = np.ones((60, 2)) * [1, 2], 2.9 + 0.1 * np.cos(np.arange(60))
    model = KernelRidge(
        kernel="gaussian",
        penalty=1e-6,
        landmarks=10,
        solver=EigenPro3(rank=1),
        max_iter=50,
        lengthscale="median",
    )
    with pytest.warns(ConvergenceWarning, match="the error on the batches is no lower than"):
        model.fit(X, y)
    assert model.stop_reason_ == "no_progress"
    assert model.n_iter_ == 10


def test_no_progress_of_batches_is_not_taken_for_rounding():
    X, y = np.ones((60, 2)), (-1.0) ** np.arange(60)  # nothing to learn: equal rows, a mean of zero
    model = KernelRidge(kernel="gaussian", lengthscale=1.0, penalty=0, solver=EigenPro2())
    with pytest.warns(ConvergenceWarning, match="the error on the batches is no lower than"):
        model.fit(X, y)
    assert "rel_residual" in model.history_[-1]


def test_the_mean_is_of_the_iterates_and_not_one_of_them():
    p = nystrom(1e-3)
    mean, last = (run(p, EigenPro3(batch=20, average=a), 4) for a in (True, False))
    assert np.array_equal(mean.last, last.coef)
    assert not np.allclose(mean.coef, mean.last)


def test_conjugate_gradient_goes_on_to_least_squares():
    p = nystrom(1e-4)
    coef = run(p, EigenPro3(batch=40), 20).coef
    result = solve(p, Falkon(), state=State(0, coef), stop=[tolerance(1e-10), max_iterations(99)])
    expected = solve(p, Falkon(), stop=[tolerance(1e-12), max_iterations(99)]).state.coef
    assert relative(p.K @ result.state.coef, p.K @ expected) < 1e-7


@pytest.mark.parametrize(
    "solver",
    [
        EigenPro2(batch=20, subsample=50, states_per_epoch=3),
        EigenPro3(batch=20, subsample=50, states_per_epoch=3),
        EigenPro3(batch=20, delay=2, projection="delayed", augment=noise(0.1), states_per_epoch=2),
    ],
)
def test_resuming_within_an_epoch_changes_nothing(solver):
    p = full(1e-3) if isinstance(solver, EigenPro2) else nystrom(1e-3)
    states = list(islice(solver.iterate(p, rng=RandomStream(3)), 9))
    again = list(islice(solver.iterate(p, states[4]), 5))
    assert np.array_equal(states[8].coef, again[4].coef)
    assert states[8].metrics == again[4].metrics
    assert states[solver.states_per_epoch].metrics["epoch"] == 1


def test_the_augmentation_is_seen():
    p, seen = nystrom(), []

    def double(x: np.ndarray, y: np.ndarray, rng: RandomStream) -> tuple[np.ndarray, np.ndarray]:
        seen.append(len(x))
        return x, 2 * y

    def same(x: np.ndarray, y: np.ndarray, rng: RandomStream) -> tuple[np.ndarray, np.ndarray]:
        return x, y

    # with the steps of rows that change
    plain = run(p, EigenPro3(batch=40, subsample=50, augment=same), 2).coef
    doubled = run(p, EigenPro3(batch=40, subsample=50, augment=double), 2).coef
    assert relative(doubled, 2 * plain) < 1e-9
    assert sum(seen) == 2 * N + 2 * 50  # each row in each epoch; subsample and fresh sample


def test_noise_is_different_in_each_epoch_and_the_same_again():
    p, seen = nystrom(), []

    def record(x: np.ndarray, y: np.ndarray, rng: RandomStream) -> tuple[np.ndarray, np.ndarray]:
        x, y = noise(0.1)(x, y, rng)
        seen.append(x)
        return x, y

    solver = EigenPro3(batch=N, subsample=50, augment=record)
    run(p, solver, 2)
    first, second = seen[-2:]
    assert not np.array_equal(first, second)
    run(p, solver, 2)
    assert np.array_equal(first, seen[-2])


# --- automatic settings --------------------------------------------------------------------------

KERNELS = [
    kernels.Gaussian(1.0),
    kernels.Gaussian(5.0),
    kernels.Laplacian(1.0),
    kernels.Matern52(2.0),
    kernels.Polynomial(degree=3, lengthscale=2.0),
]


def random_rows(case: int) -> np.ndarray:
    """Clusters of very different sizes and widths in odd cases, a cloud with outliers in even."""
    rng = RandomStream(case)
    n, d = 300 + 97 * (case % 5), (1, 2, 5, 20)[case % 4]
    X = rng.standard_normal((n, d), np.float64)
    if case % 2:
        share = rng.random(n, np.float32)
        which = xp.cast(share > 0.7, np.int64) + xp.cast(share > 0.97, np.int64)
        X = X * np.array([0.05, 1.0, 0.01], dtype=np.float32)[which][:, None] + 5.0 * which[:, None]
    else:
        X[:3] *= 6
    return X


@pytest.mark.slow
@pytest.mark.parametrize("case", range(20))
def test_automatic_settings_do_not_diverge(case):
    X = xp.cast(random_rows(case), np.float32 if case % 3 == 0 else np.float64)
    rng = RandomStream(99)
    y = np.tanh(X[:, :1] + 0.5 * rng.standard_normal((len(X), 1), np.float32))
    rows = as_rows(X)
    K = KernelOperator(KERNELS[case % len(KERNELS)], rows, rows)
    penalty = (0.0, 1e-6, 1e-2)[case % 3]
    index = rng.permutation(len(X))[:60]
    problems = [FullProblem(K, y, penalty), NystromProblem.at(K, index, y, penalty)]
    # a small subsample, batches of all sizes, a rank up to its bound
    for subsample, batch in ((100, "auto"), (100, 40), (50, len(X))):
        for problem, kind in zip(problems, (EigenPro2, EigenPro3), strict=True):
            result = solve(problem, kind(subsample, "auto", batch), stop=[max_iterations(6)])
            errors = [row["batch_mse"] for row in result.history if "batch_mse" in row]
            assert result.reason == "max_iterations"
            assert errors[-1] <= 1.05 * errors[0]
            assert errors[-1] <= 1.05 * float(np.square(y).mean())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: EigenPro2(subsample=0),
            "subsample must be a whole number of at least 1 or 'auto'",
        ),
        (lambda: EigenPro2(rank=-1), "rank must be"),
        (lambda: EigenPro2(batch="all"), "batch must be"),
        (lambda: EigenPro2(exponent=1.5), "exponent must be above 0 and at most 1, not 1.5"),
        (lambda: EigenPro2(step_scale=0), "step_scale must be positive and finite"),
        (lambda: EigenPro2(states_per_epoch=0), "states_per_epoch must be a whole number"),
        (lambda: EigenPro1(subsample=10), "subsample=10 cannot be used with EigenPro1"),
        (lambda: EigenPro3(projection="none"), "projection must be one of auto, delayed, inexact"),
        (lambda: EigenPro3(delay=0), "delay must be a whole number of at least 1 or 'auto'"),
        (lambda: EigenPro3(projection_epochs=0), "projection_epochs must be"),
        (lambda: EigenPro3(projection_tol=1), "projection_tol must be at least 0 and below 1"),
        (lambda: EigenPro3(augment="noise"), "augment must be a function of x, y and rng"),
    ],
)
def test_settings_that_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("solver", [PCG(), Falkon()])
def test_penalty_zero_is_refused_by_those_who_divide_by_it(solver):
    problem = full() if isinstance(solver, PCG) else nystrom()
    with pytest.raises(ValueError, match=r"needs a positive penalty, not 0.*eigenpro1, eigenpro2"):
        solve(problem, solver)


def test_too_many_rows_for_eigenpro1_are_refused():
    X = as_rows(np.zeros((20_001, 1), np.float32))
    p = FullProblem(
        KernelOperator(kernels.Gaussian(1.0), X, X), np.zeros((20_001, 1), np.float32), 0.0
    )
    with pytest.raises(ValueError, match="at most 20,000 rows, not 20,001; use EigenPro2"):
        solve(p, EigenPro1())
