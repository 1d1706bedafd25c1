"""Theorems 1 to 3 of FALKON, and its count of kernel evaluations, on rows at hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import numpy as np

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Direct, Falkon, Solver, max_iterations, solve

from ..item import Outcome, Scale, judged
from ..stored import sample_rows


def landmark_problem(
    X: np.ndarray, y: np.ndarray, m: int, penalty: float, lengthscale: float | str = "median"
) -> NystromProblem:
    """Return the problem of uniform landmarks, with a Gaussian kernel."""
    kernel = kernels.make("gaussian", lengthscale=lengthscale).resolve(X[:1000])
    rows = as_rows(X)
    index = RandomStream(0).permutation(len(X))[:m]
    return NystromProblem.at(KernelOperator(kernel, rows, rows), index, y, penalty)


def error_curve(
    solver: Solver, problem: NystromProblem, X: np.ndarray, y: np.ndarray, epochs: int
) -> list[float]:
    """Return the RMSE at other rows after each epoch."""
    K = replace(problem.K, rows=as_rows(X))
    states = islice(solver.iterate(problem, rng=RandomStream(0)), 1, epochs + 1)
    errors = []
    for state in states:
        errors.append(float(np.sqrt(np.square(K @ state.coef - y).mean())))
        if state.verdict is not None:
            break
    return errors


def all_rows_as_centers(scale: Scale) -> Outcome:
    X, y, *_ = sample_rows(scale, "nycflights", 500)
    index = np.arange(len(X))
    rows = as_rows(X)
    K = KernelOperator(kernels.make("laplacian", lengthscale=3.0), rows, rows)
    problem = NystromProblem.at(K, index, y, 1e-3)
    solver = Falkon(preconditioner_penalty=None)
    coef = solve(problem, solver, stop=[max_iterations(1)]).state.coef
    exact = K @ solve(FullProblem(K, y, 1e-3), Direct()).state.coef
    error = float(xp.norm(K @ coef - exact) / xp.norm(exact))
    return Outcome(
        f"relative distance to exact KRR after one iteration {error:.1e}",
        "reproduced" if error < 1e-6 else "not reproduced",
        "" if error < 1e-6 else "rounding",
    )


def exponential_decay(scale: Scale) -> Outcome:
    """Theorem 1: the distance to the Nystrom solution falls like exp(-nu t), nu >= 1/2."""
    n, m = scale.size(2000, 10_000), scale.size(400, 1000)
    X, y, *_, name = sample_rows(scale, "nycflights", n)
    problem = landmark_problem(X, y, m, 1 / math.sqrt(len(X)))
    exact = problem.K @ solve(problem, Direct()).state.coef
    gaps = [
        float(xp.norm(problem.K @ state.coef - exact))
        for state in islice(Falkon(preconditioner_penalty=None).iterate(problem), 12)
    ]
    rate = math.log(gaps[0] / gaps[-1]) / (len(gaps) - 1)
    return judged(
        f"nu = {rate:.2f} over {len(gaps) - 1} iterations",
        rate >= 0.5,
        f"{name}, n = {len(X):,}, M = {m:,}, penalty n^-1/2",
        "the condition number is above 17",
    )


def condition_numbers(scale: Scale) -> Outcome:
    """Theorem 2: with enough landmarks the condition number of B'HB is below 17."""
    n = scale.size(2000, 10_000)
    X, y, *_, name = sample_rows(scale, "nycflights", n)
    found = {}
    for m in (50, 200, 800):
        problem = landmark_problem(X, y, m, 1 / math.sqrt(len(X)))
        falkon = Falkon(preconditioner_penalty=None)
        state = solve(problem, falkon, stop=[max_iterations(30)]).state
        found[m] = float(state.cg.metrics["condition"])
    shown = ", ".join(f"M = {m}: {value:.1f}" for m, value in found.items())
    return judged(
        f"condition number of B'HB at penalty n^-1/2: {shown}",
        found[800] < 17 and found[800] < found[50],
        f"{name}, n = {len(X):,}; the theorem's M exceeds n at these sizes",
        "M is too small for this penalty",
    )


def learning_rate(scale: Scale) -> Outcome:
    """Theorem 3: with M of order sqrt(n) and log n iterations, FALKON is as good as KRR."""
    n = scale.size(2000, 8000)
    X, y, X_test, y_test, name = sample_rows(scale, "nycflights", n)
    n = len(X)
    penalty, m = 1 / math.sqrt(n), int(2 * math.sqrt(n) * math.log(n))
    t = math.ceil(math.log(n)) + 5
    problem = landmark_problem(X, y, min(m, n), penalty)
    ours = error_curve(Falkon(), problem, X_test, y_test, t)[-1]
    rows = as_rows(X)
    full = FullProblem(KernelOperator(problem.K.kernel, rows, rows), y, penalty)
    coef = solve(full, Direct()).state.coef
    K = KernelOperator(problem.K.kernel, as_rows(X_test), rows)
    exact = float(np.sqrt(np.square(K @ coef - y_test).mean()))
    return judged(
        f"test RMSE {ours:.4g} after {t} iterations, exact KRR {exact:.4g}",
        ours <= 1.01 * exact,
        f"{name}, n = {n:,}, M = {min(m, n):,}, penalty n^-1/2",
        "M is too small",
    )


def costs_in_n(scale: Scale) -> Outcome:
    """Count the kernel evaluations of t iterations at growing n with M = sqrt(n) log n."""
    sizes = (1000, 2000, 4000) if scale.quick else (2000, 8000, 32_000)
    counts = []
    for n in sizes:
        X, y, *_ = sample_rows(scale, "nycflights", n)
        m = int(math.sqrt(len(X)) * math.log(len(X)))
        problem = landmark_problem(X, y, m, 1 / math.sqrt(len(X)))
        solve(problem, Falkon(), stop=[max_iterations(10)])
        counts.append((len(X), problem.K.meter.evaluations / math.log(len(X))))
    slope = float(np.polyfit(*np.log(np.array(counts)).T, 1)[0])
    return judged(
        f"exponent {slope:.2f}",
        1.4 <= slope <= 1.65,
        f"n = {sizes[0]:,} to {sizes[-1]:,}, t = 10, M = sqrt(n) log n, evaluations over log n",
        "the m² evaluations of K_mm still count at these sizes",
    )
